"""One emission, from a raw context to its record, as one generator."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

from agent_hooks.core.composition import Combined, compose
from agent_hooks.core.context import ContextError, Snapshot, check_context
from agent_hooks.core.effects import Effect, Rules
from agent_hooks.core.envelope import MAX_SEQUENCE
from agent_hooks.core.identity import identify, provider_name
from agent_hooks.core.points import POINTS, InterceptionPoint
from agent_hooks.core.profile import EnforcementMode
from agent_hooks.core.reasons import HostError
from agent_hooks.core.record import InterceptionRecord, VerdictSummary, project
from agent_hooks.core.session import Sessions
from agent_hooks.core.values import JSON
from agent_hooks.core.verdict import Verdict

Emission = Generator[Effect, object, "Emitted"]


class Emitted(NamedTuple):
    """The outcome of one emission.

    Attributes:
        record: what is kept.
        verdict: the combined verdict whole, for the host alone (§10.3).
        target: the rewritten target, where there is one to enforce.
        rewritten: whether `target` is to be used in place of the host's own.
    """

    record: InterceptionRecord
    verdict: Verdict
    target: JSON = None
    rewritten: bool = False


def emission(raw: object, rules: Rules, sessions: Sessions) -> Emission:
    """Check, identify, compose, enforce, record (§6.3, §10.1, §7, §6, §10.3).

    A generator of effects; it raises nothing and returns exactly one `Emitted`,
    whatever the context, the interceptors and the driver's answers are.
    """
    try:
        snapshot = check_context(raw, rules.bounds, rules.spec)
        before = identify(snapshot, rules.provider)
    except ContextError as refusal:
        return refused(raw, rules, str(refusal), sessions)
    if disorder := sessions.enter(snapshot):
        return refused(raw, rules, disorder)
    combined = yield from compose(snapshot, rules)
    combined, after = _identify_after(combined, snapshot, before, rules)
    emitted = _enforce(combined, snapshot, before, after, rules)
    sessions.leave(snapshot, emitted.record.proceeds)
    return emitted


def host_failure(
    point: InterceptionPoint, rules: Rules, detail: str | None = None, **envelope: Any
) -> InterceptionRecord:
    """The record of a context that a host could not even build (§6.3)."""
    return _record(
        {"interception_point": point, **envelope},
        Verdict.host_error(HostError.CONTEXT_INVALID, detail),
        rules,
        truncated=bool(rules.names),
    )


def _identify_after(
    combined: Combined, snapshot: Snapshot, before: str | None, rules: Rules
) -> tuple[Combined, str | None]:
    """§10.3: the identity after composition; a provider that fails now fails closed too."""
    if rules.mode is EnforcementMode.EVALUATE_ONLY:
        return combined, before  # §10.3: always equal
    if combined.verdict.reason == HostError.CONTEXT_INVALID.value:
        return combined, None
    if combined.snapshot is snapshot:
        return combined, before
    try:
        return combined, identify(combined.snapshot, rules.provider)
    except ContextError as refusal:
        verdict = replace(
            Verdict.host_error(HostError.CONTEXT_INVALID, str(refusal)),
            warnings=combined.verdict.warnings,
        )
        return Combined(verdict, None, snapshot, combined.slots, combined.resolved_by), None


def _enforce(
    combined: Combined, snapshot: Snapshot, before: str | None, after: str | None, rules: Rules
) -> Emitted:
    record = _record(
        _checked_envelope(snapshot),
        combined.verdict,
        rules,
        input_identity=before,
        enforced_identity=after,
        decided_by=combined.decided_by,
        slots=combined.slots,
        truncated=len(combined.slots) < len(rules.names),
        resolved_by=combined.resolved_by,
    )
    # §6: a deny discards what was folded; evaluate_only never folded (§8).
    if record.proceeds and combined.snapshot is not snapshot:
        return Emitted(record, combined.verdict, combined.snapshot.context["target"], True)
    return Emitted(record, combined.verdict)


def refused(raw: object, rules: Rules, detail: str, sessions: Sessions | None = None) -> Emitted:
    """A deny that no interceptor had a part in (§6.3).

    Args:
        detail: for the record; names no content.
        sessions: a denied startup bars its session there.
    """
    verdict = Verdict.host_error(HostError.CONTEXT_INVALID, detail)
    envelope = _envelope(dict(raw) if isinstance(raw, dict) else {})
    record = _record(envelope, verdict, rules, truncated=bool(rules.names))
    startup = envelope["interception_point"] is InterceptionPoint.AGENT_STARTUP
    if sessions is not None and startup and envelope["session_id"] and not record.proceeds:
        sessions.bar(envelope["session_id"])
    return Emitted(record, verdict)


def _checked_envelope(snapshot: Snapshot) -> dict[str, Any]:
    """The envelope members of a context that was accepted."""
    context = snapshot.context
    return {
        "interception_point": snapshot.point.name,
        "session_id": context["session"]["id"],
        "sequence": context["sequence"],
        "timestamp": context["timestamp"],
        "trace": _trace(context["trace"]) if "trace" in context else None,
    }


def _envelope(context: dict[str, Any]) -> dict[str, Any]:
    """Best-effort envelope members of a context that may be anything (§10.2)."""
    point = _text(context.get("interception_point"))
    # The record's point is of a closed set; a context that names none of them
    # is filed under the first.
    name = point if point in POINTS else InterceptionPoint.AGENT_STARTUP.value
    session, sequence = context.get("session"), context.get("sequence")
    whole = type(sequence) is int and abs(sequence) <= MAX_SEQUENCE
    return {
        "interception_point": POINTS[name].name,
        "session_id": (_text(session.get("id")) if type(session) is dict else None) or "",
        "sequence": sequence if whole else -1,
        "timestamp": _text(context.get("timestamp")),
        "trace": _trace(context.get("trace")),
    }


def _text(value: object) -> str | None:
    """A string that a record can carry."""
    if not isinstance(value, str):
        return None
    text = str.__str__(value.value if isinstance(value, Enum) else value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text


def _trace(trace: object) -> dict[str, str] | None:
    if type(trace) is not dict:
        return None
    ids = {name: _text(trace.get(name)) for name in ("trace_id", "span_id")}
    return {name: text for name, text in ids.items() if text is not None} or None


def _record(
    envelope: dict[str, Any],
    verdict: Verdict,
    rules: Rules,
    *,
    truncated: bool,
    slots: tuple[Verdict, ...] = (),
    input_identity: str | None = None,
    enforced_identity: str | None = None,
    decided_by: int | None = None,
    resolved_by: str | None = None,
) -> InterceptionRecord:
    composition = rules.composition
    return InterceptionRecord(
        mode=rules.mode,
        verdict=project(verdict),
        input_identity=input_identity,
        enforced_identity=enforced_identity,
        identity_provider=provider_name(rules.provider),
        decided_by=decided_by,
        composition=composition,
        declaration=rules.declaration,
        verdicts=tuple(
            [
                VerdictSummary(index, slot.decision, slot.reason, rules.names[index])
                for index, slot in enumerate(slots)
            ]
        ),
        fold_truncated=None if composition.profile.is_parallel else truncated,
        resolved_by=resolved_by,
        interceptors_registered=len(rules.names),
        **envelope,
    )
