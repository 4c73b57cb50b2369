"""The agent context (§4): the envelope check, and the emission's own copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from agent_hooks.core import canonical, values
from agent_hooks.core.envelope import MEMBERS, check_envelope
from agent_hooks.core.envelope import ContextError as ContextError
from agent_hooks.core.points import POINTS, Path, Point
from agent_hooks.core.values import JSON, ValueDomainError

SPEC_VERSION: Final = "agent-hooks/0.1"

_POST_MODEL_CALL: Final = POINTS["post_model_call"]

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


class Snapshot:
    """The emission's own copy of one checked context; nothing else holds it.

    Treated as immutable. Canonical texts are made at most once each, however
    many readers there are (identity, wire, peers of a parallel profile).
    """

    __slots__ = ("_texts", "context", "flags", "point", "target_is_member", "views", "wire")

    def __init__(
        self, context: AgentContext, point: Point, flags: int, target_is_member: bool
    ) -> None:
        self.context = context
        self.point = point
        self.flags = flags
        self.target_is_member = target_is_member
        self.wire: bytes | None = None  # the codec keeps its encoding here
        self.views: dict[Any, Snapshot | None] = {}  # and grants what they withhold from it
        self._texts: dict[Path, bytes] = {}

    @property
    def is_partial(self) -> bool:
        """Whether its host says that it could not assemble a model's response (§12.1)."""
        return (
            self.point is _POST_MODEL_CALL
            and self.context["response"]["finish_reason"] == "stream_incomplete"
        )

    def copy(self) -> AgentContext:
        """A context for one reader alone (§7: its mutations are invisible)."""
        copy: AgentContext = values.copied(self.context)
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
            try:
                text = self._texts[path] = canonical.encode(value, self.flags)
            except ValueDomainError as refusal:
                raise ValueDomainError(refusal.problem, (*path, *refusal.path)) from None
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
        context = _with_target(self.context, self.point, target)
        check_envelope(context, context["spec"])
        rest = {name: value for name, value in context.items() if name != "target"}
        folded = Snapshot(context, self.point, values.scan(rest, bounds.max_depth), True)
        folded.check_size(bounds)
        return folded

    def check_size(self, bounds: Bounds) -> None:
        """Require the whole context to be within its bound (§12.3).

        Raises:
            ValueDomainError: it is not.
        """
        if self.flags or not self.target_is_member:
            size = values.measure(self.context, self.flags)
        else:  # The target stands there twice, and its text serves the identity and the wire.
            hollow = _with_target(self.context, self.point, None)
            size = values.measure(hollow, 0) + 2 * (len(self.target_text()) - len(b"null"))
        if size > bounds.max_bytes:
            raise ValueDomainError(values.TOO_LARGE)


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
        context, flags = values.admit(raw, bounds.max_depth, bounds.max_bytes)
        if shared is not None:
            context["target"] = _member(context, shared)
        point = check_envelope(context, spec)
        snapshot = Snapshot(context, point, flags, shared is not None or _same(context, point))
        snapshot.check_size(bounds)
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


def _with_target(context: AgentContext, point: Point, target: JSON) -> AgentContext:
    """The context with another target, in its member too; only what is on the way is new."""
    context = {**context, "target": target}
    *way, last = point.target
    holder = context
    for step in way:
        holder[step] = dict(holder[step])
        holder = holder[step]
    holder[last] = target
    return context


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
    place = f"/{first}" if first in MEMBERS else "(root)"
    return f"{place}: {refusal.problem}"
