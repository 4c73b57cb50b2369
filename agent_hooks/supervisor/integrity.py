"""What a plugin's folder holds, and that it is what was pinned (PROTOCOL Isolation).

A path can come to name another file between two looks at it. So the folder is
opened once and everything is reached through that descriptor, and of a pinned
file the bytes that are hashed are the bytes that are run: they are copied to
the launch's own folder while they are read.

A folder that somebody else could have put in the place of the right one is
either his, and so refused, or one that root or the host's user made.
"""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

MANIFEST = "plugin.toml"
MAX_MANIFEST = 1 << 18
"""Bytes of a manifest."""
MAX_PINNED = 1 << 30
"""Bytes of all the pinned files of one plugin."""

_PREFIX = "sha256:"
_CHUNK = 1 << 20
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Not following a link, and not waiting for the other end of a FIFO."""
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
_NOWHERE = Path(os.devnull)
_NOT_PROGRAM = ("__pycache__", ".git")


class IntegrityError(ValueError):
    """A file or folder that must not be run; the text names it and the remedy."""


def prepare(
    command: Sequence[str], folder: Path, files: Mapping[str, str], into: Path
) -> tuple[str, ...]:
    """The command to launch, after the check that each launch begins with.

    Args:
        folder: the plugin's.
        files: digest by relative path, as in a manifest's `[files]`. Where there
            are any, they are copied to `into` and the command runs from there,
            with no other file of the folder beside them.
        into: a folder that is made; private to the launch.

    Raises:
        IntegrityError: a pinned file is missing or another; the command names a
            file that is not pinned though others are; somebody else could have
            changed a file; a link leads out of the folder.
    """
    with Folder(folder) as opened:
        if not files:
            opened.check()
            return tuple(command)
        copied = tuple(_moved(word, folder, files, into) for word in command)
        opened.copy(files, into)
    if Path(copied[0]).is_relative_to(into) and os.statvfs(into).f_flag & os.ST_NOEXEC:
        raise IntegrityError(f"{into}: is mounted noexec: set TMPDIR to a folder that is not")
    return copied


def _moved(word: str, folder: Path, files: Mapping[str, str], into: Path) -> str:
    """A word of the command, with a path below the folder turned into its copy's."""
    if word != str(folder) and not word.startswith(f"{folder}/"):
        return word
    name = os.path.relpath(os.path.normpath(word), folder)
    if name != "." and name not in files and not any(f.startswith(f"{name}/") for f in files):
        raise IntegrityError(
            f"{word}: the command names it, but [files] does not pin it: "
            f"run `agent-hooks plugins pin {folder} --write`"
        )
    return str(into / name)


class Folder:
    """A plugin's folder, held open; a context manager.

    Raises:
        IntegrityError: no folder, or one that somebody else can change.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as exc:
            raise _unreadable(path, exc) from None
        self.path = Path(os.readlink(self._base))
        try:
            _check_owner(path, os.fstat(self._fd))
        except IntegrityError:
            os.close(self._fd)
            raise

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._fd)

    @property
    def _base(self) -> str:
        return f"/proc/self/fd/{self._fd}"

    def read(self, name: str, limit: int) -> bytes:
        """A file of the folder; a link that stays inside is followed.

        Raises:
            IntegrityError: larger than `limit` bytes, or as `check`.
        """
        with open(self._open(self._inside(name)), "rb") as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise IntegrityError(f"{self.path / name}: is larger than {limit} bytes")
        return data

    def check(self) -> None:
        """Require everything below to be what nobody else can change.

        All of it, since a program may load what its command does not name.

        Raises:
            IntegrityError: a file or folder that group or others can write or
                that is neither root's nor the host's, or a link that leads out.
        """
        for name, info in self._tree():
            if stat.S_ISLNK(info.st_mode):
                self._inside(name)
            else:
                _check_owner(self.path / name, info)

    def copy(self, files: Mapping[str, str], into: Path) -> None:
        """Copy pinned files and hash what is copied.

        Raises:
            IntegrityError: one is missing, another, a link, or as `check`.
        """
        room = MAX_PINNED
        for name, pinned in sorted(files.items()):
            try:
                digest, size = self._copy(name, into / name, room)
            except OSError as exc:
                raise IntegrityError(
                    f"{self.path / name}: cannot be copied to {into} ({exc.strerror})"
                ) from None
            room -= size
            if digest != pinned:
                raise IntegrityError(
                    f"{self.path / name}: is not the file that [files] pins: put that one back, "
                    f"or review it and run `agent-hooks plugins pin {self.path} --write`"
                )

    def pins(self) -> dict[str, str]:
        """The table of every file below but the manifest, caches and version control.

        Raises:
            IntegrityError: something there is neither a folder nor a file, or as `check`.
        """
        found, room = {}, MAX_PINNED
        for name, info in self._tree(_NOT_PROGRAM):
            if name != MANIFEST and not stat.S_ISDIR(info.st_mode):
                if not name.isprintable():
                    raise IntegrityError(
                        f"{self.path}: {name!a}: a name that cannot be printed: rename it"
                    )
                found[name], size = self._copy(name, _NOWHERE, room)
                room -= size
        return dict(sorted(found.items()))

    def _copy(self, name: str, target: Path, room: int) -> tuple[str, int]:
        digest = hashlib.sha256()
        with open(self._open(name), "rb", buffering=0) as source:
            info = os.fstat(source.fileno())
            if info.st_size > room:
                raise IntegrityError(
                    f"{self.path / name}: the pinned files are larger than "
                    f"{MAX_PINNED >> 20} MiB: pin fewer"
                )
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            mode = 0o500 if info.st_mode & 0o100 else 0o400
            with open(os.open(target, _WRITE, mode), "wb") as copy:
                left = info.st_size  # not to the end: somebody may be writing on and on
                while chunk := source.read(min(_CHUNK, left)):
                    left -= len(chunk)
                    digest.update(chunk)
                    copy.write(chunk)
        return _PREFIX + digest.hexdigest(), info.st_size

    def _tree(self, skip: Sequence[str] = ()) -> Iterator[tuple[str, os.stat_result]]:
        """Relative names below the folder; links are not followed."""
        waiting = [""]
        while waiting:
            above = waiting.pop()
            try:
                with os.scandir(f"{self._base}/{above}") as entries:
                    found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
            except OSError as exc:
                raise _unreadable(self.path / above, exc) from None
            for name, info in found:
                if name not in skip:
                    yield above + name, info
                    if stat.S_ISDIR(info.st_mode):
                        waiting.append(f"{above}{name}/")

    def _inside(self, name: str) -> str:
        """The name of what `name` leads to, free of links."""
        real = os.path.realpath(f"{self._base}/{name}")
        inside = os.path.relpath(real, os.path.realpath(self._base))
        if inside.split("/")[0] == "..":
            raise IntegrityError(
                f"{self.path / name}: leads out of the plugin's folder: put the file itself there"
            )
        return inside

    def _open(self, name: str) -> int:
        """A descriptor of a regular file; no step on the way is a link."""
        *folders, last = name.split("/")
        path, at = self.path, os.dup(self._fd)
        try:
            for step in folders:
                path /= step
                at = _step(path, step, at, _READ | os.O_DIRECTORY)
                _check_owner(path, os.fstat(at))
            path /= last
            at = _step(path, last, at, _READ)
            info = os.fstat(at)
            if not stat.S_ISREG(info.st_mode):
                raise IntegrityError(f"{path}: cannot be read (no regular file): put one there")
            _check_owner(path, info)
        except IntegrityError:
            os.close(at)
            raise
        return at


def _step(path: Path, name: str, above: int, flags: int) -> int:
    """Open `name` below `above`, which is closed."""
    try:
        opened = os.open(name, flags, dir_fd=above)
    except (OSError, ValueError) as exc:
        raise _unreadable(path, exc) from None
    os.close(above)
    return opened


def _unreadable(path: Path, exc: OSError | ValueError) -> IntegrityError:
    if os.path.islink(path):
        return IntegrityError(f"{path}: is a symbolic link: put the file itself there")
    detail = exc.strerror if isinstance(exc, OSError) else type(exc).__name__
    return IntegrityError(f"{path}: cannot be read ({detail})")


def _check_owner(path: Path, info: os.stat_result) -> None:
    if info.st_uid not in (0, os.geteuid()):
        raise IntegrityError(
            f"{path}: belongs to another user: chown it to root or to the host's user"
        )
    others = stat.S_IWOTH if _is_private(info.st_gid) else stat.S_IWGRP | stat.S_IWOTH
    if info.st_mode & others:
        raise IntegrityError(f"{path}: group or others can write to it: chmod go-w it")


def _is_private(group: int) -> bool:
    """Whether it is the host's user's own group: with one each, umask 002 is usual."""
    try:
        user, named = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return named.gr_name == user.pw_name and set(named.gr_mem) <= {user.pw_name}
