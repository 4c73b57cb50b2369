"""Where a vector's interceptors live: in the host's process, or each in its own."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_hooks.core.context import AgentContext
from agent_hooks.ctk.scripted import RecordingInterceptor, ScriptedInterceptor

Rules = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Staged:
    """The interceptors of one run.

    Attributes:
        interceptors: one per script, to register in this order.
        recorded: the contexts that the first of them has received so far.
    """

    interceptors: list[Any]
    recorded: Callable[[], list[AgentContext]]


Staging = Callable[[list[Rules]], AbstractAsyncContextManager[Staged]]
"""From rule lists to interceptors, for as long as the context manager is open."""


@asynccontextmanager
async def in_process(scripts: list[Rules]) -> AsyncIterator[Staged]:
    """Every interceptor is an object of this process."""
    interceptors: list[Any] = [ScriptedInterceptor(rules) for rules in scripts]
    recorded: list[AgentContext] = []
    if interceptors:
        interceptors[0] = RecordingInterceptor(interceptors[0], recorded)
    yield Staged(interceptors, lambda: list(recorded))


@asynccontextmanager
async def in_processes(scripts: list[Rules]) -> AsyncIterator[Staged]:
    """Every interceptor is a plugin process of its own, launched and supervised.

    What is recorded is what the first plugin read from the wire.
    """
    from agent_hooks.supervisor import Binding, Manifest, Supervisor

    manifest = Manifest(
        name="ctk-scripted",
        kind="ctk.scripted",
        command=(sys.executable, "-m", "agent_hooks.ctk.scripted_plugin"),
        timeout=30.0,  # no vector is about time, and a busy machine starts slowly
    )
    with tempfile.TemporaryDirectory(prefix="agent-hooks-ctk-") as folder:
        received = Path(folder, "received.ndjson")
        configs: list[dict[str, Any]] = [{"rules": rules} for rules in scripts]
        if configs:
            configs[0]["record_to"] = str(received)
        bindings = [
            Binding(f"script-{index}", manifest, config) for index, config in enumerate(configs)
        ]
        # Launching and ending wait for processes; another vector may run meanwhile.
        supervisor = await asyncio.to_thread(Supervisor(bindings).start)
        try:
            yield Staged(
                [supervisor.interceptor(binding.id) for binding in bindings],
                lambda: _read(received),
            )
        finally:
            await asyncio.to_thread(supervisor.close)


def _read(received: Path) -> list[AgentContext]:
    if not received.exists():
        return []
    return [json.loads(line) for line in received.read_text(encoding="utf-8").splitlines()]
