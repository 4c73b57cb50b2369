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


# Rows: member, submember, type (None: any), check beyond the type, what is expected.

_Row = tuple[str, str | None, type | None, Callable[[Any], object] | None, str]


def _one_of(*allowed: str) -> Callable[[str], bool]:
    return lambda value: value in allowed


def _natural(value: int) -> bool:
    return 0 <= value <= MAX_SEQUENCE


def _strings(value: list[Any]) -> bool:
    return all(type(item) is str for item in value)


def _messages(value: list[Any]) -> bool:
    return all(
        type(item) is dict and type(item.get("role")) is str and "content" in item for item in value
    )


def _model_tool_calls(value: list[Any]) -> bool:
    return all(
        type(item) is dict and type(item.get("name")) is str and type(item.get("args")) is dict
        for item in value
    )


_OBJECT = (dict, None, "an object")
_STRING = (str, None, "a string")
_FILLED = (str, len, "a string that is not empty")
_PRESENT = (None, None, "present")

_CORE: tuple[_Row, ...] = (
    (
        "spec",
        None,
        str,
        re.compile(r"agent-hooks/\d+\.\d+").fullmatch,
        "agent-hooks/<major>.<minor>",
    ),
    ("interception_point", None, str, POINTS.__contains__, "one of §3"),
    ("timestamp", None, str, None, "an RFC 3339 string"),
    ("sequence", None, int, _natural, "an integer >= 0 of 64 bits"),
    ("agent", None, *_OBJECT),
    ("agent", "id", *_FILLED),
    (
        "agent",
        "framework",
        str,
        re.compile(r"[a-z0-9_-]+").fullmatch,
        "a string that matches ^[a-z0-9_-]+$",
    ),
    ("session", None, *_OBJECT),
    ("session", "id", *_FILLED),
    ("target", None, *_PRESENT),
)
_MODEL: tuple[_Row, ...] = (
    ("model", None, *_OBJECT),
    ("model", "id", *_STRING),
)
_TOOL: tuple[_Row, ...] = (
    ("tool_call", None, *_OBJECT),
    ("tool_call", "id", *_FILLED),
    ("tool_call", "name", *_FILLED),
    ("tool_call", "args", *_OBJECT),
)
_CONDITIONAL: dict[str, tuple[_Row, ...]] = {
    "agent_startup": (
        ("agent_init", None, *_OBJECT),
        ("agent_init", "tools_registered", list, _strings, "an array of strings"),
    ),
    "input": (
        ("input", None, *_OBJECT),
        ("input", "content", *_PRESENT),
        ("input", "role", str, _one_of("user", "system", "external"), "user, system or external"),
    ),
    "pre_model_call": (
        *_MODEL,
        ("messages", None, list, _messages, "an array of objects with role (a string) and content"),
    ),
    "post_model_call": (
        *_MODEL,
        ("response", None, *_OBJECT),
        ("response", "content", *_PRESENT),
        (
            "response",
            "tool_calls",
            list,
            _model_tool_calls,
            "an array of objects with name (a string) and args (an object)",
        ),
        ("response", "finish_reason", *_STRING),
    ),
    "pre_tool_call": _TOOL,
    "post_tool_call": (
        *_TOOL,
        ("tool_result", None, *_OBJECT),
        ("tool_result", "value", *_PRESENT),
        ("tool_result", "is_error", bool, None, "a boolean"),
    ),
    "output": (
        ("output", None, *_OBJECT),
        ("output", "content", *_PRESENT),
    ),
    "agent_shutdown": (
        ("summary", None, *_OBJECT),
        (
            "summary",
            "reason",
            str,
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
    for member, submember, kind, check, expected in rows:
        holder: JSON = context
        name = member
        if submember is not None:
            holder, name = context[member], submember
        if name not in holder:
            raise ContextError(f"{_pointer(member, submember)}: missing; expected {expected} (§4)")
        value = holder[name]
        if (kind is not None and type(value) is not kind) or (check and not check(value)):
            raise ContextError(f"{_pointer(member, submember)}: expected {expected} (§4)")
    if context["spec"] != spec:
        raise ContextError("/spec: not the specification version that this emitter was built for")
    return POINTS[context["interception_point"]]


def _pointer(member: str, submember: str | None) -> str:
    return f"/{member}" if submember is None else f"/{member}/{submember}"
