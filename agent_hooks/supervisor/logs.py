"""Plugins' output, handed on line by line under their name."""

from __future__ import annotations

import asyncio
import logging
import os
import re

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that could forge lines or drive a terminal."""


def printable(text: str) -> str:
    """The text with every such character replaced."""
    return _CONTROL.sub("\ufffd", text)


class LogPipe:
    """Reads one plugin's stdout and stderr on the supervisor's loop.

    Args:
        name: the binding's id; lines go to the logger `agent_hooks.plugin.<name>`.
        max_line: bytes after which a line is cut.
    """

    def __init__(self, name: str, max_line: int, loop: asyncio.AbstractEventLoop) -> None:
        self._logger = logging.getLogger(f"agent_hooks.plugin.{name}")
        self._max_line = max_line
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
        self._loop.remove_reader(self._read)
        os.close(self._read)
        self._buffer, self._read = b"", -1

    def _line(self, line: bytes) -> None:
        if self._cutting:  # the rest of a line that was cut
            self._cutting = False
            return
        cut = len(line) > self._max_line
        text = line[: self._max_line].decode("utf-8", "replace").rstrip("\r")
        self._logger.info("%s%s", printable(text), " …" if cut else "")
