"""What may be left after a fault: nothing beyond what there was before it."""

from __future__ import annotations

import contextlib
import re
import threading
from collections import Counter

from tests.chaos.arena import Arena
from tests.chaos.ledger import Violation
from tests.chaos.plan import PLUGINS
from tests.processes.support import descriptors, until

PROCESSES = 1 + 2 * len(PLUGINS)
"""The warden, and a keeper and a plugin each."""
_STREAMS = 2 * 16
POOLS = {
    "agent-hooks-stream": _STREAMS,
    "Thread-": _STREAMS + len(PLUGINS),  # gRPC's: one a stream, one a channel
    "asyncio_": 8,
}
"""Threads that are kept for the next who needs one, by name, and how many at most."""
PATIENCE = 8.0
"""Seconds in which what ends has ended: a replaced plugin's grace, mostly."""


def threads() -> Counter[str]:
    """Threads of this process by name, those of the pools aside."""
    found = _unnumbered(Counter(thread.name for thread in threading.enumerate()))
    for name, most in POOLS.items():
        found[name] = max(found[name] - most, 0)
    return +found


def opened() -> Counter[str]:
    """What this process has open, by what it is."""
    return _unnumbered(descriptors())


def _unnumbered(names: Counter[str]) -> Counter[str]:
    """By what stands before the number by which two of a kind differ."""
    found: Counter[str] = Counter()
    for name, count in names.items():
        found[re.split(r"\d", name)[0]] += count
    return found


class Baseline:
    """What there is while nothing is wrong and nothing under way."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._descriptors = opened()
        self._threads = threads()

    def check(self) -> None:
        """Require that there is no more than that now.

        Raises:
            Violation: something is left.
        """
        for what, left in (
            ("processes", self._processes),
            ("folders", self._folders),
            ("descriptors", lambda: opened() - self._descriptors),
            ("threads", lambda: threads() - self._threads),
        ):
            with contextlib.suppress(AssertionError):
                until(lambda left=left: not left(), PATIENCE)  # type: ignore[misc]
            if found := left():
                raise Violation(f"{what} left: {dict(found)}")

    def _processes(self) -> dict[int, str]:
        found = self._arena.family()
        return found if len(found) != PROCESSES else {}

    def _folders(self) -> dict[str, int]:
        found = [path.name for path in self._arena.home.glob("agent-hooks-*/[0-9]*.[0-9]*")]
        return Counter(found) if len(found) != len(PLUGINS) else {}
