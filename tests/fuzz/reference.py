"""Strict decoders, written from the standards alone and sharing no code with what they judge.

Slow, small and without a fast path: RFC 8259 with I-JSON's rules, protobuf's
encoding of an answer, the grammar of §5.2, the shape of §5.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NoReturn

SAFE = 2**53 - 1


class Refused(Exception):
    """What a strict reader does not take."""


def refuse(why: str) -> NoReturn:
    raise Refused(why)


# -- JSON (RFC 8259, RFC 7493) --


class Json:
    """One JSON text. `canonical`: integers beyond ±(2⁵³−1) are a double's digits (RFC 8785)."""

    def __init__(self, text: str | bytes, depth: int, canonical: bool = False) -> None:
        try:
            self.text = text.decode("utf-8", "strict") if isinstance(text, bytes) else text
            self.text.encode("utf-8", "strict")
        except UnicodeError:
            refuse("not Unicode")
        self.at = 0
        self.depth = depth
        self.canonical = canonical

    def read(self) -> Any:
        value = self.value(0)
        self.space()
        if self.at != len(self.text):
            refuse("more after the value")
        return value

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def space(self) -> None:
        while self.peek() and self.peek() in " \t\n\r":
            self.at += 1

    def take(self, literal: str) -> None:
        if not self.text.startswith(literal, self.at):
            refuse("unexpected")
        self.at += len(literal)

    def value(self, above: int) -> Any:
        self.space()
        char = self.peek()
        if char in ("{", "["):
            if above >= self.depth:
                refuse("too deep")
            return self.members(above + 1) if char == "{" else self.items(above + 1)
        if char == '"':
            return self.string()
        for literal, value in (("true", True), ("false", False), ("null", None)):
            if self.text.startswith(literal, self.at):
                self.at += len(literal)
                return value
        return self.number()

    def members(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.take("{")
        self.space()
        while self.peek() != "}":
            if found:
                self.take(",")
                self.space()
            name = self.string()
            self.space()
            self.take(":")
            if name in found:
                refuse("twice")
            found[name] = self.value(depth)
            self.space()
        self.take("}")
        return found

    def items(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self.take("[")
        self.space()
        while self.peek() != "]":
            if found:
                self.take(",")
            found.append(self.value(depth))
            self.space()
        self.take("]")
        return found

    def string(self) -> str:
        self.take('"')
        units: list[str] = []
        while (char := self.peek()) != '"':
            if char < " ":  # the end of the text, too
                refuse("control character")
            self.at += 1
            units.append(self.escape() if char == "\\" else char)
        self.take('"')
        try:  # escaped pairs become one character; a lone half has no encoding
            return "".join(units).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeError:
            refuse("surrogate")

    def escape(self) -> str:
        char = self.peek()
        self.at += 1
        if char == "u":
            digits = self.text[self.at : self.at + 4]
            if len(digits) != 4 or any(digit not in "0123456789abcdefABCDEF" for digit in digits):
                refuse("escape")
            self.at += 4
            return chr(int(digits, 16))
        plain = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r"}
        return {**plain, "t": "\t"}.get(char) or refuse("escape")

    def digits(self) -> str:
        begin = self.at
        while self.peek() and self.peek() in "0123456789":
            self.at += 1
        return self.text[begin : self.at] or refuse("digits")

    def number(self) -> int | float:
        begin, whole = self.at, True
        if self.peek() == "-":
            self.at += 1
        if len(digits := self.digits()) > 1 and digits[0] == "0":
            refuse("leading zero")
        if self.peek() == ".":
            self.at, whole = self.at + 1, False
            self.digits()
        if self.peek() in ("e", "E"):
            self.at, whole = self.at + 1, False
            if self.peek() in ("+", "-"):
                self.at += 1
            self.digits()
        written = self.text[begin : self.at]
        if whole and len(digits) > sys.get_int_max_str_digits():
            refuse("longer than Python reads")
        if whole and (not self.canonical or abs(int(written)) <= SAFE):
            return int(written)
        number = float(written)
        return number if math.isfinite(number) else refuse("beyond a double")


# -- protobuf --

MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "InterceptResponse": {1: ("verdict", "Verdict")},
    "InterceptStreamResponse": {1: ("emission_id", "string"), 2: ("verdict", "Verdict")},
    "Verdict": {
        1: ("decision", "enum"),
        2: ("reason", "string"),
        3: ("message", "string"),
        4: ("warnings", "Warning*"),
        5: ("approval_json", "string"),
        6: ("transform", "Transform"),
        7: ("evidence", "Evidence"),
        8: ("result_labels", "string*"),
    },
    "Warning": {1: ("reason", "string"), 2: ("message", "string")},
    "Transform": {1: ("path", "string"), 2: ("value_json", "string")},
    "Evidence": {1: ("artefact", "string"), 2: ("verification_pointers", "Entry*")},
    "Entry": {1: ("key", "string"), 2: ("value", "string")},
}
VARINT, LENGTH = 0, 2


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(10):
        if at >= len(data):
            refuse("cut")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << 7 * count
        if byte < 0x80 and value < 1 << 64:
            return value, at
    refuse("varint")


def message(data: bytes, kind: str) -> dict[str, Any]:
    """The fields of a message, none of them unknown; what occurs twice is merged."""
    found: dict[str, Any] = {}
    fields, at = MESSAGES[kind], 0
    while at < len(data):
        tag, at = _varint(data, at)
        name, of = fields.get(tag >> 3) or refuse("unknown field")
        if tag & 7 != (VARINT if of == "enum" else LENGTH):
            refuse("unknown wire type")
        value, at = _varint(data, at)
        if of == "enum":
            found[name] = value & 0xFFFFFFFF
            continue
        if value > len(data) - at:
            refuse("cut")
        piece, at = data[at : at + value], at + value
        if of in MESSAGES:  # merging is what reading the pieces one after the other does
            message(piece, of)
            found[name] = found.get(name, b"") + piece
        elif of.endswith("*"):
            found.setdefault(name, []).append(_read(piece, of[:-1]))
        else:
            found[name] = _read(piece, of)
    return {
        name: message(value, dict(fields.values())[name]) if isinstance(value, bytes) else value
        for name, value in found.items()
    }


def _read(piece: bytes, of: str) -> Any:
    if of in MESSAGES:
        return message(piece, of)
    try:
        return piece.decode("utf-8", "strict")
    except UnicodeError:
        refuse("not UTF-8")


DECISIONS = {1: "allow", 2: "deny", 3: "transform"}
DEPTH = 250


def answer(data: bytes, emission_id: str | None = None) -> dict[str, Any]:
    """The verdict of an answer in its JSON form (§5), without empty members."""
    kind = "InterceptResponse" if emission_id is None else "InterceptStreamResponse"
    read = message(data, kind)
    if read.get("emission_id", "") != (emission_id or ""):
        refuse("another's")
    verdict = read.get("verdict")
    if verdict is None:
        refuse("no verdict")
    verdict["decision"] = DECISIONS.get(verdict.get("decision", 0)) or refuse("decision")
    if "approval_json" in verdict:
        verdict["approval"] = Json(verdict.pop("approval_json"), DEPTH).read()
        if not isinstance(verdict["approval"], dict):
            refuse("approval")
    if "transform" in verdict:
        text = verdict["transform"].pop("value_json", "null")
        value = Json(text, DEPTH).read()
        path = {"path": verdict["transform"].get("path", "")}
        verdict["transform"] = path if value is None else {**path, "value": value}
    if "evidence" in verdict:
        entries = verdict["evidence"].pop("verification_pointers", [])
        pointers = {entry.get("key", ""): entry.get("value", "") for entry in entries}
        verdict["evidence"].update({"verification_pointers": pointers} if pointers else {})
    return verdict


# -- §5 --


def is_verdict(value: Any) -> bool:
    """Whether a JSON value is a verdict that an interceptor may return."""
    if not isinstance(value, dict):
        return False
    decision, transform = value.get("decision"), value.get("transform")
    checks: dict[str, Any] = {
        "decision": lambda it: it in DECISIONS.values(),
        "reason": _reason,
        "message": _text,
        "warnings": lambda it: it is None or (isinstance(it, list) and all(map(_warning, it))),
        "approval": lambda it: decision == "deny" and isinstance(it, dict),
        "transform": lambda it: decision == "transform" and _closed(it, path=_str, value=_any),
        "evidence": lambda it: _closed(it, artefact=_text, verification_pointers=_strings),
        "result_labels": lambda it: it is None or (isinstance(it, list) and all(map(_str, it))),
    }
    return (
        _closed(value, **checks)
        and isinstance(decision, str)
        and (decision != "transform" or (isinstance(transform, dict) and "path" in transform))
    )


def _closed(value: Any, /, **checks: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() <= checks.keys()
        and all(checks[name](item) for name, item in value.items())
    )


def _any(_: Any) -> bool:
    return True


def _str(value: Any) -> bool:
    return isinstance(value, str)


def _text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _strings(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_str, value.values()))


def _reason(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.startswith("host_error:"))


def _warning(value: Any) -> bool:
    return _closed(value, reason=_reason, message=_text)


# -- §5.2 --

_NAME = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


def path(text: str) -> tuple[str | int, ...]:
    """The steps of a transform path, one character at a time."""
    if len(text) > 4096:
        refuse("too long")
    for root in ("$policy_target", "$target"):
        if text.startswith(root):
            break
    else:
        refuse("root")
    rest, steps = list(text[len(root) :]), list[str | int]()

    def name(until: str) -> str:
        found = ""
        while rest and rest[0] in _NAME:
            found += rest.pop(0)
        if until and rest[: len(until)] != list(until):
            refuse("end")
        del rest[: len(until)]
        return found or refuse("name")

    while rest:
        first = rest.pop(0)
        if first == ".":
            steps.append(name(""))
        elif first == "[" and rest[:1] == ['"']:
            rest.pop(0)
            steps.append(name('"]'))
        elif first == "[":
            digits = name("]")
            if any(digit not in "0123456789" for digit in digits) or len(digits) > 18:
                refuse("index")
            steps.append(int(digits))
        else:
            refuse("segment")
    return tuple(steps)
