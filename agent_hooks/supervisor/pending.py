"""One call of a plugin on its way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from agent_hooks.core.call import Done
from agent_hooks.core.effects import Failed
from agent_hooks.core.reasons import HostError
from agent_hooks.core.verdict import VerdictError
from agent_hooks.wire.fields import WireError
from agent_hooks.wire.status import failure
from agent_hooks.wire.verdict import decode_stream_response


def nowhere(_: object) -> None:
    """Where an answer goes that somebody waits for in another way."""


def _whatever(reply: object) -> object:
    return reply


@dataclass(slots=True, eq=False)
class Pending:
    """One call on its way.

    Attributes:
        deadline: on the monotonic clock, in seconds.
        kind: of the plugin that can answer it.
        decode: from a unary answer's bytes; raises WireError.
        admit: what of its answer counts; raises VerdictError.
        emission_id: what a stream's answer must repeat.
        abandon: stops the call, once it is sent.
        peers: the calls in flight of its launch, while it is one of them.
    """

    request: bytes
    deadline: float
    kind: str
    decode: Callable[[bytes], object]
    admit: Callable[[Any], object] = _whatever
    done: Done = nowhere
    traceparent: str | None = None
    emission_id: str = ""
    abandon: Callable[[], object] | None = None
    peers: set[Pending] | None = None
    over: bool = False

    @property
    def is_sent(self) -> bool:
        """Whether it is in flight."""
        return self.peers is not None

    def answer(self, reply: object) -> None:
        """Tell who waits, once; and let go of him, who may hold this call."""
        done, self.done = self.done, nowhere
        done(reply)

    def leave(self) -> None:
        """It is not in flight any more."""
        self.abandon = None  # it refers to this call: a cycle would keep the request for a while
        if self.peers is not None:
            self.peers.discard(self)
            self.peers = None

    def read(self, data: bytes) -> object:
        """What a unary answer says."""
        return self._read(self.decode, data)

    def read_streamed(self, data: bytes) -> object:
        """What an answer on a stream says."""
        return self._read(partial(decode_stream_response, emission_id=self.emission_id), data)

    def _read(self, decode: Callable[[bytes], object], data: bytes) -> object:
        try:
            return self.admit(decode(data))
        except (WireError, VerdictError) as refusal:
            return Failed(HostError.VERDICT_INVALID, str(refusal))

    def failure(self, call: Any) -> Failed:
        """What it means that gRPC's call ended like this."""
        return failure(call.code(), call.details(), time.monotonic() >= self.deadline)


@dataclass(slots=True)
class Counters:
    """What happened to calls, for status and metrics."""

    answered: int = 0
    failed: int = 0
    timed_out: int = 0
    refused: int = 0
