"""Whether a large answer is large where an answer may be (§12.3).

Two bytes make an empty warning, and a parser a hundred times as many of them:
16 MiB of such would take the host gigabytes and minutes. So whatever is not
the JSON text of a transform or of an approval is counted before it is parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agent_hooks.wire.fields import WireError

MAX_REST: Final = 64 * 1024
"""Bytes of an answer beside those texts."""

Places = Mapping[int, "Places | None"]
"""Field numbers on the way to a text that may be large; None at the text itself."""

VERDICT: Final[Places] = {5: None, 6: {2: None}}
"""approval_json, and transform.value_json."""

_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}


def check_bulk(data: bytes, places: Places) -> None:
    """Refuse a serialised answer with more than MAX_REST bytes outside `places`.

    What is malformed is left to the parser.

    Raises:
        WireError: it has.
    """
    if len(data) > MAX_REST:
        _rest(data, 0, len(data), places, MAX_REST)


def _rest(data: bytes, at: int, end: int, places: Places, room: int) -> int:
    """The room that is left by the fields from `at` to `end`."""
    while at < end:
        began = at
        key, at = _varint(data, at, end)
        number, kind = key >> 3, key & 7
        inner = number in places and kind == _DELIMITED
        if kind == _DELIMITED:
            size, at = _varint(data, at, end)
        elif kind == 0:
            _, at = _varint(data, at, end)
            size = 0
        else:
            size = _FIXED.get(kind, 0)
        room -= at - began
        if not inner:
            room -= size
        if room < 0:
            raise WireError("answer: larger than 64 KiB beside its transform and approval")
        if inner and (below := places[number]) is not None:
            room = _rest(data, at, min(at + size, end), below, room)
        at += size
    return room


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at a place, and the place behind it; at most ten bytes."""
    value = 0
    for index in range(10):
        if at + index >= end:
            break
        byte = data[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    return 0, end
