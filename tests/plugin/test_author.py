"""What an author's object may be, and what is said where it is not that."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.protobuf.message import DecodeError

from agent_hooks.core.approval import ApprovalRequest
from agent_hooks.core.context import Bounds, check_context
from agent_hooks.core.points import POINTS
from agent_hooks.core.verdict import VerdictError
from agent_hooks.plugin import (
    ALLOW,
    ApprovalOutcome,
    ApprovalResolution,
    ConfigError,
    InterceptionPoint,
    Transform,
    Verdict,
    serve,
)
from agent_hooks.plugin.author import check_config, read_author
from agent_hooks.plugin.service import PluginServer
from agent_hooks.plugin.testing import JudgeError, contexts, judging
from agent_hooks.v1 import plugin_pb2
from agent_hooks.wire.approval import decode_resolution, encode_resolve
from agent_hooks.wire.fields import WireError

CANARY = "canary-7f3a"


def plugin(judge: Callable[[Any], Any] = lambda _: ALLOW, **attributes: Any) -> Any:
    return SimpleNamespace(intercept=judge, **attributes)


def call() -> dict[str, Any]:
    return contexts().pre_tool_call(call_id="1", name="t", args={"n": 0})


# -- the object --


class _NoMethods:
    pass


class _Class:
    def intercept(self, _: Any) -> Verdict:
        return ALLOW


@pytest.mark.parametrize(
    ("thing", "named"),
    [
        (_NoMethods(), ("_NoMethods", "intercept(context)", "resolve(request)")),
        (SimpleNamespace(intercept=5), ("intercept",)),
        (_Class, ("_Class", "instance")),
        (plugin(points=["pre_tool"]), ("points", "'pre_tool'", "pre_tool_call")),
        (plugin(points="pre_tool_call"), ("points", "pre_tool_call")),
        (plugin(points=5), ("points",)),
        (plugin(config_schema={"x": object()}), ("config_schema",)),
        (plugin(config_schema=[1]), ("config_schema",)),
        (plugin(max_concurrency=0), ("max_concurrency",)),
        (plugin(max_concurrency=-1), ("max_concurrency",)),
        (plugin(max_concurrency="many"), ("max_concurrency",)),
    ],
    ids=[
        "no_methods", "not_callable", "class_not_instance", "unknown_point", "point_not_in_a_list",
        "points_no_list", "schema_no_json", "schema_no_object", "no_calls", "negative_calls",
        "calls_no_number",
    ],
)  # fmt: skip
def test_object_that_is_no_plugin_is_refused_and_told_why(
    thing: Any, named: tuple[str, ...]
) -> None:
    """An author's mistake is named before anything is served."""
    with pytest.raises((TypeError, ValueError)) as raised:
        read_author(thing)
    assert [part for part in named if part not in str(raised.value)] == []


def test_serve_refuses_before_it_looks_for_a_host() -> None:
    """The mistake is the author's whether or not a host launched the program."""
    with pytest.raises(TypeError, match="is no plugin"):
        serve(_NoMethods())


def test_points_may_be_names_or_members_and_are_all_by_default() -> None:
    """§3."""
    assert read_author(plugin()).points == tuple(POINTS)
    assert read_author(plugin(points=[InterceptionPoint.INPUT, "output"])).points == (
        "input",
        "output",
    )
    assert read_author(plugin(points=[])).points == ()


def test_description_says_what_the_author_says() -> None:
    """PROTOCOL Services, Describe."""
    schema = {"type": "object", "properties": {"a": {}}}
    said = plugin(
        name="n", version="1.2", points=["input"], config_schema=schema, max_concurrency=3
    )
    with judging(said) as judge:
        described = judge.described
    assert (described.name, described.version, described.max_concurrency) == ("n", "1.2", 3)
    assert (described.protocol_version, list(described.specs)) == (1, ["agent-hooks/0.1"])
    assert (list(described.points), described.kind) == ([2], 1)
    assert json.loads(described.config_schema_json) == schema
    with judging(plugin()) as judge:
        assert not judge.described.HasField("config_schema_json")


def _service(thing: Any) -> Callable[[str, bytes], Any]:
    """The services of an object, asked directly; a refusal is its (code, details)."""

    class Refused(Exception):
        pass

    def abort(code: grpc.StatusCode, details: str) -> None:
        raise Refused(code, details)

    handlers = PluginServer(read_author(thing), None, lambda _: None).handlers()

    def ask(method: str, request: bytes) -> Any:
        called: Any = SimpleNamespace(method=f"/agent_hooks.v1.{method}")
        found: Any = next(filter(None, (handler.service(called) for handler in handlers)), None)
        if found is None:
            return None
        try:
            message = found.request_deserializer(request)
            return found.unary_unary(
                message, SimpleNamespace(abort=abort, invocation_metadata=tuple)
            )
        except Refused as refused:
            return refused.args

    return ask


def test_other_protocol_version_is_refused_with_both_named() -> None:
    """PROTOCOL Launch 3: an error that names both sides' versions."""
    request = plugin_pb2.DescribeRequest(protocol_versions=[2, 3]).SerializeToString()
    code, details = _service(plugin())("PluginService/Describe", request)
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert "version 1" in details
    assert "[2, 3]" in details


def test_nothing_is_judged_before_configure() -> None:
    """PROTOCOL Services: Configure comes before the first context."""
    code, _details = _service(plugin())("InterceptorService/Intercept", b"")
    assert code in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.INVALID_ARGUMENT)
    with judging(plugin()) as judge:
        assert judge(call()) == ALLOW


@pytest.mark.parametrize(
    ("thing", "method"),
    [
        (plugin(), "ApprovalResolverService/Resolve"),
        (SimpleNamespace(resolve=lambda _: None), "InterceptorService/Intercept"),
    ],
    ids=["interceptor", "resolver"],
)
def test_only_its_own_service_is_served(thing: Any, method: str) -> None:
    """PROTOCOL Services: an interceptor is no resolver."""
    assert _service(thing)(method, b"") is None


# -- configuration --

SCHEMA = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "maximum": 5},
        "names": {"type": "array", "items": {"type": "string", "minLength": 20}},
        "mode": {"enum": ["a", "b"]},
        "a/b~c": {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]},
        "either": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
    },
    "required": ["limit"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("config", "findings"),
    [
        ({}, [("", "misses limit")]),
        ({"limit": CANARY}, [("/limit", "integer")]),
        ({"limit": 77123}, [("/limit", "maximum: 5")]),
        ({"limit": 1, CANARY: 1}, [("", "known are: limit, names, mode")]),
        ({"limit": 1, "names": ["x" * 20, CANARY]}, [("/names/1", "minLength: 20")]),
        ({"limit": 1, "names": [CANARY, 5]}, [("/names/0", "minLength"), ("/names/1", "string")]),
        ({"limit": 1, "mode": CANARY}, [("/mode", 'enum: ["a", "b"]')]),
        ({"limit": 1, "a/b~c": {}}, [("/a~1b~0c", "misses x")]),
        ({"limit": 1, "a/b~c": {"x": CANARY}}, [("/a~1b~0c/x", "null")]),
        ({"limit": 1, "either": CANARY}, [("/either", "anyOf")]),
        ([], [("", "an object")]),
        (None, [("", "an object")]),
    ],
    ids=repr,
)
def test_schema_error_has_its_pointer_and_what_is_wanted_but_no_value(
    config: Any, findings: list[tuple[str, str]]
) -> None:
    """PROTOCOL Services, Configure: JSON pointers at fault; a value may be a secret."""
    author = read_author(plugin(config_schema=SCHEMA))
    with pytest.raises(ConfigError) as raised:
        check_config(author, config)
    assert [place for place, _ in raised.value.findings] == [place for place, _ in findings]
    for (_, problem), (_, wanted) in zip(raised.value.findings, findings, strict=True):
        assert wanted in problem
    assert CANARY not in str(raised.value)
    assert "77123" not in str(raised.value)


def test_plugin_without_a_schema_takes_no_configuration() -> None:
    """PROTOCOL Services: absent means that it takes none."""
    check_config(read_author(plugin()), {})
    with pytest.raises(ConfigError, match="takes no configuration"):
        check_config(read_author(plugin()), {"a": CANARY})


def test_missing_members_are_named_once() -> None:
    """One line for a place and a problem."""
    author = read_author(plugin(config_schema={"required": ["a", "b"]}))
    with pytest.raises(ConfigError) as raised:
        check_config(author, {})
    assert str(raised.value).splitlines() == ["(root): misses a, b"]


def test_author_hears_of_a_good_configuration_once_and_before_the_first_context() -> None:
    """PROTOCOL Services, Configure."""
    heard: list[Any] = []
    said = plugin(config_schema={"type": "object"}, configure=heard.append)
    with judging(said, {"a": [1, 1.5, None]}) as judge:
        assert heard == [{"a": [1, 1.5, None]}]
        judge(call())
    assert len(heard) == 1


def _raise(exc: BaseException) -> Any:
    raise exc


@pytest.mark.parametrize(
    ("exc", "code", "details"),
    [
        (ConfigError("/rules/0", "no rule"), "INVALID_ARGUMENT", "/rules/0: no rule"),
        (
            ConfigError("", "empty", ("/a", "worse")),
            "INVALID_ARGUMENT",
            "(root): empty\n/a: worse",
        ),
        (ValueError(CANARY), "INTERNAL", "configure raised ValueError"),
        (KeyError(CANARY), "INTERNAL", "configure raised KeyError"),
    ],
    ids=["author", "author_two", "bug", "bug_key"],
)
def test_authors_refusal_reaches_the_host_and_a_bugs_text_does_not(
    exc: Exception, code: str, details: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """PROTOCOL Services, Configure; STYLE 6."""
    said = plugin(config_schema={}, configure=lambda _: _raise(exc))
    with pytest.raises(JudgeError) as raised:
        with judging(said, {"a": CANARY}):
            pass
    assert (raised.value.code.name, raised.value.details) == (code, details)
    assert CANARY not in "".join(capfd.readouterr())


# -- answers --


async def _async_deny(_: Any) -> Verdict:
    return Verdict.deny(reason="later")


@pytest.mark.parametrize(
    ("judge", "wire"),
    [
        (lambda _: ALLOW, {"decision": "allow"}),
        (lambda _: {"decision": "deny", "reason": "x"}, {"decision": "deny", "reason": "x"}),
        (
            lambda _: Verdict.rewrite("$target.n", 5),
            {"decision": "transform", "transform": {"path": "$target.n", "value": 5}},
        ),
        (_async_deny, {"decision": "deny", "reason": "later"}),
    ],
    ids=["verdict", "json_form", "transform", "coroutine"],
)
def test_verdict_or_its_json_form_is_an_answer(judge: Any, wire: dict[str, Any]) -> None:
    """§5."""
    with judging(plugin(judge)) as asked:
        assert asked(call()).to_wire() == wire


@pytest.mark.parametrize(
    "returned",
    [
        None, True, "allow", "", 1, [], {}, {"decision": CANARY}, {"decision": "allow", CANARY: 1},
        {"decision": "transform"}, {"decision": "allow", "reason": "host_error:x"},
        {"decision": "deny", "reason": "\ud800"}, Verdict("allow"),  # type: ignore[arg-type]
        {"decision": "transform", "transform": {"path": "$target.n", "value": float("nan")}},
        {"decision": "transform", "transform": {"path": "$target.\ud800", "value": 1}},
    ],
    ids=repr,
)  # fmt: skip
def test_anything_else_is_an_answer_without_a_verdict(
    returned: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """PROTOCOL: Verdicts fail closed; and the log says which member, not its value."""
    with judging(plugin(lambda _: returned)) as judge:
        with pytest.raises((WireError, VerdictError)):
            judge(call())
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "no valid verdict" in err
    assert CANARY not in err


@pytest.mark.parametrize("exc", [RuntimeError(CANARY), KeyError(CANARY)], ids=repr)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_what_raises_is_a_failed_call_without_its_text(
    exc: Exception, is_async: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """STYLE 6: the type and the place, never the text, which may hold a target."""

    async def later(_: Any) -> Any:
        raise exc

    with judging(plugin(later if is_async else lambda _: _raise(exc))) as judge:
        with pytest.raises(JudgeError) as raised:
            judge(call())
    err = capfd.readouterr().err
    assert raised.value.code is grpc.StatusCode.INTERNAL
    assert "intercept raised" in raised.value.details
    assert "test_author.py:" in err
    assert CANARY not in raised.value.details + err


def test_calls_are_concurrent() -> None:
    """PROTOCOL Services: calls are concurrent, the author's lock is the author's."""
    both = threading.Barrier(2)

    def meet(_: Any) -> Verdict:
        both.wait(10)
        return ALLOW

    with judging(plugin(meet)) as judge:
        other = threading.Thread(target=lambda: judge(call()))
        other.start()
        assert judge(call()) == ALLOW
        other.join()


# -- resolvers --


@pytest.mark.parametrize(
    ("answer", "decoded"),
    [
        (
            ApprovalResolution(ApprovalOutcome.APPROVE, "i", ALLOW),
            {"outcome": "approve", "context_identity": "i", "verdict": ALLOW},
        ),
        (
            ApprovalResolution(ApprovalOutcome.UNRESOLVED, None),
            {"outcome": "unresolved", "context_identity": None, "verdict": None},
        ),
        (
            ApprovalResolution(
                ApprovalOutcome.APPROVE, "i", Verdict.rewrite("$target", float("nan"))
            ),
            {"outcome": "approve", "context_identity": "i", "verdict": {}},
        ),
        (True, None),
        (ALLOW, None),
        (None, None),
        ({"outcome": "approve"}, None),
        (ApprovalResolution("approve", "i", ALLOW), {"outcome": "approve"}),  # type: ignore[arg-type]
        (ApprovalResolution("yes", "i", ALLOW), None),  # type: ignore[arg-type]
        (ApprovalResolution(ApprovalOutcome.APPROVE, 5, ALLOW), None),  # type: ignore[arg-type]
        (
            ApprovalResolution(ApprovalOutcome.APPROVE, None, Transform("$target")),  # type: ignore[arg-type]
            {"verdict": {}},
        ),
    ],
    ids=[
        "approve", "unresolved", "carries_no_verdict", "true", "a_verdict", "none", "a_dict",
        "outcome_as_text", "unknown_outcome", "identity_no_text", "verdict_of_another_type",
    ],
)  # fmt: skip
def test_resolution_is_an_answer_and_nothing_else_is(answer: Any, decoded: Any) -> None:
    """§9: something that is no resolution is an answer without one, never an approval."""
    ask = _service(SimpleNamespace(resolve=lambda _: answer))
    ask("PluginService/Configure", b"")
    data = ask("ApprovalResolverService/Resolve", _resolve_request())
    if decoded is not None:
        assert decoded.items() <= decode_resolution(data).items()
    elif isinstance(data, bytes):
        with pytest.raises(WireError):
            decode_resolution(data)
    else:
        assert data[0] in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)


def _resolve_request() -> bytes:
    raw = call()
    shown = check_context(raw, Bounds(), raw["spec"])
    deny = Verdict.escalate(reason="ask")
    return encode_resolve(ApprovalRequest("i", InterceptionPoint.PRE_TOOL_CALL, deny, raw), shown)


def test_malformed_request_is_refused() -> None:
    """PROTOCOL Messages: the plugin's side of the codec is as strict."""
    ask = _service(plugin())
    ask("PluginService/Configure", b"")
    code, details = ask("InterceptorService/Intercept", b"")
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "interception_point" in details
    with pytest.raises(DecodeError):  # which gRPC turns into INTERNAL
        ask("InterceptorService/Intercept", b"\xff")
