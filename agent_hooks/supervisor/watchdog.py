"""The host's clock for threads that wait in a call which has no deadline of its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from agent_hooks.supervisor.pending import Pending

_NEVER = float("inf")


class Watchdog:
    """Tells of calls whose deadline has passed; one thread, started when it is needed.

    Watching a call takes a lock and no wake-up, as long as the thread wakes
    before its deadline anyway: mostly for one that is over by then.
    """

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._watched: dict[Pending, Callable[[], None]] = {}
        self._wakes = _NEVER
        self._thread: threading.Thread | None = None

    def watch(self, pending: Pending, expired: Callable[[], None]) -> None:
        """Until `forget`. `expired` is called once, on the watchdog's thread; it must not raise."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="agent-hooks-watchdog", daemon=True
                )
                self._thread.start()
            self._watched[pending] = expired
            if pending.deadline < self._wakes:
                self._wakes = pending.deadline
                self._changed.notify()

    def forget(self, pending: Pending) -> None:
        """It is over."""
        with self._changed:
            self._watched.pop(pending, None)

    def _work(self) -> None:
        while True:
            for expired in self._due():
                expired()

    def _due(self) -> list[Callable[[], None]]:
        """Those that are due; or none, after a wait until the next may be."""
        with self._changed:
            now = time.monotonic()
            due = [pending for pending in self._watched if pending.deadline <= now]
            if not due:
                self._wakes = min((item.deadline for item in self._watched), default=_NEVER)
                self._changed.wait(None if self._wakes == _NEVER else self._wakes - now)
            return [self._watched.pop(pending) for pending in due]


WATCHDOG = Watchdog()
"""Shared by every supervisor of the process."""
