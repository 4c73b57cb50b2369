"""A call that is given up in the very moment in which it is sent: no place is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from agent_hooks.core.effects import Failed
from agent_hooks.core.verdict import ALLOW
from agent_hooks.supervisor.pending import Pending
from agent_hooks.supervisor.streams import Streams
from agent_hooks.wire.plugin import INTERCEPTOR
from agent_hooks.wire.verdict import decode_response, encode_stream_response


class Cancelled(grpc.RpcError):
    pass


class SilentCall:
    """gRPC's side of a stream whose plugin says nothing."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self.requests = requests
        self.ended = threading.Event()

    def __next__(self) -> bytes:
        assert self.ended.wait(10)
        raise Cancelled

    def cancel(self) -> None:
        self.ended.set()

    def is_active(self) -> bool:
        return not self.ended.is_set()

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.CANCELLED

    def details(self) -> str:
        return ""


def pending() -> Pending:
    return Pending(b"", float("inf"), INTERCEPTOR, decode_response)


@pytest.mark.parametrize("when", ["before", "after"])
def test_call_that_is_given_up_while_it_is_sent_is_told_its_end(when: str) -> None:
    """Else its place in flight would be taken for ever."""
    streams, told = Streams(SilentCall), threading.Event()
    replies: list[object] = []

    def finish(_: Pending, reply: object) -> None:
        replies.append(reply)
        told.set()

    stream, call = streams.take(), pending()
    assert stream is not None
    call.over = when == "before"
    stream.start(call, finish)
    if when == "after":
        assert call.abandon is not None
        call.abandon()
    assert told.wait(10)
    assert isinstance(replies[0], Failed)
    assert len(replies) == 1


def test_answer_that_breaks_the_reader_is_a_failure_and_not_a_lost_place() -> None:
    """Whatever reading it raises: the slot is filled, and the stream's thread reads on."""

    class Answering(SilentCall):
        def __next__(self) -> bytes:
            return encode_stream_response(ALLOW, "")

    def breaks(_: Any) -> object:
        raise MemoryError

    streams, told = Streams(Answering), threading.Event()
    stream, call = streams.take(), pending()
    assert stream is not None
    call.admit = breaks
    replies: list[object] = []
    stream.start(call, lambda _, reply: (replies.append(reply), told.set()))
    assert told.wait(10)
    assert isinstance(replies[0], Failed)
    assert replies[0].detail == "MemoryError"
    assert not stream.is_open


def test_call_given_up_late_does_not_end_its_successors_stream() -> None:
    """The stream is ended only for the call that it carries."""
    streams = Streams(SilentCall)
    stream, first, second = streams.take(), pending(), pending()
    assert stream is not None
    stream._send(first)
    late: Any = first.abandon
    stream._carried = None  # answered
    stream._send(second)
    late()
    assert stream.is_open
    second.abandon()  # type: ignore[misc]
    assert not stream.is_open
