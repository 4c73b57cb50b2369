"""The interception record on the wire (§10.3)."""

from __future__ import annotations

from agent_hooks.core.record import InterceptionRecord, VerdictSummary
from agent_hooks.core.verdict import Verdict
from agent_hooks.v1 import context_pb2, interceptor_pb2, record_pb2
from agent_hooks.wire import fields
from agent_hooks.wire.context import point_name
from agent_hooks.wire.fields import WireError
from agent_hooks.wire.verdict import decode_verdict, encode_verdict

_OPTIONAL = (
    "input_identity", "enforced_identity", "identity_provider", "timestamp", "decided_by",
    "declaration", "fold_truncated", "resolved_by",
)  # fmt: skip


def encode_record(record: InterceptionRecord) -> record_pb2.InterceptionRecord:
    """A record as a message."""
    composition = record.composition.to_wire()
    return record_pb2.InterceptionRecord(
        interception_point=f"INTERCEPTION_POINT_{record.interception_point.name}",
        mode=f"ENFORCEMENT_MODE_{record.mode.name}",
        verdict=encode_verdict(record.verdict),
        session_id=record.session_id,
        sequence=record.sequence,
        trace=record.trace and _trace(record.trace),
        composition=record_pb2.Composition(**composition),
        verdicts=[_encode_summary(item) for item in record.verdicts],
        interceptors_registered=record.interceptors_registered,
        **{name: getattr(record, name) for name in _OPTIONAL},
    )


def _trace(trace: dict[str, str]) -> context_pb2.Trace:
    return context_pb2.Trace(trace_id=trace.get("trace_id"), span_id=trace.get("span_id"))


def _encode_summary(item: VerdictSummary) -> record_pb2.VerdictSummary:
    decision = encode_verdict(Verdict(item.decision)).decision
    return record_pb2.VerdictSummary(
        index=item.index, decision=decision, reason=item.reason, name=item.name
    )


def decode_record(message: record_pb2.InterceptionRecord) -> InterceptionRecord:
    """The record that `encode_record` was given.

    Raises:
        WireError: a malformed message.
    """
    fields.refuse_unknown_fields(message, "record")
    try:
        return _decode(message)
    except WireError:
        raise
    except ValueError:
        raise WireError("record: a member is outside its set") from None


def _decode(message: record_pb2.InterceptionRecord) -> InterceptionRecord:
    wire = {name: getattr(message, name) for name in _OPTIONAL if message.HasField(name)}
    if message.HasField("trace"):
        ids = ("trace_id", "span_id")
        wire["trace"] = {
            name: getattr(message.trace, name) for name in ids if message.trace.HasField(name)
        }
    knobs = ("on_approval", "on_disagreement", "on_transform_conflict")
    composition = message.composition
    return InterceptionRecord.from_core(
        {
            "interception_point": point_name(message.interception_point),
            "mode": interceptor_pb2.EnforcementMode.Name(message.mode)[17:].lower(),
            "verdict": decode_verdict(message.verdict).to_wire(),
            "session_id": message.session_id,
            "sequence": message.sequence,
            "composition": {
                "profile": composition.profile,
                **{
                    name: getattr(composition, name) for name in knobs if composition.HasField(name)
                },
            },
            "verdicts": [_decode_summary(item) for item in message.verdicts],
            "interceptors_registered": message.interceptors_registered,
            **wire,
        }
    )


def _decode_summary(item: record_pb2.VerdictSummary) -> dict[str, object]:
    decision = decode_verdict(
        record_pb2.InterceptionRecord(verdict={"decision": item.decision}).verdict
    )
    summary: dict[str, object] = {"index": item.index, "decision": decision.decision.value}
    for name in ("reason", "name"):
        if item.HasField(name):
            summary[name] = getattr(item, name)
    return summary
