"""Landlock by its three system calls: what files a confined plugin may touch.

The host builds the ruleset, which is a descriptor; the warden's child puts it
on itself. Names and numbers are those of the kernel's <linux/landlock.h>.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from enum import IntFlag
from pathlib import Path

_CREATE_RULESET, _ADD_RULE = 444, 445
_VERSION = 1
_PATH_BENEATH = 1
NEEDED_ABI = 6
"""Linux 6.12: the first that keeps signals and abstract sockets inside."""

_libc = ctypes.CDLL(None, use_errno=True)


class Access(IntFlag):
    """Rights on files. A ruleset denies each of them where no rule grants it."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


_ALL = (1 << 16) - 1
_ON_FILES = Access.EXECUTE | Access.WRITE_FILE | Access.READ_FILE | Access.TRUNCATE
READ = Access.READ_FILE | Access.READ_DIR
RUN = READ | Access.EXECUTE
WRITE = (
    READ
    | Access.WRITE_FILE
    | Access.TRUNCATE
    | Access.REMOVE_DIR
    | Access.REMOVE_FILE
    | Access.MAKE_DIR
    | Access.MAKE_REG
    | Access.MAKE_SOCK
    | Access.MAKE_FIFO
    | Access.MAKE_SYM
    | Access.REFER
)
"""Everything in a folder but devices, and running what was written there."""

LISTEN = Access.MAKE_SOCK | Access.REMOVE_FILE
_NET_BIND_AND_CONNECT = 0b11
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11


class LandlockError(RuntimeError):
    """The kernel has no such Landlock; the text says what is missing."""


def abi() -> int:
    """The kernel's version of Landlock; 0 where there is none or it is turned off."""
    version: int = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return max(version, 0)


def ruleset(rules: Iterable[tuple[Path, Access]]) -> int:
    """A descriptor of a ruleset: files as granted, no TCP, no signal or abstract socket out.

    Args:
        rules: rights below a path, or on a file; paths that do not exist are passed over.

    Raises:
        LandlockError: the kernel has none, or not enough of it.
    """
    version = abi()
    if version < NEEDED_ABI:
        raise LandlockError(
            f"Landlock ABI {NEEDED_ABI} is needed (Linux 6.12, with landlock in the kernel's "
            f"lsm= list), and this kernel gives {version or 'none'}"
        )
    attributes = struct.pack(
        "=QQQ", _ALL, _NET_BIND_AND_CONNECT, _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS
    )
    fd: int = _libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if fd < 0:
        raise _failed("no ruleset could be made")
    try:
        for path, access in rules:
            _grant(fd, path, access)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _grant(fd: int, path: Path, access: Access) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise LandlockError(f"{path}: cannot be opened ({exc.strerror})") from None
    try:
        rights = int(access if path.is_dir() else access & _ON_FILES)
        rule = struct.pack("=Qi", rights, beneath)
        if _libc.syscall(_ADD_RULE, fd, _PATH_BENEATH, rule, 0) != 0:
            raise _failed(f"{path}: no rule could be made")
    finally:
        os.close(beneath)


def _failed(what: str) -> LandlockError:
    return LandlockError(f"{what} ({os.strerror(ctypes.get_errno())})")
