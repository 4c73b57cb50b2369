"""Threads for code that may block: they are never waited for, only given up on."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

LIMIT = 256
"""Threads at most. When this many hang, further jobs wait until their own timeouts."""


class Workers:
    """A pool of daemon threads that grows while all of them are busy."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def submit(self, job: Callable[[], None]) -> None:
        """Run `job`, which must not raise, on some thread soon. Never blocks."""
        if not self._idle.acquire(blocking=False):
            self._grow()
        self._jobs.put(job)

    def loop(self) -> asyncio.AbstractEventLoop:
        """An event loop on a thread of its own, for callers that have none."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=self._loop.run_forever, name="agent-hooks-loop", daemon=True
                ).start()
            return self._loop

    def _grow(self) -> None:
        with self._lock:
            if self._count >= self._limit:
                return
            self._count += 1
        threading.Thread(
            target=_work, args=(self._jobs, self._idle), name="agent-hooks-worker", daemon=True
        ).start()


def _work(jobs: SimpleQueue[Callable[[], None]], idle: threading.Semaphore) -> None:
    while True:
        jobs.get()()
        idle.release()


WORKERS = Workers()
"""Shared by every emitter of the process."""
