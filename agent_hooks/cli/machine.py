"""What the machine can do for plugins: each probe really tries. For `agent-hooks doctor`."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_hooks.supervisor.isolation import available, bubblewrap, landlock, seccomp
from agent_hooks.supervisor.life import MAX_SOCKET_PATH
from agent_hooks.supervisor.manifest import Limits

OK, WARNING, MISSING = "ok", "warning", "missing"

_LONGEST_LAUNCH = "/agent-hooks-xxxxxxxx/99.9999/plugin.sock"
_PLENTY_OF_FILES = 1024
_CAP_SYS_RESOURCE = 24
_CLONE_NEWUSER = 0x10000000
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        state: OK, WARNING or MISSING.
        says: what was found and what it means.
        remedy: what to do; "" where there is nothing to do.
        required: whether no plugin runs without it.
    """

    name: str
    state: str
    says: str
    remedy: str = ""
    required: bool = False


def machine() -> Iterator[Check]:
    """Every check of kernel, system and limits."""
    yield _kernel()
    yield _children()
    yield _landlock()
    yield _seccomp()
    yield _libseccomp()
    yield _bubblewrap()
    yield _user_namespaces()
    yield _cgroup()
    yield _socket_path()
    yield _executable()
    yield _open_files()
    for level, lacking in available().items():
        name = f"isolation {level}"
        if lacking is None:
            yield Check(name, OK, "this machine can give it")
        else:
            says = f"this machine cannot give it ({lacking}); its plugins are refused"
            remedy = "install or allow what is named, or choose another level in the manifest"
            yield Check(name, MISSING, says, remedy)


def _kernel() -> Check:
    release = os.uname().release
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        says = f"Linux {release} has no pidfd_open: the death of a host would not be seen"
        return Check("kernel", MISSING, says, "use Linux 5.3 or newer", required=True)
    return Check("kernel", OK, f"Linux {release}: the death of a host is seen (pidfd)")


def _children() -> Check:
    pid = os.getpid()
    if Path(f"/proc/{pid}/task/{pid}/children").exists():
        return Check("/proc", OK, "what a plugin leaves behind is found and killed")
    says = "there is no /proc/PID/task/PID/children: what a plugin leaves behind may live on"
    return Check("/proc", WARNING, says, "mount /proc; use a kernel with CONFIG_PROC_CHILDREN")


def _landlock() -> Check:
    if version := landlock.abi():
        return Check("Landlock", OK, f"ABI {version}: restricts a confined plugin's files")
    remedy = "use Linux 6.12 or newer with landlock in the kernel's lsm= list"
    return Check("Landlock", MISSING, "not in this kernel: needed by confined", remedy)


def _seccomp() -> Check:
    if "\nSeccomp:" in Path("/proc/self/status").read_text(encoding="ascii", errors="replace"):
        return Check("seccomp", OK, "system calls can be filtered")
    remedy = "use a kernel with CONFIG_SECCOMP_FILTER"
    says = "not in this kernel: needed by confined and isolated"
    return Check("seccomp", MISSING, says, remedy)


def _libseccomp() -> Check:
    try:
        seccomp.program()
    except seccomp.SeccompError as exc:
        says = "cannot make the filter: needed by confined and isolated"
        return Check("libseccomp", MISSING, says, str(exc))
    return Check("libseccomp", OK, "makes the filter for confined and isolated")


def _bubblewrap() -> Check:
    try:
        path = bubblewrap.usable()
    except bubblewrap.BubblewrapError as exc:
        return Check("bubblewrap", MISSING, "needed by isolated, and does not work", str(exc))
    return Check("bubblewrap", OK, f"{path} made every namespace and ran a program in them")


def _user_namespaces() -> Check:
    code = f"import ctypes,sys; sys.exit(ctypes.CDLL(None).unshare({_CLONE_NEWUSER}) != 0)"
    try:
        argv = [sys.executable, "-I", "-S", "-c", code]
        made = subprocess.run(argv, timeout=_PATIENCE, capture_output=True, check=False)
    except (OSError, subprocess.TimeoutExpired):
        made = None
    if made is not None and made.returncode == 0:
        return Check("user namespaces", OK, "a process could make one")
    remedy = (
        "allow them (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
        "kernel.apparmor_restrict_unprivileged_userns; in a container, its seccomp profile)"
    )
    says = "a process could not make one: bubblewrap needs them unless it is root's"
    return Check("user namespaces", WARNING, says, remedy)


def _cgroup() -> Check:
    try:
        lacking = _undelegated()
    except (OSError, StopIteration) as exc:
        lacking = exc.strerror if isinstance(exc, OSError) and exc.strerror else "not mounted"
    found = f"not delegated ({lacking})" if lacking else "delegated"
    says = "a plugin's limits are rlimits, and at confined and isolated it is one process"
    return Check("cgroup v2", OK, f"{found}; not used: {says}")


def _undelegated() -> str:
    """What keeps a child group of our own from limiting memory and pids; "" for nothing."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    mount = next(line.split()[4] for line in lines if " - cgroup2 " in line)
    lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    own = next(line[3:] for line in lines if line.startswith("0::"))
    group = Path(mount + own) / f"agent-hooks-doctor-{os.getpid()}"
    group.mkdir()
    try:
        given = set((group / "cgroup.controllers").read_text(encoding="ascii").split())
    finally:
        group.rmdir()
    lacking = sorted({"memory", "pids"} - given)
    return f"no controller {', '.join(lacking)}" if lacking else ""


def _socket_path() -> Check:
    folder = tempfile.gettempdir()
    length = len(os.fsencode(folder)) + len(_LONGEST_LAUNCH)
    if length <= MAX_SOCKET_PATH:
        says = f"sockets of up to {length} bytes, of {MAX_SOCKET_PATH} that there may be"
        return Check("socket path", OK, says)
    says = (
        f"TMPDIR makes sockets' paths {length} bytes long, of {MAX_SOCKET_PATH} that there may be"
    )
    return Check("socket path", MISSING, says, "set TMPDIR to a shorter folder", required=True)


def _executable() -> Check:
    if os.statvfs(tempfile.gettempdir()).f_flag & os.ST_NOEXEC:
        says = "TMPDIR is mounted noexec: a pinned plugin that is a binary cannot run"
        return Check("TMPDIR", WARNING, says, "set TMPDIR to a folder that is not")
    return Check("TMPDIR", OK, "pinned programs can run from it")


def _open_files() -> Check:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = Limits().open_files
    if hard not in (resource.RLIM_INFINITY,) and hard < wanted and not _may_raise():
        says = f"the hard limit is {hard}, and a plugin's default is {wanted}: it cannot be set"
        remedy = "raise it (ulimit -Hn, LimitNOFILE=), or lower [limits] open_files in manifests"
        return Check("open files", MISSING, says, remedy, required=True)
    if soft != resource.RLIM_INFINITY and soft < _PLENTY_OF_FILES:
        says = f"the host may open {soft} files; each plugin takes some 10 and a stream each"
        return Check("open files", WARNING, says, f"ulimit -n {_PLENTY_OF_FILES} or more")
    return Check("open files", OK, f"the host may open {soft}")


def _may_raise() -> bool:
    """Whether this process may raise a hard limit (CAP_SYS_RESOURCE)."""
    for line in (
        Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    ):
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1)
    return False
