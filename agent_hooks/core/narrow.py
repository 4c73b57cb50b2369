"""A context without what a plugin is not granted, still valid under §4 (§14).

Seen always, since nobody can judge without: the required core (§4.1) and the
required strings, numbers and flags of the point (§4.2), such as a tool's name
or a message's role. Contents are seen where they are granted. In the place of
one that is not stands `WITHHELD`, where §4 lets an object stand; an optional
member of another type is left out. Either way its path is listed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from agent_hooks.core.context import AgentContext, Snapshot
from agent_hooks.core.path import Steps
from agent_hooks.core.points import Path, Point
from agent_hooks.core.values import JSON

WITHHELD: Final = {"$withheld": "not granted"}
NAMESPACE: Final = "agent_hooks_host"
"""The extension under which the host lists what it has withheld."""

_LEFT_OUT: Final = object()


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """What §4 lets stand in a place; by default anything.

    Attributes:
        scalar: a string, number or flag only.
        items: an array only, of these.
        required: an object only, with these members.
        optional: further members that have a shape.
    """

    scalar: bool = False
    items: _Shape | None = None
    required: Mapping[str, _Shape] = field(default_factory=dict)
    optional: Mapping[str, _Shape] = field(default_factory=dict)

    @property
    def takes_object(self) -> bool:
        """Whether `WITHHELD` can stand there."""
        return not (self.scalar or self.items or self.required)


_ANY = _Shape()
_SCALAR = _Shape(scalar=True)


def _object(required: str = "", optional: str = "", **shaped: _Shape) -> _Shape:
    """Members by name: scalars, but those that `shaped` says; a required one may be, too."""
    return _Shape(
        required={name: shaped.get(name, _SCALAR) for name in required.split()},
        optional={name: shaped.get(name, _SCALAR) for name in optional.split()},
    )


_SHAPES: dict[str, _Shape] = {
    "spec": _SCALAR,
    "interception_point": _SCALAR,
    "timestamp": _SCALAR,
    "sequence": _SCALAR,
    "agent": _object("id framework", "name version"),
    "session": _object("id", "started_at turn"),
    "agent_init": _object("tools_registered", tools_registered=_Shape(items=_SCALAR)),
    "input": _object("content role", content=_ANY),
    "model": _object("id", "vendor params", params=_ANY),
    "messages": _Shape(items=_object("role content", content=_ANY)),
    "response": _object(
        "content tool_calls finish_reason",
        content=_ANY,
        tool_calls=_Shape(items=_object("name args", "id", args=_ANY)),
    ),
    "tool_call": _object("id name args", "content_hash", args=_ANY),
    "tool_result": _object("value is_error", "duration_ms", value=_ANY),
    "output": _object("content", content=_ANY),
    "summary": _object("reason", "tool_calls errors duration_seconds"),
    "request_id": _SCALAR,
    "tools": _Shape(items=_object("name", "description schema", schema=_ANY)),
    "usage": _object(optional="prompt_tokens completion_tokens"),
    "trace": _object(optional="trace_id span_id"),
    "tenant": _object(optional="id name"),
    "actor": _object(optional="id kind"),
    "budgets": _object(optional="tool_call_count token_count elapsed_seconds cost_usd"),
}
_CORE = frozenset(("spec", "interception_point", "timestamp", "sequence", "agent", "session"))

CLASSES: Final = (
    "target",
    *(name for name, shape in _SHAPES.items() if name not in _CORE or not shape.scalar),
    "extensions",
)
"""The members of a context that can be granted."""

Seen = dict[str | int, Any]
"""What is granted below a place: by step, the same below that."""

_WHOLE: Final[Seen] = {}
_NOTHING: Final[Seen] = {}


def narrow(snapshot: Snapshot, sees: tuple[Steps, ...]) -> Snapshot:
    """The context without what is not granted; the snapshot itself where nothing is withheld.

    `extensions.agent_hooks_host.redacted` lists the places, as §5.2 paths whose
    root is `$` and the name of a member (§14).
    """
    point = snapshot.point
    seen = _seen(sees, point.target)
    withheld: list[Steps] = []
    required = _CORE | point.projection.keys()
    context: AgentContext = {}
    for name, value in snapshot.context.items():
        if name in ("target", "extensions"):
            continue
        shape = _SHAPES.get(name, _ANY)
        at = _Place(shape, seen.get(name, _NOTHING), name in required, (name,))
        if (kept := _narrowed(value, at, withheld)) is not _LEFT_OUT:
            context[name] = kept
    context["target"] = _target(snapshot, context, seen, withheld)
    extensions = _extensions(snapshot.context, seen.get("extensions", _NOTHING), withheld)
    if not withheld:
        return snapshot
    mirrored = point.target if snapshot.target_is_member else ("target",)
    paths = [_shown(steps, mirrored) for steps in withheld]
    context["extensions"] = _listing(extensions, paths)
    return Snapshot(context, point, snapshot.flags, snapshot.target_is_member)


def sees_whole(sees: tuple[Steps, ...], point: Point, steps: Steps) -> bool:
    """Whether a place of the target is granted with all that is, or could be, in it."""
    seen = _seen(sees, point.target).get("target", _NOTHING)
    for step in steps:
        if seen is _WHOLE:
            break
        seen = seen.get(step, _NOTHING)
    return seen is _WHOLE


def holds_withheld(value: JSON) -> bool:
    """Whether there is, at any depth, what looks like a withheld value."""
    if type(value) is dict:
        return value == WITHHELD or any(map(holds_withheld, value.values()))
    return type(value) is list and any(map(holds_withheld, value))


@lru_cache(maxsize=256)
def _seen(sees: tuple[Steps, ...], target: Path) -> Seen:
    """The granted places as a tree. The target and the member it mirrors are one (§4.3)."""
    root: Seen = {}
    for steps in sees:
        _grant(root, steps)
        if steps[0] == "target":
            _grant(root, (*target, *steps[1:]))
        elif steps[: len(target)] == target[: len(steps)]:
            _grant(root, ("target", *steps[len(target) :]))
    return root


def _grant(seen: Seen, steps: Steps) -> None:
    *way, last = steps
    for step in way:
        seen = seen.setdefault(step, {})
        if seen is _WHOLE:
            return
    seen[last] = _WHOLE


@dataclass(slots=True, eq=False)
class _Place:
    """A place in the context, what is granted in it, and whether it can be left out."""

    shape: _Shape
    seen: Seen
    stays: bool
    steps: Steps

    def member(self, name: str) -> _Place:
        shape = self.shape.required.get(name) or self.shape.optional.get(name) or _ANY
        stays = name in self.shape.required
        return _Place(shape, self.seen.get(name, _NOTHING), stays, (*self.steps, name))

    def item(self, index: int) -> _Place:
        shape = self.shape.items or _ANY
        return _Place(shape, self.seen.get(index, _NOTHING), True, (*self.steps, index))


def _narrowed(value: JSON, at: _Place, withheld: list[Steps]) -> Any:
    """What is seen of a value; `_LEFT_OUT` where nothing can stand for it."""
    if at.seen is _WHOLE or (at.stays and at.shape.scalar and _is_scalar(value)):
        return value
    if type(value) is dict and (at.seen.keys() & value.keys() or (at.stays and at.shape.required)):
        members = {name: _narrowed(item, at.member(name), withheld) for name, item in value.items()}
        return {name: kept for name, kept in members.items() if kept is not _LEFT_OUT}
    if type(value) is list and (_any_item(at.seen, value) or (at.stays and at.shape.items)):
        return [_narrowed(item, at.item(index), withheld) for index, item in enumerate(value)]
    withheld.append(at.steps)
    return WITHHELD if at.stays or at.shape.takes_object else _LEFT_OUT


def _is_scalar(value: JSON) -> bool:
    return type(value) in (str, int, float, bool)


def _any_item(seen: Seen, value: list[JSON]) -> bool:
    return any(type(step) is int and step < len(value) for step in seen)


def _target(snapshot: Snapshot, context: AgentContext, seen: Seen, withheld: list[Steps]) -> JSON:
    if not snapshot.target_is_member:
        shape: _Shape = _Shape(required=_SHAPES)
        for step in snapshot.point.target:
            shape = shape.required[step]
        at = _Place(shape, seen.get("target", _NOTHING), True, ("target",))
        return _narrowed(snapshot.context["target"], at, withheld)
    value: JSON = context
    for step in snapshot.point.target:
        value = value[step]
    return value


def _extensions(context: AgentContext, seen: Seen, withheld: list[Steps]) -> dict[str, JSON]:
    """Each namespace by itself: no namespace can be named as a withheld value is (§4.6)."""
    extensions = context.get("extensions", {})
    if type(extensions) is not dict:  # it can hold no listing, where one is needed
        if withheld or seen is not _WHOLE:
            withheld.append(("extensions",))
        return {}
    if seen is _WHOLE:
        return extensions
    at = _Place(_ANY, seen, True, ("extensions",))
    return {name: _narrowed(value, at.member(name), withheld) for name, value in extensions.items()}


def _listing(extensions: dict[str, JSON], paths: list[str]) -> dict[str, JSON]:
    """The extensions with the host's own, which goes on where the host had begun it (§14)."""
    own = extensions.get(NAMESPACE)
    if type(own) is not dict or own is WITHHELD:
        own = {}
    before = own.get("redacted")
    redacted = [*(before if type(before) is list else []), *paths]
    return {**extensions, NAMESPACE: {**own, "redacted": redacted}}


_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")


def _shown(steps: Steps, mirrored: Path) -> str:
    if steps[: len(mirrored)] == mirrored:
        steps = ("target", *steps[len(mirrored) :])
    root, *below = steps
    return f"${root}" + "".join(map(_segment, below))


def _segment(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    # §5.2 has no way to write any other name: as JSON text it is at least clear.
    plain = _PLAIN_NAME.fullmatch(step)
    return f".{step}" if plain else f"[{json.dumps(step, ensure_ascii=False)}]"
