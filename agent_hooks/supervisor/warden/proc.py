"""What the kernel says of processes, and of a folder."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
from collections.abc import Iterable

MAX_ENTRIES = 10_000
"""Files and folders that a plugin's folder may hold."""


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def signal_inside(bubblewrap: int, number: int) -> None:
    """Signal the plugin and not bubblewrap, whose end is the plugin's without a grace."""
    for init in children(bubblewrap):
        for pid in children(init):
            kill(pid, number)


def children(of: int) -> list[int]:
    try:
        with open(f"/proc/{of}/task/{of}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def reap(pids: Iterable[int]) -> None:
    """Reap those that are dead."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG)


def is_heavier(home: str, limit: int) -> bool:
    """Whether a launch's folder holds more than `limit` bytes or MAX_ENTRIES; not its program."""
    entries, held, waiting, program = 0, 0, [home], os.path.join(home, "program")
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    entries += 1
                    held += _held(entry.stat(follow_symlinks=False))
                    if entries > MAX_ENTRIES or held > limit:
                        return True
                    if entry.is_dir(follow_symlinks=False) and entry.path != program:
                        waiting.append(entry.path)
        except OSError:
            continue  # it went while we looked
    return False


def _held(file: os.stat_result) -> int:
    """Bytes of a file: what is written, without holes and without the disk's own overhead."""
    return min(file.st_size, file.st_blocks * 512) if stat.S_ISREG(file.st_mode) else 0
