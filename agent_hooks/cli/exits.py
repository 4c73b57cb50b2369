"""What every command shares: its exit codes, and its forms of output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

import typer

from agent_hooks.cli.agent import RunsError
from agent_hooks.cli.hostfile import HostFileError
from agent_hooks.supervisor import ManifestError, PluginStartError

OK, FINDING, USAGE, NO_PLUGIN = 0, 1, 2, 3


class Output(str, Enum):
    """How results are printed."""

    text = "text"
    json = "json"


@contextmanager
def exits() -> Iterator[None]:
    """Known failures as one message and an exit code."""
    try:
        yield
    except (HostFileError, ManifestError, RunsError) as exc:
        print(f"agent-hooks: {exc}", file=sys.stderr)
        raise typer.Exit(USAGE) from None
    except PluginStartError as exc:
        print(f"agent-hooks: {exc}", file=sys.stderr)
        raise typer.Exit(USAGE if exc.is_configuration else NO_PLUGIN) from None
