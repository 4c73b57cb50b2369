"""The detector, in process and as the process that a host launches."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from detect import Finder
from detectors import DEFAULT, DETECTORS
from guard import FOUND, Secrets

from agent_hooks.core import path as paths
from agent_hooks.core.builder import AgentContextBuilder
from agent_hooks.core.points import POINTS
from agent_hooks.plugin import ConfigError, Decision, Verdict
from agent_hooks.plugin.author import check_config, read_author
from agent_hooks.plugin.testing import JudgeError, judging_process

HERE = Path(__file__).parent
Judge = Callable[[dict[str, Any]], Verdict]


# --- two ways to the same answers ---


@contextmanager
def _in_process(config: dict[str, Any]) -> Iterator[Judge]:
    secrets = Secrets()
    check_config(read_author(secrets), config)
    yield secrets.intercept


@contextmanager
def _launched(config: dict[str, Any]) -> Iterator[Judge]:
    """The plugin as its own process; a refused configuration raises ConfigError here too."""
    with ExitStack() as stack:
        try:
            judge = stack.enter_context(
                judging_process([sys.executable, "main.py"], config, cwd=HERE)
            )
        except JudgeError as refusal:
            if refusal.code is not grpc.StatusCode.INVALID_ARGUMENT:
                raise
            pairs = [line.split(": ", 1) for line in refusal.details.split("\n")]
            raise ConfigError(*pairs[0], *map(tuple, pairs[1:])) from None
        yield judge


@pytest.fixture(params=[_in_process, _launched], ids=["in process", "launched"])
def judging(request: pytest.FixtureRequest) -> Callable[..., AbstractContextManager[Judge]]:
    """`with judging(config) as judge: judge(context)`."""
    return request.param


@pytest.fixture(scope="module")
def redact() -> Iterator[Judge]:
    """The plugin as configured most often, in process."""
    with _in_process({"action": "redact"}) as judge:
        yield judge


# --- invented secrets, in parts, so that no scanner takes this file for a leak ---


def _base64url(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _pem(kind: str, lines: int = 3) -> str:
    body = "\n".join(["MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MaVsZtRkKXh2C6s+"] * lines)
    return f"-----BEGIN {kind}-----\n{body}\nAbC=\n-----END {kind}-----"


JWT = ".".join([_base64url({"alg": "HS256"}), _base64url({"sub": "bob"}), "s1gn-ature_" * 3])
SAMPLES = {
    "AWSKeyDetector": "AKIA" + "IOSFODNN7EXAMPLE",
    "AzureStorageKeyDetector": "a1B2" * 21 + "ab==",
    "BasicAuthDetector": "hunter2",
    "DiscordBotTokenDetector": "M" + "T" * 23 + ".Cl2FMZ." + "a1B" * 9,
    "GitHubTokenDetector": "ghp_" + "a1B2c3" * 6,
    "GitLabTokenDetector": "glpat-" + "a1B2c" * 4,
    "JwtTokenDetector": JWT,
    "MailchimpDetector": "0123456789abcdef" * 2 + "-us12",
    "NpmDetector": "npm_" + "a1B2c3" * 6,
    "OpenAIDetector": "sk-proj-" + "a1-B_" * 9 + "T3Blbk" + "FJ" + "a1-B_" * 9,
    "PrivateKeyDetector": _pem("RSA PRIVATE" + " KEY"),
    "PypiTokenDetector": "pypi-" + "AgEIcHlwaS5vcmc" + "a1B2c3d4" * 10,
    "SendGridDetector": "SG." + "a1" * 11 + "." + "a1B" * 14 + "c",
    "SlackDetector": "xoxb-" + "123456789012-" * 2 + "a1b2c3",
    "SquareOAuthDetector": "sq0csp-" + "a1B" * 14 + "c",
    "StripeDetector": "sk_live_" + "a1B2c3" * 16,
    "TelegramBotTokenDetector": "a1B2c" * 7,
    "TwilioKeyDetector": "SK" + "0123456789abcdef" * 2,
}
BESIDE = {
    "AzureStorageKeyDetector": "AccountKey={}",
    "BasicAuthDetector": "https://bob:{}@a.org",
    "TelegramBotTokenDetector": "123456789:{}",
}
AWS_SECRET = "wJalrXUtnFEMI/K7MDENG" + "/bPxRfiCYEXAMPLEKEY"
MORE = {
    "AWS secret in a file": (
        "AWS_SECRET_ACCESS_KEY={}",
        "wJalrXUtnFEMI/K7MDENG" + "/bPxRfiCYEXAMPLEKEY",
    ),
    "AWS secret in quotes": (
        "aws_secret_key = '{}'",
        "wJalrXUtnFEMI/K7MDENG" + "/bPxRfiCYEXAMPLEKEY",
    ),
    "AWS session": ('"SecretAccessKey": "{}"', AWS_SECRET),
    "GitHub fine-grained": ("{}", "github_pat_" + "a1" * 11 + "_" + "b2" * 29 + "c"),
    "npm registry": ("//npm.example.org/:_authToken={}", "01234567-" * 4),
    "npm registry, token": ("//npm.example.org/:_authToken={}", "npm_" + "a1B2c3" * 6),
    "OpenAI, old": ("{}", "sk-" + "a1B2c" * 4 + "T3Blbk" + "FJ" + "a1B2c" * 4),
    "Slack webhook": ("{}", "https://hooks.slack.com/services/" + "T01/B02/abc123"),
    "PKCS 8": ("{}", _pem("PRIVATE" + " KEY")),
    "encrypted": ("{}", _pem("ENCRYPTED PRIVATE" + " KEY")),
    "OpenSSH": ("{}", _pem("OPENSSH PRIVATE" + " KEY", 40)),
    "PGP": ("{}", _pem("PGP PRIVATE" + " KEY BLOCK")),
    "key that is cut off": ("{}", _pem("EC PRIVATE" + " KEY").partition("\n-----END")[0]),
    "PuTTY": ("{}", "PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\nAAAA\nPrivate-MAC: 0a1b2c"),
}
CASES = [(BESIDE.get(name, "{}"), secret) for name, secret in SAMPLES.items()] + list(MORE.values())
NAMES = [*SAMPLES, *MORE]
KEY = SAMPLES["AWSKeyDetector"]
TOKEN = SAMPLES["GitHubTokenDetector"]
MARK, TOKEN_MARK = "[redacted:AWS Access Key]", "[redacted:GitHub Token]"


def session() -> AgentContextBuilder:
    return AgentContextBuilder(agent_id="agent", framework="test", session_id="session")


def tool_call(**args: Any) -> dict[str, Any]:
    return session().pre_tool_call(call_id="1", name="send", args=args)


def tool_result(value: Any) -> dict[str, Any]:
    return session().post_tool_call(call_id="1", name="read", args={}, value=value)


def redacted(judge: Judge, target: Any) -> Any:
    """The target after the verdict, whatever it was, short of a deny."""
    verdict = judge(tool_result(copy.deepcopy(target)))
    if verdict.decision is Decision.ALLOW:
        return target
    assert verdict.decision is Decision.TRANSFORM
    return paths.apply(target, verdict.transform.path, verdict.transform.value)


# --- what is found ---


def test_every_default_detector_has_a_sample():
    assert set(SAMPLES) == set(DEFAULT)


@pytest.mark.parametrize(("beside", "secret"), CASES, ids=NAMES)
def test_a_secret_is_replaced_whole_and_nothing_beside_it(redact, beside, secret):
    text = f"first line\nbefore {beside} after\nlast line"
    after = redacted(redact, text.format(secret))
    head, tail = text.split("{}")
    assert after.startswith(head + "[redacted:")
    assert after.endswith("]" + tail)
    assert after.count("[") == 1


@pytest.mark.parametrize(("beside", "secret"), CASES, ids=NAMES)
def test_what_is_redacted_is_not_found_again(redact, beside, secret):
    once = redacted(redact, {"password": beside.format(secret), "text": beside.format(secret)})
    assert "[redacted:" in once["text"]
    assert redact(tool_result(once)) == Verdict.allow()
    with _in_process({"action": "redact", "detectors": list(DETECTORS)}) as every:
        twice = redacted(every, once)
        assert redacted(every, twice) == twice


@pytest.mark.parametrize(("beside", "secret"), CASES, ids=NAMES)
def test_json_inside_a_string_stays_json_without_the_secret(redact, beside, secret):
    inner = {"id": 1, "text": f"first\n{beside.format(secret)}\nlast", "list": ["a", None]}
    after = json.loads(redacted(redact, json.dumps(inner)))
    assert secret not in json.dumps(after)
    first, *_, last = after["text"].split("\n")
    assert (first, last, after["id"], after["list"]) == ("first", "last", 1, ["a", None])


def test_a_secret_is_known_by_the_name_of_its_member(redact):
    secret = AWS_SECRET
    args = {"credentials": {"aws_secret_access_key": secret}, "note": secret}
    after = redacted(redact, args)
    assert after["credentials"]["aws_secret_access_key"] == MARK
    assert after["note"] == secret  # forty letters and digits on their own are anything


def test_a_key_in_lines_of_a_list_is_redacted_in_all_of_them(redact):
    lines = ["ready", *SAMPLES["PrivateKeyDetector"].split("\n"), "done"]
    after = redacted(redact, {"lines": lines, "other": "untouched"})
    assert after["lines"] == ["ready", *["[redacted:Private Key]"] * (len(lines) - 2), "done"]


def test_two_texts_are_not_taken_for_one_key(redact):
    begin, _, end = SAMPLES["PrivateKeyDetector"].partition("\n")
    messages = [{"text": f"a key begins with {begin}"}, {"text": "ours"}, {"text": end[-40:]}]
    after = redacted(redact, messages)
    assert after[0]["text"] == "a key begins with [redacted:Private Key]"
    assert after[1:] == messages[1:]


@pytest.mark.parametrize(
    "text",
    [
        "GB29NWBK60161331926819, 1j1l-2k3j, 4111 1111 1111 1111",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b, 123e4567-e89b-12d3-a456-426614174000",
        "https://example.org:8080/a@b?c=d, postgres://bob:<password>@db, //bob:***@db",
        "https://bob:${PASSWORD}@example.org",
        "eyJhbGciOiJub3QgYSBqc29u.eyJub3QganNvbg.x",
        "aws key rotation at 3f786850e387550fdab836ed7e6dc881de23001b",
        "password = 'correct horse'",
        "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 50,
    ],
)
def test_ordinary_text_is_allowed(redact, text):
    assert redact(tool_result(text)) == Verdict.allow()


@pytest.mark.parametrize(
    ("detector", "target"),
    [
        ("KeywordDetector", {"password": "hunter2 and more"}),
        ("KeywordDetector", '{"db_password": "hunter2"}'),
        ("KeywordDetector", json.dumps('{"db_password": "hunter2"}')),
        ("KeywordDetector", "x " * 5000 + "api_key = 'hunter2'"),
        (
            "Base64HighEntropyString",
            ["c3VwZXIgbG9uZyBzdHJpbmcgc2hvdWxkIGNhdXNlIGVub3VnaCBlbg"],
        ),
        ("HexHighEntropyString", {"token": "2b00042f7481c7b056c4b410d28f33cf"}),
        ("IbmCloudIamDetector", "ibm_iam_api_key: " + "a1B2" * 11),
        ("SoftlayerDetector", "softlayer_key = " + "a1b2c3d4" * 8),
        ("IPPublicDetector", "connect to 8.8.8.8 now"),
        ("ArtifactoryDetector", "token:" + "AKC" + "a1B2c3" * 4),
    ],
)
def test_the_other_detectors_are_opt_in(redact, detector, target):
    assert redact(tool_result(target)) == Verdict.allow()
    with _in_process({"action": "deny", "detectors": [detector]}) as judge:
        assert (
            judge(tool_result(target)).message == f"1 {DETECTORS[detector].secret_type} in 1 string"
        )


def test_a_known_harmless_secret_is_allowed_and_only_that():
    known = hashlib.sha256(KEY.encode()).hexdigest()
    with _in_process({"action": "redact", "allow": [known]}) as judge:
        assert judge(tool_call(a=f"use {KEY}")) == Verdict.allow()
        assert redacted(judge, f"{KEY} {KEY}A {TOKEN}") == f"{KEY} {MARK} {TOKEN_MARK}"


# --- what is answered ---


def test_redaction_says_what_and_how_many_but_not_which(judging):
    with judging({"action": "redact"}) as judge:
        verdict = judge(tool_call(to="bob", text=f"{KEY} and {KEY}, {TOKEN}", more=[TOKEN, 1]))
    assert verdict.decision is Decision.TRANSFORM
    assert verdict.reason == FOUND
    assert verdict.message == "2 AWS Access Key, 2 GitHub Token in 2 strings"
    assert [w.to_wire() for w in verdict.warnings] == [
        {"reason": FOUND, "message": verdict.message}
    ]
    text = json.dumps(verdict.to_wire())
    assert KEY not in text
    assert TOKEN not in text


@pytest.mark.parametrize(("action", "liftable"), [("deny", False), ("escalate", True)])
def test_the_action_may_be_a_deny_or_an_escalation(judging, action, liftable):
    with judging({"action": action}) as judge:
        assert judge(tool_call(text="nothing")) == Verdict.allow()
        verdict = judge(tool_call(text=KEY))
    assert (verdict.decision, verdict.reason) == (Decision.DENY, FOUND)
    assert verdict.message == "1 AWS Access Key in 1 string"
    assert verdict.is_liftable is liftable


def at_every_point(text: str) -> list[dict[str, Any]]:
    ours = session()
    calls = [{"id": "1", "name": "send", "args": {"text": text}}]
    contexts = [
        ours.agent_startup(tools_registered=[text]),
        ours.input(content=text),
        ours.pre_model_call(model_id="m", messages=[{"role": "tool", "content": text}]),
        ours.post_model_call(model_id="m", content="", tool_calls=calls, finish_reason="x"),
        ours.pre_tool_call(call_id="1", name="send", args={"text": text}),
        ours.post_tool_call(call_id="1", name="send", args={}, value=[text]),
        ours.output(content=text),
        ours.agent_shutdown(reason="completed", note=text),
    ]
    assert [context["interception_point"] for context in contexts] == list(POINTS)
    return contexts


def test_every_point_with_a_transform_redacts_by_default_and_the_ends_are_left_alone(judging):
    paths_by_point = {
        "input": "$target.content",
        "pre_model_call": "$target[0].content",
        "post_model_call": "$target.tool_calls[0].args.text",
        "pre_tool_call": "$target.text",
        "post_tool_call": "$target[0]",
        "output": "$target.content",
    }
    with judging({"action": "redact"}) as judge:
        for context in at_every_point(f"use {KEY}"):
            verdict, path = judge(context), paths_by_point.get(context["interception_point"])
            if path is None:
                assert verdict == Verdict.allow()
            else:
                assert (verdict.transform.path, verdict.transform.value) == (path, f"use {MARK}")


def test_where_no_transform_is_permitted_redaction_is_a_deny(judging):
    with judging({"action": "redact", "at": ["agent_startup", "agent_shutdown"]}) as judge:
        first, *between, last = [judge(context) for context in at_every_point(KEY)]
    assert first.is_plain_deny
    assert last.is_plain_deny
    assert between == [Verdict.allow()] * 6


# --- the transform is the smallest that a path can say ---


@pytest.mark.parametrize(
    ("args", "path", "value"),
    [
        ({"a": {"b-1": [0, {"c_2": KEY}]}}, "$target.a.b-1[1].c_2", MARK),
        ({"a": {"b": {"c": KEY, "d": 1.5}, "e": KEY}, "f": 1}, "$target.a", None),
        ({"a": [{"x": KEY}, {"x": KEY}, 3], "b": 1}, "$target.a", None),
        ({"a": {"not a name": KEY, "n": 1}, "b": 1}, "$target.a", None),
        ({"a": {"not a name": {"b": [KEY]}}, "b": 1}, "$target.a", None),
        ({"": KEY, "b": 1}, "$target", None),
        ({"é": {"a": KEY}}, "$target", None),
        ({"a": {f"for {KEY}": {"b": 1}}, "c": 1}, "$target.a", {f"for {MARK}": {"b": 1}}),
        ({"a": {f"for {KEY}": {"b": KEY}}}, "$target.a", {f"for {MARK}": {"b": MARK}}),
        ({"x" * 5000: {"a": KEY}}, "$target", None),
    ],
)
def test_the_path_is_the_nearest_that_the_grammar_can_write(redact, args, path, value):
    verdict = redact(tool_call(**args))
    assert verdict.transform.path == path
    if value is not None:
        assert verdict.transform.value == value
    after = paths.apply(args, path, verdict.transform.value)
    assert json.dumps(after) == json.dumps(args).replace(KEY, MARK)


def test_members_whose_names_would_collide_are_denied(redact):
    other = "AKIA" + "Z" * 16
    assert redact(tool_call(a={KEY: 1, other: 2})).is_plain_deny


_plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text("ab-_ é", max_size=3), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(_plain, st.lists(st.sampled_from(sorted(CASES)), min_size=1, max_size=4), st.data())
def test_wherever_secrets_stand_they_go_and_all_else_stays(redact, target, cases, data):
    secrets = []
    for beside, secret in cases:
        planted = f"< {beside.format(secret)} >"
        secrets.append(secret)
        if isinstance(target, dict):
            key = data.draw(st.sampled_from([*target, "new"]))
            target = {**target, key: [planted, target.get(key)]}
        elif isinstance(target, list):
            index = data.draw(st.integers(0, len(target)))
            target = [*target[:index], planted, *target[index:]]
        else:
            target = {"planted": planted, "was": target}
    after = redacted(redact, target)
    assert _shape(after) == _shape(target)
    text = json.dumps(after)
    assert not [secret for secret in secrets if json.dumps(secret)[1:-1] in text]
    assert redact(tool_result(after)) == Verdict.allow()


def _shape(value: Any) -> Any:
    """The value with every string that held a plant blank."""
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return "plant" if isinstance(value, str) and value.startswith("< ") else repr(value)


# --- what it must never do ---


def test_nothing_is_verified_over_the_network(monkeypatch, redact):
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("went to the network")

    for detector in DETECTORS.values():
        monkeypatch.setattr(detector, "verify", refuse)
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("requests.sessions.Session.request", refuse)
    for beside, secret in CASES:
        assert redact(tool_result(beside.format(secret))).decision is Decision.TRANSFORM


def test_no_secret_reaches_the_log(capfd):
    with _launched({"action": "redact"}) as judge:
        for beside, secret in CASES:
            judge(tool_result(beside.format(secret)))
    assert "".join(capfd.readouterr()) == ""


MEGABYTE = 1_000_000
HOSTILE = [
    "/",
    "eyJ",
    "\\neyJa.a",
    "sk-",
    "//a/:_authToken=",
    "://a:b",
    "aws key  ",
    "-----BEGIN PRIVATE" + " KEY-----",
    "-----BEGIN PRIVATE" + " KEY-----\nAa: \n",
    "PuTTY-User-Key-File-2:",
    "xoxb-1-",
    "glagent-",
    "[redacted:",
]


@pytest.mark.parametrize("part", ['{"id": 17, "url": "https://example.org/a/1?b=c"}, ', *HOSTILE])
def test_a_megabyte_takes_no_more_than_seconds_even_if_hostile(part):
    text = part * (MEGABYTE // len(part))
    start = time.process_time()
    Finder().find(text)
    assert time.process_time() - start < 6  # a tenth of it, but for slow machines


def test_a_token_that_nests_without_end_is_no_way_round(redact):
    deep = base64.urlsafe_b64encode(b'{"a":' + b"[" * 100_000).decode().rstrip("=")
    assert redact(tool_result(f"{_base64url({'a': 1})}.{deep}.x")).decision is Decision.TRANSFORM


# --- configurations that are refused ---


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({}, ""),
        ({"action": "hide"}, "/action"),
        ({"action": "deny", "at": ["tool"]}, "/at/0"),
        ({"action": "deny", "at": []}, "/at"),
        ({"action": "deny", "detectors": []}, "/detectors"),
        ({"action": "deny", "detectors": ["AWSKeyDetector", "Nobody"]}, "/detectors/1"),
        ({"action": "deny", "allow": [KEY]}, "/allow/0"),
        ({"action": "deny", "verify": True}, ""),
    ],
)
def test_a_bad_configuration_is_refused_at_its_place_without_its_text(config, pointer):
    with pytest.raises(ConfigError) as refused, _in_process(config):
        pass
    assert [place for place, _ in refused.value.findings] == [pointer]
    assert KEY not in str(refused.value)


def test_a_refused_configuration_crosses_the_wire():
    with pytest.raises(ConfigError) as refused, _launched({"action": "deny", "detectors": ["x"]}):
        pass
    assert refused.value.findings[0][0] == "/detectors/0"
