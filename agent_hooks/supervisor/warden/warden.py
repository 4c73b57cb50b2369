"""The warden: a small process that is the parent of every plugin.

Run as a program, not imported: `python -I -S warden.py FD HOST_PID BASE`. It
uses the standard library only. The host tells it over a SOCK_SEQPACKET socket
what to launch; it answers with pids and exits. It exists because

- it may fork and run code in the child (limits, death signal) while the host,
  which has gRPC's threads, may not;
- it outlives a killed host by the moment it takes to kill every plugin, busy,
  stopped or deaf to standard input, and to remove their folders.

Between it and each plugin stands a keeper, forked off it, that ends what the
plugin starts. At the level `confined` the plugin's process puts on what the host
has prepared, a Landlock ruleset and a seccomp filter; at `isolated` it becomes
bubblewrap, which does it.

If the warden itself is killed, the keepers kill the plugins and what they have
started; if a keeper is, the kernel kills its plugin (parent-death signal).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any

if not __package__:  # -I keeps even this folder off the path
    sys.path.append(os.path.dirname(os.path.dirname(__file__)))
    __package__ = "warden"

from .child import PR_SET_CHILD_SUBREAPER, prctl
from .keeper import end_children, keep
from .proc import MAX_ENTRIES, children, is_heavier, kill, kill_group, signal_inside

MAX_MESSAGE = 1 << 20
MAX_DESCRIPTORS = 4
WEIGH_INTERVAL = 250
"""Milliseconds between two looks at what the plugins' folders hold."""
KILL_TIME = 1.5
"""Seconds spent on killing what the host left behind."""


@dataclass
class Plugin:
    """One launch.

    Attributes:
        disk: bytes that its folder may hold.
        why: that the warden killed it, and why; "" otherwise.
    """

    launch: int
    level: str
    home: str
    disk: int
    why: str = ""


class Warden:
    """Launches, reports, reaps."""

    def __init__(self, control: socket.socket, host_pid: int, base: str) -> None:
        self._control = control
        self._host = os.pidfd_open(host_pid)
        self._base = base
        self._plugins: dict[int, Plugin] = {}  # by pid
        self._keepers: set[int] = set()
        self._wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._ending = False
        signal.signal(signal.SIGTERM, self._terminate)

    def _terminate(self, *_: object) -> None:
        self._ending = True

    def run(self) -> None:
        """Serve until the host is gone or hangs up; then leave nothing behind."""
        poll = select.poll()
        for fd in (self._control.fileno(), self._host, self._wake):
            poll.register(fd, select.POLLIN)
        weighing = time.monotonic()
        while True:
            ready = {fd for fd, _ in poll.poll(WEIGH_INTERVAL if self._plugins else None)}
            if self._host in ready or self._ending:
                break
            if self._wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
                self._reap()
            if self._control.fileno() in ready and not self._command():
                break
            if time.monotonic() - weighing > WEIGH_INTERVAL / 1000:
                self._weigh()
                weighing = time.monotonic()
        self._end()

    def _command(self) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(self._control, MAX_MESSAGE, MAX_DESCRIPTORS)
        except OSError:
            return False
        if not data:
            return False
        for fd in fds:
            os.set_inheritable(fd, False)
        command = json.loads(data)
        if command["op"] == "spawn":
            self._spawn(command, fds)
        else:
            self._signal(command["id"], command["signal"])
        return True

    def _tell(self, **message: Any) -> None:
        with contextlib.suppress(OSError):  # a host that is gone is seen by its pidfd
            self._control.send(json.dumps(message).encode())

    def _spawn(self, command: dict[str, Any], fds: list[int]) -> None:
        read, write = os.pipe2(os.O_CLOEXEC)
        keeper = os.fork()
        if keeper == 0:
            keep(command, fds, write)
        self._keepers.add(keeper)
        os.close(write)
        for fd in fds:
            os.close(fd)
        with os.fdopen(read, encoding="ascii") as pipe:  # it ends when the program runs
            report = dict(word.split("=") for word in pipe.read().split())
        if "errno" in report or "pid" not in report:
            self._tell(failed=command["id"], errno=int(report.get("errno", errno.EAGAIN)))
            return
        pid = int(report["pid"])
        self._plugins[pid] = Plugin(
            command["id"],
            command["level"],
            os.path.dirname(command["cwd"]),
            command["limits"]["disk"],
        )
        self._tell(spawned=command["id"], pid=pid)

    def _signal(self, launch: int, number: int) -> None:
        for pid, plugin in self._plugins.items():
            if plugin.launch != launch:
                continue
            if plugin.level == "isolated" and number != signal.SIGKILL:
                signal_inside(pid, number)
            else:
                kill_group(pid, number)

    def _weigh(self) -> None:
        """End a plugin whose folder holds more than it may."""
        for pid, plugin in self._plugins.items():
            if not plugin.why and is_heavier(plugin.home, plugin.disk):
                plugin.why = (
                    f"its folder held more than {plugin.disk >> 20} MiB ([limits] disk_mb) "
                    f"or than {MAX_ENTRIES} files"
                )
                kill_group(pid, signal.SIGKILL)

    def _reap(self) -> None:
        while True:
            try:
                # Look before reaping: while the process is a zombie its pid,
                # and so its group's id, cannot belong to anyone else.
                exited = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if exited is None:
                return
            pid = exited.si_pid
            if pid in self._plugins:
                kill_group(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self._keepers.discard(pid)
            plugin = self._plugins.pop(pid, None)
            self._kill_orphans()  # of an orphan that was killed, too
            if plugin is not None:
                why = {"why": plugin.why} if plugin.why else {}
                self._tell(
                    exited=plugin.launch, status=exited.si_status, code=exited.si_code, **why
                )

    def _kill_orphans(self) -> None:
        """Kill what became our child because its keeper was killed."""
        for pid in set(children(os.getpid())) - self._keepers - set(self._plugins):
            kill(pid)

    def _end(self) -> None:
        for pid in self._plugins:
            kill_group(pid, signal.SIGKILL)
        end_children(KILL_TIME)
        shutil.rmtree(self._base, ignore_errors=True)


def main() -> None:
    """Take over the inherited socket and serve."""
    control = socket.socket(fileno=int(sys.argv[1]))
    host_pid = int(sys.argv[2])
    if os.getppid() != host_pid:
        return  # the host died while this process started
    control.set_inheritable(False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    Warden(control, host_pid, sys.argv[3]).run()


if __name__ == "__main__":
    main()
