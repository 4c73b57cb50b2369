"""Who is at the other end of a plugin's socket."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

_UCRED = struct.Struct("3i")
_PENDING_KILL = 1 << 8  # bit of SIGKILL in the mask of pending signals
_EXITING = 0x4  # PF_EXITING


def credentials(connected: socket.socket) -> tuple[int, int, int]:
    """The pid, uid and gid at the other end of a Unix socket (SO_PEERCRED)."""
    pid, uid, gid = _UCRED.unpack(
        connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    )
    return pid, uid, gid


class PeerError(RuntimeError):
    """The listener is not the process that was launched."""


def listening(path: Path) -> int | None:
    """The pid that listens at a socket path, or None while nobody does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.setblocking(False)
            probe.connect(str(path))
            return credentials(probe)[0]
        except OSError:
            return None


def check_peer(pid: int, launched: int) -> None:
    """Require the listener to be the launched process or a descendant of it.

    Raises:
        PeerError: it is neither.
    """
    seen = pid
    while seen > 1:
        if seen == launched:
            return
        seen = _parent(seen)
    raise PeerError(
        f"process {pid} listens at the plugin's address, but process {launched} was launched"
    )


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    return int(stat[stat.rindex(b")") + 2 :].split()[1])


class Pulse:
    """Whether a process is alive and not about to die, in microseconds.

    The kernel shows a fatal signal's exit code the moment the signal is sent,
    milliseconds before the process is gone. What is not sent to it then was
    surely never read, and may be sent to its successor.
    """

    def __init__(self, pid: int) -> None:
        try:
            self._fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = -1  # it has exited already

    def beats(self) -> bool:
        """False once the process is dead or dying."""
        try:
            stat = os.pread(self._fd, 1024, 0)
        except OSError:
            return False
        fields = stat[stat.rindex(b")") + 2 :].split()
        # proc(5), counted from field 3: state, flags, pending signals, exit code.
        # A stopped process shows the stopping signal where the exit code stands.
        state, stopped = fields[0], fields[0] in (b"T", b"t")
        return not (
            state in (b"Z", b"X")
            or int(fields[6]) & _EXITING
            or int(fields[28]) & _PENDING_KILL
            or (fields[49] != b"0" and not stopped)
        )

    def close(self) -> None:
        """Let go of the process."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
