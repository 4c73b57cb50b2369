"""The warden: a small process that is the parent of every plugin.

Run as a program, not imported: `python -I -S warden.py FD HOST_PID BASE`. It
uses the standard library only. The host tells it over a SOCK_SEQPACKET socket
what to launch; it answers with pids and exits. It exists because

- it may fork and run code in the child (limits, death signal) while the host,
  which has gRPC's threads, may not;
- it is the plugins' subreaper, so a descendant that left its process group is
  still found;
- it outlives a killed host by the moment it takes to kill every plugin, busy,
  stopped or deaf to standard input, and to remove their folders.

If the warden itself is killed, the kernel kills the plugins (parent-death
signal).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time
from typing import Any, NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
MAX_MESSAGE = 1 << 20
KILL_TIME = 1.5
"""Seconds spent on killing what the host left behind."""

_libc = ctypes.CDLL(None, use_errno=True)


class Warden:
    """Launches, reports, reaps."""

    def __init__(self, control: socket.socket, host_pid: int, base: str) -> None:
        self._control = control
        self._host = os.pidfd_open(host_pid)
        self._base = base
        self._plugins: dict[int, int] = {}  # pid → launch id
        self._addresses: dict[int, bytes] = {}  # pid → its environment's address
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
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._host in ready or self._ending:
                break
            if self._wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
                self._reap()
            if self._control.fileno() in ready and not self._command():
                break
        self._end()

    def _command(self) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(self._control, MAX_MESSAGE, 2)
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
        pid = os.fork()
        if pid == 0:
            _become(command, fds, write)
        os.close(write)
        for fd in fds:
            os.close(fd)
        with os.fdopen(read, "rb") as pipe:
            failure = pipe.read()  # empty once the program runs
        if failure:
            os.waitpid(pid, 0)
            self._tell(failed=command["id"], errno=int(failure))
            return
        self._plugins[pid] = command["id"]
        self._addresses[pid] = command["env"].get("AGENT_HOOKS_PLUGIN_ADDRESS", "").encode()
        self._tell(spawned=command["id"], pid=pid)

    def _signal(self, launch: int, number: int) -> None:
        for pid, known in self._plugins.items():
            if known == launch:
                _kill_group(pid, number)

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
                _kill_group(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            launch = self._plugins.pop(pid, None)
            if launch is not None:
                del self._addresses[pid]
            self._kill_orphans()  # of an orphan that was killed, too
            if launch is not None:
                self._tell(exited=launch, status=exited.si_status, code=exited.si_code)

    def _kill_orphans(self) -> None:
        """Kill what became our child without being a plugin: a dead plugin's descendant."""
        for pid in _children():
            if pid in self._plugins:
                continue
            address = _address(pid)
            if address is None or address not in self._addresses.values():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _end(self) -> None:
        deadline = time.monotonic() + KILL_TIME
        for pid in self._plugins:
            _kill_group(pid, signal.SIGKILL)
        # Whoever loses its parent becomes our child, so this reaches them all.
        while time.monotonic() < deadline and (children := _children()):
            for pid in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass
            time.sleep(0.002)
        shutil.rmtree(self._base, ignore_errors=True)


def _become(command: dict[str, Any], fds: list[int], failure: int) -> NoReturn:
    """In the child: everything between fork and exec. Every other descriptor closes on exec."""
    try:
        parent = os.getppid()
        os.setsid()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the warden died before the signal was armed
            os._exit(1)
        _prctl(PR_SET_NO_NEW_PRIVS, 1)
        os.umask(0o077)
        limits = command["limits"]
        for kind, value in (
            (resource.RLIMIT_AS, limits["address_space"]),
            (resource.RLIMIT_NOFILE, limits["open_files"]),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(kind, (value, value))
        os.chdir(command["cwd"])
        for target, fd in ((0, fds[0]), (1, fds[1]), (2, fds[1])):
            os.dup2(fd, target)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        argv = command["argv"]
        os.execvpe(argv[0], argv, command["env"])  # noqa: S606 - no shell, by design
    except OSError as exc:
        os.write(failure, str(exc.errno or errno.EIO).encode())
    except Exception:  # noqa: BLE001 - nothing of the warden may go on in the child
        os.write(failure, str(errno.EINVAL).encode())
    os._exit(127)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _kill_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _children() -> list[int]:
    me = os.getpid()
    try:
        with open(f"/proc/{me}/task/{me}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def _address(pid: int) -> bytes | None:
    """The plugin address in a process's environment, which its children inherit."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return None
    prefix = b"AGENT_HOOKS_PLUGIN_ADDRESS="
    return next((entry[len(prefix) :] for entry in entries if entry.startswith(prefix)), None)


def main() -> None:
    """Take over the inherited socket and serve."""
    control = socket.socket(fileno=int(sys.argv[1]))
    host_pid = int(sys.argv[2])
    if os.getppid() != host_pid:
        return  # the host died while this process started
    control.set_inheritable(False)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    Warden(control, host_pid, sys.argv[3]).run()


if __name__ == "__main__":
    main()
