"""The keeper: one per plugin, its parent, and the heir of everything that it starts.

A process cannot choose its subreaper, so nothing that a plugin starts can leave
its keeper, whatever session it makes and whatever environment it has. The
keeper lives until the plugin or the warden does not, and then ends all of it.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import Any, NoReturn

from .child import PR_SET_CHILD_SUBREAPER, become, prctl
from .proc import children, kill, kill_group, reap

_KILL_TIME = 5.0
_REAP_INTERVAL = 1.0
"""Seconds for which the end of a plugin's orphan may go unnoticed."""


def keep(command: dict[str, Any], fds: list[int], report: int) -> NoReturn:
    """Fork the plugin, write `pid=N` to `report`, and stay until the end.

    The plugin is left to the warden to reap: it has to know how it ended.
    """
    try:
        _keep(command, fds, report)
    finally:
        os._exit(0)


def _keep(command: dict[str, Any], fds: list[int], report: int) -> None:
    warden = os.getppid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    plugin = os.fork()
    if plugin == 0:
        become(command, fds, report)
    os.write(report, b"pid=%d " % plugin)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # the host waits for the end of some
    ends = [os.pidfd_open(plugin), os.pidfd_open(warden)]
    if os.getppid() == warden:
        while not any(select.select(ends, [], [], _REAP_INTERVAL)):
            reap(set(children(os.getpid())) - {plugin})
    kill_group(plugin, signal.SIGKILL)
    select.select(ends[:1], [], [], _KILL_TIME)  # from then on its children are ours
    end_children(_KILL_TIME, plugin)


def end_children(seconds: float, spared: int = 0) -> None:
    """Kill and reap all children but one; whoever loses its parent becomes one."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (left := set(children(os.getpid())) - {spared}):
        for pid in left:
            kill(pid)
        reap(left)
        time.sleep(0.002)
