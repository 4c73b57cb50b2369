"""agent-hooks plugins pin: the table that a launch is held to (PROTOCOL Isolation)."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from agent_hooks.cli.exits import USAGE
from agent_hooks.supervisor.integrity import MANIFEST, MAX_MANIFEST, Folder, IntegrityError
from agent_hooks.supervisor.manifest import ManifestError, parse_manifest


def pin(
    folder: Annotated[Path, typer.Argument(help="A plugin's folder.", file_okay=False)],
    write: Annotated[
        bool, typer.Option("--write", help="Put the table into plugin.toml, in place of the old.")
    ] = False,
) -> None:
    """Print the [files] table that pins every file of a plugin's folder.

    Left out are plugin.toml, caches and .git. Once a plugin is pinned, these
    files alone are run, and only as they are now.
    """
    try:
        with Folder(folder) as opened:
            pins = opened.pins()
            if write:
                _rewrite(folder / MANIFEST, opened.path, opened.read(MANIFEST, MAX_MANIFEST), pins)
    except (IntegrityError, ManifestError) as exc:
        print(f"agent-hooks: {exc}", file=sys.stderr)
        raise typer.Exit(USAGE) from None
    print(f"{folder / MANIFEST}: files pinned: {len(pins)}" if write else _table(pins).rstrip())


def _table(pins: Mapping[str, str]) -> str:
    """A manifest's `[files]` as TOML."""
    return "[files]\n" + "".join(f'{_quoted(name)} = "{pins[name]}"\n' for name in pins)


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


_TABLE = re.compile(r"^\[files\][ \t]*\n(?:[ \t]*\n|[\w\"'-][^\n]*\n)*", re.MULTILINE)
"""A `[files]` table up to the next comment or header."""


def _rewrite(path: Path, folder: Path, data: bytes, pins: Mapping[str, str]) -> None:
    """Put the table into a manifest; everything else in it stays as its author wrote it.

    Raises:
        ManifestError: it is none, or it is written in a way that this cannot edit.
    """
    parse_manifest(path, folder, data)
    before = data.decode()
    after = f"{_TABLE.sub('', before).rstrip()}\n\n{_table(pins)}"
    try:
        intact = tomllib.loads(after) == {**tomllib.loads(before), "files": pins}
    except ValueError:
        intact = False
    if not intact:
        raise ManifestError(
            f"{path}: [files]: is written in a way that this cannot edit: take it out first"
        )
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_text(after, encoding="utf-8")
        fresh.chmod(0o644)
        os.replace(fresh, path)
    except OSError as exc:
        raise ManifestError(f"{path}: cannot be written ({exc.strerror})") from None
