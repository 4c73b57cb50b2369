"""Real plugins, real hosts, and what must be left of them: nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_hooks.core.builder import AgentContextBuilder
from agent_hooks.core.profile import CompositionConfig
from agent_hooks.core.record import InterceptionRecord
from agent_hooks.core.verdict import ALLOW
from agent_hooks.host import InterceptionEmitter, SyncInterceptionEmitter
from agent_hooks.supervisor import Manifest, Settings, Supervisor

HERE = Path(__file__).parent
BAD = HERE / "plugins" / "bad.py"
GOOD = HERE / "plugins" / "good.py"
HOSTILE = HERE / "plugins" / "hostile.py"

SLACK = 1.5
"""Seconds over a timeout that a slow machine may need; the promise is 0.25."""

QUICK = Settings(
    health_timeout=2,
    backoff_first=0.02,
    backoff_max=0.1,
    quarantine_restarts=1000,
    circuit_timeouts=1000,
    shutdown_grace=0.5,
    term_grace=0.3,
)
"""A short life, but patient with a slow start."""

EMITTERS = (InterceptionEmitter, SyncInterceptionEmitter)
PROFILES = {
    "first_deny": CompositionConfig.first_deny(),
    "run_all": CompositionConfig.run_all(),
    "strictest": CompositionConfig.strictest(),
    "unanimous": CompositionConfig.unanimous(),
}


def bad(mode: str = "serve", *arguments: str, **changed: Any) -> Manifest:
    """A manifest of the program that misbehaves."""
    command = (sys.executable, str(BAD), mode, *arguments)
    return Manifest(**{"name": mode, "kind": mode, "command": command, **changed})


def good(**changed: Any) -> Manifest:
    """A manifest of the ten-line plugin."""
    command = (sys.executable, str(GOOD))
    changed = {"points": ("pre_tool_call",), **changed}
    return Manifest(**{"name": "good", "kind": "good", "command": command, **changed})


def hostile(level: str, **changed: Any) -> Manifest:
    """A manifest of the program that tries to break out."""
    changed = {"points": ("pre_tool_call",), "folder": HOSTILE.parent, **changed}
    changed = {"command": (sys.executable, str(HOSTILE)), **changed}
    return Manifest(name="hostile", kind="hostile", isolation=level, **changed)


def hostile_call(act: str, **arguments: Any) -> dict[str, Any]:
    """A tool call that says what the hostile plugin tries."""
    arguments = {key: str(value) for key, value in arguments.items()}
    return _builder.pre_tool_call(call_id="c-1", name="t", args={"act": act} | arguments)


_builder = AgentContextBuilder(agent_id="a-1", framework="hand-made", session_id="s-1")


def context(fault: str = "allow", **arguments: Any) -> dict[str, Any]:
    """A tool call that says what a bad plugin does with it."""
    arguments = {key: str(value) for key, value in arguments.items()}
    return _builder.pre_tool_call(
        call_id="c-1", name="t", args={"n": 0, "fault": fault} | arguments
    )


class Allower:
    """An interceptor in process that allows, and counts what it saw."""

    def __init__(self) -> None:
        self.seen = 0

    def intercept(self, _: dict[str, Any]) -> Any:
        self.seen += 1
        return ALLOW


@dataclass
class Judged:
    """One emission, timed."""

    record: InterceptionRecord
    seconds: float
    records: list[InterceptionRecord] = field(default_factory=list)

    @property
    def reason(self) -> str | None:
        return self.record.verdict.reason

    @property
    def decision(self) -> str:
        return self.record.verdict.decision.value


def judge(kind: Any, raw: Any, *interceptors: Any, timeout: float = 10, **rules: Any) -> Judged:
    """One emission over a fresh emitter of either kind; the last interceptor timed by `timeout`."""
    emitter = kind(timeout=timeout, **rules)
    for interceptor in interceptors:
        emitter.register(interceptor, timeout=timeout)
    begun = time.monotonic()
    record = emitter.emit_unchecked(raw)
    if asyncio.iscoroutine(record):
        record = asyncio.run(record)
    return Judged(record, time.monotonic() - begun, emitter.results)


def until(condition: Callable[[], Any], seconds: float = 20, what: str = "") -> Any:
    """Wait for a state, and give back what `condition` says of it."""
    deadline = time.monotonic() + seconds
    while True:
        if value := condition():
            return value
        assert time.monotonic() < deadline, what or f"not within {seconds} s"
        time.sleep(0.01)


def status(supervisor: Supervisor, binding: str = "p") -> dict[str, Any]:
    return next(item for item in supervisor.status() if item["id"] == binding)


def ready(supervisor: Supervisor, binding: str = "p") -> dict[str, Any]:
    """Wait until it is ready; its status."""

    def is_ready() -> Any:
        now = status(supervisor, binding)
        return now["state"] == "ready" and now

    return until(is_ready)


def stop(pid: int) -> None:
    """SIGSTOP, and wait until it has stopped."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: b") T" in Path(f"/proc/{pid}/stat").read_bytes())


# -- what is left --


def processes(mark: str) -> dict[int, str]:
    """Processes whose command line or environment mentions `mark`, this one excepted."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes()
            if mark.encode() in line or mark.encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = line.replace(b"\0", b" ").decode(errors="replace")
    return found


def descriptors() -> Counter[str]:
    """What this process has open, without what carries a number of its own.

    gRPC keeps a few event descriptors and makes them anew when it likes; an
    event loop that is left shows by its sockets, too.
    """
    found: Counter[str] = Counter()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            name = os.readlink(entry)
            if name not in ("anon_inode:[eventfd]", "anon_inode:[eventpoll]"):
                found[name if name.startswith("anon_inode") else name.split("[")[0]] += 1
    return found


def folders(under: Path) -> set[Path]:
    """Supervisors' folders."""
    return set(under.glob("agent-hooks-*"))


def threads() -> Counter[str]:
    """Threads that a supervisor must end: its own, and any that would hold up the exit."""
    return Counter(
        thread.name
        for thread in threading.enumerate()
        if not thread.daemon or thread.name == "agent-hooks-supervisor"
    )


@contextlib.contextmanager
def leaving_nothing(folder: Path) -> Iterator[None]:
    """Require that what is done inside leaves no process, folder, descriptor or thread.

    What was there before does not count, so that one failure does not make others.
    """
    alive, there = set(processes(str(folder))), folders(folder)
    opened, running = descriptors(), threads()
    yield
    for left in (
        lambda: {pid: line for pid, line in processes(str(folder)).items() if pid not in alive},
        lambda: folders(folder) - there,
        lambda: descriptors() - opened,
        lambda: threads() - running,
    ):
        with contextlib.suppress(AssertionError):
            until(lambda left=left: not left(), 5)
        assert not left(), f"left: {left()}"
