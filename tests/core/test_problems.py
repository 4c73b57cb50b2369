"""What is said of a value that is refused (§4.4): the place and the remedy, never the value."""

from __future__ import annotations

import pytest

from agent_hooks.core import problems
from agent_hooks.core.problems import AgentHooksCoreError, NotPlainError, ValueDomainError


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ((), ""),
        (("a", 0, "b"), "/a/0/b"),
        (("a/b", "~", "~1"), "/a~1b/~0/~01"),
        (("\ud800",), "/\\ud800"),
        (("",), "/"),
    ],
)
def test_place_is_a_json_pointer(path: tuple[str | int, ...], pointer: str) -> None:
    """RFC 6901; a lone surrogate cannot be printed, so it is escaped."""
    refusal = ValueDomainError("wrong", path)
    assert refusal.pointer == pointer
    assert str(refusal) == f"{pointer or '(root)'}: wrong"
    str(refusal).encode()


def test_every_refusal_of_the_core_has_one_base() -> None:
    """A host may catch them all by it."""
    assert issubclass(NotPlainError, ValueDomainError)
    assert issubclass(ValueDomainError, AgentHooksCoreError)
    assert issubclass(AgentHooksCoreError, ValueError)


@pytest.mark.parametrize("name", ["REMEDY_INTEGER", "TOO_LARGE", "TOO_DEEP", "SURROGATE"])
def test_problem_names_its_clause(name: str) -> None:
    """§4.4, §12.3: so that a reader finds the rule."""
    assert "(§" in getattr(problems, name)
