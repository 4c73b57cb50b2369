"""Answers of a legal size that would cost the host far more (§12.3, TM-12)."""

from __future__ import annotations

import contextlib
import tracemalloc
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.core.verdict import Decision, Evidence, Verdict
from agent_hooks.v1 import approval_pb2, interceptor_pb2, verdict_pb2
from agent_hooks.wire.approval import decode_resolution
from agent_hooks.wire.bulk import MAX_REST, VERDICT, check_bulk
from agent_hooks.wire.fields import WireError
from agent_hooks.wire.verdict import decode_response, decode_stream_response, encode_response

BIG = 16 << 20


def framed(tag: bytes, inner: bytes) -> bytes:
    size, head = len(inner), bytearray(tag)
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + inner


HOSTILE = {
    "warnings": b"\x22\x00",
    "labels": b"\x42\x00",
    "transforms": b"\x32\x00",
    "approvals": b"\x2a\x00",
    "evidence": b"\x3a\x02\x12\x00",
    "unknown": b"\xa0\x1f\x01",
    "groups": b"\x0b\x0c",
    "empty_decisions": b"\x08\x01",
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("way", ["unary", "stream", "approval"])
def test_sixteen_mebibytes_of_small_fields_cost_next_to_nothing(what: str, way: str) -> None:
    """Refused before they are parsed: the walk ends after 64 KiB, and allocates nothing."""
    verdict = HOSTILE[what] * (BIG // len(HOSTILE[what]))
    data, decode = {
        "unary": (framed(b"\x0a", verdict), decode_response),
        "stream": (framed(b"\x12", verdict), partial(decode_stream_response, emission_id="")),
        "approval": (framed(b"\x0a", framed(b"\x1a", verdict)), decode_resolution),
    }[way]
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match="64 KiB"):
            decode(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_large_transform_and_approval_pass() -> None:
    """A context may be 5 MiB, and so may what replaces it."""
    text = "x" * (4 << 20)
    rewrite = Verdict.rewrite("$target", {"a": text})
    assert decode_response(encode_response(rewrite)) == rewrite
    deny = Verdict(Decision.DENY, approval={"a": text}, message="m" * (MAX_REST // 2))
    assert decode_response(encode_response(deny)) == deny


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(Decision.DENY, message="m" * (MAX_REST + 1)),
        Verdict(Decision.ALLOW, evidence=Evidence("a" * (MAX_REST + 1))),
        Verdict.rewrite("$" + "p" * MAX_REST, 1),
    ],
    ids=["message", "evidence", "path"],
)
def test_large_text_elsewhere_is_refused(verdict: Verdict) -> None:
    """Nobody keeps more than 256 bytes of a message, or 10 KiB of evidence."""
    with pytest.raises(WireError, match="64 KiB"):
        decode_response(encode_response(verdict))


@given(st.binary(max_size=400), st.integers(0, 3))
def test_anything_is_refused_or_left_to_the_parser(tail: bytes, cut: int) -> None:
    """Bytes of any kind behind a large field: no other exception, and no endless walk."""
    text = verdict_pb2.Verdict(decision=1, approval_json="x" * MAX_REST).SerializeToString()  # type: ignore[arg-type]
    data = framed(b"\x0a", text + tail)[: len(text) + 10 - cut]
    with contextlib.suppress(WireError):
        check_bulk(data, {1: VERDICT})


def test_places_are_those_of_the_schema() -> None:
    """The table is of field numbers: they are the two texts, in each answer."""
    verdict = verdict_pb2.Verdict.DESCRIPTOR.fields_by_name
    value = verdict_pb2.Transform.DESCRIPTOR.fields_by_name["value_json"].number
    assert {verdict["approval_json"].number: None, verdict["transform"].number: {value: None}} == (
        VERDICT
    )
    assert interceptor_pb2.InterceptResponse.DESCRIPTOR.fields_by_name["verdict"].number == 1
    assert interceptor_pb2.InterceptStreamResponse.DESCRIPTOR.fields_by_name["verdict"].number == 2
    assert approval_pb2.ResolveResponse.DESCRIPTOR.fields_by_name["resolution"].number == 1
    assert approval_pb2.ApprovalResolution.DESCRIPTOR.fields_by_name["verdict"].number == 3
