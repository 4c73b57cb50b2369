"""Manifests: what a plugin folder says of itself (plugin.toml)."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_hooks.core.points import POINTS

FILE = "plugin.toml"
LEVELS = ("process",)
"""Isolation levels that this version can give."""


class ManifestError(ValueError):
    """A manifest that is refused; the text names the file, the key and the remedy."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of the process.

    Attributes:
        address_space_mb: RLIMIT_AS, in MiB.
        open_files: RLIMIT_NOFILE.
    """

    address_space_mb: int = 1024
    open_files: int = 256


@dataclass(frozen=True, slots=True)
class Manifest:
    """One plugin folder.

    Attributes:
        name: for logs, records and people.
        kind: what a binding names it by.
        command: argv, ready to execute.
        points: where it may be bound.
        timeout: seconds, where a binding sets none.
        isolation: the level the process runs at.
        env: added to the allow-listed environment.
    """

    name: str
    kind: str
    command: tuple[str, ...]
    points: tuple[str, ...] = tuple(POINTS)
    timeout: float = 5.0
    isolation: str = "process"
    limits: Limits = field(default_factory=Limits)
    env: dict[str, str] = field(default_factory=dict)


def load_manifests(folder: Path) -> dict[str, Manifest]:
    """Every `<folder>/<name>/plugin.toml`, by kind.

    Raises:
        ManifestError: no folder, a bad manifest, or a kind that occurs twice.
    """
    if not folder.is_dir():
        raise ManifestError(f"{folder}: no such folder of plugins")
    manifests: dict[str, Manifest] = {}
    for path in sorted(folder.glob(f"*/{FILE}")):
        manifest = load_manifest(path)
        if manifest.kind in manifests:
            raise ManifestError(f"{path}: [plugin] kind: another plugin of the folder has it too")
        manifests[manifest.kind] = manifest
    return manifests


def load_manifest(path: Path) -> Manifest:
    """Read one plugin.toml.

    Raises:
        ManifestError: unreadable, not TOML, or a key that is unknown, missing
            or has a wrong value.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise ManifestError(f"{path}: cannot be read ({exc.strerror})") from None
    except (ValueError, RecursionError) as exc:
        detail = f" ({exc})" if isinstance(exc, tomllib.TOMLDecodeError) else ""
        raise ManifestError(f"{path}: is not TOML in UTF-8{detail}") from None
    _known(path, "", document, ("plugin", "limits", "env"))
    plugin = _table(path, document, "plugin")
    limits = _table(path, document, "limits")
    env = _table(path, document, "env")
    _known(path, "[plugin] ", plugin, _PLUGIN)
    _known(path, "[limits] ", limits, _LIMITS)
    read = {key: _read(path, "[plugin] ", plugin, key, *rule) for key, rule in _PLUGIN.items()}
    for key, value in env.items():
        if not isinstance(value, str):
            raise ManifestError(f"{path}: [env] {key}: expected a string")
    return Manifest(
        name=read["name"],
        kind=read["kind"],
        command=_command(path, read["command"]),
        points=tuple(read["points"]),
        timeout=read["timeout_ms"] / 1000,
        isolation=read["isolation"],
        limits=Limits(
            **{key: _read(path, "[limits] ", limits, key, *rule) for key, rule in _LIMITS.items()}
        ),
        env=dict(env),
    )


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
}
_LIMITS: dict[str, _Rule] = {
    "address_space_mb": (_count, "expected a whole number of MiB > 0", 1024),
    "open_files": (_count, "expected a whole number > 0", 256),
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


def _command(path: Path, command: list[str]) -> tuple[str, ...]:
    """`{python}` is this interpreter; `./…` is a file of the plugin's folder."""
    folder = path.parent.resolve()
    return tuple(
        sys.executable
        if word == "{python}"
        else str(folder / word[2:])
        if word[:2] == "./"
        else word
        for word in command
    )
