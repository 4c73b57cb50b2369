"""The launch that calls go to, and its InterceptStreams (interceptor.proto).

A unary call sets up and takes down an HTTP/2 stream. A call on an open stream
is two messages, a third faster between Python processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any

import grpc

from agent_hooks.core.effects import Failed
from agent_hooks.core.reasons import HostError
from agent_hooks.supervisor.peer import Pulse
from agent_hooks.supervisor.pending import Pending
from agent_hooks.wire.context import encode_stream_request
from agent_hooks.wire.plugin import MAX_STREAMS


@dataclass(slots=True)
class Live:
    """A launch that may be called.

    Attributes:
        limit: of calls in flight.
        in_flight: what it was sent and has not answered.
        streams: None where the plugin has no InterceptStream.
    """

    future: Callable[..., Any]
    blocking: Callable[..., bytes]
    kind: str
    metadata: tuple[tuple[str, str], ...]
    pulse: Pulse
    limit: int
    streams: Streams | None = None
    in_flight: set[Pending] = field(default_factory=set)

    def carry(self, pending: Pending) -> None:
        """It takes a call."""
        self.in_flight.add(pending)
        pending.peers = self.in_flight

    def metadata_of(self, pending: Pending) -> tuple[tuple[str, str], ...]:
        """A unary call's metadata."""
        if pending.traceparent is None:
            return self.metadata
        return (*self.metadata, ("traceparent", pending.traceparent))

    def close(self) -> None:
        """Let its streams end."""
        if self.streams is not None:
            self.streams.close()


Finish = Callable[[Pending, object], object]
"""Takes a call's answer, or a `Failed` in its place; exactly once, from any thread."""


class Streams:
    """Opened as needed, used again after an answer. Thread-safe.

    Args:
        open_stream: opens one over an iterator of requests.
    """

    def __init__(self, open_stream: Callable[[Any], Any]) -> None:
        self.open_stream = open_stream
        self.lock = threading.Lock()
        self._idle: list[Stream] = []
        self._count = 0
        self._closed = False

    def take(self) -> Stream | None:
        """A stream that carries nothing, or None: all are in use, or they are being closed."""
        while True:
            with self.lock:
                if self._closed:
                    return None
                stream = self._idle.pop() if self._idle else None
                if stream is None:
                    if self._count == MAX_STREAMS:
                        return None
                    self._count += 1
            if stream is None:
                return self._opened()
            if stream.is_open:
                return stream
            stream.end()  # by the plugin, while it carried nothing

    def _opened(self) -> Stream:
        try:
            return Stream(self)
        except BaseException:
            self.forget()
            raise

    def give_back(self, stream: Stream) -> bool:
        """Under the lock: it carries nothing now. False where it is to end."""
        if not self._closed:
            self._idle.append(stream)
        return not self._closed

    def forget(self) -> None:
        """One has ended."""
        with self.lock:
            self._count -= 1

    def close(self) -> None:
        """Open no more; each ends as soon as it carries nothing."""
        with self.lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for stream in idle:
            stream.end()


class Stream:
    """One stream, and the call that it carries."""

    __slots__ = ("_call", "_carried", "_ended", "_requests", "_started", "_streams")

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._carried: Pending | None = None
        self._ended = False
        self._requests: SimpleQueue[bytes | None] = SimpleQueue()
        self._started: SimpleQueue[tuple[Pending, Finish] | None] | None = None
        self._call = streams.open_stream(iter(self._requests.get, None))

    @property
    def is_open(self) -> bool:
        """Whether the plugin has not ended it, as far as is known."""
        return bool(self._call.is_active())

    def ask(self, pending: Pending) -> object:
        """Send a call, and wait for what it comes to; until `pending.abandon` at the latest."""
        try:
            self._send(pending)
            return self._receive(pending)
        except BaseException:  # the waiting thread was interrupted
            self.end()
            raise

    def start(self, pending: Pending, finish: Finish) -> None:
        """Send a call; `finish` is told on a thread of the stream's."""
        if self._started is None:
            self._started = SimpleQueue()
            work = threading.Thread(
                target=self._work, args=(self._started,), name="agent-hooks-stream", daemon=True
            )
            try:
                work.start()
            except BaseException:
                self.end()
                raise
        # Its reader first: a stream that is ended now still reads what it was given before.
        self._started.put((pending, finish))
        try:
            self._send(pending)
        except BaseException:
            self.end()
            raise

    def _work(self, started: SimpleQueue[tuple[Pending, Finish] | None]) -> None:
        while (one := started.get()) is not None:
            pending, finish = one
            finish(pending, self._receive(pending))

    def _send(self, pending: Pending) -> None:
        with self._streams.lock:
            self._carried = pending
        pending.abandon = partial(self._abandon, pending)
        self._requests.put(encode_stream_request(pending.request, pending.traceparent))
        if pending.over:  # given up before it was carried
            self._abandon(pending)

    def _abandon(self, pending: Pending) -> None:
        """End the stream, if it carries that call still."""
        with self._streams.lock:
            carries = self._carried is pending
        if carries:
            self.end()

    def _receive(self, pending: Pending) -> object:
        """What a call comes to. After anything but its answer the stream ends."""
        reply: object
        try:
            data = next(self._call, None)
            reply = pending.failure(self._call) if data is None else pending.read_streamed(data)
        except grpc.RpcError:
            reply = pending.failure(self._call)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the slot must be filled
            reply = Failed(HostError.INTERCEPTOR_FAILED, type(exc).__name__)
        with self._streams.lock:
            self._carried = None
            well = not isinstance(reply, Failed) and not self._ended
            again = well and self._streams.give_back(self)
        if not again:
            self.end()
        return reply

    def end(self) -> None:
        """End it, whatever it carries. Does nothing twice."""
        with self._streams.lock:
            ended, self._ended = self._ended, True
        if ended:
            return
        self._call.cancel()
        self._requests.put(None)
        if self._started is not None:
            self._started.put(None)
        self._streams.forget()
