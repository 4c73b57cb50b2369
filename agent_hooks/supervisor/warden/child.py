"""What a plugin's process does between fork and exec."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import struct
from typing import Any, NoReturn

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
SECCOMP_MODE_FILTER = 2
LANDLOCK_RESTRICT_SELF = 446
CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def become(command: dict[str, Any], fds: list[int], report: int) -> NoReturn:
    """Run the command of a spawn message. Every descriptor but 0, 1 and 2 closes on exec.

    Args:
        fds: standard input, log, and what the isolation level needs.
        report: where `errno=N` is written if it cannot be run.
    """
    try:
        parent = os.getppid()
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the keeper died before the signal was armed
            os._exit(1)
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        os.umask(0o077)
        _limit(command["limits"])
        os.chdir(command["cwd"])
        for target, fd in ((0, fds[0]), (1, fds[1]), (2, fds[1])):
            os.dup2(fd, target)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        argv = command["argv"]
        if command["level"] == "confined":
            _confine(*fds[2:])
        elif command["level"] == "isolated":
            argv[1:1] = _isolating(*fds[2:])
        os.execvpe(argv[0], argv, command["env"])  # noqa: S606 - no shell, by design
    except OSError as exc:
        os.write(report, b"errno=%d " % (exc.errno or errno.EIO))
    except Exception:  # noqa: BLE001 - nothing of the warden may go on in the child
        os.write(report, b"errno=%d " % errno.EINVAL)
    os._exit(127)


def _limit(limits: dict[str, int]) -> None:
    # Not RLIMIT_NPROC: it counts all that the user runs, the host too, and never binds root.
    for kind, value in (
        (resource.RLIMIT_AS, limits["address_space"]),
        (resource.RLIMIT_NOFILE, limits["open_files"]),
        (resource.RLIMIT_FSIZE, limits["disk"]),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))


def _isolating(filter_file: int, arguments: int) -> list[str]:
    """Have bubblewrap read how; it puts the filter on when it has done what that forbids."""
    for fd in (filter_file, arguments):
        os.set_inheritable(fd, True)
    return ["--seccomp", str(filter_file), "--args", str(arguments)]


def _confine(ruleset: int, filter_file: int) -> None:
    """Take every capability, then what the ruleset and the filter do not leave."""
    header, none = struct.pack("=Ii", CAPABILITY_VERSION_3, 0), bytes(24)
    _check(_libc.capset(header, none))
    _check(_libc.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0))
    size = os.fstat(filter_file).st_size
    code = ctypes.create_string_buffer(os.pread(filter_file, size, 0), size)
    filter_program = struct.pack("@HP", size // 8, ctypes.addressof(code))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_program)


def prctl(option: int, value: int, pointer: bytes | None = None) -> None:
    _check(_libc.prctl(option, ctypes.c_ulong(value), pointer, None, None))


def _check(code: int) -> None:
    if code != 0:
        raise OSError(ctypes.get_errno(), "refused")
