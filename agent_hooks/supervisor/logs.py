"""Plugins' output, handed on line by line under their name, and bounded in every way."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections import deque
from collections.abc import Callable

from agent_hooks.supervisor.secrets import NO_SECRETS
from agent_hooks.supervisor.settings import Settings

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that could forge lines or drive a terminal."""

_SEVERITY = re.compile(rb"<([0-7])>")
"""The prefix by which a line says its severity, as services do to systemd (sd-daemon(3))."""

_LEVELS = (
    *(logging.CRITICAL,) * 3,
    logging.ERROR,
    logging.WARNING,
    logging.INFO,
    logging.INFO,
    logging.DEBUG,
)


def printable(text: str) -> str:
    """The text with every such character replaced."""
    return _CONTROL.sub("\ufffd", text)


class PluginLog:
    """One binding's lines, over all its launches. Used on one thread; `recent` on any.

    Args:
        name: the binding's id; lines go to the logger `agent_hooks.plugin.<name>`.

    Attributes:
        max_line: bytes after which a line is cut.
        dropped: lines beyond `log_lines_per_second`, so far.
    """

    def __init__(
        self, name: str, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.max_line = settings.max_log_line
        self.dropped = 0
        self._logger = logging.getLogger(f"agent_hooks.plugin.{name}")
        self._limit = settings.log_lines_per_second
        self._kept: deque[str] = deque(maxlen=settings.log_lines_kept)
        self._clock = clock
        self._second = 0.0
        self._in_second = 0
        self._untold = 0

    def recent(self) -> list[str]:
        """The last lines, oldest first."""
        return list(self._kept)

    def write(self, line: bytes, cut: bool) -> None:
        """Hand on one line, or count it as dropped."""
        now = self._clock()
        if now - self._second >= 1:
            self.tell()
            self._second, self._in_second = now, 0
        self._in_second += 1
        if self._in_second > self._limit:
            self.dropped += 1
            self._untold += 1
            return
        severity = _SEVERITY.match(line)
        level = _LEVELS[int(severity[1])] if severity else logging.INFO
        text = line[severity.end() if severity else 0 :].decode("utf-8", "replace").rstrip("\r")
        self._put(level, printable(text) + (" …" if cut else ""))

    def tell(self) -> None:
        """Say how many lines were dropped since it was last said."""
        if self._untold:
            self._put(logging.WARNING, f"({self._untold} lines dropped: more than a host takes)")
            self._untold = 0

    def _put(self, level: int, text: str) -> None:
        self._kept.append(f"{logging.getLevelName(level)} {text}")
        self._logger.log(level, "%s", text)


class LogPipe:
    """Reads one launch's stdout and stderr on the supervisor's loop.

    Attributes:
        secrets: what the plugin was told, and its lines are handed on without.
    """

    def __init__(self, log: PluginLog, loop: asyncio.AbstractEventLoop) -> None:
        self._log = log
        self._max_line = log.max_line
        self.secrets = NO_SECRETS
        self._loop = loop
        self._buffer = b""
        self._cutting = False
        self._read, self.write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.write_end, True)
        loop.add_reader(self._read, self._ready)

    def close(self) -> None:
        """Hand on what is left, and let go."""
        self._ready()
        if self._read >= 0:
            self._end()

    def _ready(self) -> None:
        if self._read < 0:
            return
        try:
            data = os.read(self._read, 65536)
        except BlockingIOError:
            return
        if not data:
            self._end()
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._buffer) > self._max_line:
            self._line(self._buffer)
            self._buffer, self._cutting = b"", True

    def _end(self) -> None:
        if self._buffer:
            self._line(self._buffer)
        self._log.tell()
        self._loop.remove_reader(self._read)
        os.close(self._read)
        self._buffer, self._read = b"", -1

    def _line(self, line: bytes) -> None:
        if self._cutting:  # the rest of a line that was cut
            self._cutting = False
            return
        cut = len(line) > self._max_line
        shown = self.secrets.hide(line)  # before it is cut: half a secret is one, too
        if cut:  # and what was read may end in half of one
            shown = shown[: max(len(shown) - self.secrets.reach, 0)]
        self._log.write(shown[: self._max_line], cut)
