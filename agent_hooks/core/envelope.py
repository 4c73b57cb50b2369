"""The envelope of a context (§4.1, §4.2), as tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from agent_hooks.core.points import POINTS, Point
from agent_hooks.core.values import JSON, AgentHooksCoreError

MAX_SEQUENCE: Final = 2**63 - 1
"""What a record and the wire can carry."""


class ContextError(AgentHooksCoreError):
    """A context that no interceptor may see (§6.3).

    Its text is fit for a record: it names members of the specification,
    never anything from within the target.
    """


# Rows: member, submember, check, what is expected.

_Row = tuple[str, str | None, Callable[[Any], bool], str]


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is kind


def _matches(pattern: str) -> Callable[[Any], bool]:
    match = re.compile(pattern).fullmatch
    return lambda value: type(value) is str and match(value) is not None


def _one_of(*allowed: str) -> Callable[[Any], bool]:
    return lambda value: type(value) is str and value in allowed


def _natural(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_SEQUENCE


def _filled(value: Any) -> bool:
    return type(value) is str and value != ""


def _anything(_: Any) -> bool:
    return True


def _strings(value: Any) -> bool:
    return type(value) is list and all(type(item) is str for item in value)


def _messages(value: Any) -> bool:
    return type(value) is list and all(
        type(item) is dict and type(item.get("role")) is str and "content" in item for item in value
    )


def _model_tool_calls(value: Any) -> bool:
    return type(value) is list and all(
        type(item) is dict and type(item.get("name")) is str and type(item.get("args")) is dict
        for item in value
    )


_OBJECT = _is(dict)

_CORE: tuple[_Row, ...] = (
    ("spec", None, _matches(r"agent-hooks/\d+\.\d+"), "agent-hooks/<major>.<minor>"),
    ("interception_point", None, lambda value: type(value) is str and value in POINTS, "one of §3"),
    ("timestamp", None, _is(str), "an RFC 3339 string"),
    ("sequence", None, _natural, "an integer >= 0 of 64 bits"),
    ("agent", None, _OBJECT, "an object"),
    ("agent", "id", _filled, "a string that is not empty"),
    ("agent", "framework", _matches(r"[a-z0-9_-]+"), "a string that matches ^[a-z0-9_-]+$"),
    ("session", None, _OBJECT, "an object"),
    ("session", "id", _filled, "a string that is not empty"),
    ("target", None, _anything, "present"),
)
_MODEL: tuple[_Row, ...] = (
    ("model", None, _OBJECT, "an object"),
    ("model", "id", _is(str), "a string"),
)
_TOOL: tuple[_Row, ...] = (
    ("tool_call", None, _OBJECT, "an object"),
    ("tool_call", "id", _filled, "a string that is not empty"),
    ("tool_call", "name", _filled, "a string that is not empty"),
    ("tool_call", "args", _OBJECT, "an object"),
)
_CONDITIONAL: dict[str, tuple[_Row, ...]] = {
    "agent_startup": (
        ("agent_init", None, _OBJECT, "an object"),
        ("agent_init", "tools_registered", _strings, "an array of strings"),
    ),
    "input": (
        ("input", None, _OBJECT, "an object"),
        ("input", "content", _anything, "present"),
        ("input", "role", _one_of("user", "system", "external"), "user, system or external"),
    ),
    "pre_model_call": (
        *_MODEL,
        ("messages", None, _messages, "an array of objects with role (a string) and content"),
    ),
    "post_model_call": (
        *_MODEL,
        ("response", None, _OBJECT, "an object"),
        ("response", "content", _anything, "present"),
        (
            "response",
            "tool_calls",
            _model_tool_calls,
            "an array of objects with name (a string) and args (an object)",
        ),
        ("response", "finish_reason", _is(str), "a string"),
    ),
    "pre_tool_call": _TOOL,
    "post_tool_call": (
        *_TOOL,
        ("tool_result", None, _OBJECT, "an object"),
        ("tool_result", "value", _anything, "present"),
        ("tool_result", "is_error", _is(bool), "a boolean"),
    ),
    "output": (
        ("output", None, _OBJECT, "an object"),
        ("output", "content", _anything, "present"),
    ),
    "agent_shutdown": (
        ("summary", None, _OBJECT, "an object"),
        (
            "summary",
            "reason",
            _one_of("completed", "error", "cancelled"),
            "completed, error or cancelled",
        ),
    ),
}
_ENVELOPE = {point: _CORE + rows for point, rows in _CONDITIONAL.items()}
MEMBERS = frozenset(row[0] for rows in _ENVELOPE.values() for row in rows) | {
    "usage", "trace", "tenant", "actor", "budgets", "tools", "request_id", "extensions",
}  # fmt: skip


def check_envelope(context: dict[str, Any], spec: str) -> Point:
    """Check presence and type of the required core and the point's own members.

    Args:
        spec: the one specification version that is accepted.

    Raises:
        ContextError: anything missing or of a wrong type.
    """
    point = context.get("interception_point")
    rows = _ENVELOPE.get(point, _CORE) if type(point) is str else _CORE
    for member, submember, check, expected in rows:
        holder: JSON = context
        name = member
        if submember is not None:
            holder, name = context[member], submember
        if name not in holder:
            raise ContextError(f"{_pointer(member, submember)}: missing; expected {expected} (§4)")
        if not check(holder[name]):
            raise ContextError(f"{_pointer(member, submember)}: expected {expected} (§4)")
    if context["spec"] != spec:
        raise ContextError("/spec: not the specification version that this emitter was built for")
    return POINTS[context["interception_point"]]


def _pointer(member: str, submember: str | None) -> str:
    return f"/{member}" if submember is None else f"/{member}/{submember}"
