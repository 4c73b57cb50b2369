"""What a plugin's manifest lets it see and return (PROTOCOL Least privilege).

Whoever asks a plugin enforces its grants; the plugin has no part in it. The
emission's context, its identity and its record are never narrowed (§10).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from agent_hooks.core import path
from agent_hooks.core.context import Snapshot
from agent_hooks.core.narrow import CLASSES, holds_withheld, narrow, sees_whole
from agent_hooks.core.path import PathError, Steps
from agent_hooks.core.verdict import Decision, Verdict, VerdictError


class Right(str, Enum):
    """What a plugin may return beside an allow, which is always permitted (§5.1)."""

    DENY = "deny"
    TRANSFORM = "transform"
    APPROVAL = "approval"
    """A deny that an approval may lift."""


class GrantsError(ValueError):
    """Grants that are refused; the text names the key and the remedy, never the value."""


@dataclass(frozen=True, slots=True)
class Grants:
    """What one plugin may see and return.

    Attributes:
        sees: places of the context, each as a member's name and the steps below
            it; None sees everything. What no plugin can do without is seen
            always, see `core.narrow`.
        may: the verdicts it may return beside allow.
        transform_paths: §5.2 paths; a transform writes at or below one of them.
    """

    sees: tuple[Steps, ...] | None = None
    may: frozenset[Right] = frozenset(Right)
    transform_paths: tuple[str, ...] = ("$target",)

    def view(self, snapshot: Snapshot) -> Snapshot:
        """What the plugin gets of a context: a valid context of §4 in its turn.

        The snapshot itself, where nothing is withheld. Plugins of equal grants
        share one view, and its encoding.
        """
        if self.sees is None:
            return snapshot
        if self.sees not in snapshot.views:
            view = narrow(snapshot, self.sees)
            snapshot.views[self.sees] = None if view is snapshot else view  # no cycle
        return snapshot.views[self.sees] or snapshot

    def check(self, verdict: Verdict, snapshot: Snapshot) -> Verdict:
        """The verdict, where it is within the plugin's rights.

        What §5 has against it the core's own gate says; see `check_verdict`.

        Args:
            snapshot: the whole context, not the plugin's view.

        Raises:
            VerdictError: it is beyond them; the text names the right.
        """
        if self is EVERYTHING:
            return verdict
        used = _USES[verdict.decision](verdict)
        if used is not None and used not in self.may:
            raise VerdictError(f"decision: its manifest's [grants] may does not list {used.value}")
        if verdict.decision is Decision.TRANSFORM and verdict.transform is not None:
            self._check_transform(verdict.transform.path, verdict.transform.value, snapshot)
        return verdict

    def _check_transform(self, text: str, value: Any, snapshot: Snapshot) -> None:
        try:
            steps = path.parse(text)
        except PathError:
            return  # §5.2: the gate says what is wrong with it
        if not any(_begins(steps, path.parse(prefix)) for prefix in self.transform_paths):
            raise VerdictError("transform.path: outside its manifest's [grants] transform_paths")
        if self.sees is None:
            return
        # Decided by the grants alone: whether a place that is withheld is there
        # at all is withheld, too.
        if not sees_whole(self.sees, snapshot.point, steps):
            raise VerdictError("transform.path: holds, or lies in, what is withheld from it")
        if holds_withheld(value) and not _held(snapshot, text):
            raise VerdictError("transform.value: has in it what stands for a withheld value")


EVERYTHING: Final = Grants()

_USES: dict[Decision, Callable[[Verdict], Right | None]] = {
    Decision.ALLOW: lambda _: None,
    Decision.DENY: lambda verdict: Right.APPROVAL if verdict.is_liftable else Right.DENY,
    Decision.TRANSFORM: lambda _: Right.TRANSFORM,
}


def _begins(steps: Steps, prefix: Steps) -> bool:
    return steps[: len(prefix)] == prefix


def _held(snapshot: Snapshot, text: str) -> bool:
    """Whether the host's own value at a place looks like one that is withheld."""
    try:
        return holds_withheld(path.resolve(snapshot.context["target"], text))
    except PathError:
        return True  # §5.2: the place is not there, which the core will say


def parse_grants(table: Mapping[str, Any]) -> Grants:
    """Read `{sees?, may?, transform_paths?}`, each an array of strings.

    `EVERYTHING` itself, where nothing is narrowed.

    Raises:
        GrantsError: an unknown key, or a value that is none.
    """
    for key in table:
        if key not in _KEYS:
            raise GrantsError(f"{key}: unknown; known are {', '.join(_KEYS)}")
    if "transform_paths" in table and Right.TRANSFORM.value not in table.get("may", _RIGHTS):
        raise GrantsError("transform_paths: of no use, since may does not list transform")
    read: dict[str, Any] = {key: _KEYS[key](_texts(table, key)) for key in table}
    grants = Grants(**read)
    return EVERYTHING if grants == EVERYTHING else grants


def _texts(table: Mapping[str, Any], key: str) -> list[str]:
    value = table[key]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise GrantsError(f"{key}: expected an array of strings")
    return value


def _sees(texts: Iterable[str]) -> tuple[Steps, ...]:
    places = {_place(index, text) for index, text in enumerate(texts)}
    return tuple(sorted(places, key=repr))  # equal grants are one, however written


_PLACE = re.compile(r"\$?([a-z_]+)(.*)", re.DOTALL)


def _place(index: int, text: str) -> Steps:
    found = _PLACE.fullmatch(text)
    name, below = (found[1], found[2]) if found else ("", "")
    try:
        if name in CLASSES and (text.startswith("$") or not below):
            return (name, *path.parse("$target" + below))
    except PathError:
        pass
    raise GrantsError(
        f"sees[{index}]: expected one of {', '.join(CLASSES)}, or $ and such a name as the "
        'root of a path: $target.to, $messages[0], $extensions["acs"] (§5.2)'
    )


def _may(texts: Iterable[str]) -> frozenset[Right]:
    for index, text in enumerate(texts):
        if text not in _RIGHTS:
            raise GrantsError(f"may[{index}]: expected one of {', '.join(_RIGHTS)}")
    return frozenset(map(Right, texts))


def _paths(texts: list[str]) -> tuple[str, ...]:
    for index, text in enumerate(texts):
        try:
            path.parse(text)
        except PathError as refusal:
            problem = refusal.detail.removeprefix("transform.path ")
            raise GrantsError(f"transform_paths[{index}]: {problem} (§5.2)") from None
    if not texts:
        raise GrantsError("transform_paths: empty; leave transform out of may instead")
    return tuple(texts)


_RIGHTS = tuple(right.value for right in Right)
_KEYS: dict[str, Callable[[list[str]], object]] = {
    "sees": _sees,
    "may": _may,
    "transform_paths": _paths,
}
