"""The JSON form of each message as a table, and one encoder and decoder for them all.

A member without a row, or whose value is not of the row's kind, goes to the
message's `other_json`: nothing is lost and nothing is coerced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import Message

from agent_hooks.core import canonical
from agent_hooks.core.values import JSON, MAX_DEPTH, MAX_SAFE_INTEGER, ValueDomainError

INT64_MAX = 2**63 - 1


class WireError(ValueError):
    """A message or value that the protocol cannot carry. Names the field, never the value."""


@dataclass(frozen=True, slots=True)
class Row:
    """One member.

    Attributes:
        kind: "str", "int", "bool", "number", "json", "strings", "message" or
            "messages".
        field: the protobuf field.
        optional: whether its absence is told apart from its default.
        table: of a nested message.
    """

    kind: str
    field: str
    optional: bool = False
    table: Table | None = None


Table = dict[str, Row]
Path = tuple[str | int, ...]
Text = Callable[[Path, JSON], bytes]


def _is_text(value: JSON) -> bool:
    return type(value) is str


def _is_int64(value: JSON) -> bool:
    return type(value) is int and -INT64_MAX <= value <= INT64_MAX


def _is_exact_number(value: JSON) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= MAX_SAFE_INTEGER)


_FITS: dict[str, Callable[[JSON], bool]] = {
    "str": _is_text,
    "int": _is_int64,
    "bool": lambda value: type(value) is bool,
    "number": _is_exact_number,
    "json": lambda _: True,
    "strings": lambda value: type(value) is list and all(map(_is_text, value)),
    "message": lambda value: type(value) is dict,
    "messages": lambda value: type(value) is list and all(type(item) is dict for item in value),
}


def encode(members: dict[str, JSON], table: Table, message: Message, text: Text, at: Path) -> None:
    """Fill `message` from a JSON object.

    Raises:
        ValueDomainError: a value that canonical JSON cannot carry.
    """
    for name, value in members.items():
        row = table.get(name)
        if row is None or not _FITS[row.kind](value) or not _complete(row, value):
            message.other_json[name] = text((*at, name), value).decode()  # type: ignore[attr-defined]
        else:
            _set(message, row, value, text, (*at, name))


def _complete(row: Row, value: JSON) -> bool:
    """Whether a nested object has the members its message cannot do without."""
    if row.table is None:
        return True
    required = [name for name, nested in row.table.items() if not nested.optional]
    items = value if row.kind == "messages" else [value]
    return all(
        name in item and _FITS[row.table[name].kind](item[name])
        for item in items
        for name in required
    )


def _set(message: Message, row: Row, value: JSON, text: Text, at: Path) -> None:
    match row.kind:
        case "json":
            setattr(message, row.field, text(at, value).decode())
        case "strings":
            getattr(message, row.field).extend(value)
        case "message" if row.table is not None:
            nested = getattr(message, row.field)
            nested.SetInParent()
            encode(value, row.table, nested, text, at)
        case "messages" if row.table is not None:
            repeated = getattr(message, row.field)
            for index, item in enumerate(value):
                encode(item, row.table, repeated.add(), text, (*at, index))
        case _:
            setattr(message, row.field, value)


def decode(message: Message, table: Table) -> dict[str, JSON]:
    """The JSON object that `encode` was given.

    Raises:
        WireError: JSON text that is malformed, or a member carried twice.
    """
    members: dict[str, JSON] = {}
    for name, row in table.items():
        if row.optional and row.kind not in ("strings", "messages"):
            if not message.HasField(row.field):
                continue
        elif row.optional and not getattr(message, row.field):
            continue
        members[name] = _get(message, row)
    decode_map(message.other_json, "other_json", members)  # type: ignore[attr-defined]
    return members


def decode_map(texts: Any, field: str, members: dict[str, JSON]) -> None:
    """Add a map of JSON texts to `members`."""
    for name, text in texts.items():
        if name in members:
            raise WireError(f"{field}: carries a member that has a field of its own")
        members[name] = parse(text, field)


def parse(text: str, field: str) -> JSON:
    """One JSON text, strictly."""
    try:
        return canonical.parse(text, MAX_DEPTH)
    except ValueDomainError as refusal:
        raise WireError(f"{field}: {refusal.problem}") from None


def _get(message: Message, row: Row) -> JSON:
    value = getattr(message, row.field)
    match row.kind:
        case "json":
            return parse(value, row.field)
        case "strings":
            return list(value)
        case "number":
            whole = value.is_integer() and abs(value) <= MAX_SAFE_INTEGER
            return int(value) if whole else value
        case "message" if row.table is not None:
            return decode(value, row.table)
        case "messages" if row.table is not None:
            return [decode(item, row.table) for item in value]
        case _:
            return value


def refuse_unknown_fields(message: Message, what: str) -> None:
    """Refuse fields that this version does not know, at any depth.

    Raises:
        WireError: there are some.
    """
    size = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() != size:
        raise WireError(f"{what}: has a field that this protocol version does not define")
