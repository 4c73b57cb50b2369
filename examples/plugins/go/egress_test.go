package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	pb "agent-hooks-example-egress/gen/agent_hooks/v1"
)

func mustPolicy(t testing.TB, config string) *policy {
	t.Helper()
	p, faults := parsePolicy(config)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return p
}

// args wraps a text as the arguments of a tool call.
func args(t testing.TB, text string) string {
	t.Helper()
	encoded, err := json.Marshal(map[string]any{"a": []any{map[string]any{"b": text}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func decide(t testing.TB, p *policy, text string) pb.Decision {
	t.Helper()
	verdict, err := judge("fetch", p, args(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return verdict.GetDecision()
}

const allowList = `{"allow_hosts": ["good.example", "*.sub.example", "Bücher.example", "192.0.2.1", "2001:db8::1", "a_b.example"]}`

func TestAllowedURLsPass(t *testing.T) {
	p := mustPolicy(t, allowList)
	for _, text := range []string{
		"",
		"no URL, only a/path, C:\\path, a//b, user@mail.example and 10:30",
		"// a comment",
		"//",
		"http: a protocol",
		"x = '' // a comment\ny = \"//\"",
		"https://good.example",
		"HTTPS://GOOD.Example/Path?q=1#f",
		"  https://good.example/  ",
		"//good.example/path",
		"https://good.example:8443/",
		"https://good.example./",
		"https://good.example?q=me@evil.example",
		"https://good.example#@evil.example",
		"https://user:secret@good.example/",
		"https://goo%64.example/",
		"https://one.sub.example/",
		"https://two.one.sub.example/",
		"https://bücher.example/",
		"https://BÜCHER.example/",
		"https://xn--bcher-kva.example/",
		"https://good。example/",
		"https://a_b.example/",
		"http://192.0.2.1:80/",
		"http://[2001:db8::1]/",
		"http://[2001:0DB8:0::1]:80/",
		"http://[::ffff:192.0.2.1]/",
		"wss://good.example/socket and ftp://good.example/file",
		"See https://good.example, (https://good.example) and https://good.example.",
		"See “https://good.example”, **https://good.example** and [https://good.example].",
		"[text](https://good.example) ![image](//good.example/i.png)",
		`<a href="https://good.example">good.example</a> <https://good.example>`,
		`{"url":"https://good.example","n":1}`,
		`['https://good.example', 'https://good.example']`,
		`curl -s "https://good.example" | sh`,
		"https://good.example/a\nhttps://good.example/b",
		"first line\nhttps://good.example\nlast line, to me@mail.example",
		"https://good.example is up",
		"// @ts-ignore",
	} {
		if got := decide(t, p, text); got != pb.Decision_DECISION_ALLOW {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestOtherURLsAreRefused(t *testing.T) {
	p := mustPolicy(t, allowList)
	for name, texts := range map[string][]string{
		"another host": {
			"https://evil.example", "http://evil.example/", "ws://evil.example", "WSS://evil.example",
			"ftp://evil.example", "hTTpS://evil.example", "sftp://evil.example", "see https://evil.example/x.",
			"xhttps://evil.example", "git+https://evil.example/x", `fetch('https://evil.example')`,
			"https://notgood.example", "https://good.example.evil.example", "https://good.exam", "https://localhost/",
		},
		"a wildcard has no apex": {"https://sub.example/", "https://notsub.example/", "https://.sub.example/"},
		"no scheme": {
			"//evil.example/x", "![x](//evil.example/?d=1)", `<img src="//evil.example/i">`, "<img src=//evil.example/i>",
			`//!@evil.example`, `//"@evil.example`, "https:@evil.example", "https: @evil.example",
		},
		"user information": {
			"https://good.example@evil.example/", "https://good.example:443@evil.example/", "https://good.example%2f@evil.example/",
			"https://a@good.example@evil.example/", "https://a@evil.example@good.example/", "https://good.example @evil.example/",
			"see https://good.example<@evil.example/", "https://good.example\t@evil.example/",
		},
		"backslashes": {
			`https:\\evil.example`, `https:\\good.example`, `https:/\good.example`, `https://good.example\@evil.example`,
			`https://good.example\.evil.example`, `\\evil.example\share`, `/\evil.example`, `href="/\evil.example"`,
			`text with {\"u\": \"https:\/\/evil.example\"}`,
		},
		"slashes": {"https:evil.example", "https:/evil.example", "https:///evil.example", "see http:/evil.example"},
		"white space that clients drop": {
			"ht\ntps://evil.example", "https:\t//evil.example", "https://good.example\n.evil.example/", "\x01https://evil.example",
			"https://good.example\r\n.evil.example/",
		},
		"quotes that a shell joins": {
			`curl https://good.example"".evil.example/`, `curl https://good.example''.evil.example/`,
			"curl https://good.example``.evil.example/", `curl https://good.example$X.evil.example/`, `"https://"evil.example`,
		},
		"names that only some clients take": {
			"https://good.example,.evil.example/", "https://good.example;.evil.example/", `https://good.example",.evil.example/`, "https://good.example [::1]/",
			"https://good.example|evil.example/",
			"https://good.example%00.evil.example/", "https://good.example%2f.evil.example/", "https://good.example%2523",
		},
		"percent-encoded": {"https://%65vil.example/", "https://%zz.example/", "https://good%2eexample%2eevil.example/", "https://%ff.example/"},
		"Unicode": {
			"https://ｅvil.example/", "https://good.example／.evil.example/", "https://good.example＠evil.example/",
			"https://good.example\u200b.evil.example/", "https://gооd.example/", "https://xn--0.example/",
			"https://good.example。evil.example/", "https://bucher.example/",
		},
		"ports":     {"https://good.example:x/", "https://good.example:65536/", "https://good.example:-1/", "https://good.example:80:81/"},
		"addresses": {"http://192.0.2.2/", "http://3221225985/", "http://0xc0000201/", "http://0300.0.2.1/", "http://192.0.513/", "http://[2001:db8::2]/", "http://[::1", "http://[fe80::1%25eth0]/", "http://[192.0.2.1]/", "http://::1/"},
		"no host":   {"https://", "https:///", "https://?q", "https://:80/", "https://user@/", "must start with https://", "https://{host}/", "https://..good.example/"},
		"nested":    {"https://good.example/?next=https://evil.example", "https://good.example/https://evil.example/", "https://https://evil.example"},
		"long":      {"https://" + strings.Repeat("a.", 600) + "example", "https://" + strings.Repeat("a", 64) + ".sub.example"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, text := range texts {
				if got := decide(t, p, text); got != pb.Decision_DECISION_DENY {
					t.Errorf("%q: %v", text, got)
				}
			}
		})
	}
}

func TestEveryStringIsSearched(t *testing.T) {
	p := mustPolicy(t, `{}`)
	for _, text := range []string{
		`"https://evil.example"`,
		`["https://evil.example"]`,
		`{"a": {"b": [1, null, {"c": ["https://evil.example"]}]}}`,
		`{"https://evil.example": 1}`,
		`{"a": 1e999, "b": 9007199254740993, "c": "\u0068ttps:\/\/evil.example"}`,
		strings.Repeat("[", 5000) + `"//evil.example"` + strings.Repeat("]", 5000),
	} {
		verdict, err := judge("fetch", p, text)
		if err != nil || verdict.GetDecision() != pb.Decision_DECISION_DENY {
			t.Errorf("%.60s: %v %v", text, verdict, err)
		}
	}
	verdict, err := judge("fetch", p, `{"a": 1}`, `{"b": "https://evil.example"}`)
	if err != nil || verdict.GetDecision() != pb.Decision_DECISION_DENY {
		t.Errorf("second text: %v %v", verdict, err)
	}
}

func TestNoJSONIsNoVerdict(t *testing.T) {
	for _, text := range []string{"", "{", `{"a": "secret"`, `{"a" "secret"}`, `{} {}`, "secret", `[NaN]`} {
		verdict, err := judge("fetch", mustPolicy(t, `{}`), text)
		if verdict != nil || err != errNotJSON {
			t.Errorf("%q: %v %v", text, verdict, err)
		}
	}
}

func TestVerdictNamesToolAndCountOnly(t *testing.T) {
	text := `{"a": "https://evil.example/secret https://good.example/secret", "b": "https://bad.example/secret"}`
	for onViolation, liftable := range map[string]bool{"deny": false, "escalate": true} {
		p := mustPolicy(t, `{"allow_hosts": ["good.example"], "on_violation": "`+onViolation+`"}`)
		verdict, err := judge("fetch", p, text)
		if err != nil {
			t.Fatal(err)
		}
		if want := `tool "fetch": 2 of the 3 URLs in its arguments not allowed`; verdict.GetMessage() != want {
			t.Errorf("message %q", verdict.GetMessage())
		}
		if verdict.GetReason() != "egress:host_not_allowed" || (verdict.ApprovalJson != nil) != liftable {
			t.Errorf("%s: %v", onViolation, verdict)
		}
	}
}

func TestWithheldArgumentsAreDenied(t *testing.T) {
	p := mustPolicy(t, `{"on_violation": "escalate"}`)
	verdict, err := judge("fetch", p, `{"url": {"$withheld": "not granted"}}`)
	if err != nil || verdict.GetReason() != "egress:args_withheld" || verdict.ApprovalJson != nil {
		t.Errorf("%v %v", verdict, err)
	}
}

func TestConfigurationFaults(t *testing.T) {
	hostFault := "neither a host nor *. and a domain name; no scheme, port or path"
	for config, want := range map[string][]string{
		`{}`:                           nil,
		``:                             {": not a JSON object"},
		`null`:                         {": not a JSON object"},
		`[]`:                           {": not a JSON object"},
		`{} {}`:                        {": not a JSON object"},
		`{"allow_hosts": null}`:        {"/allow_hosts: not an array"},
		`{"allow_hosts": "secret"}`:    {"/allow_hosts: not an array"},
		`{"Allow_Hosts": []}`:          {"/Allow_Hosts: unknown member"},
		`{"a/b~c": "secret"}`:          {"/a~1b~0c: unknown member"},
		`{"on_violation": null}`:       {`/on_violation: neither "deny" nor "escalate"`},
		`{"on_violation": ["secret"]}`: {`/on_violation: neither "deny" nor "escalate"`},
		`{"allow_hosts": ["a.example", 1], "on_violation": "secret"}`: {
			"/allow_hosts/1: " + hostFault, `/on_violation: neither "deny" nor "escalate"`},
	} {
		if _, faults := parsePolicy(config); !slices.Equal(faults, want) {
			t.Errorf("%s: %q", config, faults)
		}
	}
	for _, entry := range []string{"", "*", "*.", "*.*.example", "a.*.example", "https://a.example", "a.example:443", "a.example/", "u@a.example", "*.192.0.2.1", "a b", "127.1"} {
		if (&policy{hosts: map[string]bool{}}).add(entry) {
			t.Errorf("%q accepted", entry)
		}
	}
}

// Whatever the text, a URL appended to it on a line of its own is found.
func FuzzURLIsFound(f *testing.F) {
	for _, seed := range []string{"", "https://good.example", "https://a@", "//", `"`, "(", "https:\\", "\u00e9", "["} {
		f.Add(seed)
	}
	p := mustPolicy(f, allowList)
	f.Fuzz(func(t *testing.T, text string) {
		if decide(t, p, text+"\nhttps://evil.example/") != pb.Decision_DECISION_DENY {
			t.Errorf("%q hides a URL", text)
		}
	})
}

// Linear work: a quadratic search takes minutes at full size.
func TestHostileTextIsJudgedInTime(t *testing.T) {
	p := mustPolicy(t, allowList)
	for _, unit := range []string{"https://", "https://good.example ", "https://a@", "//", `"//a`, "ü", "https:", "[", "@"} {
		start := time.Now()
		decide(t, p, "https://"+strings.Repeat(unit, 1<<18/len(unit)))
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("256 KiB of %q took %v", unit, took)
		}
	}
}
