"""Finding credentials in a text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from detectors import (
    BOUNDARY,
    DEFAULT,
    DETECTORS,
    IN_PIECES,
    Search,
    private_keys,
    searches,
)


@dataclass(frozen=True, slots=True)
class Span:
    """One secret: `text[start:end]`."""

    start: int
    end: int
    type: str


class Finder:
    """Finds secrets; safe to share between threads.

    Args:
        detectors: names from `DETECTORS`.
        allow: SHA-256, in hex, of secrets that are known and harmless.
    """

    def __init__(self, detectors: tuple[str, ...] = DEFAULT, allow: frozenset[str] = frozenset()):
        self._allow = allow
        self._whole: list[tuple[str, Callable[[str], Iterator[tuple[int, int]]]]] = []
        self._pieces: list[tuple[str, Search]] = []
        types = []
        for name in detectors:
            detector = DETECTORS[name]()
            types.append(detector.secret_type)
            if name == "PrivateKeyDetector":
                self._whole.append((detector.secret_type, private_keys))
            elif name in IN_PIECES:
                self._pieces += [(detector.secret_type, s) for s in searches(name, detector)]
            else:
                self._whole += [(detector.secret_type, s.spans) for s in searches(name, detector)]
        self._markers = re.compile("|".join(re.escape(marker(type_)) for type_ in types))

    def find(self, text: str) -> list[Span]:
        """Every secret in `text`, in order, none overlapping another."""
        # What is redacted already is blank, whatever stands around it.
        text = self._markers.sub(lambda found: " " * len(found[0]), text)
        spans = [
            Span(start, end, type_) for type_, spans in self._whole for start, end in spans(text)
        ]
        if self._pieces:
            spans += self._find_in_pieces(text)
        whole = (Span(span.start, _end_of_token(text, span.end), span.type) for span in spans)
        return _merged(span for span in whole if not self._is_allowed(text[span.start : span.end]))

    def _find_in_pieces(self, text: str) -> Iterator[Span]:
        for offset, piece in _pieces(text):
            for type_, search in self._pieces:
                for start, end in search.spans(piece):
                    yield Span(offset + start, offset + end, type_)

    def _is_allowed(self, secret: str) -> bool:
        if not self._allow:
            return False
        return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest() in self._allow


def marker(secret_type: str) -> str:
    """What stands where a secret stood."""
    return f"[redacted:{secret_type}]"


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Span(last.start, max(last.end, span.end), last.type)
        else:
            merged.append(span)
    return merged


_WORD = re.compile(r"\w*", re.ASCII)


def _end_of_token(text: str, end: int) -> int:
    """Some patterns have a fixed length that newer tokens exceed; the rest is secret too."""
    word = _WORD.match(text, end - 1)
    return max(end, word.end()) if word else end


_PIECE = 400
_OVERLAP = 100
_LINE = re.compile(rf"(?:(?!\s{{9}})[^\n{BOUNDARY}])+")


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Lines, without long runs of spaces, and long ones in overlapping parts."""
    for line in _LINE.finditer(text):
        for start in range(line.start(), line.end(), _PIECE - _OVERLAP):
            yield start, text[start : min(start + _PIECE, line.end())]
