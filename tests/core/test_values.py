"""The JSON value domain (§4.4, §12.3)."""

from __future__ import annotations

import enum
import json
import math
from collections import OrderedDict, namedtuple
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.core import canonical, values
from agent_hooks.core.values import (
    BIG_INTEGERS,
    FLOATS,
    LARGE_FLOATS,
    MAX_SAFE_INTEGER,
    WIDE_KEYS,
    NotPlainError,
    ValueDomainError,
)

CYCLE: list[Any] = []
CYCLE.append(CYCLE)


def nested(depth: int, leaf: Any = 1) -> Any:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def typed(value: Any) -> Any:
    """A form in which 1, 1.0, True, -0.0 and member order all differ."""
    if type(value) is dict:
        return ["{}", *((key, typed(item)) for key, item in value.items())]
    if type(value) is list:
        return ["[]", *map(typed, value)]
    return (type(value).__name__, repr(value))


numbers = st.one_of(
    st.integers(),
    st.integers(-(10**30), 10**30),
    st.integers(10**15, 10**25).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
)
text = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "flags"),
    [
        pytest.param(None, 0, id="null"),
        pytest.param([True, "\ue000", 0.5, MAX_SAFE_INTEGER], 0, id="fast"),
        pytest.param(-MAX_SAFE_INTEGER, 0, id="least-safe-integer"),
        pytest.param(MAX_SAFE_INTEGER + 1, BIG_INTEGERS, id="2^53"),
        pytest.param([{"a": -(2**53)}], BIG_INTEGERS, id="-2^53"),
        pytest.param(9007199254740991.0, FLOATS, id="largest-safe-float"),
        pytest.param(-9007199254740992.0, FLOATS | LARGE_FLOATS, id="large-float"),
        pytest.param(1e21, FLOATS | LARGE_FLOATS, id="1e21"),
        pytest.param(-0.0, FLOATS, id="minus-zero"),
        pytest.param(1e-5, FLOATS, id="small"),
        pytest.param(5e-324, FLOATS, id="subnormal"),
        pytest.param({"\ud7ff": 1}, 0, id="last-key-below-the-surrogates"),
        pytest.param({"\ue000": 1}, WIDE_KEYS, id="first-key-above-the-surrogates"),
        pytest.param({"x\U0001f600": 1}, WIDE_KEYS, id="astral-key"),
        pytest.param([{"\uffff": [1.0]}, 2**70], FLOATS | BIG_INTEGERS | WIDE_KEYS, id="all"),
    ],
)
def test_scan_tells_which_slow_paths_a_value_needs(value: Any, flags: int) -> None:
    assert values.scan(value) == flags


@pytest.mark.parametrize(
    ("value", "pointer", "words"),
    [
        pytest.param({"a": [0, math.nan]}, "/a/1", "not a finite number", id="nan"),
        pytest.param([math.inf], "/0", "not a finite number", id="infinity"),
        pytest.param({"a/b": [{"~": -math.inf}]}, "/a~1b/0/~0", "not a finite", id="escaped"),
        pytest.param({"\ud800": math.nan}, "/\\ud800", "not a finite number", id="surrogate"),
        pytest.param({"a": {1: 2}}, "/a", "a member name is not a string", id="integer-key"),
        pytest.param([{1, 2}], "/0", "not a JSON value (Python type set)", id="set"),
        pytest.param(object(), "", "not a JSON value (Python type object)", id="object"),
    ],
)
def test_a_refusal_names_the_place_and_the_problem(value: Any, pointer: str, words: str) -> None:
    """§4.4; the place is an RFC 6901 pointer."""
    with pytest.raises(ValueDomainError) as caught:
        values.scan(value)
    assert caught.value.pointer == pointer
    assert str(caught.value).startswith(f"{pointer or '(root)'}: {words}")


@pytest.mark.parametrize(
    "value",
    [{"a": math.nan}, {"a": {1: 2}}, [{1}], {"a": b"x"}, [1j], object(), [...], [int]],
    ids=["nan", "integer-key", "set", "bytes", "complex", "object", "ellipsis", "type"],
)
def test_what_is_no_json_value_is_not_admitted(value: Any) -> None:
    """§4.4"""
    with pytest.raises(ValueDomainError):
        values.admit(value)


def test_a_value_that_holds_itself_is_refused() -> None:
    """§12.3"""
    with pytest.raises(ValueDomainError, match="nested too deeply"):
        values.admit(CYCLE)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_depth_counts_containers(depth: int) -> None:
    """§12.3"""
    assert values.scan(nested(depth), depth) == 0
    with pytest.raises(ValueDomainError, match="nested too deeply"):
        values.scan(nested(depth + 1), depth)


@pytest.mark.parametrize("depth", [129, 250, 400, 600, 1_000, 1_999, 2_001, 10_000])
@pytest.mark.parametrize("leaf", [1, ()], ids=["plain", "with-a-tuple"])
def test_no_depth_is_more_than_a_refusal(depth: int, leaf: Any) -> None:
    """§12.3: never a crash. A value too deep to be copied is refused like any other."""
    for value in (nested(depth, leaf), (nested(depth, leaf),)):
        with pytest.raises(ValueDomainError, match="nested too deeply"):
            values.admit(value)


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda value: values.measure(value, 0), id="measure"),
        pytest.param(lambda value: values.measure(value, BIG_INTEGERS), id="measure-integers"),
        pytest.param(lambda value: canonical.encode(value, 0), id="encode"),
        pytest.param(lambda value: canonical.encode(value, WIDE_KEYS), id="encode-wide"),
        pytest.param(lambda value: canonical.json_text(value, BIG_INTEGERS), id="text"),
        pytest.param(lambda value: values._plain(value, 100, [1000]), id="plain"),
        pytest.param(values.scan, id="scan"),
    ],
)
def test_no_writer_blames_depth_on_anything_else(write: Any) -> None:
    """§12.3: even of a value that nobody scanned"""
    with pytest.raises(ValueDomainError, match="nested too deeply"):
        write(nested(100_000))


class Colour(str, enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Name(str):
    __slots__ = ()


class Ratio(float):
    pass


Pair = namedtuple("Pair", "left right")


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        pytest.param((1, [2, (3,)]), [1, [2, [3]]], id="tuples"),
        pytest.param(Pair(1, None), [1, None], id="named-tuple"),
        pytest.param(OrderedDict(b=1, a=Level.HIGH), {"b": 1, "a": 3}, id="ordered-dict"),
        pytest.param([Colour.RED, {Colour.RED: True}], ["red", {"red": True}], id="enum"),
        pytest.param([Name("x"), Ratio(0.5)], ["x", 0.5], id="subclasses"),
    ],
)
def test_subclasses_become_the_plain_types_they_serialise_to(value: Any, plain: Any) -> None:
    """Frameworks put such values into arguments; a copy holds the plain types only."""
    copy, flags = values.admit(value)
    assert typed(copy) == typed(plain)
    assert flags == 0


@pytest.mark.parametrize(
    "value",
    [
        pytest.param((math.nan,), id="nan-in-a-tuple"),
        pytest.param(({1: 2},), id="integer-key-in-a-tuple"),
        pytest.param((b"x",), id="bytes-in-a-tuple"),
        pytest.param(OrderedDict({2: 1}), id="integer-key-in-a-subclass"),
        pytest.param(bytearray(b"x"), id="buffer"),
    ],
)
def test_a_conversion_opens_no_way_around_the_domain(value: Any) -> None:
    with pytest.raises(ValueDomainError):
        values.admit(value)


@given(json_values)
def test_admit_gives_an_equal_private_copy(value: Any) -> None:
    """§4.4: floats, integers and member order stay exact."""
    before = typed(value)
    copy, flags = values.admit(value)
    assert typed(copy) == before
    assert flags == values.scan(value)
    if isinstance(copy, list):
        copy.append(1)
    if isinstance(copy, dict):
        copy["more"] = 1
    assert typed(value) == before


def test_a_container_that_stands_twice_is_two_in_a_copy() -> None:
    """§7: as it would be on the wire; whoever changes one does not change the other."""
    part = {"n": [0]}
    for copy in (values.admit([part, part])[0], values.copied([part, part])):
        copy[0]["n"].append(1)
        assert copy == [{"n": [0, 1]}, {"n": [0]}]
    assert part == {"n": [0]}


@given(json_values)
def test_copied_gives_an_equal_private_copy(value: Any) -> None:
    """§7: typed, members in order, no container shared."""
    copy = values.copied([value])
    assert typed(copy) == typed([value])
    assert not containers([value]) & containers(copy)


def containers(value: Any) -> set[int]:
    """Identities of the dicts and lists in a value."""
    if not isinstance(value, (dict, list)):
        return set()
    items = value.values() if isinstance(value, dict) else value
    return {id(value)}.union(*map(containers, items))


@given(json_values, json_values)
def test_frozen_bytes_are_equal_exactly_where_values_are(one: Any, other: Any) -> None:
    assert (values.freeze(one) == values.freeze(other)) == (typed(one) == typed(other))


def test_what_cannot_be_frozen_is_not_plain() -> None:
    with pytest.raises(NotPlainError):
        values.freeze(object())


@given(json_values)
def test_measure_counts_bytes_of_json_text(value: Any) -> None:
    """§12.3"""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    flags = values.scan(value)
    size = values.measure(value, flags)
    if flags & FLOATS:
        assert abs(size - len(text.encode())) <= 8 * text.count("e") + 8 * text.count(".")
    else:
        assert size == len(text.encode())


@pytest.mark.parametrize("flags", [0, BIG_INTEGERS])
@pytest.mark.parametrize("value", ["\ud800", ["a\udfff"], {"\ud800": 1}])
def test_a_lone_surrogate_has_no_size(value: Any, flags: int) -> None:
    """§4.4"""
    with pytest.raises(ValueDomainError, match="lone surrogate"):
        values.measure(value, flags)


def test_an_integer_too_long_to_print_is_not_blamed_on_a_surrogate() -> None:
    """§4.4: a refusal names the problem and its remedy."""
    with pytest.raises(ValueDomainError) as caught:
        values.measure([10**5000], BIG_INTEGERS)
    assert "surrogate" not in str(caught.value)
    assert "integer" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param('{"a":1,"a":1}', "occurs twice", id="duplicate-name"),
        pytest.param('[{"b":{"a":1,"\\u0061":2}}]', "occurs twice", id="duplicate-by-escape"),
        pytest.param("[NaN]", "not a finite number", id="NaN"),
        pytest.param("-Infinity", "not a finite number", id="-Infinity"),
        pytest.param("[1e400]", "not a finite number", id="beyond-a-double"),
        pytest.param('"\\ud800"', "lone surrogate", id="lone-surrogate"),
        pytest.param('{"\\udc00":1}', "lone surrogate", id="lone-surrogate-in-a-key"),
        pytest.param("[" * 129 + "]" * 129, "nested too deeply", id="depth-129"),
        pytest.param("[" * 100_000, "nested too deeply", id="depth-100000"),
        pytest.param("", "not JSON", id="empty"),
        pytest.param("{'a':1}", "not JSON", id="single-quotes"),
        pytest.param('{"a":1,}', "not JSON", id="trailing-comma"),
        pytest.param("[01]", "not JSON", id="leading-zero"),
        pytest.param('"\t"', "not JSON", id="raw-control-character"),
        pytest.param(b"\xff\xfe", "not JSON", id="bad-utf-8"),
        pytest.param("1" * 5000, "not JSON", id="5000-digits"),
        pytest.param("\ufeff{}", "not JSON", id="byte-order-mark"),
    ],
)
@pytest.mark.parametrize("parse", [values.parse_json, canonical.parse])
def test_both_parsers_refuse_what_is_not_exact(parse: Any, text: str | bytes, words: str) -> None:
    """§4.4"""
    with pytest.raises(ValueDomainError, match=words):
        parse(text, 128)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("parse", [values.parse_json, canonical.parse])
def test_json_bytes_are_utf_8_without_a_mark(parse: Any, encoding: str) -> None:
    """RFC 8259 §8.1"""
    with pytest.raises(ValueDomainError):
        parse('{"a":"b"}'.encode(encoding), 128)


@given(json_values, st.booleans(), st.sampled_from([None, 1]))
def test_parsing_gives_back_what_was_written(value: Any, ascii_only: bool, indent: Any) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert typed(values.parse_json(text)) == typed(value)
    assert typed(values.parse_json(text.encode())) == typed(value)


@given(json_values)
def test_the_fast_parser_reads_what_the_strict_one_reads(value: Any) -> None:
    """§10.2: an integer beyond ±(2⁵³−1) must not turn into a float on the way."""
    for text in (
        json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")),
        canonical.json_text(value, values.scan(value)),
    ):
        assert typed(canonical.parse(text, 128)) == typed(values.parse_json(text))
        assert typed(canonical.parse(text.encode(), 128)) == typed(values.parse_json(text))


@pytest.mark.parametrize("text", ["100000000000000000000", "[-295147905179352830000]"])
def test_an_integer_that_a_double_would_print_alike_stays_an_integer(text: str) -> None:
    """§10.2"""
    assert typed(canonical.parse(text, 128)) == typed(json.loads(text))


@pytest.mark.parametrize("pair", [
    lambda item: [item, item], lambda item: (item, item), lambda item: {"a": item, "b": item},
], ids=["list", "tuple", "dict"])  # fmt: skip
def test_few_containers_that_are_many_in_text_are_refused_in_time(pair: Any) -> None:
    """§12.3: 60 containers, 2^60 in text, as a document with anchors makes them."""
    value: Any = pair("x")
    for _ in range(60):
        value = pair(value)
    with pytest.raises(ValueDomainError, match="larger than the bound"):
        values.admit(value, max_bytes=100_000)


@given(json_values)
def test_what_its_text_has_room_for_is_admitted(value: Any) -> None:
    """§12.3: the room is never less than the bound; who counts exactly comes later."""
    size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    copy, _ = values.admit(value, max_bytes=size)
    assert typed(copy) == typed(value)
