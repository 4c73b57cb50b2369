"""The agent context (§4): the envelope check, and the emission's own copy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from agent_hooks.core import canonical, values
from agent_hooks.core.points import POINTS, Path, Point
from agent_hooks.core.values import JSON, AgentHooksCoreError, ValueDomainError

SPEC_VERSION: Final = "agent-hooks/0.1"

AgentContext = dict[str, Any]
"""The JSON payload of §4, as plain dicts, lists and scalars."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Resource bounds of one emission (§12.3).

    Attributes:
        max_bytes: serialised size of the context.
        max_depth: nested containers.
    """

    max_bytes: int = values.MAX_BYTES
    max_depth: int = values.MAX_DEPTH


class ContextError(AgentHooksCoreError):
    """A context that no interceptor may see (§6.3).

    Its text is fit for a record: it names members of the specification,
    never anything from within the target.
    """


class Snapshot:
    """The emission's own copy of one checked context; nothing else holds it.

    Treated as immutable. Canonical texts are made at most once each, however
    many readers there are (identity, wire, peers of a parallel profile).
    """

    __slots__ = ("_frozen", "_texts", "context", "flags", "point", "target_is_member", "wire")

    def __init__(
        self, context: AgentContext, point: Point, flags: int, target_is_member: bool
    ) -> None:
        self.context = context
        self.point = point
        self.flags = flags
        self.target_is_member = target_is_member
        self.wire: bytes | None = None  # the codec keeps its encoding here
        self._frozen: bytes | None = None
        self._texts: dict[Path, bytes] = {}

    def copy(self) -> AgentContext:
        """A context for one reader alone (§7: its mutations are invisible)."""
        if self._frozen is None:
            self._frozen = values.freeze(self.context)
        copy: AgentContext = values.thaw(self._frozen)
        return copy

    def text(self, path: Path) -> bytes:
        """RFC 8785 bytes of the member at `path`.

        Raises:
            ValueDomainError: outside I-JSON.
        """
        text = self._texts.get(path)
        if text is None:
            value: JSON = self.context
            for step in path:
                value = value[step]
            text = self._texts[path] = canonical.encode(value, self.flags)
        return text

    def target_text(self) -> bytes:
        """RFC 8785 bytes of the target; shared with its member where they are equal."""
        return self.text(self.point.target if self.target_is_member else ("target",))

    def with_target(self, target: JSON, bounds: Bounds) -> Snapshot:
        """The context with the target and its member replaced (§4.3 write-back).

        Raises:
            ValueDomainError: the new context breaks a bound (§12.3).
            ContextError: the value does not fit its place in the envelope (§4.2).
        """
        context = {**self.context, "target": target}
        holder = context
        for step in self.point.target[:-1]:
            holder[step] = dict(holder[step])
            holder = holder[step]
        holder[self.point.target[-1]] = target
        _check_envelope(context, context["spec"])
        rest = {name: value for name, value in context.items() if name != "target"}
        folded = Snapshot(context, self.point, values.scan(rest, bounds.max_depth), True)
        folded.check_size(rest, bounds)
        return folded

    def check_size(self, rest: AgentContext, bounds: Bounds) -> None:
        """Require the whole context to be within its bound (§12.3).

        Args:
            rest: the context, without the target where a member holds it too.

        Raises:
            ValueDomainError: it is not.
        """
        size = values.measure(rest, self.flags)
        if "target" not in rest and size * 2 > bounds.max_bytes:
            # Only a large context needs its target counted exactly.
            size += values.measure(self.context["target"], self.flags)
        if size > bounds.max_bytes:
            raise ValueDomainError("larger than the bound on a context (§12.3)")


def check_context(raw: object, bounds: Bounds, spec: str) -> Snapshot:
    """Check the §4 envelope and the §12.3 bounds; take the emission's own copy.

    Raises:
        ContextError: anything wrong. Never another exception.
    """
    if not isinstance(raw, dict):
        raise ContextError("(root): not a JSON object (§4)")
    raw = dict(raw)
    try:
        shared = _take_shared_target(raw)
        rest, flags = values.admit(raw, bounds.max_depth)
        context = _with_target(rest, shared)
        point = _check_envelope(context, spec)
        snapshot = Snapshot(context, point, flags, shared is not None or _same(context, point))
        snapshot.check_size(rest, bounds)
    except ValueDomainError as refusal:
        raise ContextError(public_detail(refusal)) from None
    return snapshot


def _take_shared_target(raw: AgentContext) -> Point | None:
    """Leave the target out of `raw` where its member is the very same object.

    Builders make it so; then it is copied, scanned and encoded once, not twice.
    """
    name = raw.get("interception_point")
    point = POINTS.get(name) if isinstance(name, str) else None
    if point is None or "target" not in raw:
        return None
    if _member(raw, point) is not raw["target"]:
        return None
    del raw["target"]
    return point


def _with_target(rest: AgentContext, shared: Point | None) -> AgentContext:
    return rest if shared is None else {**rest, "target": _member(rest, shared)}


def _member(context: AgentContext, point: Point) -> JSON:
    """The member that the target mirrors at a point (§3), or a value that is nothing else."""
    value: JSON = context
    for step in point.target:
        if not isinstance(value, dict) or step not in value:
            return _ABSENT
        value = value[step]
    return value


_ABSENT = object()


def _same(context: AgentContext, point: Point) -> bool:
    return values.freeze(context["target"]) == values.freeze(_member(context, point))


def public_detail(refusal: ValueDomainError) -> str:
    """The refusal for a record: the place cut at the specification's own names (§14)."""
    first = refusal.path[0] if refusal.path else ""
    place = f"/{first}" if first in _MEMBERS else "(root)"
    return f"{place}: {refusal.problem}"


# --- the envelope, as tables of (member, submember, check, what is expected) ---

_Row = tuple[str, str | None, Callable[[Any], bool], str]


def _is(kind: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is kind


def _matches(pattern: str) -> Callable[[Any], bool]:
    match = re.compile(pattern).fullmatch
    return lambda value: type(value) is str and match(value) is not None


def _one_of(*allowed: str) -> Callable[[Any], bool]:
    return lambda value: type(value) is str and value in allowed


def _natural(value: Any) -> bool:
    return type(value) is int and value >= 0


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
    ("sequence", None, _natural, "an integer >= 0"),
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
_MEMBERS = frozenset(row[0] for rows in _ENVELOPE.values() for row in rows) | {
    "usage", "trace", "tenant", "actor", "budgets", "tools", "request_id", "extensions",
}  # fmt: skip


def _check_envelope(context: AgentContext, spec: str) -> Point:
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
