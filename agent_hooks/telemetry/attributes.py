"""What a record says as span attributes and events (§10.3's projection, nothing more)."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import Event
from opentelemetry.trace import Status, StatusCode

from agent_hooks.core.reasons import RESERVED_PREFIX
from agent_hooks.core.record import InterceptionRecord

Attributes = dict[str, str | bool | int | float]


def emission_name(record: InterceptionRecord) -> str:
    """The span's name."""
    return f"agent_hooks.emission {record.interception_point.value}"


def emission_attributes(record: InterceptionRecord) -> Attributes:
    """The record's projection, without members that are absent."""
    verdict = record.verdict
    members: dict[str, Any] = {
        "agent_hooks.point": record.interception_point.value,
        "agent_hooks.decision": verdict.decision.value,
        "agent_hooks.reason": verdict.reason,
        "agent_hooks.mode": record.mode.value,
        "agent_hooks.profile": record.composition.profile.value,
        "agent_hooks.decided_by": record.decided_by,
        "agent_hooks.interceptor.name": _decider(record),
        "agent_hooks.interceptors_registered": record.interceptors_registered,
        "agent_hooks.sequence": record.sequence,
        "agent_hooks.session.id": record.session_id or None,
        "agent_hooks.fold_truncated": record.fold_truncated,
        "agent_hooks.resolved_by": record.resolved_by,
        "agent_hooks.identity_provider": record.identity_provider,
        "agent_hooks.input_identity": record.input_identity,
        "agent_hooks.enforced_identity": record.enforced_identity,
        "agent_hooks.transform.path": verdict.transform.path if verdict.transform else None,
    }
    if _is_host_error(record):
        members["error.type"] = verdict.reason
    return {name: value for name, value in members.items() if value is not None}


def emission_events(record: InterceptionRecord, at: int) -> list[Event]:
    """One event per verdict summary and one per warning; `at` in ns since the epoch."""
    events = [
        Event("agent_hooks.verdict", _present(item.to_wire(), "agent_hooks.verdict."), at)
        for item in record.verdicts
    ]
    events += [
        Event("agent_hooks.warning", _present(item.to_wire(), "agent_hooks.warning."), at)
        for item in record.verdict.warnings
    ]
    return events


def emission_status(record: InterceptionRecord) -> Status:
    """A policy's deny is no error; a failure of the machinery is."""
    if _is_host_error(record):
        return Status(StatusCode.ERROR, record.verdict.reason)
    return Status(StatusCode.UNSET)


def _is_host_error(record: InterceptionRecord) -> bool:
    return (record.verdict.reason or "").startswith(RESERVED_PREFIX)


def _decider(record: InterceptionRecord) -> str | None:
    return next((item.name for item in record.verdicts if item.index == record.decided_by), None)


def _present(wire: dict[str, Any], prefix: str) -> Attributes:
    return {prefix + name: value for name, value in wire.items()}
