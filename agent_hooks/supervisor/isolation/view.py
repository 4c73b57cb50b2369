"""What a confined or isolated plugin sees of the file system."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

RUNTIME = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives")
RUNTIME_FILES = ("/etc/ld.so.cache", "/etc/localtime")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PACKAGE = Path(__file__).parents[2]
"""agent_hooks itself, which a plugin in Python imports."""


class ViewError(RuntimeError):
    """A folder that a plugin cannot or must not see; the text says which and what to do."""


@dataclass(frozen=True, slots=True)
class View:
    """The paths of one launch, beside the system's own (`RUNTIME`, `DEVICES`).

    Attributes:
        home: the launch's own folder: the socket is made there, `work` and
            `tmp` are written.
        run: read and executed: the program, its interpreter, its folder.
        listed: only the names in it are read.
    """

    home: Path
    run: tuple[Path, ...]
    listed: tuple[Path, ...] = ()


def view(command: Sequence[str], path: str, home: Path, folders: Iterable[Path]) -> View:
    """What the program of `command` needs in order to run, and the folders it is given.

    Args:
        path: PATH, for a command without a slash.
        folders: the plugin's own, and what its manifest says that it reads.

    Raises:
        ViewError: a folder is not there, or holds the supervisor's own, where
            other plugins' sockets are.
    """
    run = list(folders)
    for folder in run:
        if not folder.exists():
            raise ViewError(f"{folder}: no such file or folder: correct [plugin] reads")
        if home.resolve().parent.is_relative_to(folder.resolve()):
            raise ViewError(
                f"{folder}: the plugin may read it, but the supervisor's own folder is in it: "
                "give the plugin a folder of its own"
            )
    listed: list[Path] = []
    program = shutil.which(command[0], path=path)
    if program is not None:
        run.append(Path(program).absolute())
    if command[0] == sys.executable:
        run += [Path(sys.prefix), Path(sys.base_prefix), _PACKAGE]
        run += Path("/etc").glob("python3*")  # Debian's site customisation
        listed.append(_PACKAGE.parent)  # an import lists the folder that it looks in
    return View(home, tuple(_outermost(run)), tuple(listed))


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """The paths and what they lead to, without those below another or below the system's."""
    kept = [Path(name) for path in RUNTIME for name in (path, os.path.realpath(path))]
    system = len(kept)
    both = {name for path in paths for name in (path, path.resolve())}
    for path in sorted(both, key=lambda path: (len(path.parts), path)):
        if not any(path.is_relative_to(above) for above in kept):
            kept.append(path)
    return kept[system:]
