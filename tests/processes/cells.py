"""A hostile plugin at one isolation level, another plugin beside it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.supervisor import Binding, Supervisor
from agent_hooks.supervisor.isolation import available
from tests.processes.support import (
    EMITTERS,
    QUICK,
    context,
    good,
    hostile,
    hostile_call,
    judge,
    ready,
)

STRICT = ("confined", "isolated")


def needed(level: str) -> str:
    """The level, or a skip with what is missing; in CI, a failure."""
    missing = available()[level]
    if missing is not None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    return level


@dataclass
class Cell:
    """The hostile plugin at one level, another plugin beside it."""

    level: str
    supervisor: Supervisor

    def attempt(self, act: str, timeout: float = 20, **arguments: Any) -> str:
        """What the hostile plugin says of an attempt; or the reserved reason."""
        call = hostile_call(act, **arguments)
        judged = judge(EMITTERS[1], call, self.supervisor.interceptor("p"), timeout=timeout)
        assert judged.decision == "deny"
        assert len(judged.records) == 1
        return judged.record.verdict.message or judged.reason or ""

    def answers(self) -> bool:
        """Whether the host still gets verdicts from everybody."""
        both = (self.supervisor.interceptor("q"), self.supervisor.interceptor("p"))
        decisions = [
            judge(EMITTERS[1], call, each, timeout=20).record.verdict
            for call, each in zip((context(), hostile_call("environment")), both, strict=True)
        ]
        return decisions[0].decision.value == "allow" and decisions[1].reason == "hostile"


@contextlib.contextmanager
def cell(level: str, **changed: Any) -> Iterator[Cell]:
    bindings = [Binding("p", hostile(needed(level), **changed)), Binding("q", good())]
    with Supervisor(bindings, QUICK) as supervisor:
        yield Cell(level, supervisor)


def plugin_of(supervisor: Supervisor, temporary: Path, binding: str = "p") -> int:
    """The pid that listens: at `isolated` it is not bubblewrap's, which was launched."""
    launched = ready(supervisor, binding)["pid"]
    pid = launched
    while (inner := Path(f"/proc/{pid}/task/{pid}/children").read_text().split()) and (
        "bwrap" in Path(f"/proc/{pid}/cmdline").read_text()
    ):
        pid = int(inner[0])
    return pid
