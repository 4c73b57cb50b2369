"""Dotted paths and typed equality, as vectors use them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

MISSING: Final = object()
"""What `lookup` returns for a place that is not there."""

_STEP = re.compile(r"(?P<dot>\.?)(?P<member>[^.\[\]]+)|\[(?P<index>[0-9]+)\]")


@lru_cache(maxsize=4096)
def parse(path: str) -> tuple[str | int, ...]:
    """The steps of `a.b[0].c`: members (str) and indexes (int).

    A member name cannot hold a dot or a bracket.

    Raises:
        ValueError: bad syntax, which is a mistake in the vector.
    """
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None or (step["member"] and bool(step["dot"]) != bool(steps)):
            raise ValueError(f"path {path!r}: bad syntax at character {at}")
        steps.append(step["member"] or int(step["index"]))
        at = step.end()
    if not steps:
        raise ValueError("path: empty")
    return tuple(steps)


def lookup(value: Any, path: str) -> Any:
    """The value at a path, or `MISSING`. Raises ValueError for a bad path."""
    for step in parse(path):
        if isinstance(step, str):
            found = type(value) is dict and step in value
        else:
            found = type(value) is list and step < len(value)
        if not found:
            return MISSING
        value = value[step]
    return value


def json_equal(one: Any, other: Any) -> bool:
    """Equality of JSON values by type too: 1 is neither 1.0 nor true."""
    if type(one) is not type(other):
        return False
    if type(one) is dict:
        return one.keys() == other.keys() and all(json_equal(one[k], other[k]) for k in one)
    if type(one) is list:
        return len(one) == len(other) and all(map(json_equal, one, other))
    return bool(one == other)


def matches(rule: dict[str, Any], context: Any) -> bool:
    """Whether every entry of the rule's `match` (path → value) holds for a context."""
    return all(
        json_equal(lookup(context, path), expected)
        for path, expected in rule.get("match", {}).items()
    )
