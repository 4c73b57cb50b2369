"""Transform paths (§5.2)."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.core import path
from agent_hooks.core.path import PathError
from agent_hooks.core.reasons import HostError
from tests.core.test_values import json_values, nested, typed
from tests.shared import shared

FORBIDDEN, INVALID = HostError.TRANSFORM_TARGET_FORBIDDEN, HostError.TRANSFORM_INVALID
TARGET = {"a": [{"b-c": 1, "0": 2}], "": 3, "n": None}

# The grammar, written once more: root, then what may follow it.
ROOT = re.compile(r"\$(target|policy_target)(?![^.\[])")
GRAMMAR = re.compile(r'\$(target|policy_target)(\.[A-Za-z0-9_-]+|\[[0-9]+\]|\["[A-Za-z0-9_-]+"\])*')


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("$target", ()),
        ("$policy_target", ()),
        ("$target.a", ("a",)),
        ("$policy_target.a.b", ("a", "b")),
        ("$target[0]", (0,)),
        ("$target[007]", (7,)),
        ('$target["0"]', ("0",)),
        ("$target.0", ("0",)),
        ('$target.a-b_C9["x-y"][12].z', ("a-b_C9", "x-y", 12, "z")),
        ("$target[999999999999999999]", (10**18 - 1,)),
    ],
)
def test_the_grammar_gives_the_steps(text: str, steps: tuple[str | int, ...]) -> None:
    """path-grammar.abnf"""
    assert path.parse(text) == steps


@pytest.mark.parametrize(
    "text",
    [
        "", "$", "target", "target.x", "$targets", "$target_x", "$target x", " $target", "$Target",
        "$session.id", "$policy.target", "$$target", "$target\n", "@.x", '["target"]', "$[0]",
    ],
)  # fmt: skip
def test_any_other_root_is_forbidden(text: str) -> None:
    """§5.2: transform_target_forbidden"""
    with pytest.raises(PathError) as caught:
        path.parse(text)
    assert caught.value.host_error is FORBIDDEN


@pytest.mark.parametrize(
    "text",
    [
        "$target.", "$target..a", "$target.*", "$target[*]", "$target[]", "$target[-1]",
        "$target[1", "$target[1:2]", "$target[x]", "$target['a']", '$target[""]', '$target["a.b"]',
        '$target["a b"]', "$target.a b", "$target.é", "$target[١]", "$target.a\n", "$target.a/b",
        '$target["a]', "$target[ 0]", "$target.a$target", "$target[1e1]", "$target" + ".a" * 3000,
    ],
    ids=lambda text: ascii(text[:20]),
)  # fmt: skip
def test_bad_syntax_is_invalid(text: str) -> None:
    """§5.2: transform_invalid"""
    with pytest.raises(PathError) as caught:
        path.parse(text)
    assert caught.value.host_error is INVALID


@given(
    st.lists(
        st.sampled_from(
            ["$target", "$policy_target", "$", ".", "[", "]", '"', "a", "0", "-", "_", " ", "é"]
        ),
        max_size=8,
    ).map("".join)
)
def test_the_parser_and_the_grammar_agree(text: str) -> None:
    """path-grammar.abnf"""
    if GRAMMAR.fullmatch(text):
        path.parse(text)
        return
    with pytest.raises(PathError) as caught:
        path.parse(text)
    assert caught.value.host_error is (INVALID if ROOT.match(text) else FORBIDDEN)


def test_the_grammar_here_is_the_shared_one() -> None:
    text = shared("schema", "path-grammar.abnf").read_text(encoding="utf-8")
    rules = dict(re.findall(r"^([a-z-]+)\s+= (.*?)\s*(?:;.*)?$", text, re.MULTILINE))
    assert rules["root"] == '"$target" / "$policy_target"'
    assert rules["segment"] == "dot-member / bracket-index / bracket-member"
    assert rules["bracket-index"] == '"[" 1*DIGIT "]"'
    assert rules["member-name"] == '1*( ALPHA / DIGIT / "_" / "-" )'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$target", TARGET),
        ("$target.a", TARGET["a"]),
        ('$target["a"][0]', {"b-c": 1, "0": 2}),
        ("$target.a[0].b-c", 1),
        ("$target.a[0].0", 2),
        ("$target.n", None),
    ],
)
def test_a_path_resolves_to_the_place(text: str, value: Any) -> None:
    """§5.2"""
    assert path.resolve(TARGET, text) == value


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("$target.b", id="no-member"),
        pytest.param("$target.a[1]", id="index-past-the-end"),
        pytest.param("$target[0]", id="index-into-an-object"),
        pytest.param("$target.a.0", id="member-of-an-array"),
        pytest.param('$target.a["0"]', id="quoted-index"),
        pytest.param("$target.n.x", id="below-null"),
        pytest.param("$target.a[0].b-c.x", id="below-a-number"),
        pytest.param("$target.a[0][0]", id="index-into-an-object-below"),
    ],
)
@pytest.mark.parametrize("use", [path.resolve, lambda *at: path.apply(*at, 1)])
def test_a_place_that_is_not_there_is_invalid(use: Any, text: str) -> None:
    """§5.2: a transform replaces, it adds nothing."""
    with pytest.raises(PathError) as caught:
        use(TARGET, text)
    assert caught.value.host_error is INVALID


@st.composite
def places(draw: st.DrawFn) -> tuple[Any, list[str | int]]:
    """A value and the steps to some place in it that a path can name."""
    names = st.text("ab-_09", min_size=1, max_size=3)
    value = draw(
        st.recursive(
            json_values,
            lambda inner: (
                st.lists(inner, min_size=1, max_size=3)
                | st.dictionaries(names, inner, min_size=1, max_size=3)
            ),
            max_leaves=8,
        )
    )
    steps: list[str | int] = []
    at = value
    while draw(st.booleans()):
        if isinstance(at, list) and at:
            steps.append(draw(st.integers(0, len(at) - 1)))
        elif isinstance(at, dict) and (
            named := [k for k in at if GRAMMAR.fullmatch(f"$target.{k}")]
        ):
            steps.append(draw(st.sampled_from(named)))
        else:
            break
        at = at[steps[-1]]  # type: ignore[index]
    return value, steps


def written(steps: list[str | int], quoted: bool = False) -> str:
    """The steps as a path."""
    return "$target" + "".join(
        f"[{step}]" if isinstance(step, int) else f'["{step}"]' if quoted else f".{step}"
        for step in steps
    )


@given(places(), json_values, st.booleans())
def test_a_replacement_is_exact_and_touches_nothing_else(
    place: tuple[Any, list[str | int]], value: Any, quoted: bool
) -> None:
    """§5.2: floats, large integers and member order beside the path stay as they are."""
    target, steps = place
    before = typed(target)
    after = path.apply(target, written(steps, quoted), value)
    expected = copy.deepcopy(target)
    if steps:
        holder = expected
        for step in steps[:-1]:
            holder = holder[step]
        holder[steps[-1]] = value
    else:
        expected = value
    assert typed(after) == typed(expected)
    assert typed(target) == before
    assert typed(path.resolve(after, written(steps))) == typed(value)


def test_the_deepest_place_can_be_replaced() -> None:
    """§12.3"""
    after = path.apply(nested(128), "$target" + "[0]" * 128, 2)
    assert after == nested(128, 2)


@pytest.mark.parametrize("text", ["$canary.x", "$target.can ary", "$target.canary", "$target[77]"])
def test_a_refusal_never_quotes_the_path(text: str) -> None:
    """§14"""
    with pytest.raises(PathError) as caught:
        path.apply({}, text, "canary")
    assert "can" not in str(caught.value).replace("transform", "")
    assert "77" not in str(caught.value)
    assert caught.value.detail in str(caught.value)
    assert caught.value.host_error.value in str(caught.value)
