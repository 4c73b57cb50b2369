"""The approval seam on the wire (§9)."""

from __future__ import annotations

from agent_hooks.core.approval import ApprovalOutcome, ApprovalRequest
from agent_hooks.core.context import Snapshot
from agent_hooks.core.points import InterceptionPoint
from agent_hooks.v1 import approval_pb2, verdict_pb2
from agent_hooks.wire import fields
from agent_hooks.wire.bulk import VERDICT, check_bulk
from agent_hooks.wire.context import (
    decode_context,
    encode_context,
    parse_message,
    point_name,
    point_number,
)
from agent_hooks.wire.fields import WireError
from agent_hooks.wire.verdict import decode_verdict, encode_verdict

_FROM_OUTCOME = {
    approval_pb2.ApprovalOutcome.Value(f"APPROVAL_OUTCOME_{item.name}"): item.value
    for item in ApprovalOutcome
}


def encode_resolve(request: ApprovalRequest, shown: Snapshot) -> bytes:
    """A serialised ResolveRequest; `shown` is the snapshot of the request's context.

    Raises:
        WireError: a context that the wire cannot carry.
    """
    return approval_pb2.ResolveRequest(
        request=approval_pb2.ApprovalRequest(
            context_identity=request.context_identity,
            interception_point=point_number(request.interception_point.value),  # type: ignore[arg-type]
            verdict=encode_verdict(request.verdict),
            context=encode_context(shown),
        )
    ).SerializeToString()


def decode_resolve(message: approval_pb2.ResolveRequest) -> ApprovalRequest:
    """The request in a ResolveRequest. Raises WireError."""
    fields.refuse_unknown_fields(message, "request")
    request = message.request
    return ApprovalRequest(
        request.context_identity if request.HasField("context_identity") else None,
        InterceptionPoint(point_name(request.interception_point)),
        decode_verdict(request.verdict),
        decode_context(request.context),
    )


def encode_resolution(
    outcome: ApprovalOutcome, identity: str | None, verdict: verdict_pb2.Verdict | None
) -> bytes:
    """A serialised ResolveResponse."""
    return approval_pb2.ResolveResponse(
        resolution=approval_pb2.ApprovalResolution(
            outcome=f"APPROVAL_OUTCOME_{ApprovalOutcome(outcome).name}",
            context_identity=identity,
            verdict=verdict,
        )
    ).SerializeToString()


def decode_resolution(data: bytes) -> dict[str, object]:
    """The JSON form of a serialised ResolveResponse. §9's own checks are the core's.

    A verdict that is none is handed on as one that §5 refuses, so that §9's
    order of checks decides which reason is reported.

    Raises:
        WireError: no resolution at all.
    """
    check_bulk(data, {1: {3: VERDICT}})
    response: approval_pb2.ResolveResponse = parse_message(
        approval_pb2.ResolveResponse, data, "answer"
    )
    if not response.HasField("resolution"):
        raise WireError("answer: has no resolution")
    fields.refuse_unknown_fields(response, "answer")
    message = response.resolution
    return {
        "outcome": _FROM_OUTCOME.get(message.outcome),
        "context_identity": (
            message.context_identity if message.HasField("context_identity") else None
        ),
        "verdict": _verdict(message.verdict) if message.HasField("verdict") else None,
    }


def _verdict(message: verdict_pb2.Verdict) -> object:
    try:
        return decode_verdict(message)
    except WireError:
        return {}
