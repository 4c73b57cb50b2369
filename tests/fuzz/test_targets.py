"""The properties of `make fuzz`, briefly: every seed, mutated seeds, and inputs of hostile size."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.core.verdict import ALLOW, Decision, Verdict
from agent_hooks.v1 import interceptor_pb2, verdict_pb2
from agent_hooks.wire.verdict import encode_response
from tests.fuzz import reference
from tests.fuzz.reference import Json, Refused
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS, Finding
from tests.wire.strategies import mutations

JUDGED = ("parse", "parse_canonical", "parse_json", "gate", "answer", "stream_answer", "path")
"""Those that have a reference; what the others do with mutated bytes, tests/wire asks."""
MUTATED = (*JUDGED, "manifest", "host_file")
SIZE = 1 << 17
MEMORY = 32 << 20
SECONDS = 5.0


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_is_read(name: str) -> None:
    """So that a fuzzer starts from what a decoder takes, and the properties hold of it."""
    inputs = seeds()[name]
    taken = [TARGETS[name](data) is not None for data in inputs]
    assert taken
    refused = ("gate", "path")  # some vectors are there to be refused
    assert sum(taken) >= len(taken) * (0.5 if name in refused else 1)


@pytest.mark.parametrize("name", MUTATED)
@given(data=st.data())
def test_mutated_seed_is_refused_or_read_as_a_strict_reader_does(name: str, data: Any) -> None:
    """§5, §5.2, §4.4: cut, changed, doubled or spliced."""
    inputs = seeds()[name]
    seed, other = data.draw(st.sampled_from(inputs)), data.draw(st.sampled_from(inputs))
    TARGETS[name](data.draw(mutations(seed, other)))


_PIECES = st.sampled_from(
    ["{", "}", "[", "]", ",", ":", '"', '"a"', "0", "-", "1e400", "1E5", ".5", "\\ud83d", "\\ude00",
     "\\u0000", "true", "null", "NaN", " ", "\n", "9007199254740993", "9007199254740993.0", "1e-7",
     "\ufeff", "é", "-0", "-0.0", "00", "1.", '"a":1', '{"a":1}', "[[]]", "9" * 330]
)  # fmt: skip


@pytest.mark.parametrize("name", ["parse", "parse_canonical", "parse_json"])
@given(text=st.lists(_PIECES, max_size=9).map("".join))
def test_text_of_json_pieces_is_read_as_a_strict_reader_does(name: str, text: str) -> None:
    """§4.4: what is taken is exactly what was written."""
    TARGETS[name](text.encode())


@given(
    text=st.lists(
        st.sampled_from(["$target", "$policy_target", ".", "a", "[", "]", '"', "0", "9" * 18, "é",
                         "_", "-", "\n", '["a"]', "[1]", ".b", " ", "١"]),
        max_size=8,
    ).map("".join)
)  # fmt: skip
def test_path_of_pieces_is_read_as_the_grammar_says(text: str) -> None:
    """§5.2."""
    TARGETS["path"](text.encode())


def _hostile() -> Iterator[tuple[str, bytes]]:
    size = SIZE
    yield "arrays", b"[" * size
    yield "closed_arrays", b"[" * (size // 2) + b"]" * (size // 2)
    yield "objects", b'{"a":' * (size // 5)
    yield "digits", b"9" * size
    yield "fraction", b"0." + b"9" * size
    yield "exponent", b"1e" + b"9" * size
    yield "escapes", b'"' + b"\\" * size
    yield "surrogates", b'"' + b"\\ud800" * (size // 6) + b'"'
    yield "spaces", b" " * size
    yield "zeroes", bytes(size)
    yield "ones", b"\xff" * size
    yield "length_of_gigabytes", b"\x0a\xff\xff\xff\xff\x07" + b"x" * 100
    yield "verdicts_in_verdicts", b"\x0a\x02" * (size // 2)
    yield "empty_warnings", b"\x0a\x82\x80\x01\x08\x01" + b"\x22\x00" * (1 << 13)
    yield "groups", b"\x0b" * size
    yield "path", b"$target" + b".a" * (size // 2)
    yield "index", b"$target[" + b"1" * size + b"]"
    yield "toml_keys", b"a." * (size // 16)  # tomllib takes time with the square of it
    yield "toml_tables", b"[a]\n" * (size // 4)
    yield "toml_arrays", b"a = " + b"[" * size
    yield "toml_number", b"a = " + b"9" * size
    yield "toml_strings", b'a = "' + b"\\u0041" * (size // 6) + b'"'


HOSTILE = dict(_hostile())


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_size_ends_soon_and_in_little_memory(name: str, what: str) -> None:
    """§12.3: it costs time and memory in proportion, and is no crash."""
    decode = TARGETS[name]
    tracemalloc.start()
    begun = time.process_time()
    try:
        decode(HOSTILE[what])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.process_time() - begun < SECONDS
    assert peak < MEMORY


# -- the reference itself --


def test_reference_reads_and_refuses() -> None:
    """RFC 8259, protobuf's encoding, §5, §5.2: so that agreeing with it means something."""
    assert Json(b' {"a":[1,-0.0,"\\ud83d\\ude00"]} ', 3).read() == {"a": [1, -0.0, "😀"]}
    for text in (b"", b"01", b"[1,]", b'{"a":1,"a":1}', b'"\\ud800"', b"\xff", b"NaN", b"[[[]]]"):
        with pytest.raises(Refused):
            Json(text, 2).read()
    said = Verdict.rewrite('$target["n"]', {"b": 2**60, "a": 1.0})
    assert reference.answer(encode_response(said)) == said.to_wire()
    unknown = verdict_pb2.Verdict(decision=1)  # type: ignore[arg-type]
    unknown.MergeFromString(b"\xa0\x1f\x01")
    for data in (
        b"",
        b"\x0a",
        b"\x0a\x02\x08\x00",
        b"\x0a\x02\x08\x04",
        interceptor_pb2.InterceptResponse(verdict=unknown).SerializeToString(),
    ):
        with pytest.raises(Refused):
            reference.answer(data)
    assert reference.is_verdict({"decision": "allow"})
    assert not reference.is_verdict({"decision": "allow", "approval": {}})
    assert reference.path('$policy_target.a[0]["b"]') == ("a", 0, "b")


@pytest.mark.parametrize("name", ["answer", "parse", "path", "gate"])
def test_decoder_that_takes_too_much_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fuzzer that cannot fail finds nothing."""
    from tests.fuzz import targets

    wrong: Any = {
        "answer": (targets._answer(lambda _: ALLOW, None), b"garbage"),
        "parse": (targets._json(lambda *_: 1, False), b"1.0"),
        "path": (TARGETS["path"], b"$target.a b"),
        "gate": (TARGETS["gate"], b'{"decision":"deny","approval":5}'),
    }[name]
    monkeypatch.setattr(targets.paths, "parse", lambda _: ())
    monkeypatch.setattr(targets, "check_verdict", lambda _: Verdict(Decision.ALLOW))
    with pytest.raises(Finding):
        wrong[0](wrong[1])
