"""Manifests: what a plugin folder says of itself (plugin.toml)."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_hooks.core.grants import EVERYTHING, Grants, GrantsError, parse_grants
from agent_hooks.core.points import POINTS
from agent_hooks.supervisor.integrity import MANIFEST, MAX_MANIFEST, Folder, IntegrityError
from agent_hooks.supervisor.isolation import LEVELS


class ManifestError(ValueError):
    """A manifest that is refused; the text names the file, the key and the remedy."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of the process.

    Attributes:
        address_space_mb: RLIMIT_AS, in MiB.
        open_files: RLIMIT_NOFILE.
        disk_mb: what the launch's own folder may hold, and RLIMIT_FSIZE, in MiB.
    """

    address_space_mb: int = 1024
    open_files: int = 256
    disk_mb: int = 256


@dataclass(frozen=True, slots=True)
class Manifest:
    """One plugin folder.

    Attributes:
        name: for logs, records and people.
        kind: what a binding names it by.
        command: argv, ready to execute.
        points: where it may be bound.
        timeout: seconds, where a binding sets none.
        isolation: the level the process runs at, one of `isolation.LEVELS`.
        reads: absolute paths that it may read beside its folder and its runtime,
            at the levels that restrict that.
        env: added to the allow-listed environment.
        files: digest, `sha256:` and 64 hexadecimal digits, by path relative to
            the folder. Where there are any, they alone are run, and only as pinned.
        folder: where it was read from; None where a program wrote it. Each
            launch checks the files there.
        grants: what an interceptor may see and return.
    """

    name: str
    kind: str
    command: tuple[str, ...]
    points: tuple[str, ...] = tuple(POINTS)
    timeout: float = 5.0
    isolation: str = "process"
    limits: Limits = field(default_factory=Limits)
    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    reads: tuple[Path, ...] = ()
    folder: Path | None = field(default=None, compare=False)
    grants: Grants = EVERYTHING

    def __post_init__(self) -> None:
        if self.files and self.folder is None:
            raise ValueError("files: are pinned, so that the folder they are in must be given")


def load_manifests(folder: Path) -> dict[str, Manifest]:
    """Every `<folder>/<name>/plugin.toml`, by kind.

    Raises:
        ManifestError: no folder, a bad manifest, or a kind that occurs twice.
    """
    if not folder.is_dir():
        raise ManifestError(f"{folder}: no such folder of plugins")
    manifests: dict[str, Manifest] = {}
    for path in sorted(folder.glob(f"*/{MANIFEST}")):
        manifest = load_manifest(path)
        if manifest.kind in manifests:
            raise ManifestError(f"{path}: [plugin] kind: another plugin of the folder has it too")
        manifests[manifest.kind] = manifest
    return manifests


def load_manifest(path: Path) -> Manifest:
    """Read one plugin.toml.

    Raises:
        ManifestError: as `parse_manifest`; or it, its folder or, where none are
            pinned, a file there could have been changed by somebody else.
    """
    try:
        with Folder(path.parent) as folder:
            manifest = parse_manifest(path, folder.path, folder.read(path.name, MAX_MANIFEST))
            if not manifest.files:
                folder.check()
    except IntegrityError as exc:
        raise ManifestError(str(exc)) from None
    return manifest


def parse_manifest(path: Path, folder: Path, data: bytes) -> Manifest:
    """The manifest in the bytes of a plugin.toml.

    Args:
        path: named in refusals.
        folder: absolute; what `./` in the command stands for.

    Raises:
        ManifestError: not TOML in UTF-8, or a key that is unknown, missing or
            has a wrong value.
    """
    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as exc:
        detail = f" ({exc})" if isinstance(exc, tomllib.TOMLDecodeError) else ""
        raise ManifestError(f"{path}: is not TOML in UTF-8{detail}") from None
    _known(path, "", document, ("plugin", "limits", "env", "files", "grants"))
    plugin = _table(path, document, "plugin")
    limits = _table(path, document, "limits")
    env = _table(path, document, "env")
    files = _table(path, document, "files")
    _known(path, "[plugin] ", plugin, _PLUGIN)
    _known(path, "[limits] ", limits, _LIMITS)
    read = {key: _read(path, "[plugin] ", plugin, key, *rule) for key, rule in _PLUGIN.items()}
    for key, value in env.items():
        if not isinstance(value, str):
            raise ManifestError(f"{path}: [env] {key}: expected a string")
    for name, digest in files.items():
        _check_pin(path, name, digest)
    return Manifest(
        name=read["name"],
        kind=read["kind"],
        command=_command(path, folder, read["command"]),
        points=tuple(read["points"]),
        timeout=read["timeout_ms"] / 1000,
        isolation=read["isolation"],
        reads=tuple(Path(path) for path in read["reads"]),
        limits=Limits(
            **{key: _read(path, "[limits] ", limits, key, *rule) for key, rule in _LIMITS.items()}
        ),
        env=dict(env),
        files=dict(files),
        folder=folder,
        grants=_grants(path, _table(path, document, "grants")),
    )


def _grants(path: Path, table: dict[str, Any]) -> Grants:
    try:
        return parse_grants(table)
    except GrantsError as refusal:
        raise ManifestError(f"{path}: [grants] {refusal}") from None


_Rule = tuple[Callable[[Any], bool], str, Any]
_REQUIRED = object()


def _name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 64 and value.isprintable()


def _strings(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(x, str) and x for x in value)


def _count(value: Any) -> bool:
    return type(value) is int and value > 0


_MAX_TIMEOUT_MS = 86_400_000

_PLUGIN: dict[str, _Rule] = {
    "name": (_name, "expected a name of at most 64 characters", _REQUIRED),
    "kind": (_name, "expected a kind of at most 64 characters", _REQUIRED),
    "command": (_strings, "expected an array of strings", _REQUIRED),
    "points": (
        lambda value: _strings(value) and set(value) <= set(POINTS),
        f"expected an array of {', '.join(POINTS)}",
        list(POINTS),
    ),
    "timeout_ms": (
        lambda value: _count(value) and value <= _MAX_TIMEOUT_MS,
        f"expected a whole number of milliseconds > 0, at most {_MAX_TIMEOUT_MS}",
        5000,
    ),
    "isolation": (
        lambda value: value in LEVELS,
        f"expected one of {', '.join(LEVELS)}; a weaker level is never put in its place",
        "process",
    ),
    "reads": (
        lambda value: _strings(value) and all(path[0] == "/" for path in value),
        "expected an array of absolute paths",
        [],
    ),
}
_LIMITS: dict[str, _Rule] = {
    "address_space_mb": (_count, "expected a whole number of MiB > 0", 1024),
    "open_files": (_count, "expected a whole number > 0", 256),
    "disk_mb": (_count, "expected a whole number of MiB > 0", 256),
}


def _known(path: Path, where: str, table: dict[str, Any], names: Any) -> None:
    for key in table:
        if key not in names:
            raise ManifestError(f"{path}: {where}{key}: unknown; known are {', '.join(names)}")


def _table(path: Path, document: dict[str, Any], name: str) -> dict[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise ManifestError(f"{path}: [{name}]: expected a table")
    return table


def _read(
    path: Path,
    where: str,
    table: dict[str, Any],
    key: str,
    check: Callable[[Any], bool],
    expected: str,
    default: Any,
) -> Any:
    if key not in table:
        if default is _REQUIRED:
            raise ManifestError(f"{path}: {where}{key}: missing; {expected}")
        return default
    if not check(table[key]):
        raise ManifestError(f"{path}: {where}{key}: {expected}")
    return table[key]


def _check_pin(path: Path, name: str, digest: Any) -> None:
    if os.path.normpath(name) != name or name.startswith(("/", "../")) or name in _NO_PIN:
        raise ManifestError(
            f"{path}: [files] {name!r}: expected a file's path from the folder, such as lib/a.py"
        )
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ManifestError(
            f"{path}: [files] {name!r}: expected sha256: and 64 hexadecimal digits, "
            "as `agent-hooks plugins pin` writes them"
        )


_NO_PIN = (".", "..", MANIFEST)
_DIGEST = re.compile("sha256:[0-9a-f]{64}")


def _command(path: Path, folder: Path, command: list[str]) -> tuple[str, ...]:
    """`{python}` is this interpreter; `./…` is a file of the plugin's folder."""
    for word in command:
        if word[:2] == "./" and os.path.normpath(word).split("/")[0] == "..":
            raise ManifestError(
                f"{path}: [plugin] command: ./ leads out of the folder: put the file itself there"
            )
    return tuple(
        sys.executable
        if word == "{python}"
        else str(folder / word[2:])
        if word[:2] == "./"
        else word
        for word in command
    )
