"""One CEL expression: checked when it is written, evaluated without a word leaking."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

# The package imports its own command line, and with it 13 MB of terminal libraries.
sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))
import cel  # noqa: E402

# It logs the text of whatever a registered function raises, values included (§14).
logging.getLogger("cel").disabled = True


class CompileError(ValueError):
    """An expression that is refused. Says where and what kind, never what is written there."""


class EvaluationError(ValueError):
    """An expression that has no answer on this context. Never holds a value."""


def has_text(text: Any, wanted: Any) -> bool:
    """Whether `wanted` stands in `text`: the same words, in the same order, side by side.

    Case, runs of whitespace and the punctuation around a word do not count;
    a part of a word is no word ("4" is not in "4.5"). Of a list, every item.
    Nothing (no words, an empty list) stands nowhere.
    """
    if isinstance(wanted, list):
        return bool(wanted) and all(has_text(text, item) for item in wanted)
    if not isinstance(text, str) or not isinstance(wanted, str):
        raise TypeError("has_text takes a text, and a text or a list of texts")
    words, text = _WORD.findall(wanted.casefold()), text.casefold()
    if not words or not all(word in text for word in words):
        return False  # the usual no, without taking a long text apart
    return _joined(words) in _joined(_WORD.findall(text))


def has_number(text: Any, wanted: Any) -> bool:
    """Whether the number `wanted` stands in `text`, however it is written: 30,000 or 30000.0."""
    if not isinstance(text, str) or isinstance(wanted, bool) or not isinstance(wanted, int | float):
        raise TypeError("has_number takes a text and a number")
    return any(float(found.replace(",", "")) == wanted for found in _NUMBER.findall(text))


_WORD = re.compile(r"\w(?:\S*\w)?")
_NUMBER = re.compile(r"(?<![\w.])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\w|\.\d)")


def _joined(words: list[str]) -> str:
    return "\n" + "\n".join(words) + "\n"  # no word holds a newline


_FUNCTIONS = {"has_text": has_text, "has_number": has_number}
_BUILT_IN = {
    "size", "contains", "startsWith", "endsWith", "matches", "int", "uint", "double", "string",
    "bytes", "dyn", "type", "timestamp", "duration", "getFullYear", "getMonth", "getDate",
    "getDayOfMonth", "getDayOfYear", "getDayOfWeek", "getHours", "getMinutes", "getSeconds",
    "getMilliseconds",
}  # fmt: skip
_TYPES = {
    "bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type",
}  # fmt: skip


class Scope:
    """The variables of one context, converted once for all expressions over it.

    Raises:
        EvaluationError: a value that CEL cannot hold.
    """

    def __init__(self, variables: dict[str, Any]) -> None:
        try:
            self.cel = cel.Context(variables=variables, functions=_FUNCTIONS)
        except ValueError:
            raise EvaluationError("the context holds a value that CEL cannot") from None


class Expression:
    """A compiled expression; safe to share between threads.

    Args:
        source: CEL.
        variables: the names it may use.

    Raises:
        CompileError: bad syntax, or a name that does not exist.
    """

    def __init__(self, source: str, variables: Iterable[str]) -> None:
        try:
            self._program = cel.compile(source)
        except ValueError as refusal:
            raise CompileError(_syntax_problem(source, str(refusal))) from None
        _check_names(source, self._program, sorted(variables))
        self.names = frozenset(self._program.variables()) & frozenset(variables)

    def evaluate(self, scope: Scope) -> Any:
        """The value.

        Raises:
            EvaluationError: it has none on this context.
        """
        try:
            return self._program.execute(scope.cel)
        except Exception as exc:  # noqa: BLE001 - whatever it is, there is no answer
            raise EvaluationError(_PROBLEMS.get(type(exc), "a call failed")) from None


_PROBLEMS: dict[type[Exception], str] = {
    KeyError: "a member is missing",
    IndexError: "an index is out of range",
    TypeError: "the types of the operands do not fit",
    OverflowError: "a number is out of range",
    ZeroDivisionError: "division by zero",
}


# --- what is wrong with an expression, without repeating it: it may hold a secret ---

_PLACE = re.compile(r"ERROR: <input>:(\d+):(\d+): (?:Syntax error: )?([a-z ]*)")
_KINDS = (
    "mismatched input",
    "extraneous input",
    "missing",
    "no viable alternative",
    "token recognition error",
    "invalid string literal",
    "invalid bytes literal",
    "invalid int literal",
    "invalid uint literal",
    "invalid double literal",
    "unsupported syntax",
)


def _syntax_problem(source: str, message: str) -> str:
    place = _PLACE.search(message.replace(source, "", 1))  # the compiler quotes all of it first
    if place is None:
        return "not a CEL expression"
    line, column, words = place.groups()
    kind = next((kind for kind in _KINDS if words.startswith(kind)), "syntax error")
    return f"line {line}, column {column}: {kind}"


_LITERAL_OR_COMMENT = re.compile(
    r"""[rR][bB]?(?P<raw>\"{3}|'{3}|"|').*?(?P=raw)"""
    r"""|(?P<quote>\"{3}|'{3}|"|')(?:\\.|.)*?(?P=quote)|//[^\n]*""",
    re.DOTALL,
)
_BINDING = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|map|filter)\s*\(\s*(\w+)\s*,")
_MESSAGE = re.compile(r"\b(?!in\b)[A-Za-z_]\w*\s*\{")


def _check_names(source: str, program: cel.Program, variables: list[str]) -> None:
    """Refuse what the compiler lets through and every evaluation would fail on."""
    code = _LITERAL_OR_COMMENT.sub(lambda found: re.sub(".", " ", found[0]), source)
    message = _MESSAGE.search(code)
    if message is not None:
        raise CompileError(f"{_place(code, message.start())}: builds a message; use a map")
    for name in program.functions():
        if name[0].isalpha() and name not in _FUNCTIONS and name not in _BUILT_IN:
            raise CompileError(
                f"{_place_of(code, name)}: calls a function, or a macro with other arguments, "
                "that does not exist"
            )
    bound = set(_BINDING.findall(code))
    for name in program.variables():
        if name not in variables and name not in _TYPES and name not in bound:
            raise CompileError(
                f"{_place_of(code, name)}: names a variable that does not exist; "
                f"variables are: {', '.join(variables)}"
            )


def _place_of(code: str, name: str) -> str:
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", code)
    return _place(code, found.start()) if found else "somewhere"


def _place(code: str, at: int) -> str:
    line, column = code.count("\n", 0, at) + 1, at - code.rfind("\n", 0, at)
    return f"line {line}, column {column}"
