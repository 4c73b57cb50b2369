package main

// The judgement, with no I/O: the JSON text of a tool call's arguments and a
// policy in, a verdict out. Where clients are known to read a URL differently
// from each other, the URL is a violation whatever its host seems to be: a
// guard that picks one reading loses to a client that picks the other.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	pb "agent-hooks-example-egress/gen/agent_hooks/v1"
)

// errNotJSON never quotes what it failed to parse.
var errNotJSON = errors.New("the arguments are not JSON")

// judge decides on the call of one tool. Each text is a JSON value; every
// string in it is searched for URLs, at any depth, member names included.
func judge(tool string, p *policy, texts ...string) (*pb.Verdict, error) {
	urls, refused := 0, 0
	for _, text := range texts {
		found, err := stringsIn(text)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			if s == "$withheld" { // Stands where the manifest's `sees` hid a value.
				return deny("egress:args_withheld", fmt.Sprintf("tool %q: some arguments are withheld from this plugin", tool)), nil
			}
			for _, c := range urlsIn(s) {
				urls++
				if host, ok := c.host(); !ok || !p.allows(host) {
					refused++
				}
			}
		}
	}
	if refused == 0 {
		return &pb.Verdict{Decision: pb.Decision_DECISION_ALLOW}, nil
	}
	// The message names no URL: it is recorded, and arguments may hold secrets.
	verdict := deny("egress:host_not_allowed", fmt.Sprintf("tool %q: %d of the %d URLs in its arguments not allowed", tool, refused, urls))
	if p.escalate {
		liftable := "{}"
		verdict.ApprovalJson = &liftable
	}
	return verdict, nil
}

func deny(reason, message string) *pb.Verdict {
	return &pb.Verdict{Decision: pb.Decision_DECISION_DENY, Reason: &reason, Message: &message}
}

// stringsIn returns every string of a JSON text, member names included.
func stringsIn(text string) ([]string, error) {
	data := []byte(text)
	if !json.Valid(data) { // Token alone reports a text cut short as its regular end.
		return nil, errNotJSON
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // A float64 would round 64-bit integers and refuse 1e999.
	var found []string
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return nil, errNotJSON
		}
		if s, ok := token.(string); ok {
			found = append(found, s)
		}
	}
}

// A candidate is a URL as found in a text, without its scheme.
type candidate struct {
	slashes   string // between the scheme and the authority: "//" in a proper URL
	authority string // up to the path, the query or the fragment; text may trail it
	backslash bool   // a backslash ended the authority
	inText    bool   // found inside a text, not a whole string
}

var (
	schemeFirst = regexp.MustCompile(`(?i)^(?:https?|wss?|ftp):`)
	schemeLast  = regexp.MustCompile(`(?i)(?:https?|wss?|ftp):$`)
	// Clients drop these anywhere in a URL.
	unbroken = strings.NewReplacer("\t", "", "\n", "", "\r", "")
)

func urlsIn(text string) []candidate {
	var found []candidate
	text = strings.TrimFunc(text, func(r rune) bool { return r <= ' ' || unicode.IsSpace(r) })

	// A client may be handed the text as one URL, line breaks and all.
	joined := unbroken.Replace(text)
	scheme := schemeFirst.FindString(joined)
	first, isWhole := newCandidate(scheme != "", joined[len(scheme):], false)
	if isWhole {
		found = append(found, first)
	}
	// Or it finds URLs in the text: with a scheme anywhere, and without one
	// where markup or code quotes them.
	for at, slashes := 0, 0; ; at += slashes {
		next := strings.IndexAny(text[at:], `/\`)
		if next < 0 {
			return found
		}
		at += next
		slashes = len(text[at:]) - len(strings.TrimLeft(text[at:], `/\`))
		hasScheme := schemeLast.MatchString(text[max(0, at-len("https:")):at])
		isQuoted := at > 0 && strings.IndexByte(`"'(=`, text[at-1]) >= 0 && text[at] == '/'
		if isWhole && at == len(scheme) || !hasScheme && !isQuoted {
			continue
		}
		if c, ok := newCandidate(hasScheme, text[at:], true); ok {
			found = append(found, c)
		}
	}
}

// newCandidate takes what follows a scheme, or what may be a URL without one.
// It returns false for a comment, a path, an empty string, "http: a protocol".
func newCandidate(hasScheme bool, text string, inText bool) (candidate, bool) {
	rest := strings.TrimLeft(text, `/\`)
	c := candidate{slashes: text[:len(text)-len(rest)], authority: rest, inText: inText}
	end := strings.IndexFunc(rest, func(r rune) bool {
		return strings.ContainsRune(`/?#\`, r) || inText && unicode.IsSpace(r)
	})
	if end >= 0 {
		c.authority, c.backslash = rest[:end], rest[end] == '\\'
	}
	switch {
	case hasScheme && c.slashes != "":
		return c, true
	case rest == "" || !hasScheme && len(c.slashes) < 2:
		return c, false
	case inText:
		return c, !strings.ContainsRune(" \"')", rune(rest[0]))
	default:
		return c, rest[0] != ' ' || hasScheme && strings.Contains(c.authority, "@")
	}
}

var (
	userinfo = regexp.MustCompile(`^[A-Za-z0-9._~%!$&'()*+,;=:-]*$`)
	// No client reaches a host with one of these in its name.
	hostEnd = regexp.MustCompile(`[\s\p{Z}<>]`)
	// In markup, JSON and code a quote ends a URL, but only with what may follow
	// it there: a shell joins https://good.example"".evil.example.
	quoteEnd = regexp.MustCompile(`[\s\p{Z}<>]|["'][,}\])]`)
)

// host returns the normal form of the one host that every client reads in the
// URL, and false where there is no such host.
func (c candidate) host() (string, bool) {
	if c.slashes != "//" || c.backslash {
		return "", false
	}
	user, host, found := strings.Cut(c.authority, "@")
	if !found {
		user, host = "", c.authority
	}
	// Only what an address may have before the "@": a space or a "<" there
	// would end the authority for some clients. For some, a "[" starts it anew.
	if !userinfo.MatchString(user) || !c.inText && strings.LastIndexByte(host, '[') > 0 {
		return "", false
	}
	end := hostEnd
	if c.inText {
		end = quoteEnd
	}
	if at := end.FindStringIndex(host); at != nil {
		host = host[:at[0]]
	}
	closing := "\"'`.,;:!*)}”’»" // Trails a URL in prose, and ends no real name.
	if !strings.HasPrefix(host, "[") {
		closing += "]"
	}
	host = strings.TrimRight(host, closing)
	if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
		if _, err := strconv.ParseUint(host[colon+1:], 10, 16); err != nil {
			return "", false
		}
		host = host[:colon]
	}
	return normalHost(host)
}

var (
	// What a lookup does to a name, with the "_" and the "--" that real hosts
	// have: idna.Lookup refuses both. hostName then checks the result.
	lookup   = idna.New(idna.MapForLookup(), idna.StrictDomainName(false))
	hostName = regexp.MustCompile(`^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$`)
	// Clients read 2130706433, 0x7f.1 and 127.1 as IPv4 addresses; we want
	// them written with four decimal numbers.
	numeric = regexp.MustCompile(`(^|\.)([0-9]+|0x[0-9a-f]*)$`)
)

// normalHost returns a name in lower-case punycode with no final dot, or an IP
// address in its shortest form, without brackets.
func normalHost(raw string) (string, bool) {
	if len(raw) > 1024 { // A name has 253 at most, times 3 percent-encoded. Punycode is quadratic.
		return "", false
	}
	host, err := url.PathUnescape(raw)
	if err != nil {
		return "", false
	}
	if address, bracketed := strings.CutPrefix(host, "["); bracketed {
		ip, err := netip.ParseAddr(strings.TrimSuffix(address, "]"))
		return ip.Unmap().String(), err == nil && ip.Is6() && ip.Zone() == "" && strings.HasSuffix(host, "]")
	}
	if host, err = lookup.ToASCII(host); err != nil {
		return "", false
	}
	host = strings.TrimSuffix(host, ".")
	if numeric.MatchString(host) {
		_, err := netip.ParseAddr(host)
		return host, err == nil
	}
	return host, hostName.MatchString(host) && len(host) <= 253
}
