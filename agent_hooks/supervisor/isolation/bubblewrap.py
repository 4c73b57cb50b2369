"""bubblewrap: a program in namespaces of its own, with a view of its own (PROTOCOL Isolation)."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping

from agent_hooks.supervisor.isolation.view import DEVICES, RUNTIME, RUNTIME_FILES, View

_UNSHARED = [
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-uts",
    "--unshare-cgroup",
    "--hostname",
    "plugin",
    "--cap-drop",
    "ALL",
    "--die-with-parent",
]
"""No `--new-session`: the warden has made one, and it signals by its process group."""

_PATIENCE = 5.0


class BubblewrapError(RuntimeError):
    """bubblewrap cannot do it; the text says what is missing and how to get it."""


def arguments(view: View, environment: Mapping[str, str], tmpfs_bytes: int) -> bytes:
    """What bubblewrap reads by `--args`: how to isolate the command that it is given.

    Args:
        environment: the plugin's.
        tmpfs_bytes: what each of /tmp, TMPDIR and HOME holds at most; they are memory.
    """
    size = ["--size", str(tmpfs_bytes), "--tmpfs"]
    home = view.home
    words = [*_UNSHARED, *_system(), *size, "/tmp"]  # noqa: S108 - the plugin's own
    words += ["--bind", str(home), str(home), *size, str(home / "work"), *size, str(home / "tmp")]
    for path in view.run:  # after home, which may hold one of them
        words += ["--ro-bind", str(path), str(path)]
    words += ["--remount-ro", "/", "--chdir", str(home / "work"), "--clearenv"]
    for name, value in environment.items():
        words += ["--setenv", name, value]
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def _system() -> list[str]:
    # Read-only, for a host that is root: the kernel's settings are root's files, and a
    # process that is root outside may write them though it has no capability.
    words = ["--proc", "/proc", "--remount-ro", "/proc"]
    for path in RUNTIME:
        # Where /bin is a link to usr/bin, it has to be one inside, too.
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        else:
            words += ["--ro-bind-try", path, path]
    for path in RUNTIME_FILES:
        words += ["--ro-bind-try", path, path]
    for path in DEVICES:
        words += ["--dev-bind", path, path]
    return words


@functools.cache
def usable() -> str:
    """bubblewrap's path, once it has run a program just as it would run a plugin.

    Raises:
        BubblewrapError: it is missing, or the machine does not let it work.
    """
    found = shutil.which("bwrap")
    if found is None:
        raise BubblewrapError(
            "bubblewrap is missing: install it (Debian: apt-get install bubblewrap)"
        )
    command = [found, *_UNSHARED, *_system(), "--remount-ro", "/", "--", "/usr/bin/true"]
    try:
        tried = subprocess.run(command, capture_output=True, timeout=_PATIENCE, env={}, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise BubblewrapError(f"bubblewrap does not run ({type(exc).__name__})") from None
    if tried.returncode != 0:
        said = tried.stderr.decode(errors="replace").strip().splitlines() or ["no word"]
        raise BubblewrapError(
            f"bubblewrap cannot make the namespaces ({said[0]}): allow user namespaces "
            "(sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns)"
        )
    return found
