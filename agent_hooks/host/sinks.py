"""Where records go."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import orjson

from agent_hooks.core.record import InterceptionRecord


class NdjsonSink:
    """One line of JSON per record, appended and written through to the kernel at once.

    A record that cannot be written is counted, never raised: the emission's
    verdict stands either way. Safe to share between threads, emitters and
    processes (`O_APPEND`, one write per line).

    Attributes:
        dropped: records that could not be written.
        written: records that were.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.dropped = 0
        self.written = 0
        self._torn = False
        self._lock = threading.Lock()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(self.path, flags, 0o600)

    def __call__(self, record: InterceptionRecord) -> None:
        """Append one record."""
        with self._lock:
            try:
                line = orjson.dumps(record.to_wire()) + b"\n"
                self._write(b"\n" + line if self._torn else line)
            except (OSError, TypeError):
                self.dropped += 1
            else:
                self.written += 1

    def _write(self, line: bytes) -> None:
        written = 0
        try:
            while written < len(line):
                written += os.write(self._fd, line[written:])
        finally:
            # A line cut short ends before the next one begins.
            self._torn = 0 < written < len(line) or (self._torn and written == 0)

    def close(self) -> None:
        """Close the file; later records count as dropped."""
        with self._lock:
            fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
