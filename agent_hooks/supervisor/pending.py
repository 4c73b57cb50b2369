"""One call of a plugin, and the launch that it goes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent_hooks.core.call import Done
from agent_hooks.supervisor.peer import Pulse


def nowhere(_: object) -> None:
    """Where an answer goes that somebody waits for in another way."""


@dataclass(slots=True)
class Live:
    """A launch that may be called."""

    future: Callable[..., Any]
    blocking: Callable[..., bytes]
    kind: str
    metadata: tuple[tuple[str, str], ...]
    pulse: Pulse
    limit: int


@dataclass(slots=True, eq=False)
class Pending:
    """One call on its way.

    Attributes:
        deadline: on the monotonic clock, in seconds.
        kind: of the plugin that can answer it.
        decode: from the answer's bytes; raises WireError.
    """

    request: bytes
    deadline: float
    kind: str
    decode: Callable[[bytes], object]
    done: Done = nowhere
    traceparent: str | None = None
    call: Any = None
    over: bool = False


@dataclass(slots=True)
class Counters:
    """What happened to calls, for status and metrics."""

    answered: int = 0
    failed: int = 0
    timed_out: int = 0
    refused: int = 0
