"""Whether a plugin's process ends, and how soon after that the plugin is ready again."""

from __future__ import annotations

import os
import select
import threading
import time

from tests.chaos.arena import Arena
from tests.chaos.ledger import Violation

DEATH = 8.0
"""Seconds in which a process that must end has ended."""
RETURN = 20.0
"""Seconds after which a plugin that is not back is taken for lost."""
_TICK_MS, _POLL = 20, 0.005


class Watch:
    """One plugin's process, from now on.

    Attributes:
        died: whether it has ended.
        seconds: from its end until its successor was ready; None before that.
    """

    def __init__(self, arena: Arena, plugin: str) -> None:
        self.plugin = plugin
        self.died = False
        self.seconds: float | None = None
        self._arena = arena
        self._pid = arena.pid(plugin)
        self._fd = os.pidfd_open(self._pid)
        self._end: float | None = None
        self._thread = threading.Thread(target=self._run, name="chaos-watch")
        self._thread.start()

    def finish(self, must_die: bool) -> None:
        """Wait for what must come; then watch no more.

        Raises:
            Violation: it did not end, or is not ready again.
        """
        self._end = time.monotonic() + (DEATH if must_die else 0)
        self._thread.join()
        os.close(self._fd)
        if must_die and not self.died:
            raise Violation(f"{self.plugin} lives on {DEATH:g} s after what must end it")
        if self.died and self.seconds is None:
            raise Violation(f"{self.plugin} is not ready {RETURN:g} s after its end")

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while not poll.poll(_TICK_MS):
            if self._end is not None and time.monotonic() > self._end:
                return
        self.died, died = True, time.monotonic()
        while time.monotonic() < died + RETURN:
            now = self._arena.status(self.plugin)
            if now["state"] == "ready" and now["pid"] not in (None, self._pid):
                self.seconds = time.monotonic() - died
                return
            time.sleep(_POLL)
