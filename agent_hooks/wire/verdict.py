"""The verdict on the wire. Whatever is not exactly one is refused."""

from __future__ import annotations

from functools import lru_cache

from agent_hooks.core import canonical, values
from agent_hooks.core.values import JSON
from agent_hooks.core.verdict import ALLOW, Decision, Evidence, Transform, Verdict, Warning
from agent_hooks.v1 import interceptor_pb2, verdict_pb2
from agent_hooks.wire import fields
from agent_hooks.wire.bulk import VERDICT, Places, check_bulk
from agent_hooks.wire.context import parse_message
from agent_hooks.wire.fields import WireError

_TO_DECISION = {item: verdict_pb2.Decision.Value(f"DECISION_{item.name}") for item in Decision}
_FROM_DECISION = {number: item for item, number in _TO_DECISION.items()}


def encode_verdict(verdict: Verdict) -> verdict_pb2.Verdict:
    """A valid verdict as a message. Integers of any size are carried exactly."""
    message = verdict_pb2.Verdict(
        decision=_TO_DECISION[verdict.decision],  # type: ignore[arg-type]
        reason=verdict.reason,
        message=verdict.message,
        warnings=[
            verdict_pb2.Warning(reason=item.reason, message=item.message)
            for item in verdict.warnings
        ],
        result_labels=verdict.result_labels,
    )
    if verdict.approval is not None:
        message.approval_json = _text(verdict.approval)
    if verdict.transform is not None:
        message.transform.path = verdict.transform.path
        if verdict.transform.value is not None:
            message.transform.value_json = _text(verdict.transform.value)
    if verdict.evidence is not None:
        message.evidence.SetInParent()
        if verdict.evidence.artefact is not None:
            message.evidence.artefact = verdict.evidence.artefact
        message.evidence.verification_pointers.update(verdict.evidence.verification_pointers)
    return message


def _text(value: JSON) -> str:
    return canonical.json_text(value, values.scan(value))


def decode_verdict(message: verdict_pb2.Verdict) -> Verdict:
    """A message as a verdict. §5's own checks are the core's.

    Raises:
        WireError: an unspecified or unknown decision, or malformed JSON text.
    """
    decision = _FROM_DECISION.get(message.decision)
    if decision is None:
        raise WireError("verdict.decision: unspecified or unknown")
    return Verdict(
        decision,
        message.reason if message.HasField("reason") else None,
        message.message if message.HasField("message") else None,
        tuple(_warning(item) for item in message.warnings),  # type: ignore[arg-type] # stub says builtins.Warning
        _approval(message.approval_json) if message.HasField("approval_json") else None,
        _transform(message.transform) if message.HasField("transform") else None,
        _evidence(message.evidence) if message.HasField("evidence") else None,
        tuple(message.result_labels),
    )


def _approval(text: str) -> dict[str, JSON]:
    approval = fields.parse_exact(text, "verdict.approval_json")
    if type(approval) is not dict:
        raise WireError("verdict.approval_json: not an object")
    return approval


def _warning(message: verdict_pb2.Warning) -> Warning:
    return Warning(
        message.reason if message.HasField("reason") else None,
        message.message if message.HasField("message") else None,
    )


def _transform(message: verdict_pb2.Transform) -> Transform:
    if not message.HasField("value_json"):
        return Transform(message.path)
    return Transform(
        message.path, fields.parse_exact(message.value_json, "verdict.transform.value_json")
    )


def _evidence(message: verdict_pb2.Evidence) -> Evidence:
    return Evidence(
        message.artefact if message.HasField("artefact") else None,
        dict(message.verification_pointers),
    )


_Answer = interceptor_pb2.InterceptResponse | interceptor_pb2.InterceptStreamResponse


def encode_response(verdict: Verdict | None) -> bytes:
    """A serialised InterceptResponse; None is an answer without a verdict, never an allow."""
    return _encode(interceptor_pb2.InterceptResponse, verdict)


def encode_stream_response(verdict: Verdict | None, emission_id: str) -> bytes:
    """A serialised InterceptStreamResponse: as `encode_response`, to a request of that id."""
    return _id_field(emission_id) + _encode(interceptor_pb2.InterceptStreamResponse, verdict)


def _encode(kind: type[_Answer], verdict: Verdict | None) -> bytes:
    if verdict is None:
        return b""
    return _ALLOW[kind] if verdict is ALLOW else _encode_some(kind, verdict)


def _encode_some(kind: type[_Answer], verdict: Verdict) -> bytes:
    return kind(verdict=encode_verdict(verdict)).SerializeToString()


def _id_field(emission_id: str) -> bytes:
    return interceptor_pb2.InterceptStreamResponse(emission_id=emission_id).SerializeToString()


def decode_response(data: bytes) -> Verdict:
    """The verdict of a serialised InterceptResponse.

    Raises:
        WireError: anything that is not exactly one verdict.
    """
    return _decode(interceptor_pb2.InterceptResponse, data)[0]


def decode_stream_response(data: bytes, emission_id: str) -> Verdict:
    """The verdict of a serialised InterceptStreamResponse.

    Raises:
        WireError: anything that is not exactly one verdict, for a request of that id.
    """
    # The id cut off, plugins say few different things. One more id in what is
    # left would win, as protobuf has it: there must be none.
    head = _id_field(emission_id)
    cut = data.startswith(head)
    verdict, said = _decode(
        interceptor_pb2.InterceptStreamResponse, data[len(head) :] if cut else data
    )
    if said != ("" if cut else emission_id):
        raise WireError("answer.emission_id: not the request's")
    return verdict


def _decode(kind: type[_Answer], data: bytes) -> tuple[Verdict, str]:
    if len(data) > _SMALL:
        return _decode_any(kind, data)
    return _decode_small(kind, data)  # type: ignore[arg-type] # stub: classes are not Hashable


def _decode_any(kind: type[_Answer], data: bytes) -> tuple[Verdict, str]:
    """The verdict, and the emission's id where the answer says one."""
    check_bulk(data, _BULK[kind])
    answer = parse_message(kind, data, "answer")
    if not answer.HasField("verdict"):
        raise WireError("answer: has no verdict")
    fields.refuse_unknown_fields(answer, "answer")
    return decode_verdict(answer.verdict), getattr(answer, "emission_id", "")


_BULK: dict[type[_Answer], Places] = {
    interceptor_pb2.InterceptResponse: {1: VERDICT},
    interceptor_pb2.InterceptStreamResponse: {2: VERDICT},
}
_SMALL = 256
_decode_small = lru_cache(maxsize=256)(_decode_any)
"""Plugins say few different things; the core copies what it keeps of a verdict."""

_ALLOW = {
    kind: _encode_some(kind, ALLOW)
    for kind in (interceptor_pb2.InterceptResponse, interceptor_pb2.InterceptStreamResponse)
}
