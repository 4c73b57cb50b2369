"""Verdicts, approvals, records and statuses on the wire; and everything that is none of them."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_hooks.core.approval import ApprovalOutcome, ApprovalRequest
from agent_hooks.core.effects import Rules
from agent_hooks.core.points import POINTS, InterceptionPoint
from agent_hooks.core.profile import (
    CompositionConfig,
    CompositionProfile,
    EnforcementMode,
    OnApproval,
    SynthesisPolicy,
)
from agent_hooks.core.reasons import HostError
from agent_hooks.core.record import InterceptionRecord, VerdictSummary, project
from agent_hooks.core.verdict import (
    ALLOW,
    Decision,
    Transform,
    Verdict,
    VerdictError,
    check_verdict,
)
from agent_hooks.v1 import (
    approval_pb2,
    context_pb2,
    interceptor_pb2,
    plugin_pb2,
    record_pb2,
    verdict_pb2,
)
from agent_hooks.wire.approval import (
    decode_resolution,
    decode_resolve,
    encode_resolution,
    encode_resolve,
)
from agent_hooks.wire.context import (
    decode_context,
    encode_request,
    encode_stream_request,
    parse_message,
)
from agent_hooks.wire.fields import WireError
from agent_hooks.wire.plugin import (
    APPROVAL_RESOLVER,
    INTERCEPTOR,
    Description,
    decode_description,
    encode_configure,
    encode_describe,
    encode_description,
    encode_shutdown,
)
from agent_hooks.wire.record import decode_record, encode_record
from agent_hooks.wire.status import failure
from agent_hooks.wire.verdict import (
    decode_response,
    decode_stream_response,
    encode_response,
    encode_stream_response,
    encode_verdict,
)
from tests.core.support import context, drive, run
from tests.wire.strategies import (
    RESOLUTIONS,
    TEXT,
    contexts,
    mutations,
    same,
    snapshot,
    verdicts,
)

# -- verdicts --


@given(verdicts())
def test_verdict_is_carried_without_loss(verdict: Verdict) -> None:
    """§5: integers of any size included, and what is absent stays absent."""
    judged = check_verdict(verdict)
    decoded = decode_response(encode_response(judged))
    assert decoded == judged
    assert same(decoded.to_wire(), judged.to_wire())
    assert decode_stream_response(encode_stream_response(judged, "e-1"), "e-1") == judged


@given(st.binary(max_size=300) | st.integers(0, 2**16).map(bytes), st.none() | TEXT)
def test_request_on_a_stream_is_the_unary_one_and_its_traceparent(
    padding: bytes, parent: str | None
) -> None:
    """interceptor.proto: of any length, and as protobuf itself would write it."""
    request = interceptor_pb2.InterceptRequest(emission_id=padding.hex(), timeout_ms=7)
    expected = interceptor_pb2.InterceptStreamRequest(request=request, traceparent=parent or "")
    assert encode_stream_request(request.SerializeToString(), parent) == (
        expected.SerializeToString()
    )


def test_answer_on_a_stream_counts_for_its_own_request_only() -> None:
    """interceptor.proto: wherever protobuf's rules let the id stand, the last one is it."""
    said = interceptor_pb2.InterceptStreamResponse(emission_id="a").SerializeToString()
    other = interceptor_pb2.InterceptStreamResponse(emission_id="b").SerializeToString()
    allow = encode_stream_response(ALLOW, "")
    for data in (said + allow, allow + said, other + allow + said):
        assert decode_stream_response(data, "a") == ALLOW
    for data in (allow, other + allow, said + allow + other, allow + other, said):
        with pytest.raises(WireError):
            decode_stream_response(data, "a")


@pytest.mark.parametrize(
    "number", [1e16, 1e17, 2.0**53, 1234567890123456789.0, -1.2345678901234568e20, 1e21, 1e300]
)
def test_float_of_a_transform_keeps_its_value_and_type(number: float) -> None:
    """SEMANTICS (090, 091): in process such a float passes, so out of process it must, too."""
    verdict = Verdict.rewrite("$target.n", [number])
    value = decode_response(encode_response(verdict)).transform
    assert value is not None
    [carried] = value.value
    assert (carried, type(carried)) == (number, float)


def test_answer_without_a_verdict_is_no_allow() -> None:
    """PROTOCOL: an empty message is not an allow."""
    assert encode_response(None) == b""
    with pytest.raises(WireError, match="no verdict"):
        decode_response(b"")


@pytest.mark.parametrize("reason", HostError)
def test_reserved_reason_passes_the_codec_and_not_the_gate(reason: HostError) -> None:
    """§11: a record's verdict carries it; an interceptor's is refused by the core."""
    decoded = decode_response(encode_response(Verdict.host_error(reason)))
    assert decoded.reason == reason.value
    with pytest.raises(VerdictError):
        check_verdict(decoded)


# -- approvals --


@given(RESOLUTIONS)
def test_resolution_is_carried_without_loss(
    resolution: tuple[ApprovalOutcome, str | None, Verdict | None],
) -> None:
    """§9: the echo byte for byte, and an absent verdict stays absent."""
    outcome, identity, verdict = resolution
    message = None if verdict is None else encode_verdict(verdict)
    decoded = decode_resolution(encode_resolution(outcome, identity, message))
    assert decoded == {"outcome": outcome.value, "context_identity": identity, "verdict": verdict}


@settings(max_examples=30)
@given(data=st.data(), identity=st.none() | TEXT, deny=verdicts())
def test_approval_request_is_carried_without_loss(
    data: Any, identity: str | None, deny: Verdict
) -> None:
    """§9: what the resolver sees is what was presented."""
    point = data.draw(st.sampled_from(sorted(POINTS)))
    raw = data.draw(contexts(point))
    request = ApprovalRequest(identity, InterceptionPoint(point), deny, raw)
    message = approval_pb2.ResolveRequest.FromString(encode_resolve(request, snapshot(raw)))
    decoded = decode_resolve(message)
    assert same(decoded.context, raw)
    assert (decoded.context_identity, decoded.interception_point) == (identity, point)
    assert decoded.verdict == deny


@pytest.mark.parametrize("number", [0, 4, -1])
def test_outcome_outside_the_set_is_handed_on_as_none(number: int) -> None:
    """§9: the echo is checked before the shape, so the codec judges neither."""
    message = approval_pb2.ApprovalResolution(outcome=number, context_identity="x")  # type: ignore[arg-type]
    data = approval_pb2.ResolveResponse(resolution=message).SerializeToString()
    assert decode_resolution(data)["outcome"] is None


def test_verdict_that_is_none_is_handed_on_as_one_that_the_gate_refuses() -> None:
    """§9 fixes the order: echo, shape, then §5."""
    carried = decode_resolution(
        encode_resolution(ApprovalOutcome.APPROVE, None, verdict_pb2.Verdict())
    )
    with pytest.raises(VerdictError):
        check_verdict(carried["verdict"])


# -- records --

_COMPOSITIONS = st.builds(
    CompositionConfig,
    st.sampled_from(CompositionProfile),
    st.none() | st.sampled_from(OnApproval),
    st.none() | st.sampled_from(SynthesisPolicy),
    st.none() | st.sampled_from(SynthesisPolicy),
)
_SUMMARIES = st.builds(
    VerdictSummary,
    st.integers(0, 9),
    st.sampled_from(Decision),
    st.none() | TEXT,
    st.none() | TEXT,
)
_RECORDS = st.builds(
    InterceptionRecord,
    interception_point=st.sampled_from(InterceptionPoint),
    mode=st.sampled_from(EnforcementMode),
    verdict=verdicts().map(project),
    input_identity=st.none() | TEXT,
    enforced_identity=st.none() | TEXT,
    identity_provider=st.none() | TEXT,
    session_id=TEXT,
    sequence=st.integers(-1, 2**62),
    timestamp=st.none() | TEXT,
    trace=st.none() | st.dictionaries(st.sampled_from(["trace_id", "span_id"]), TEXT, min_size=1),
    decided_by=st.none() | st.integers(0, 9),
    composition=_COMPOSITIONS,
    declaration=st.none() | TEXT,
    verdicts=st.lists(_SUMMARIES, max_size=3).map(tuple),
    fold_truncated=st.none() | st.booleans(),
    resolved_by=st.none() | st.sampled_from(["approval", "rejection"]),
    interceptors_registered=st.integers(0, 9),
)


@given(_RECORDS)
def test_record_is_carried_without_loss(record: InterceptionRecord) -> None:
    """§10.3: every member, absent ones included."""
    data = encode_record(record).SerializeToString()
    assert decode_record(record_pb2.InterceptionRecord.FromString(data)) == record


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(
    "reply",
    [
        Verdict.allow(),
        Verdict.warn(reason="w", message="m" * 300),
        Verdict.escalate(reason="e"),
        Verdict(Decision.TRANSFORM, transform=Transform("$target", {"n": 1})),
        {"decision": "no"},
    ],
    ids=["allow", "warning", "liftable_deny", "transform", "invalid"],
)
def test_record_of_an_emission_is_carried_without_loss(point: str, reply: Any) -> None:
    """§10.3: what the core writes, reserved reasons included."""
    record = run(context(point), reply, names=("first",)).emitted.record
    assert decode_record(encode_record(record)) == record


def test_record_of_a_context_that_is_none_is_carried() -> None:
    """§6.3: no session, no sequence."""
    record = drive(None, Rules(), lambda *_: None).emitted.record
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("interception_point", 0),
        ("interception_point", 99),
        ("mode", 0),
        ("mode", 99),
        ("composition", record_pb2.Composition(profile="no/profile")),
        ("composition", record_pb2.Composition(profile="sequential/run_all", on_approval="x")),
        ("verdict", verdict_pb2.Verdict()),
        ("verdicts", [record_pb2.VerdictSummary(decision=99)]),  # type: ignore[arg-type]
        (
            "verdict",
            verdict_pb2.Verdict(decision=1, evidence={"artefact": "x" * 10241}),  # type: ignore[arg-type]
        ),
    ],
    ids=[
        "point_unspecified", "point_unknown", "mode_unspecified", "mode_unknown", "profile",
        "knob", "verdict", "summary", "evidence",
    ],
)  # fmt: skip
def test_record_that_is_malformed_is_a_wire_error(change: str, value: Any) -> None:
    """PROTOCOL: a malformed message is refused with one exception, whatever is wrong with it."""
    good = encode_record(run(context(), Verdict.allow()).emitted.record)
    bad = record_pb2.InterceptionRecord()
    bad.CopyFrom(good)
    bad.ClearField(change)  # type: ignore[arg-type]
    bad.MergeFrom(record_pb2.InterceptionRecord(**{change: value}))
    with pytest.raises(WireError):
        decode_record(bad)


# -- the plugin as a process --


@given(
    st.builds(
        Description,
        TEXT,
        TEXT,
        st.just(1),
        st.lists(TEXT, max_size=3).map(tuple),
        st.sampled_from([INTERCEPTOR, APPROVAL_RESOLVER]),
        st.lists(st.sampled_from(sorted(POINTS)), max_size=8).map(tuple),
        st.none() | TEXT,
        st.integers(0, 2**31),
        st.lists(TEXT, max_size=3).map(tuple),
    )
)
def test_description_is_carried_without_loss(description: Description) -> None:
    """PROTOCOL Services, Describe: no points means none, no schema means no configuration."""
    assert decode_description(encode_description(description)) == description


def test_requests_of_the_plugins_service_say_what_they_are_told() -> None:
    """PROTOCOL Services: Describe, Configure, Shutdown."""
    hello = plugin_pb2.DescribeRequest.FromString(encode_describe([1, 2], ["a", "b"]))
    assert (list(hello.protocol_versions), list(hello.specs)) == ([1, 2], ["a", "b"])
    setup = plugin_pb2.ConfigureRequest.FromString(encode_configure("b", '{"a":1}'))
    assert (setup.binding_id, setup.config_json) == ("b", '{"a":1}')
    assert plugin_pb2.ShutdownRequest.FromString(encode_shutdown(1.5)).grace_ms == 1500


@pytest.mark.parametrize("points", [[0], [5, 9], [-1]], ids=repr)
def test_description_with_a_point_that_is_none_is_refused(points: list[int]) -> None:
    """§3: the set is closed."""
    data = plugin_pb2.DescribeResponse(
        protocol_version=1, kind=1, points=points
    ).SerializeToString()  # type: ignore[arg-type]
    with pytest.raises(WireError, match="interception_point"):
        decode_description(data)


@pytest.mark.parametrize("kind", [0, 3, -1])
def test_kind_that_is_none_is_neither(kind: int) -> None:
    """PROTOCOL Launch 3: the versions are looked at first, so the codec hands it on."""
    message = plugin_pb2.DescribeResponse(kind=kind)  # type: ignore[arg-type]
    described = decode_description(message.SerializeToString())
    assert described.kind not in (INTERCEPTOR, APPROVAL_RESOLVER)


# -- what is none --


def _request(data: bytes) -> Any:
    message: Any = parse_message(interceptor_pb2.InterceptRequest, data, "request")
    return decode_context(message.context)


def _resolve_request(data: bytes) -> Any:
    return decode_resolve(parse_message(approval_pb2.ResolveRequest, data, "request"))


def _record(data: bytes) -> Any:
    return decode_record(parse_message(record_pb2.InterceptionRecord, data, "record"))


def _valid() -> dict[str, bytes]:
    verdict = Verdict(
        Decision.DENY,
        "r",
        "m",
        approval={"a": [1]},
        result_labels=("l",),
        evidence=None,
    )
    raw = context("post_model_call", extensions={"a": 1.5}, trace={"trace_id": "1"})
    checked = snapshot(raw)
    request = ApprovalRequest("id", InterceptionPoint.POST_MODEL_CALL, verdict, raw)
    return {
        "answer": encode_response(verdict),
        "rewrite": encode_response(Verdict.rewrite("$target.n", {"a": ["😀", 1e300]})),
        "streamed": encode_stream_response(verdict, "e" * 32),
        "resolution": encode_resolution(ApprovalOutcome.REJECT, "id", encode_verdict(verdict)),
        "described": plugin_pb2.DescribeResponse(
            name="n",
            protocol_version=1,
            specs=["agent-hooks/0.1"],
            kind=1,
            points=[5, 6],  # type: ignore[arg-type, list-item]
        ).SerializeToString(),
        "request": encode_request(
            checked,
            emission_id="e",
            mode=EnforcementMode.ENFORCE,
            approval_available=True,
            timeout_ms=1,
        ),
        "resolve": encode_resolve(request, checked),
        "record": encode_record(run(raw, verdict).emitted.record).SerializeToString(),
    }


VALID = _valid()
DECODERS: dict[str, Any] = {
    "answer": decode_response,
    "rewrite": decode_response,
    "streamed": lambda data: decode_stream_response(data, "e" * 32),
    "resolution": decode_resolution,
    "described": decode_description,
    "request": _request,
    "resolve": _resolve_request,
    "record": _record,
}


def decoded_or_refused(what: str, data: bytes) -> Any:
    """What the bytes decode to; None where they are refused as they should be."""
    try:
        return DECODERS[what](data)
    except WireError:
        return None


@pytest.mark.parametrize("what", DECODERS)
def test_valid_message_is_decoded(what: str) -> None:
    """So that the mutations below start from something good."""
    assert DECODERS[what](VALID[what]) is not None


@pytest.mark.parametrize("what", DECODERS)
@given(st.binary(max_size=200))
def test_random_bytes_are_decoded_or_a_wire_error(what: str, data: bytes) -> None:
    """PROTOCOL: Verdicts fail closed; never another exception."""
    decoded_or_refused(what, data)


@pytest.mark.parametrize("what", DECODERS)
@given(data=st.data())
def test_mutated_bytes_are_decoded_or_a_wire_error(what: str, data: Any) -> None:
    """PROTOCOL: Verdicts fail closed; cut, changed, doubled or spliced."""
    decoded_or_refused(what, data.draw(mutations(VALID[what])))


@pytest.mark.parametrize("what", DECODERS)
def test_message_cut_short_anywhere_is_decoded_or_a_wire_error(what: str) -> None:
    """Every prefix, and an answer's never becomes an allow."""
    for length in range(len(VALID[what])):
        decoded = decoded_or_refused(what, VALID[what][:length])
        if isinstance(decoded, Verdict):
            assert decoded.decision is not Decision.ALLOW


def _set(path: str, text: str) -> bytes:
    """The bytes of an InterceptRequest with one JSON text replaced."""
    request = interceptor_pb2.InterceptRequest.FromString(VALID["request"])
    *way, last = path.split(".")
    holder: Any = request.context
    for step in way:
        holder = holder[int(step)] if step.isdigit() else getattr(holder, step)
    if last.endswith("]"):
        name, _, key = last[:-1].partition("[")
        getattr(holder, name)[key] = text
    else:
        setattr(holder, last, text)
    return request.SerializeToString()


TEXTS = {
    "empty": "", "cut": '{"a":', "two": "1 2", "duplicate": '{"a":1,"a":1}', "nan": "NaN",
    "infinite": "1e999", "surrogate": '"\\ud800"', "deep": "[" * 10000 + "]" * 10000,
    "comment": "1 // x", "mark": "\ufeff1", "trailing": "[1,]", "single": "'a'",
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize(
    "path",
    [
        "target_json", "messages_json", "tools_json", "response.content_json",
        "response.tool_calls.0.args_json", "extensions_json[a]", "other_json[zz]",
        "response.other_json[zz]",
    ],
)  # fmt: skip
def test_malformed_json_text_is_refused_and_not_repeated(path: str, text: str) -> None:
    """PROTOCOL: JSON text that is not valid I-JSON; the refusal names the field, not the value."""
    with pytest.raises(WireError) as raised:
        _request(_set(path, text))
    assert "_json" in str(raised.value)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    "path",
    [
        "other_json[target]", "other_json[interception_point]", "other_json[extensions]",
        "other_json[spec]", "other_json[response]", "response.other_json[content]",
    ],
)  # fmt: skip
def test_member_carried_twice_is_refused(path: str) -> None:
    """PROTOCOL Messages: no two values for two parsers to disagree on."""
    with pytest.raises(WireError):
        _request(_set(path, "1"))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")], ids=str)
def test_number_that_is_not_finite_is_refused(number: float) -> None:
    """PROTOCOL Messages: no NaN on the wire, where a field is a double either."""
    request = interceptor_pb2.InterceptRequest.FromString(VALID["request"])
    request.context.budgets.cost_usd = number
    with pytest.raises(WireError):
        _request(request.SerializeToString())


def _places(message: Message) -> list[Message]:
    """A message and everything within it, maps' entries excepted."""
    found = [message]
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for item in [value] if isinstance(value, Message) else value:
            found += _places(item)
    return found


@pytest.mark.parametrize("what", DECODERS)
def test_unknown_field_is_refused_at_any_depth(what: str) -> None:
    """PROTOCOL: Verdicts fail closed; InterceptRequest itself may grow, its context may not."""
    kinds: dict[str, type[Message]] = {
        "answer": interceptor_pb2.InterceptResponse,
        "rewrite": interceptor_pb2.InterceptResponse,
        "streamed": interceptor_pb2.InterceptStreamResponse,
        "resolution": approval_pb2.ResolveResponse,
        "described": plugin_pb2.DescribeResponse,
        "request": interceptor_pb2.InterceptRequest,
        "resolve": approval_pb2.ResolveRequest,
        "record": record_pb2.InterceptionRecord,
    }
    count = len(_places(kinds[what].FromString(VALID[what])))
    for index in range(1 if what == "request" else 0, count):
        message = kinds[what].FromString(VALID[what])
        _places(message)[index].MergeFromString(b"\xa0\x1f\x01")  # field 500
        assert decoded_or_refused(what, message.SerializeToString()) is None


@pytest.mark.parametrize("member", ["agent", "session", "interception_point"])
def test_request_without_a_required_message_is_refused(member: str) -> None:
    """§4.1: proto3 has no required fields, so the codec does."""
    request = interceptor_pb2.InterceptRequest.FromString(VALID["request"])
    request.context.ClearField(member)  # type: ignore[arg-type]
    with pytest.raises(WireError):
        decode_context(request.context)


@pytest.mark.parametrize("point", POINTS)
def test_request_without_its_points_member_is_refused(point: str) -> None:
    """§4.2: there is nothing the target could be."""
    message = context_pb2.AgentContext(
        interception_point=f"INTERCEPTION_POINT_{point.upper()}",
        agent={"id": "a"},
        session={"id": "s"},
    )
    with pytest.raises(WireError):
        decode_context(message)


# -- statuses --

_TIMED = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED)


@pytest.mark.parametrize("timed_out", [True, False], ids=["host_clock_ran_out", "in_time"])
@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code.value[0] != 0])
def test_status_is_a_failure_and_the_hosts_clock_decides(
    code: grpc.StatusCode, timed_out: bool
) -> None:
    """PROTOCOL Deadlines: a plugin's own DEADLINE_EXCEEDED is no timeout."""
    expected = (
        HostError.INTERCEPTOR_TIMEOUT
        if timed_out and code in _TIMED
        else HostError.INTERCEPTOR_FAILED
    )
    assert failure(code, "secret", timed_out).reason is expected
    assert "secret" not in failure(code, "secret", timed_out).detail


def test_answer_that_is_too_large_is_an_invalid_verdict() -> None:
    """PROTOCOL: Verdicts fail closed; more than 16 MiB."""
    said = "CLIENT: Received message larger than max (20971528 vs. 16777216)"
    exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
    assert failure(exhausted, said, False).reason is HostError.VERDICT_INVALID
    assert failure(exhausted, None, False).reason is HostError.INTERCEPTOR_FAILED
