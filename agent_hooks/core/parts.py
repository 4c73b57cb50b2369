"""The parts that a verdict is parsed from (§5), each checked at the door."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hooks.core import values
from agent_hooks.core.reasons import RESERVED_PREFIX
from agent_hooks.core.values import JSON, AgentHooksCoreError, ValueDomainError


class VerdictError(AgentHooksCoreError):
    """A value that is no valid verdict (§5). Names the member, never the value."""


def closed(obj: Any, what: str, names: tuple[str, ...]) -> Mapping[str, Any]:
    """An object with no members but these (§5)."""
    if not isinstance(obj, dict):
        raise VerdictError(f"{what}: expected an object (§5)")
    if not obj.keys() <= set(names):
        raise VerdictError(f"{what}: has a member that is not one of {', '.join(names)} (§5)")
    return obj


def text(members: Mapping[str, Any], name: str, prefix: str = "") -> str | None:
    """An optional string member; null is absent."""
    value = members.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise VerdictError(f"{prefix}{name}: expected a string (§5)")
    plain = str.__str__(value)
    try:
        plain.encode()
    except UnicodeEncodeError:
        raise VerdictError(f"{prefix}{name}: {values.SURROGATE}") from None
    return plain


def reason(members: Mapping[str, Any], prefix: str = "") -> str | None:
    """An optional reason: never a reserved one (§11)."""
    given = text(members, "reason", prefix)
    if given is not None and given.startswith(RESERVED_PREFIX):
        raise VerdictError(f"{prefix}reason: begins with host_error:, which is reserved (§11)")
    return given


def array(members: Mapping[str, Any], name: str) -> list[Any]:
    """An optional array member; null is empty."""
    items = members.get(name)
    if items is None:
        return []
    if not isinstance(items, (list, tuple)):
        raise VerdictError(f"{name}: expected an array (§5)")
    return list(items)


def label(item: Any) -> str:
    """One result label (§5.4)."""
    given = text({"result_labels[]": item}, "result_labels[]")
    if given is None:
        raise VerdictError("result_labels[]: expected a string (§5.4)")
    return given


def json_value(value: JSON, what: str) -> JSON:
    """A private copy of a JSON value from a verdict."""
    try:
        copy, flags = values.admit(value)
        values.measure(copy, flags)
    except ValueDomainError as refusal:
        raise VerdictError(f"{what}: {refusal.problem}") from None
    return copy


def present(**members: Any) -> dict[str, Any]:
    """Members that are not null."""
    return {name: value for name, value in members.items() if value is not None}
