"""The demonstration: two real plugins, four runs, each kind of verdict."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from agent_hooks.cli.agent import Run, ScriptedAgent, Step, load_runs
from agent_hooks.cli.hostfile import load_host_file, running
from agent_hooks.core.record import InterceptionRecord
from agent_hooks.core.verdict import Decision
from agent_hooks.telemetry import console_tracing


def plugins_folder() -> Path:
    """The ready-made plugins: inside an installed package, beside a source tree."""
    package = Path(str(resources.files("agent_hooks")))
    installed = package / "_plugins"
    return installed if installed.is_dir() else package.parent / "plugins"


def demonstrate(out: Path, console: Console) -> None:
    """Run it; print what happened and where records and spans went."""
    out.mkdir(parents=True, exist_ok=True)
    data = Path(str(resources.files("agent_hooks.cli"))) / "demo_data"
    host = load_host_file(data / "host.toml", plugins=plugins_folder())
    records, spans = out / "records.ndjson", out / "spans.ndjson"
    with spans.open("a", encoding="utf-8") as stream:
        tracing = console_tracing(stream)
        console.print("Launching plugins, each in a process of its own …")
        with running(host, records, tracing) as emitter:
            pids = plugin_pids()
            console.print(f"  ready: {', '.join(b.id for b in host.bindings)} (pids {pids})\n")
            for run in load_runs(data / "runs.ndjson"):
                _play(emitter, run, console)
    left = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    console.print(f"records  {records}", soft_wrap=True)
    console.print(f"spans    {spans}", soft_wrap=True)
    console.print(f"plugin processes left behind: {len(left)}")


def plugin_pids() -> list[int]:
    """Processes of this user that a host of this process launched."""
    mark = b"AGENT_HOOKS_PLUGIN_ADDRESS="
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes() and _is_descendant(int(entry.name)):
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(found)


def _is_descendant(pid: int) -> bool:
    while pid > 1:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        pid = int(stat[stat.rindex(b")") + 2 :].split()[1])
        if pid == os.getpid():
            return True
    return False


def _play(emitter: Any, run: Run, console: Console) -> None:
    console.print(f"[bold]{escape(run.prompt)}[/bold]")

    def watch(record: InterceptionRecord, step: Step | None) -> None:
        if step is not None or _is_interesting(record):
            console.print(_line(record, step), soft_wrap=True)

    ScriptedAgent(emitter, run, watch).go()
    console.print()


def _is_interesting(record: InterceptionRecord) -> bool:
    return record.verdict.decision is not Decision.ALLOW or record.resolved_by is not None


def _line(record: InterceptionRecord, step: Step | None) -> str:
    what = f"{step.tool}({', '.join(step.args)})" if step else record.interception_point.value
    verdict = record.verdict
    colour, word = {
        Decision.ALLOW: ("green", "allowed"),
        Decision.TRANSFORM: ("yellow", "rewritten"),
        Decision.DENY: ("red", "denied"),
    }[verdict.decision]
    by = next((v for v in record.verdicts if v.index == record.decided_by), None)
    notes = []
    if record.resolved_by is not None:
        word = "approved" if record.resolved_by == "approval" else "rejected"
        notes.append(f"escalated by {by.name}: {by.reason}" if by else "escalated")
    elif by is not None:
        notes.append(f"{by.name}: {verdict.reason}" if verdict.reason else str(by.name))
    if verdict.message:
        notes.append(verdict.message)
    if verdict.transform is not None:
        notes.append(f"at {verdict.transform.path}")
    head = f"  [{colour}]{word:<10}[/{colour}] {escape(what):<42} "
    return (head + escape("; ".join(notes))).rstrip()
