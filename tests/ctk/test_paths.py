from __future__ import annotations

import pytest

from agent_hooks.ctk.paths import MISSING, json_equal, lookup, matches

DOCUMENT = {"a": {"b": [{"c": 1}, [2, 3]]}, "n": None, "x.y": 4}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b[0].c", 1),
        ("a.b[1][0]", 2),
        ("a.b", [{"c": 1}, [2, 3]]),
        ("n", None),
        ("a.b[2]", MISSING),
        ("a.b.c", MISSING),
        ("a[0]", MISSING),
        ("n.deeper", MISSING),
        ("x.y", MISSING),  # a key with a dot cannot be reached
    ],
)
def test_lookup(path: str, value: object) -> None:
    found = lookup(DOCUMENT, path)
    assert found is value or found == value


def test_lookup_starts_with_an_index_where_the_root_is_an_array() -> None:
    assert lookup([{"c": 1}], "[0].c") == 1


@pytest.mark.parametrize(
    "path", ["", ".a", "a..b", "a.", "a[", "a[]", "a[-1]", "a[b]", "a]", "a[0]b"]
)
def test_bad_syntax_is_a_mistake_and_not_an_absent_place(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        lookup(DOCUMENT, path)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0), (1, True), (0, False), (0, None), (1.0, True), ("1", 1), ([], {}), (None, ""),
        ([1], [1.0]), ({"a": 1}, {"a": 1.0}), ({"a": 1}, {"a": 1, "b": 2}), ([1], [1, 2]),
        (9007199254740993, 9007199254740992), (9007199254740992, 9007199254740992.0),
    ],
)  # fmt: skip
def test_unequal(one: object, other: object) -> None:
    assert not json_equal(one, other)
    assert not json_equal(other, one)


@pytest.mark.parametrize(
    "value", [None, True, 0, 1.5, "s", [], [1, [2]], {"a": {"b": None}}, 2**70]
)
def test_equal_to_itself(value: object) -> None:
    assert json_equal(value, value)


def test_member_order_does_not_matter_and_array_order_does() -> None:
    assert json_equal({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not json_equal([1, 2], [2, 1])


def test_a_match_holds_when_every_entry_does() -> None:
    assert matches({}, DOCUMENT)
    assert matches({"match": {"a.b[0].c": 1, "n": None}}, DOCUMENT)
    assert not matches({"match": {"a.b[0].c": 1, "n": 0}}, DOCUMENT)
    assert not matches({"match": {"missing": None}}, DOCUMENT)
