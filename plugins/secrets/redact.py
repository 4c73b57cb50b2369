"""A target as one text to search, and the smallest transform that takes spans out of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from detect import Span, marker
from detectors import BOUNDARY

Path = tuple[str | int, ...]

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MAX_PATH = 4096
_SHORTEST = 8
"""No member name below this length holds a secret; most names are below it."""


class Piece(NamedTuple):
    """One string of the target: the value at `path`, or the name of the member there."""

    path: Path
    is_name: bool
    text: str


class Strings:
    """Every string of a target, written one after the other: `name="value"`.

    A value is searched beside its member's name, since some secrets are only
    known by it, and the strings of one list as lines that follow each other,
    since files are handed about like that.
    """

    def __init__(self, target: Any) -> None:
        self._pieces: list[Piece] = []
        self._starts: list[int] = []
        self._parts: list[str] = []
        self._length = 0
        self._add_value(target, (), "")
        self.text = "".join(self._parts)

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    def _add(self, path: Path, is_name: bool, text: str) -> None:
        self._pieces.append(Piece(path, is_name, text))
        self._starts.append(self._length)
        self._write(text)

    def _add_value(self, value: Any, path: Path, name: str) -> None:
        if isinstance(value, str):
            self._add_lines([value], [path], name)
        elif isinstance(value, dict):
            for key, item in value.items():
                place = (*path, key)
                if len(key) >= _SHORTEST:
                    self._add(place, True, key)
                    self._write("\n" + BOUNDARY)
                self._add_value(item, place, key)
        elif isinstance(value, list):
            paths = [(*path, index) for index in range(len(value))]
            if value and all(isinstance(item, str) for item in value):
                self._add_lines(value, paths, name)
            else:
                for item, place in zip(value, paths, strict=True):
                    self._add_value(item, place, name)

    def _add_lines(self, values: list[str], paths: list[Path], name: str) -> None:
        self._write(f'{name}="')
        for value, path in zip(values, paths, strict=True):
            self._add(path, False, value)
            self._write('"\n"')
        self._write(BOUNDARY)

    def locate(self, spans: list[Span]) -> dict[Piece, list[Span]]:
        """The spans within each string; what lies between strings is nobody's."""
        found: dict[Piece, list[Span]] = {}
        for span in spans:
            for index in self._under(span):
                start, piece = self._starts[index], self._pieces[index]
                local = Span(
                    max(span.start - start, 0), min(span.end - start, len(piece.text)), span.type
                )
                if local.start < local.end:
                    found.setdefault(piece, []).append(local)
        return found

    def _under(self, span: Span) -> Iterator[int]:
        index = max(bisect_right(self._starts, span.start) - 1, 0)
        while index < len(self._starts) and self._starts[index] < span.end:
            yield index
            index += 1


def summary(found: dict[Piece, list[Span]]) -> str:
    """How many of which type, in how many strings; nothing of what they say."""
    counts = Counter(span.type for spans in found.values() for span in spans)
    secrets = ", ".join(f"{count} {type_}" for type_, count in sorted(counts.items()))
    return f"{secrets} in {len(found)} string{'s' if len(found) > 1 else ''}"


class NameTaken(ValueError):  # noqa: N818 - a state of the target, not a bug
    """Two members would have the same name once redacted."""


def rewrite(target: Any, found: dict[Piece, list[Span]]) -> tuple[str, Any]:
    """Path and value of the transform that redacts what was found (§5.2).

    The path is the string's own, or where there are several, or one that a
    path cannot name, the nearest place above that holds them all.

    Raises:
        NameTaken: a member cannot be renamed.
    """
    changed = [(piece, _redacted(piece, spans)) for piece, spans in found.items()]
    values = {piece.path: text for piece, text in changed if not piece.is_name}
    names = {piece.path: text for piece, text in changed if piece.is_name}
    above = _common([*values, *(path[:-1] for path in names)])
    path, steps = _expressible(above)
    for step in steps:
        target = target[step]
    return path, _copy(target, steps, values, names)


def _redacted(piece: Piece, spans: list[Span]) -> str:
    text, parts, at = piece.text, [], 0
    for span in spans:
        parts += [text[at : span.start], marker(span.type)]
        at = span.end
    return "".join(parts) + text[at:]


def _common(paths: list[Path]) -> Path:
    shortest, *rest = sorted(paths, key=len)
    for depth, step in enumerate(shortest):
        if any(path[depth] != step for path in rest):
            return shortest[:depth]
    return shortest


def _expressible(path: Path) -> tuple[str, Path]:
    """As much of the path as the grammar of §5.2 can write."""
    text = "$target"
    for depth, step in enumerate(path):
        if isinstance(step, str) and not _NAME.fullmatch(step):
            return text, path[:depth]
        longer = text + (f".{step}" if isinstance(step, str) else f"[{step}]")
        if len(longer) > _MAX_PATH:
            return text, path[:depth]
        text = longer
    return text, path


def _copy(value: Any, path: Path, values: dict[Path, str], names: dict[Path, str]) -> Any:
    if isinstance(value, str):
        return values.get(path, value)
    if isinstance(value, list):
        return [_copy(item, (*path, i), values, names) for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    copy = {
        names.get((*path, key), key): _copy(item, (*path, key), values, names)
        for key, item in value.items()
    }
    if len(copy) != len(value):
        raise NameTaken
    return copy
