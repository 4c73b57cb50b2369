"""One call of a plugin on its way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent_hooks.core.call import Done
from agent_hooks.core.effects import Failed
from agent_hooks.core.reasons import HostError
from agent_hooks.wire.fields import WireError
from agent_hooks.wire.status import failure


def nowhere(_: object) -> None:
    """Where an answer goes that somebody waits for in another way."""


@dataclass(slots=True, eq=False)
class Pending:
    """One call on its way.

    Attributes:
        deadline: on the monotonic clock, in seconds.
        kind: of the plugin that can answer it.
        decode: from a unary answer's bytes; raises WireError.
        emission_id: what a stream's answer must repeat.
        abandon: stops the call, once it is sent.
    """

    request: bytes
    deadline: float
    kind: str
    decode: Callable[[bytes], object]
    done: Done = nowhere
    traceparent: str | None = None
    emission_id: str = ""
    abandon: Callable[[], object] | None = None
    over: bool = False

    def read(self, data: bytes) -> object:
        """What a unary answer says."""
        try:
            return self.decode(data)
        except WireError as refusal:
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
