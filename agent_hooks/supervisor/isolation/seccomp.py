"""The system calls that a confined or isolated plugin does not have (PROTOCOL Isolation).

libseccomp compiles the table below; the kernel's own architecture is the only
one that the filter lets through. What a server needs stays: threads, files,
`accept` on a Unix socket.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NE, _MASKED_EQ = 1, 7
_UNKNOWN = -1
_AF_UNIX, _STREAM, _DGRAM, _RAW, _SEQPACKET = 1, 1, 2, 3, 5
_CLONE_THREAD = 0x10000
_CLONE_NEW = (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_DENIED = [
    *("connect", "fork", "vfork", "unshare", "setns"),
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease"),
    *("pidfd_getfd", "kcmp", "perf_event_open", "bpf", "userfaultfd", "move_pages"),
    *("migrate_pages", "add_key", "request_key", "keyctl", "setpriority", "ioprio_set"),
    *("init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot"),
    *("iopl", "ioperm", "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount"),
    *("open_tree", "open_tree_attr", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
    *("swapon", "swapoff", "quotactl", "quotactl_fd", "name_to_handle_at", "open_by_handle_at"),
    *("acct", "syslog", "sethostname", "setdomainname"),
    *("settimeofday", "stime", "clock_settime", "clock_adjtime"),
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat", "file_setattr"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
    *("inotify_init", "inotify_init1", "fanotify_init"),
    *("shmget", "shmat", "shmctl", "semget", "semctl", "semop", "semtimedop"),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink"),
]
"""EPERM. `connect`, because Landlock does not cover sockets with a path; the
change of modes, owners and times, because it does not cover those either; the
System V and POSIX message calls are a way to other processes of the user."""

_ABSENT = [
    *("clone3", "io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("memfd_create", "memfd_secret"),
]
"""ENOSYS, for which programs have another way: a filter cannot see what these do,
and memory behind a descriptor counts against no limit."""

_NUMBERS = {
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "open_tree_attr": 467,
    "file_setattr": 469,
}
"""Of calls younger than some libseccomp that is in use; the same on every architecture."""


class SeccompError(RuntimeError):
    """There is no filter; the text says what is missing and how to get it."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """Deny a call where one argument compares."""

    name: str
    argument: int
    operator: int
    a: int
    b: int = 0


def _rules() -> Iterator[_Rule]:
    for call, types in (("socket", (_DGRAM, _RAW, _SEQPACKET)), ("socketpair", (_DGRAM, _RAW))):
        yield _Rule(call, 0, _NE, _AF_UNIX)
        # A datagram can be sent to any path without a connect.
        yield from (_Rule(call, 1, _MASKED_EQ, 0xF, kind) for kind in types)
    # A thread is fine; a process is not: rlimits bind one process, and one only.
    yield _Rule("clone", 0, _MASKED_EQ, _CLONE_THREAD, 0)
    yield from (_Rule("clone", 0, _MASKED_EQ, flag, flag) for flag in _CLONE_NEW)
    # The kernel looks at the lower half of a request's number only.
    yield from (
        _Rule("ioctl", 1, _MASKED_EQ, 0xFFFFFFFF, request) for request in (_TIOCSTI, _TIOCLINUX)
    )
    for call in ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam"):
        yield _Rule(call, 0, _NE, 0)  # of others: the host's limits are a way to end it
    yield _Rule("sched_setattr", 0, _NE, 0)


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


@functools.cache
def program() -> bytes:
    """The filter as the kernel and bubblewrap take it: an array of `struct sock_filter`.

    Raises:
        SeccompError: libseccomp is missing or refuses.
    """
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        raise SeccompError(
            "libseccomp is missing: install it (Debian: apt-get install libseccomp2)"
        ) from None
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    context = ctypes.c_void_p(library.seccomp_init(_ALLOW))
    try:
        for name in _DENIED:
            _deny(library, context, name, errno.EPERM)
        for name in _ABSENT:
            _deny(library, context, name, errno.ENOSYS)
        for rule in _rules():
            _deny(library, context, rule.name, errno.EPERM, rule)
        return _exported(library, context)
    finally:
        library.seccomp_release(context)


def _deny(
    library: ctypes.CDLL,
    context: ctypes.c_void_p,
    name: str,
    error: int,
    rule: _Rule | None = None,
) -> None:
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number == _UNKNOWN:
        number = _NUMBERS.get(name, _UNKNOWN)
    if number == _UNKNOWN:
        raise SeccompError(f"libseccomp does not know the call {name}: install a newer libseccomp2")
    comparisons = (_Comparison * 1)()
    if rule is not None:
        comparisons[0] = _Comparison(rule.argument, rule.operator, rule.a, rule.b)
    # A call that this architecture never had has a number of libseccomp's own: no rule is made.
    code = library.seccomp_rule_add_array(
        context, ctypes.c_uint32(_ERRNO | error), number, int(rule is not None), comparisons
    )
    if code != 0:
        raise SeccompError(f"libseccomp refuses the rule for {name} ({os.strerror(-code)})")


def _exported(library: ctypes.CDLL, context: ctypes.c_void_p) -> bytes:
    file = os.memfd_create("seccomp")
    try:
        code = library.seccomp_export_bpf(context, file)
        if code != 0:
            raise SeccompError(f"libseccomp exports no filter ({os.strerror(-code)})")
        return os.pread(file, os.fstat(file).st_size, 0)
    finally:
        os.close(file)
