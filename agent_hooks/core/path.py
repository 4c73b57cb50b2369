"""Transform paths (§5.2): parse, resolve, replace."""

from __future__ import annotations

import re
from functools import lru_cache

from agent_hooks.core.reasons import HostError
from agent_hooks.core.values import JSON

Steps = tuple[str | int, ...]

_ROOT = re.compile(r"\$(?:target|policy_target)(?=[.\[]|\Z)")
_SEGMENT = re.compile(
    r"\.(?P<dot>[A-Za-z0-9_-]+)|\[(?P<index>[0-9]+)\]|\[\"(?P<member>[A-Za-z0-9_-]+)\"\]"
)
_MAX_LENGTH = 4096
_MAX_DIGITS = 18


class PathError(ValueError):
    """A path that is refused (§5.2).

    Attributes:
        host_error: `TRANSFORM_TARGET_FORBIDDEN` for a foreign root,
            `TRANSFORM_INVALID` for anything else.
        detail: what is wrong; never a piece of the path.
    """

    def __init__(self, host_error: HostError, detail: str) -> None:
        self.host_error = host_error
        self.detail = detail
        super().__init__(f"{host_error.value}: {detail}")


@lru_cache(maxsize=512)
def parse(path: str) -> Steps:
    """Members (str) and indexes (int) below `$target`; empty for the target itself.

    Raises:
        PathError: a root other than `$target` or its alias `$policy_target`,
            or syntax outside the grammar of §5.2.
    """
    root = _ROOT.match(path)
    if root is None:
        raise PathError(
            HostError.TRANSFORM_TARGET_FORBIDDEN, "transform.path is not rooted at $target"
        )
    steps: list[str | int] = []
    at = root.end()
    if len(path) > _MAX_LENGTH:
        raise PathError(HostError.TRANSFORM_INVALID, "transform.path is too long")
    while at < len(path):
        segment = _SEGMENT.match(path, at)
        if segment is None or len(segment["index"] or "") > _MAX_DIGITS:
            raise PathError(
                HostError.TRANSFORM_INVALID, f"transform.path has bad syntax at character {at}"
            )
        steps.append(_step(segment))
        at = segment.end()
    return tuple(steps)


def _step(segment: re.Match[str]) -> str | int:
    if segment["index"] is not None:
        return int(segment["index"])
    return segment["dot"] or segment["member"]


def resolve(target: JSON, path: str) -> JSON:
    """The value at `path`.

    Raises:
        PathError: bad path, or a place that is not there.
    """
    for step in parse(path):
        target = _child(target, step)
    return target


def apply(target: JSON, path: str, value: JSON) -> JSON:
    """`target` with the place at `path` replaced (§5.2); the argument is unchanged.

    Only the containers on the way are new; everything beside the path is the
    same object, so no float, integer or member order moves.

    Raises:
        PathError: bad path, or a place that is not there.
    """
    return _replace(target, parse(path), value)


def _replace(target: JSON, steps: Steps, value: JSON) -> JSON:
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    child = _replace(_child(target, step), rest, value)
    copy = target.copy()
    copy[step] = child
    return copy


def _child(target: JSON, step: str | int) -> JSON:
    if isinstance(step, str) and type(target) is dict and step in target:
        return target[step]
    if isinstance(step, int) and type(target) is list and step < len(target):
        return target[step]
    raise PathError(HostError.TRANSFORM_INVALID, "transform.path names a place that is not there")
