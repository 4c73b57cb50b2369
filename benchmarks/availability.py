"""How many emissions are denied because a plugin is killed while idle, or upgraded under load.

    python benchmarks/availability.py [--kills 1000] [--upgrades 100]

The goal is none of either. The figures are the last line, as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # connections of killed plugins break

from agent_hooks import (
    AgentContextBuilder,
    Binding,
    InterceptionEmitter,
    InterceptionRecord,
    Supervisor,
    SyncInterceptionEmitter,
)
from agent_hooks.supervisor import Manifest, Settings

HERE = Path(__file__).parent
PLUGINS = {
    "stream": (sys.executable, str(HERE / "plugins.py"), "allow"),
    "unary": (sys.executable, str(HERE.parent / "tests/processes/plugins/bad.py")),
}
"""How the plugin is called → its program."""
# Each kill is to be the first in a long while: no back-off, no quarantine.
SETTINGS = Settings(backoff_first=0, quarantine_restarts=1_000_000)
THREADS, TASKS = 3, 3
CONTEXTS = AgentContextBuilder(agent_id="a", framework="benchmark", session_id="s")


def context() -> dict[str, Any]:
    """A small tool call."""
    return CONTEXTS.pre_tool_call(call_id="c", name="t", args={"n": 1})


def why(record: InterceptionRecord) -> str:
    """Under what an emission is counted."""
    return record.verdict.reason or record.verdict.decision.value


def bindings() -> list[Binding]:
    """One of each; the default timeout of 5 s."""
    return [Binding(name, Manifest(name, name, command)) for name, command in PLUGINS.items()]


def kills(count: int) -> dict[str, Any]:
    """Kill while nothing is in flight, and emit at once or up to 4 ms later."""
    outcomes, waited = Counter[str](), []
    with Supervisor(bindings(), SETTINGS) as supervisor:
        emitting = [_emitting(supervisor, name) for name in PLUGINS]
        for number in range(count):
            index = number % len(PLUGINS)
            os.kill(_pid(supervisor, index), signal.SIGKILL)
            time.sleep(number % 9 * 0.0005)
            began = time.monotonic()
            outcomes[why(emitting[index](number % 4 < 2))] += 1
            waited.append(time.monotonic() - began)
    return {"kills": count, **_counted(outcomes), "waited_ms": _quantiles(waited)}


def _emitting(supervisor: Supervisor, name: str) -> Callable[[bool], InterceptionRecord]:
    """Emits once, with the emitter of either kind."""
    blocking, waiting = SyncInterceptionEmitter(), InterceptionEmitter()
    for emitter in (blocking, waiting):
        emitter.register(supervisor.interceptor(name), name)

    def emit(is_async: bool) -> InterceptionRecord:
        if is_async:
            return asyncio.run(waiting.emit_unchecked(context()))
        return blocking.emit_unchecked(context())

    return emit


def upgrades(count: int) -> dict[str, Any]:
    """Upgrade again and again while threads and tasks emit without a pause."""
    outcomes, took = Counter[str](), []
    going = threading.Event()
    going.set()
    with Supervisor(bindings(), SETTINGS) as supervisor:
        callers = [
            threading.Thread(target=work, args=(supervisor, going, outcomes))
            for work in (*[_emit_on] * THREADS, _run_tasks)
        ]
        for caller in callers:
            caller.start()
        for number in range(count):
            began = time.monotonic()
            supervisor.upgrade(list(PLUGINS)[number % len(PLUGINS)])
            took.append(time.monotonic() - began)
        going.clear()
        for caller in callers:
            caller.join()
    return {
        "upgrades": count,
        "emissions": outcomes.total(),
        **_counted(outcomes),
        "took_ms": _quantiles(took),
    }


def _both(emitter: Any, supervisor: Supervisor) -> Any:
    for name in PLUGINS:
        emitter.register(supervisor.interceptor(name), name)
    return emitter


def _emit_on(supervisor: Supervisor, going: threading.Event, outcomes: Counter[str]) -> None:
    emitter = _both(SyncInterceptionEmitter(), supervisor)
    seen = Counter[str]()
    while going.is_set():
        seen[why(emitter.emit_unchecked(context()))] += 1
        time.sleep(0.002)
    outcomes.update(seen)


def _run_tasks(supervisor: Supervisor, going: threading.Event, outcomes: Counter[str]) -> None:
    emitter = _both(InterceptionEmitter(), supervisor)

    async def task() -> None:
        while going.is_set():
            outcomes[why(await emitter.emit_unchecked(context()))] += 1
            await asyncio.sleep(0.002)

    async def tasks() -> None:
        await asyncio.gather(*(task() for _ in range(TASKS)))

    asyncio.run(tasks())


def _pid(supervisor: Supervisor, index: int) -> int:
    while (status := supervisor.status()[index])["state"] != "ready":
        time.sleep(0.005)
    return int(status["pid"])


def _counted(outcomes: Counter[str]) -> dict[str, Any]:
    """`denied` counts what no plugin said: all of them allow."""
    return {"denied": outcomes.total() - outcomes["allow"], "outcomes": dict(outcomes)}


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    found = {
        f"p{share}": ordered[max(math.ceil(share / 100 * len(ordered)) - 1, 0)]
        for share in (50, 95)
    }
    return {name: round(value * 1000) for name, value in (found | {"max": ordered[-1]}).items()}


def main() -> int:
    """Run, report; 1 where an emission was denied."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000, help="at idle")
    parser.add_argument("--upgrades", type=int, default=100, help="under load")
    options = parser.parse_args()
    found = {"idle": kills(options.kills), "load": upgrades(options.upgrades)}
    print(json.dumps(found))
    return 1 if found["idle"]["denied"] or found["load"]["denied"] else 0


if __name__ == "__main__":
    sys.exit(main())
