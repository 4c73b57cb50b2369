"""Canonical JSON (§10.2, RFC 8785)."""

from __future__ import annotations

import json
import math
import os
import struct
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.core import canonical, values
from agent_hooks.core.canonical import canonical_bytes, canonical_json
from agent_hooks.core.values import ValueDomainError
from benchmarks.canonical_million import documents, main, mismatches
from tests.core.test_values import json_values, nested, typed

SEED = int(os.environ.get("CANONICAL_SEED", "8785"))

# RFC 8785, appendix B: IEEE 754 bits → text.
APPENDIX_B = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "text"), APPENDIX_B.items())
@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
def test_numbers_print_as_appendix_b_of_rfc_8785_says(bits: str, text: str, wide: bool) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    if wide:  # a key that needs the reference implementation
        assert canonical_json({"\uffff": [number]}) == f'{{"\uffff":[{text}]}}'
    else:
        assert canonical_json(number) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"b": 1, "a": 2, "": 3}, '{"":3,"a":2,"b":1}', id="sorted"),
        pytest.param(
            {"\ue000": 1, "\U00010000": 2, "\ud7ff": 3},
            '{"\ud7ff":3,"\U00010000":2,"\ue000":1}',
            id="utf-16-order",
        ),
        pytest.param(
            {"€": 1, "\r": 2, "\ufb33": 3, "1": 4, "😀": 5, "\x80": 6, "ö": 7},
            '{"\\r":2,"1":4,"\x80":6,"ö":7,"€":1,"😀":5,"\ufb33":3}',
            id="rfc-8785-3.2.3",
        ),
        pytest.param('\0\b\t\n\f\r\x1f"\\/\x7f\u2028é', None, id="escapes"),
        pytest.param([], "[]", id="empty-array"),
        pytest.param([{}, [None, True, False]], "[{},[null,true,false]]", id="literals"),
    ],
)
def test_keys_and_strings_print_as_rfc_8785_says(value: Any, text: str | None) -> None:
    escaped = '"\\u0000\\b\\t\\n\\f\\r\\u001f\\"\\\\/\x7f\u2028é"'
    assert canonical_json(value) == (escaped if text is None else text)


def test_twenty_thousand_random_documents_print_as_the_reference_prints_them() -> None:
    """RFC 8785. CANONICAL_SEED chooses others; benchmarks/canonical_million.py takes more."""
    assert mismatches(20_000, SEED) == []


def test_the_random_documents_are_rich_and_repeatable() -> None:
    sample = list(documents(3_000, 1))
    assert list(map(typed, documents(3_000, 1))) == list(map(typed, sample))
    kinds = values.FLOATS | values.WIDE_KEYS
    assert {values.scan(document) & kinds for document in sample} == {0, 1, 4, 5}


def test_the_benchmark_counts_and_fails_on_any_mismatch(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(40, 7) == 0
    assert "40 documents, 0 mismatches" in capsys.readouterr().out
    monkeypatch.setattr("benchmarks.canonical_million.ProcessPoolExecutor", _InProcess)
    monkeypatch.setattr("benchmarks.canonical_million.canonical_bytes", lambda _: b"")
    assert main(40, 7) == 1
    assert "40 mismatches" in capsys.readouterr().out


class _InProcess:
    def __enter__(self) -> _InProcess:
        return self

    def __exit__(self, *_: object) -> None: ...

    map = staticmethod(map)


@given(json_values)
def test_any_json_value_prints_as_the_reference_prints_it(value: Any) -> None:
    if values.scan(value) & values.BIG_INTEGERS:
        with pytest.raises(ValueDomainError, match="decimal strings"):
            canonical_bytes(value)
    else:
        assert canonical_bytes(value) == rfc8785.dumps(value)


@given(json_values, st.integers(0, 7))
def test_flags_of_a_larger_value_change_nothing(value: Any, more: int) -> None:
    """`encode` takes the flags of whatever holds the value."""
    flags = values.scan(value)
    if not flags & values.BIG_INTEGERS:
        assert canonical.encode(value, flags | more) == canonical_bytes(value)


@pytest.mark.parametrize("integer", [2**53, -(2**53), 2**63, 2**64, -(2**64), 10**400])
@pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])
def test_integers_outside_the_safe_range_are_refused_with_the_remedy(
    integer: int, wide: bool
) -> None:
    """§10.2"""
    value = {"\uffff" if wide else "a": [0.5, {"b": integer}]}
    with pytest.raises(ValueDomainError, match="decimal strings") as caught:
        canonical_bytes(value)
    assert caught.value.path == (next(iter(value)), 1, "b")
    assert str(integer) not in str(caught.value)


@pytest.mark.parametrize("integer", [2**53 - 1, 1 - 2**53])
def test_the_largest_safe_integers_pass(integer: int) -> None:
    """§10.2"""
    assert canonical_json([integer]) == f"[{integer}]"


def test_a_whole_float_beyond_the_safe_range_passes() -> None:
    """§10.2: only integers are refused; a double says what it is."""
    assert canonical_json(9007199254740993.0) == "9007199254740992"


@pytest.mark.parametrize(
    "value",
    [
        "\ud800",
        {"\udfff": 1},
        [1.0, "\ud800"],
        {"\uffff": "\ud800"},
        {"\uffff": 1, "\ud800": 2},
        {"\uffff\ud800": 1},
    ],
    ids=ascii,
)
@pytest.mark.parametrize("text", [canonical_json, canonical_bytes])
def test_lone_surrogates_are_refused_in_values_and_keys(text: Any, value: Any) -> None:
    """§4.4"""
    with pytest.raises(ValueDomainError, match="lone surrogate"):
        text(value)


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"\uffff": -math.inf}], ids=ascii)
def test_numbers_that_are_not_finite_are_refused(value: Any) -> None:
    """§4.4"""
    with pytest.raises(ValueDomainError, match="not a finite number"):
        canonical_bytes(value)


@pytest.mark.parametrize("leaf", [1, 1.0, {"\uffff": 1}], ids=["fast", "floats", "wide"])
def test_depth_is_printed_or_refused(leaf: Any) -> None:
    """§12.3"""
    assert canonical_bytes(nested(canonical.DEEPEST - 2, leaf)).startswith(
        b"[" * (canonical.DEEPEST - 2)
    )
    with pytest.raises(ValueDomainError, match="nested too deeply"):
        canonical_bytes(nested(canonical.DEEPEST + 1, leaf))


@given(json_values)
def test_exact_text_is_canonical_wherever_that_loses_nothing(value: Any) -> None:
    """An integer beyond ±(2⁵³−1) keeps its digits, a float of that size stays a float."""
    flags = values.scan(value)
    text = canonical.json_text(value, flags)
    if flags & (values.BIG_INTEGERS | values.LARGE_FLOATS):
        assert typed(_sorted(json.loads(text))) == typed(_sorted(value))
    else:
        assert text == canonical_json(value)
    parsed = canonical.parse(text, 128)
    assert parsed == value
    assert values.scan(parsed) & values.BIG_INTEGERS == flags & values.BIG_INTEGERS


@given(json_values)
def test_canonical_text_reads_back_as_what_it_was_made_from(value: Any) -> None:
    """RFC 8785 prints a large float like an integer; its reader knows better."""
    if values.scan(value) & values.BIG_INTEGERS:
        return
    text = canonical_json(value)
    parsed = canonical.parse_canonical(text, 128)
    assert parsed == value
    assert canonical_json(parsed) == text
    assert typed(canonical.parse_canonical(text.encode(), 128)) == typed(parsed)


@pytest.mark.parametrize(
    ("text", "value"),
    [("9007199254740991", 2**53 - 1), ("-9007199254740992", -(2.0**53)), ("1" + "0" * 20, 1e20)],
)
def test_an_integer_in_canonical_text_is_safe_or_a_float(text: str, value: Any) -> None:
    """§10.2"""
    assert typed(canonical.parse_canonical(text, 128)) == typed(value)


def _sorted(value: Any) -> Any:
    return json.loads(json.dumps(value, sort_keys=True))


def test_exact_text_refuses_a_lone_surrogate_beside_a_large_integer() -> None:
    with pytest.raises(ValueDomainError, match="lone surrogate"):
        canonical.json_text([2**60, "\ud800"], values.BIG_INTEGERS)


@pytest.mark.parametrize("parse", [canonical.parse, canonical.parse_canonical])
@pytest.mark.parametrize("limit", [3, canonical.DEEPEST])
def test_text_is_read_as_deep_as_is_asked_and_no_deeper(parse: Any, limit: int) -> None:
    """§12.3; the deepest that orjson reads included."""
    assert parse("[" * limit + "]" * limit, limit) == nested(limit - 1, [])
    with pytest.raises(ValueDomainError, match="nested too deeply"):
        parse("[" * (limit + 1) + "]" * (limit + 1), limit)
