"""What a plugin does to itself when a context tells it to; and its count of what it was sent."""

import mmap
import os
import signal
import subprocess
import sys
import time

_SEEN = os.open(os.environ["CHAOS_SEEN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

HELD = 0.1
"""Seconds for which a resource stays exhausted."""
DISK_PIECE = 30 << 20
"""Bytes of one file; three are more than the launch's folder may hold."""


def note(number: int) -> None:
    """Write down that this emission has come, before anything else is done with it."""
    os.write(_SEEN, b"%d\n" % number)


def flood() -> None:
    line = b"all is well " * 40 + b"\n"
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        os.write(2, line)


def memory() -> None:
    """Take address space, which costs no page, and then what is left of the heap."""
    held = []
    for take, size in ((_map, 1 << 20), (_map, 1 << 16), (bytearray, 1 << 12)):
        try:
            while True:
                held.append(take(size))
        except (MemoryError, OSError):
            continue
    time.sleep(HELD)


def _map(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size)


def descriptors() -> None:
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        time.sleep(HELD)
    for fd in held:
        os.close(fd)


def disk() -> None:
    for number in range(3):
        with open(os.path.join(os.environ["TMPDIR"], str(number)), "wb") as file:
            os.posix_fallocate(file.fileno(), 0, DISK_PIECE)


def child() -> None:
    """Start a process in a session of its own, which nothing but the host's care will end."""
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"],
                     start_new_session=True)  # fmt: skip


DEEDS = {
    "flood": flood,
    "memory": memory,
    "descriptors": descriptors,
    "disk": disk,
    "child": child,
    "exit_in_call": lambda: os._exit(9),
    "killed_in_call": lambda: os.kill(os.getpid(), signal.SIGKILL),
}
