"""The port between a host and an interceptor that is not a plain function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agent_hooks.core.context import Snapshot
from agent_hooks.core.profile import EnforcementMode

Done = Callable[[object], None]
"""Takes the answer once, from any thread: what was returned, or `Failed`."""

Cancel = Callable[[bool], None]
"""Gives a call up; the argument says whether it timed out."""


@dataclass(frozen=True, slots=True)
class Call:
    """One interceptor asked about one context.

    Attributes:
        snapshot: the context; not to be changed, only read or copied.
        emission_id: the same for every call of the emission.
        approval_available: whether a liftable deny would reach a resolver.
        timeout: seconds until the host gives up, queueing and encoding included.
        traceparent: W3C trace parent for the interceptor's own spans.
    """

    snapshot: Snapshot
    emission_id: str
    mode: EnforcementMode
    approval_available: bool
    timeout: float
    traceparent: str | None = None


@runtime_checkable
class Startable(Protocol):
    """An interceptor or resolver that answers through a callback.

    Neither method blocks or raises; `done` is called at most once, and not
    necessarily after a cancel.
    """

    def start(self, call: Call, done: Done) -> Cancel:
        """Begin to judge `call.snapshot`."""
        ...


@runtime_checkable
class Askable(Startable, Protocol):
    """A startable that can also be waited for, cheaper than through a callback."""

    def ask(self, call: Call) -> object:
        """What was returned, or `Failed`; within `call.timeout`, and never raising."""
        ...
