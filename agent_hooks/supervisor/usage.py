"""What a plugin's processes use, read from /proc."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """Of a process and its descendants.

    Attributes:
        processes: how many there are.
        resident_bytes: memory; what they share counts for each.
        cpu_seconds: user and system time, of descendants that have ended too.
    """

    processes: int = 0
    resident_bytes: int = 0
    cpu_seconds: float = 0.0


def usage(pid: int | None) -> Usage:
    """Of the process with that id; zero where there is none."""
    processes, pages, ticks = 0, 0, 0
    waiting = [pid] if pid is not None else []
    while waiting:
        one = waiting.pop()
        try:
            stat = Path(f"/proc/{one}/stat").read_bytes()
            children = Path(f"/proc/{one}/task/{one}/children").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        # proc(5), counted from field 3: 14 to 17 are its times, 24 is its size.
        fields = stat[stat.rindex(b")") + 2 :].split()
        processes += 1
        pages += int(fields[21])
        ticks += sum(map(int, fields[11:15]))
        waiting += map(int, children.split())
    return Usage(processes, pages * _PAGE, ticks / _TICK)
