"""The launch that calls go to, and its InterceptStreams (interceptor.proto).

A unary call sets up and takes down an HTTP/2 stream. A call on an open stream
is two messages, a third faster between Python processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any

import grpc

from agent_hooks.core.effects import Failed
from agent_hooks.core.reasons import HostError
from agent_hooks.supervisor.peer import Pulse
from agent_hooks.supervisor.pending import Pending
from agent_hooks.wire.context import encode_stream_request
from agent_hooks.wire.fields import WireError
from agent_hooks.wire.plugin import MAX_STREAMS
from agent_hooks.wire.verdict import decode_stream_response


@dataclass(slots=True)
class Live:
    """A launch that may be called.

    Attributes:
        streams: None where the plugin has no InterceptStream.
    """

    future: Callable[..., Any]
    blocking: Callable[..., bytes]
    kind: str
    metadata: tuple[tuple[str, str], ...]
    pulse: Pulse
    limit: int
    streams: Streams | None = None

    def metadata_of(self, pending: Pending) -> tuple[tuple[str, str], ...]:
        """A unary call's metadata."""
        if pending.traceparent is None:
            return self.metadata
        return (*self.metadata, ("traceparent", pending.traceparent))

    def close(self) -> None:
        """Let its streams end."""
        if self.streams is not None:
            self.streams.close()


Finish = Callable[[Pending, object], None]
"""Takes a call's answer, or a `Failed` in its place; exactly once, from any thread."""


class Streams:
    """Opened as needed, used again after an answer. Thread-safe, never blocking.

    Args:
        open_stream: opens one over an iterator of requests.
    """

    def __init__(self, open_stream: Callable[[Any], Any]) -> None:
        self.open_stream = open_stream
        self.lock = threading.Lock()
        self._idle: list[Stream] = []
        self._count = 0
        self._closed = False

    def send(self, pending: Pending, finish: Finish) -> bool:
        """Send a call on a stream that carries none; False where there is no such stream."""
        for _ in range(MAX_STREAMS + 1):
            stream = self._take()
            if stream is None:
                return False
            if stream.send(pending, finish):
                return True
            # It had ended unused: nothing was sent, so the next one may have the call.
        return False

    def _take(self) -> Stream | None:
        with self.lock:
            if self._closed:
                return None
            if self._idle:
                return self._idle.pop()
            if self._count == MAX_STREAMS:
                return None
            self._count += 1
        try:
            return Stream(self)
        except BaseException:
            with self.lock:
                self._count -= 1
            raise

    def give_back(self, stream: Stream) -> bool:
        """Under the lock: it carries nothing now. False where it is to end."""
        if not self._closed:
            self._idle.append(stream)
        return not self._closed

    def forget(self, stream: Stream) -> None:
        """Under the lock: it has ended."""
        self._count -= 1
        if stream in self._idle:
            self._idle.remove(stream)

    def close(self) -> None:
        """Open no more; each ends as soon as it carries nothing."""
        with self.lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for stream in idle:
            stream.finish()


class Stream:
    """One stream, the thread that reads it, and the call that it carries."""

    __slots__ = ("_call", "_carried", "_ended", "_requests", "_streams")

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._carried: tuple[Pending, Finish] | None = None
        self._ended = False
        self._requests: SimpleQueue[bytes | None] = SimpleQueue()
        self._call = streams.open_stream(iter(self._requests.get, None))
        try:
            threading.Thread(target=self._read, name="agent-hooks-stream", daemon=True).start()
        except BaseException:
            self._call.cancel()
            self.finish()
            raise

    def send(self, pending: Pending, finish: Finish) -> bool:
        """Send one call; False, and nothing is done, where the stream has ended."""
        request = encode_stream_request(pending.request, pending.traceparent)
        pending.abandon = partial(self._abandon, pending)
        with self._streams.lock:
            if self._ended:
                return False
            self._carried = pending, finish
        self._requests.put(request)
        if pending.over:  # given up before it was carried
            self._abandon(pending)
        return True

    def _abandon(self, pending: Pending) -> None:
        """End the stream, if it carries that call still."""
        with self._streams.lock:
            if self._carried is None or self._carried[0] is not pending:
                return
            self._ended = True
        self._call.cancel()

    def finish(self) -> None:
        """No request will follow."""
        self._requests.put(None)

    def _read(self) -> None:
        try:
            for data in self._call:
                if not self._answer(data):
                    break
        except grpc.RpcError:
            pass  # the call has its status
        self._call.cancel()
        self.finish()
        with self._streams.lock:
            self._ended = True
            self._streams.forget(self)
            carried, self._carried = self._carried, None
        if carried is not None:
            pending, finish = carried
            finish(pending, pending.failure(self._call))

    def _answer(self, data: bytes) -> bool:
        """Whether the stream goes on; not after an answer to nothing, or to something else."""
        if self._carried is None:
            return False
        pending, finish = self._carried
        reply: object
        try:
            reply = decode_stream_response(data, pending.emission_id)
        except WireError as refusal:
            reply = Failed(HostError.VERDICT_INVALID, str(refusal))
        with self._streams.lock:
            self._carried = None
            well = not isinstance(reply, Failed) and not self._ended
            goes_on = well and self._streams.give_back(self)
        finish(pending, reply)
        return goes_on
