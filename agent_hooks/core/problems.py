"""What may be wrong with a value, and how it is said (§4.4, §12.3)."""

from __future__ import annotations

from typing import Final

REMEDY_INTEGER: Final = (
    "integer outside ±(2^53-1): write 64-bit identifiers as decimal strings (§4.4)"
)
TOO_LARGE: Final = "larger than the bound on a context (§12.3)"
TOO_DEEP: Final = "nested too deeply (§12.3): flatten the value or raise the bound"
SURROGATE: Final = "a string holds a lone surrogate: not valid Unicode (§4.4)"


class AgentHooksCoreError(ValueError):
    """Something the contract refuses. Base class of the core's refusals."""


class ValueDomainError(AgentHooksCoreError):
    """A value that interoperable JSON cannot carry (§4.4, §12.3).

    Attributes:
        problem: what is wrong and what to do; never the value.
        path: members and indexes from the root to the place.
    """

    def __init__(self, problem: str, path: tuple[str | int, ...] = ()) -> None:
        self.problem = problem
        self.path = path
        super().__init__(f"{self.pointer or '(root)'}: {problem}")

    @property
    def pointer(self) -> str:
        """The place as an RFC 6901 JSON pointer; lone surrogates are escaped."""
        return "".join("/" + _escape(str(step)) for step in self.path)


class NotPlainError(ValueDomainError):
    """Something in the value is not exactly of a JSON type; `admit` may still take it."""


def _escape(step: str) -> str:
    plain = step.encode("utf-8", "backslashreplace").decode("utf-8")
    return plain.replace("~", "~0").replace("/", "~1")
