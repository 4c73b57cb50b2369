"""The JSON value domain (§4.4, §12.3): what may stand in a context or verdict.

A value is accepted as it is or refused; nothing is rewritten. A refusal names
the problem, the place and the remedy, and never the value.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import orjson

from agent_hooks.core.problems import REMEDY_INTEGER as REMEDY_INTEGER
from agent_hooks.core.problems import SURROGATE as SURROGATE
from agent_hooks.core.problems import TOO_DEEP as TOO_DEEP
from agent_hooks.core.problems import TOO_LARGE as TOO_LARGE
from agent_hooks.core.problems import AgentHooksCoreError as AgentHooksCoreError
from agent_hooks.core.problems import NotPlainError
from agent_hooks.core.problems import ValueDomainError as ValueDomainError

JSON = Any
"""A JSON value: None, bool, int, float, str, list of JSON, dict of str to JSON."""

MAX_SAFE_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 128
MAX_BYTES: Final = 5 * 1024 * 1024

FLOATS: Final = 1
"""The value holds a float that orjson does not print as RFC 8785 does."""
BIG_INTEGERS: Final = 2
"""The value holds an integer outside ±(2⁵³−1)."""
WIDE_KEYS: Final = 4
"""The value holds a key whose UTF-16 order may differ from its code-point order."""

LARGE_FLOATS: Final = 8
"""The value holds a float that RFC 8785 prints like an integer outside ±(2⁵³−1)."""

_Room = list[int]
"""Bytes of JSON text that may still be copied: a few containers, each in itself
many times, are endless."""


def _take(room: _Room, holder: Any) -> None:
    """Brackets and commas. Raises ValueDomainError."""
    room[0] -= len(holder) + 1
    if room[0] < 0:
        raise ValueDomainError(TOO_LARGE)


def scan(value: JSON, max_depth: int = MAX_DEPTH) -> int:
    """Check types, numbers and depth; say which slow paths an encoder needs.

    Returns:
        A union of `FLOATS`, `LARGE_FLOATS`, `BIG_INTEGERS` and `WIDE_KEYS`; 0
        means that orjson with sorted keys prints exactly RFC 8785.

    Raises:
        ValueDomainError: not a JSON value, a float that is not finite, a key
            that is no string, or deeper than `max_depth` containers (§12.3).

    Lone surrogates are not looked for: every encoder refuses them.
    """
    return _scan([value], max_depth, None)


def _scan(root: list[JSON], max_depth: int, room: _Room | None) -> int:
    """What `scan` says of the one item; with `room`, its containers become the root's own."""
    try:
        return _scan_items(root, max_depth + 1, room)
    except RecursionError:
        raise ValueDomainError(TOO_DEEP) from None
    except ValueDomainError as refusal:
        raise type(refusal)(refusal.problem, refusal.path[1:]) from None


def _scan_items(holder: Any, depth: int, room: _Room | None) -> int:
    if depth == 0:
        raise ValueDomainError(TOO_DEEP)
    if room is not None:
        _take(room, holder)
    flags = _scan_keys(holder) if type(holder) is dict else 0
    for key, item in holder.items() if type(holder) is dict else enumerate(holder):
        kind = type(item)
        if kind is str or item is None or kind is bool:
            continue
        try:
            if kind is dict or kind is list:
                if room is not None:  # taken before it is looked at: what is checked is kept
                    holder[key] = item.copy()
                flags |= _scan_items(holder[key], depth - 1, room)
            else:
                flags |= _scan_number(item, kind)
        except ValueDomainError as refusal:
            raise type(refusal)(refusal.problem, (key, *refusal.path)) from None
    return flags


def _scan_number(item: Any, kind: type) -> int:
    if kind is int:
        return 0 if -MAX_SAFE_INTEGER <= item <= MAX_SAFE_INTEGER else BIG_INTEGERS
    if kind is float:
        return _scan_float(item)
    raise NotPlainError(f"not a JSON value (Python type {kind.__name__})")


def _scan_float(number: float) -> int:
    size = abs(number)
    if 1e-4 <= size < 1e15 and not number.is_integer():
        return 0
    if size == float("inf") or number != number:
        raise ValueDomainError("not a finite number: JSON has no NaN and no infinities (§4.4)")
    return FLOATS if size <= MAX_SAFE_INTEGER else FLOATS | LARGE_FLOATS


def _scan_keys(mapping: dict[Any, Any]) -> int:
    flags = 0
    for key in mapping:
        if type(key) is not str:
            raise NotPlainError("a member name is not a string")
        if not key.isascii() and max(key) >= "\ue000":
            flags |= WIDE_KEYS
    return flags


def admit(value: JSON, max_depth: int = MAX_DEPTH, max_bytes: int = MAX_BYTES) -> tuple[JSON, int]:
    """A private copy of a JSON value, and what `scan` says of it.

    Floats, integers and member order stay exact. Subclasses of the JSON types
    and tuples, which frameworks do put into arguments, become the plain types
    that they serialise to.

    Raises:
        ValueDomainError: as `scan`; or surely more text than `max_bytes`, which
            is not counted exactly here.
    """
    root = [value]
    try:
        flags = _scan(root, max_depth, [max_bytes + 2])  # the root is no part of it
        return root[0], flags
    except NotPlainError:
        pass
    try:
        copy = _plain(value, 4 * MAX_DEPTH, [max_bytes])
    except RecursionError:
        raise ValueDomainError(TOO_DEEP) from None
    except ValueDomainError:
        raise
    except Exception as exc:  # noqa: BLE001 - a subclass may do anything when it is read
        raise ValueDomainError(f"cannot be read ({type(exc).__name__})") from None
    return copy, scan(copy, max_depth)


def copied(value: Any) -> Any:
    """A dict or list with containers of its own; its scalars cannot change and are shared."""
    copy = value.copy()
    for key, item in copy.items() if type(copy) is dict else enumerate(copy):
        kind = type(item)
        if kind is dict or kind is list:
            copy[key] = copied(item)
    return copy


def freeze(value: JSON) -> bytes:
    """Bytes of a plain value; equal bytes mean equal values (typed, members in order)."""
    try:
        return marshal.dumps(value, 2)
    except ValueError:
        raise NotPlainError("not a tree of plain JSON values") from None


def _plain(value: JSON, depth: int, room: _Room) -> JSON:
    """A copy with subclasses and tuples turned into the plain JSON types."""
    if isinstance(value, (dict, list, tuple)):
        return _plain_container(value, depth, room)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _plain_key(value)
    for kind in (int, float):
        if isinstance(value, kind):
            return kind(value)
    raise ValueDomainError(f"not a JSON value (Python type {type(value).__name__})")


def _plain_container(value: Any, depth: int, room: _Room) -> JSON:
    if depth == 0:
        raise ValueDomainError(TOO_DEEP)
    _take(room, value)
    if isinstance(value, dict):
        return {_plain_key(key): _plain(item, depth - 1, room) for key, item in value.items()}
    return [_plain(item, depth - 1, room) for item in value]


def _plain_key(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueDomainError("a member name is not a string")
    return str.__str__(key.value if isinstance(key, Enum) else key)


def measure(value: JSON, flags: int) -> int:
    """Length of a scanned value as JSON text, in bytes (§12.3).

    Raises:
        ValueDomainError: it holds a lone surrogate (§4.4).
    """
    try:
        if not flags & BIG_INTEGERS:
            return len(orjson.dumps(value))
    except TypeError:
        pass  # a lone surrogate, or deeper than orjson goes
    return len(plain_text(value).encode())


def plain_text(value: JSON) -> str:
    """A scanned value as compact JSON text, members sorted, without orjson's limits.

    Raises:
        ValueDomainError: a lone surrogate, an integer that no text can hold, or
            nesting beyond what can be walked.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:
        raise ValueDomainError(SURROGATE) from None
    except ValueError:
        raise ValueDomainError(f"an integer too long to write: {REMEDY_INTEGER}") from None
    except RecursionError:
        raise ValueDomainError(TOO_DEEP) from None
    return text


def parse_json(
    text: str | bytes,
    max_depth: int = MAX_DEPTH,
    parse_int: Callable[[str], int | float] = int,
) -> JSON:
    """Parse JSON text strictly: what is returned is exactly what was written.

    Args:
        text: str, or UTF-8 without a byte-order mark.
        parse_int: reads a number without fraction and exponent.

    Raises:
        ValueDomainError: not JSON, a duplicate member name, NaN or an
            infinity, a number beyond a double, a lone surrogate, or deeper
            than `max_depth`.
    """
    try:
        value = json.loads(
            text.decode() if isinstance(text, bytes) else text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_int=parse_int,
        )
        flags = scan(value, max_depth)
        measure(value, flags)
    except ValueDomainError:
        raise
    except RecursionError:
        raise ValueDomainError(TOO_DEEP) from None
    except ValueError:
        raise ValueDomainError("not JSON text") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueDomainError("a member name occurs twice in one object")
    return members


def _no_constant(_: str) -> Any:
    raise ValueDomainError("not a finite number: JSON has no NaN and no infinities (§4.4)")
