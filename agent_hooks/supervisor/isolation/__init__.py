"""Isolation levels: what a launch at each of them needs, or why there is none (PROTOCOL).

The host only prepares: a Landlock ruleset and a seccomp filter are descriptors,
bubblewrap is a command. The warden's child puts them on. A level that the
machine cannot give is refused; a weaker one is never put in its place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent_hooks.supervisor.isolation import bubblewrap, landlock, seccomp
from agent_hooks.supervisor.isolation.view import (
    DEVICES,
    RUNTIME,
    RUNTIME_FILES,
    View,
    ViewError,
    view,
)

LEVELS = ("process", "confined", "isolated")
"""From the weakest to the strongest."""


class IsolationError(RuntimeError):
    """A level that cannot be given; the text says what is missing and how to get it."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What the warden is handed for one launch.

    Attributes:
        level: one of LEVELS.
        command: argv to execute.
        environment: what it is executed with.
        descriptors: `confined`: ruleset and filter; `isolated`: filter and
            bubblewrap's arguments.
    """

    level: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    descriptors: tuple[int, ...] = ()


@contextlib.contextmanager
def confinement(
    level: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    home: Path,
    folders: Iterable[Path],
    disk_bytes: int,
) -> Iterator[Confinement]:
    """What a launch at `level` needs; its descriptors are open inside the `with` block.

    Args:
        command, environment: the plugin's own.
        home: the launch's own folder, with `work` and `tmp` in it.
        folders: what it may read and execute beside the runtime.
        disk_bytes: what it may write.

    Raises:
        IsolationError: this machine cannot give the level.
    """
    with contextlib.ExitStack() as opened:
        try:
            seen = view(command, environment.get("PATH", os.defpath), home, folders)
            made = _made(Confinement(level, tuple(command), environment), seen, disk_bytes, opened)
        except (ViewError, *_MISSING) as exc:
            raise _refused(level, exc) from None
        yield made


def available() -> dict[str, str | None]:
    """Each level, with None where this machine gives it, or else what is missing."""
    found: dict[str, str | None] = dict.fromkeys(LEVELS)
    for level in LEVELS:
        try:
            with contextlib.ExitStack() as opened:
                _made(Confinement(level, (), {}), View(Path("/nowhere"), ()), 1 << 20, opened)
        except _MISSING as exc:
            found[level] = str(exc)
    return found


_ADDRESS = "AGENT_HOOKS_PLUGIN_ADDRESS"
"""All that bubblewrap's own environment holds, to tell its processes by. What a
manifest sets, such as LD_PRELOAD, would act on it while it is not isolated yet."""

_MISSING = (landlock.LandlockError, seccomp.SeccompError, bubblewrap.BubblewrapError)


def _made(
    plain: Confinement, seen: View, disk_bytes: int, opened: contextlib.ExitStack
) -> Confinement:
    """The launch of a plain process, turned into one at its level."""
    if plain.level == "process":
        return plain
    if plain.level == "confined":
        ruleset = landlock.ruleset(_rules(seen))
        opened.callback(os.close, ruleset)
        return replace(plain, descriptors=(ruleset, _file(seccomp.program(), opened)))
    if plain.level == "isolated":
        arguments = bubblewrap.arguments(seen, plain.environment, disk_bytes)
        return Confinement(
            plain.level,
            (bubblewrap.usable(), "--", *plain.command),
            {name: value for name, value in plain.environment.items() if name == _ADDRESS},
            (_file(seccomp.program(), opened), _file(arguments, opened)),
        )
    raise IsolationError(f"isolation: expected one of {', '.join(LEVELS)}")


def _rules(seen: View) -> Iterator[tuple[Path, landlock.Access]]:
    for path in RUNTIME:
        yield Path(path), landlock.RUN
    for path in RUNTIME_FILES:
        yield Path(path), landlock.READ
    for path in DEVICES:
        yield Path(path), landlock.READ | landlock.Access.WRITE_FILE
    for folder in seen.run:
        yield folder, landlock.RUN
    for folder in seen.listed:
        yield folder, landlock.Access.READ_DIR
    yield seen.home, landlock.LISTEN
    yield seen.home / "work", landlock.WRITE
    yield seen.home / "tmp", landlock.WRITE


def _file(data: bytes, opened: contextlib.ExitStack) -> int:
    """A descriptor to read the data from."""
    fd = os.memfd_create("isolation")
    opened.callback(os.close, fd)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _refused(level: str, exc: Exception) -> IsolationError:
    return IsolationError(
        f"isolation level {level} cannot be given: {exc}. A weaker one is not put in its place"
    )
