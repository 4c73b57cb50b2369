"""The JSON form of each message as a table, and one encoder and decoder for them all.

A member without a row, or whose value is not of the row's kind, goes to the
message's `other_json`: nothing is lost and nothing is coerced.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from operator import attrgetter
from typing import Any

from google.protobuf.message import Message

from agent_hooks.core import canonical
from agent_hooks.core.values import JSON, MAX_SAFE_INTEGER, ValueDomainError

INT64_MAX = 2**63 - 1
_MAX_DEPTH = canonical.DEEPEST
"""Whatever a host admits (§12.3 is adjustable), as deep as the encoder goes."""

Path = tuple[str | int, ...]
Text = Callable[[Path, JSON], bytes]
Put = Callable[[Any, JSON, Text, Path], None]
"""Writes a value that fits into a message; the path is its own."""


class WireError(ValueError):
    """A message or value that the protocol cannot carry. Names the field, never the value."""


class Row:
    """One member of a JSON object and its field.

    Attributes:
        optional: whether its absence is told apart from its default.
        fits: whether a value is of the row's kind.
        put: writes one that fits.
        get: reads the field.
        present: whether the field is there to be read.
    """

    __slots__ = ("fits", "get", "optional", "present", "put")

    def __init__(
        self,
        field: str,
        fits: Callable[[JSON], bool],
        put: Put,
        get: Callable[[Any], JSON],
        *,
        optional: bool,
        repeated: bool = False,
    ) -> None:
        self.optional = optional
        self.fits = fits
        self.put = put
        self.get = get
        read = attrgetter(field)
        if not optional:
            self.present: Callable[[Any], bool] = _always
        elif repeated:
            self.present = lambda message: bool(read(message))
        else:
            self.present = lambda message: bool(message.HasField(field))


def _always(_: Any) -> bool:
    return True


class Table:
    """The members of one JSON object."""

    __slots__ = ("_required", "rows")

    def __init__(self, **rows: Row) -> None:
        self.rows = rows
        self._required = [(name, row.fits) for name, row in rows.items() if not row.optional]

    def fits(self, value: JSON) -> bool:
        """Whether a value is an object with the members its message cannot do without."""
        if type(value) is not dict:
            return False
        for name, fits in self._required:
            if name not in value or not fits(value[name]):
                return False
        return True


def scalar(field: str, fits: Callable[[JSON], bool], *, optional: bool = False) -> Row:
    """A string, boolean or 64-bit integer."""

    def put(message: Any, value: JSON, _: Text, __: Path) -> None:
        setattr(message, field, value)

    return Row(field, fits, put, attrgetter(field), optional=optional)


def text(field: str, *, optional: bool = False) -> Row:
    """A string."""
    return scalar(field, _is_text, optional=optional)


def integer(field: str, *, optional: bool = False) -> Row:
    """An integer of 64 bits."""
    return scalar(field, _is_int64, optional=optional)


def boolean(field: str, *, optional: bool = False) -> Row:
    """A boolean."""
    return scalar(field, _is_bool, optional=optional)


def number(field: str) -> Row:
    """An optional number that a double holds exactly."""

    def put(message: Any, value: JSON, _: Text, __: Path) -> None:
        setattr(message, field, value)

    def get(message: Any) -> JSON:
        value: float = getattr(message, field)
        if not isfinite(value):
            raise WireError(f"{field}: not a finite number")
        whole = value.is_integer() and abs(value) <= MAX_SAFE_INTEGER
        return int(value) if whole else value

    return Row(field, _is_exact_number, put, get, optional=True)


def json(field: str, *, optional: bool = False) -> Row:
    """Any JSON value, as text."""

    def put(message: Any, value: JSON, encode_text: Text, at: Path) -> None:
        setattr(message, field, encode_text(at, value).decode())

    return Row(
        field,
        _always,
        put,
        lambda message: parse(getattr(message, field), field),
        optional=optional,
    )


def strings(field: str) -> Row:
    """An array of strings."""

    def put(message: Any, value: JSON, _: Text, __: Path) -> None:
        getattr(message, field).extend(value)

    return Row(
        field,
        lambda value: type(value) is list and all(map(_is_text, value)),
        put,
        lambda message: list(getattr(message, field)),
        optional=False,
        repeated=True,
    )


def nested(field: str, table: Table, *, optional: bool = False) -> Row:
    """An object."""

    def put(message: Any, value: JSON, encode_text: Text, at: Path) -> None:
        inner = getattr(message, field)
        inner.SetInParent()
        encode(value, table, inner, encode_text, at)

    return Row(
        field,
        table.fits,
        put,
        lambda message: decode(getattr(message, field), table),
        optional=optional,
    )


def objects(field: str, table: Table) -> Row:
    """An array of objects."""

    def put(message: Any, value: JSON, encode_text: Text, at: Path) -> None:
        repeated = getattr(message, field)
        for index, item in enumerate(value):
            encode(item, table, repeated.add(), encode_text, (*at, index))

    return Row(
        field,
        lambda value: type(value) is list and all(map(table.fits, value)),
        put,
        lambda message: [decode(item, table) for item in getattr(message, field)],
        optional=False,
        repeated=True,
    )


def _is_text(value: JSON) -> bool:
    return type(value) is str


def _is_bool(value: JSON) -> bool:
    return type(value) is bool


def _is_int64(value: JSON) -> bool:
    return type(value) is int and -INT64_MAX <= value <= INT64_MAX


def _is_exact_number(value: JSON) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= MAX_SAFE_INTEGER)


def encode(members: dict[str, JSON], table: Table, message: Any, text: Text, at: Path) -> None:
    """Fill `message` from a JSON object.

    Raises:
        ValueDomainError: a value that canonical JSON cannot carry.
    """
    rows = table.rows
    for name, value in members.items():
        row = rows.get(name)
        if row is None or not row.fits(value):
            message.other_json[name] = text((*at, name), value).decode()
        else:
            row.put(message, value, text, (*at, name))


def decode(message: Any, table: Table) -> dict[str, JSON]:
    """The JSON object that `encode` was given.

    Raises:
        WireError: JSON text that is malformed, or a member carried twice.
    """
    members = {name: row.get(message) for name, row in table.rows.items() if row.present(message)}
    if message.other_json:
        decode_map(message.other_json, "other_json", members)
    return members


def decode_map(texts: Any, field: str, members: dict[str, JSON]) -> None:
    """Add a map of JSON texts to `members`."""
    for name, text in texts.items():
        if name in members:
            raise WireError(f"{field}: carries a member that has a field of its own")
        members[name] = parse(text, field)


def parse(text: str, field: str) -> JSON:
    """One JSON text of a context, strictly: it is canonical (§10.2)."""
    return _parse(canonical.parse_canonical, text, field)


def parse_exact(text: str, field: str) -> JSON:
    """One JSON text of a verdict, strictly: an integer of any size is an integer."""
    return _parse(canonical.parse, text, field)


def _parse(parser: Callable[[str, int], JSON], text: str, field: str) -> JSON:
    try:
        return parser(text, _MAX_DEPTH)
    except ValueDomainError as refusal:
        raise WireError(f"{field}: {refusal.problem}") from None


def refuse_unknown_fields(message: Message, what: str) -> None:
    """Refuse fields that this version does not know, at any depth.

    Raises:
        WireError: there are some.
    """
    size = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() != size:
        raise WireError(f"{what}: has a field that this protocol version does not define")
