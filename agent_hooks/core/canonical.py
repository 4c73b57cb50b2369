"""Canonical JSON: RFC 8785 bytes, fast (§10.2).

orjson with sorted keys prints RFC 8785 for all but a few numbers and keys.
`values.scan` finds those; they alone go to the reference implementation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import orjson
import rfc8785

from agent_hooks.core.values import (
    BIG_INTEGERS,
    FLOATS,
    JSON,
    LARGE_FLOATS,
    MAX_SAFE_INTEGER,
    REMEDY_INTEGER,
    SURROGATE,
    TOO_DEEP,
    WIDE_KEYS,
    ValueDomainError,
    parse_json,
    plain_text,
    scan,
)

DEEPEST: Final = 254
"""Nested containers; deeper than this orjson refuses to go."""


def canonical_json(value: JSON) -> str:
    """RFC 8785 text of a JSON value.

    Raises:
        ValueDomainError: the value is outside I-JSON (§10.2): an integer
            outside ±(2⁵³−1), a number that is not finite, a lone surrogate.
    """
    return canonical_bytes(value).decode()


def canonical_bytes(value: JSON) -> bytes:
    """Like `canonical_json`, as UTF-8."""
    return encode(value, scan(value, DEEPEST))


def encode(value: JSON, flags: int) -> bytes:
    """RFC 8785 bytes of a value whose flags `values.scan` found.

    The flags may be those of a larger value that holds this one.
    """
    if flags & BIG_INTEGERS:
        _refuse_big_integers(value)
    if not flags & WIDE_KEYS:
        try:
            plain = _with_fragments(value) if flags & FLOATS else value
            return orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)
        except TypeError:
            pass  # a lone surrogate, or deeper than orjson goes
    try:
        return rfc8785.dumps(value)
    except RecursionError:
        raise ValueDomainError(TOO_DEEP) from None
    except ValueError:
        raise ValueDomainError(SURROGATE) from None


def json_text(value: JSON, flags: int) -> str:
    """Exact JSON text of a scanned value, canonical wherever that loses nothing.

    RFC 8785 refuses integers outside ±(2⁵³−1) and prints floats of that size
    like integers. Here an integer keeps its digits and such a float its
    exponent, so that `parse` tells them apart.
    """
    if not flags & (BIG_INTEGERS | LARGE_FLOATS):
        return encode(value, flags).decode()
    return plain_text(value)


def parse(text: str | bytes, max_depth: int) -> JSON:
    """`values.parse_json`, fast where orjson writes the text as it stands.

    Then it has no duplicate names and no rounded numbers, and orjson's reading
    is exact. Integers outside ±(2⁵³−1) go to the strict parser.
    """
    return _parse(text, max_depth, int)


def parse_canonical(text: str | bytes, max_depth: int) -> JSON:
    """Like `parse`, for text that was made by `canonical_json`.

    There an integer outside ±(2⁵³−1) can only be a float's digits, and is read
    as that float.
    """
    return _parse(text, max_depth, _integer_of_a_double)


def _parse(text: str | bytes, max_depth: int, parse_int: Callable[[str], int | float]) -> JSON:
    try:
        written = text.encode() if isinstance(text, str) else text
        value = orjson.loads(written)
        if orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER) == written:
            if max_depth < DEEPEST:
                scan(value, max_depth)
            return value
    except ValueDomainError:
        raise
    except (ValueError, TypeError):
        pass  # the strict parser says what is wrong, or reads what orjson does not
    return parse_json(text, max_depth, parse_int)


def _integer_of_a_double(digits: str) -> int | float:
    number = int(digits)
    return number if -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER else float(digits)


def _refuse_big_integers(value: JSON) -> None:
    if type(value) is int and not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
        raise ValueDomainError(REMEDY_INTEGER)
    if type(value) not in (dict, list):
        return
    for key, item in value.items() if type(value) is dict else enumerate(value):
        try:
            _refuse_big_integers(item)
        except ValueDomainError as refusal:
            raise ValueDomainError(refusal.problem, (key, *refusal.path)) from None


def _with_fragments(value: JSON) -> JSON:
    """The value with every awkward float replaced by its own canonical text."""
    kind = type(value)
    if kind is float:
        return _number(value)
    if kind is dict:
        return {key: _with_fragments(item) for key, item in value.items()}
    if kind is list:
        return [_with_fragments(item) for item in value]
    return value


def _number(number: float) -> JSON:
    if 1e-4 <= abs(number) < 1e15 and not number.is_integer():
        return number
    if number.is_integer() and -MAX_SAFE_INTEGER <= number <= MAX_SAFE_INTEGER:
        return int(number)  # ECMA-262 prints -0 as 0
    return orjson.Fragment(rfc8785.dumps(number))
