"""agent-hooks plugins: those of a folder, and those of a running host."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from agent_hooks.cli.exits import FINDING, OK, USAGE, Output, exits
from agent_hooks.core.points import POINTS
from agent_hooks.supervisor import Manifest, load_manifests
from agent_hooks.supervisor.control import ControlError, ask, hosts

app = typer.Typer(
    no_args_is_help=True,
    help="Plugins of a folder (list, info, pin), and of a running host of this user "
    "(status, ping, logs, reset, reload).",
)

_Folder = Annotated[Path, typer.Argument(help="Folder with a folder per plugin.", file_okay=False)]
_Id = Annotated[str, typer.Argument(help="The binding's id.")]
_Host = Annotated[
    int | None, typer.Option("--host", help="Process id of the host, where several run.")
]
_Out = Annotated[Output, typer.Option("--output", "-o", help="text or json.")]
_RELOAD_PATIENCE = 120.0
_PATIENCE = 10.0


@app.command("list")
def list_command(folder: _Folder = Path("plugins"), output: _Out = Output.text) -> None:
    """The plugins of a folder."""
    with exits():
        manifests = load_manifests(folder)
    if output is Output.json:
        print(json.dumps([_described(manifest) for manifest in manifests.values()]))
        return
    _table(
        ("kind", "name", "isolation", "points"),
        [(m.kind, m.name, m.isolation, _points(m)) for m in manifests.values()],
    )


@app.command()
def info(
    kind: Annotated[str, typer.Argument(help="The plugin's kind.")],
    folder: _Folder = Path("plugins"),
    output: _Out = Output.text,
) -> None:
    """One plugin's manifest, as a host reads it."""
    with exits():
        manifests = load_manifests(folder)
    if kind not in manifests:
        _fail(f"{folder}: no plugin of that kind; there are {', '.join(manifests) or 'none'}")
    described = _described(manifests[kind])
    if output is Output.json:
        print(json.dumps(described))
        return
    width = max(map(len, described))
    for name, value in described.items():
        print(f"{name:<{width}}  {value if isinstance(value, str) else json.dumps(value)}")


def _points(manifest: Manifest) -> str:
    return "all" if set(manifest.points) == set(POINTS) else ", ".join(manifest.points)


def _described(manifest: Manifest) -> dict[str, Any]:
    """A manifest as plain data; of its environment the names only."""
    limits = manifest.limits
    return {
        "name": manifest.name,
        "kind": manifest.kind,
        "command": list(manifest.command),
        "points": list(manifest.points),
        "timeout_ms": round(manifest.timeout * 1000),
        "isolation": manifest.isolation,
        "limits": {name: getattr(limits, name) for name in type(limits).__dataclass_fields__},
        "env": sorted(manifest.env),
        "files_pinned": len(manifest.files),
    }


@app.command()
def status(host: _Host = None, output: _Out = Output.text) -> None:
    """State, calls, memory and processor time of a host's plugins.

    Exits with 1 where one is not ready.
    """
    pid, answer = _asked({"op": "status"}, host, _PATIENCE)
    plugins = answer["plugins"]
    if output is Output.json:
        print(json.dumps(answer))
    else:
        print(f"host {pid}")
        _table(tuple(_COLUMNS), [[cell(item) for cell in _COLUMNS.values()] for item in plugins])
        for item in plugins:
            if item["last_error"]:
                print(f"{item['id']}: last error: {item['last_error']}")
    raise typer.Exit(OK if all(item["state"] == "ready" for item in plugins) else FINDING)


_COLUMNS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "id": lambda item: item["id"],
    "kind": lambda item: item["kind"],
    "state": lambda item: item["state"],
    "pid": lambda item: item["pid"] or "",
    "restarts": lambda item: item["restarts"],
    "in flight": lambda item: item["in_flight"],
    "waiting": lambda item: item["waiting"],
    "answered": lambda item: item["answered"],
    "failed": lambda item: item["failed"] + item["refused"],
    "timed out": lambda item: item["timed_out"],
    "memory": lambda item: f"{item['resident_bytes'] / 2**20:.0f} MiB",
    "cpu": lambda item: f"{item['cpu_seconds']:.1f} s",
}


@app.command()
def ping(plugin: _Id, host: _Host = None) -> None:
    """Whether a plugin answers a health check now."""
    _, answer = _asked({"op": "ping", "id": plugin}, host, _PATIENCE)
    print(f"{plugin}: answered in {answer['seconds'] * 1000:.1f} ms (pid {answer['pid']})")


@app.command()
def logs(
    plugin: _Id,
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many at most.", min=1)] = 50,
    host: _Host = None,
) -> None:
    """The last lines that a plugin wrote, restarts included."""
    _, answer = _asked({"op": "logs", "id": plugin}, host, _PATIENCE)
    for line in answer["lines"][-lines:]:
        print(line)


@app.command()
def reset(plugin: _Id, host: _Host = None) -> None:
    """Let a quarantined plugin start again."""
    _asked({"op": "reset", "id": plugin}, host, _PATIENCE)
    print(f"{plugin}: reset; `agent-hooks plugins status` shows what becomes of it")


@app.command()
def reload(plugin: _Id, host: _Host = None) -> None:
    """Start a plugin anew beside itself, and switch to it once it is ready.

    No emission is lost; if the new process does not become ready, the present one stays.
    """
    _, answer = _asked({"op": "reload", "id": plugin}, host, _RELOAD_PATIENCE)
    print(f"{plugin}: process {answer['before']} was succeeded by {answer['pid']}")


def _asked(request: dict[str, Any], host: int | None, timeout: float) -> tuple[int, dict[str, Any]]:
    """The host that was asked, and its answer."""
    running = hosts()
    if host is None and len(running) != 1:
        _fail(
            f"several hosts run; choose one with --host: {', '.join(map(str, sorted(running)))}"
            if running
            else "no host of this user runs here (with the same TMPDIR)"
        )
    pid = host if host is not None else next(iter(running))
    if pid not in running:
        _fail(f"--host: no such host; there are {', '.join(map(str, sorted(running))) or 'none'}")
    try:
        return pid, ask(running[pid], request, timeout)
    except ControlError as error:
        print(f"agent-hooks: {error}", file=sys.stderr)
        raise typer.Exit(FINDING) from None


def _table(columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(str, row))
    # A file or pipe has no width: nothing is cut there.
    Console(highlight=False, width=None if sys.stdout.isatty() else 240).print(table)


def _fail(text: str) -> None:
    print(f"agent-hooks: {text}", file=sys.stderr)
    raise typer.Exit(USAGE)
