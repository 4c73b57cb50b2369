"""agent-hooks: the entry point and its commands."""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated

try:
    import typer
    from rich.console import Console
    from rich.progress import track
except ImportError:
    sys.stderr.write("agent-hooks: install agent-hooks-grpc[cli] for the command line\n")
    raise SystemExit(2) from None

from agent_hooks.cli import plugins as plugins_commands
from agent_hooks.cli.agent import Run, load_runs, replay
from agent_hooks.cli.demo import demonstrate
from agent_hooks.cli.doctor import doctor
from agent_hooks.cli.exits import FINDING, Output, exits
from agent_hooks.cli.hostfile import load_host_file, running
from agent_hooks.cli.pin import pin
from agent_hooks.cli.report import print_tables, summarise
from agent_hooks.telemetry import Tracing, console_tracing, otlp_tracing

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Controls for AI agents that run outside the agent. "
    "Exit codes: 0 fine, 1 a finding, 2 usage or bad configuration, "
    "3 a plugin could not be started.",
)


class Spans(str, Enum):
    """Where spans go."""

    none = "none"
    console = "console"
    otlp = "otlp"


app.add_typer(plugins_commands.app, name="plugins")
plugins_commands.app.command()(pin)
app.command()(doctor)


@app.callback()
def _global(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show plugin states and plugin output.")
    ] = False,
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        stream=sys.stderr,
        format="%(levelname)s %(name)s: %(message)s",
    )


@app.command()
def demo(
    folder: Annotated[
        Path | None, typer.Option("--out", help="Where records and spans go.", file_okay=False)
    ] = None,
) -> None:
    """Launch two plugins, replay a few runs, show each kind of verdict."""
    out = folder or Path(tempfile.mkdtemp(prefix="agent-hooks-demo-"))
    with exits():
        demonstrate(out, Console(highlight=False))


@app.command("replay")
def replay_command(
    runs: Annotated[Path, typer.Argument(help="Recorded runs, NDJSON.", dir_okay=False)],
    config: Annotated[Path, typer.Option("--config", help="Host file, TOML.", dir_okay=False)],
    profile: Annotated[
        str | None, typer.Option(help="Composition profile, in place of the file's.")
    ] = None,
    mode: Annotated[str | None, typer.Option(help="enforce or evaluate_only.")] = None,
    plugins: Annotated[Path | None, typer.Option(help="Folder of plugins.")] = None,
    records: Annotated[
        Path | None, typer.Option(help="File the records are appended to.", dir_okay=False)
    ] = None,
    spans: Annotated[Spans, typer.Option(help="Where spans go; console is stderr.")] = Spans.none,
    tool: Annotated[
        list[str] | None, typer.Option(help="Count injected calls to this tool only; repeatable.")
    ] = None,
    fail_on_deny: Annotated[bool, typer.Option(help="Exit with 1 if a run ended blocked.")] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="text or json.")] = Output.text,
) -> None:
    """Drive a scripted agent through recorded runs, with real plugin processes.

    In text form the last line is the summary as one JSON object.
    """
    with exits():
        host = load_host_file(config, plugins=plugins, profile=profile, mode=mode)
        loaded = load_runs(runs)
        target = records or Path(tempfile.mkdtemp(prefix="agent-hooks-")) / "records.ndjson"
        with running(host, target, _tracing(spans)) as emitter:
            played = list(_with_progress(replay(emitter, loaded), len(loaded)))
    summary = {**summarise(played, frozenset(tool or ())), "records": str(target)}
    if output is Output.text:
        print_tables(Console(), summary)
        print(f"records: {target}")
    print(json.dumps(summary))
    if fail_on_deny and summary["blocked_runs"]:
        raise typer.Exit(FINDING)


def _with_progress(played: Iterator[Run], total: int) -> Iterable[Run]:
    err = Console(stderr=True)
    hidden = not err.is_terminal
    return track(played, "replaying", total, console=err, transient=True, disable=hidden)


def _tracing(spans: Spans) -> Tracing | None:
    match spans:
        case Spans.none:
            return None
        case Spans.console:
            return console_tracing(sys.stderr)
        case Spans.otlp:
            return otlp_tracing()


def run() -> None:
    """The console script."""
    app()


if __name__ == "__main__":
    run()
