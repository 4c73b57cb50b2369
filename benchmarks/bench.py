"""Figures of README.md in this folder, each as a ratio where one is meaningful.

    python benchmarks/bench.py [--quick]

The yardstick is a bare grpcio unary echo of the same bytes between two Python
processes, measured in turn with what it is compared to, since machines drift.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grpc

from agent_hooks import (
    ALLOW,
    AgentContextBuilder,
    Binding,
    CompositionConfig,
    EnforcementMode,
    InterceptionEmitter,
    Supervisor,
    SyncInterceptionEmitter,
)
from agent_hooks.core.context import Bounds, check_context
from agent_hooks.supervisor import Manifest
from agent_hooks.wire.context import encode_request

QUICK = "--quick" in sys.argv
PLUGINS = str(Path(__file__).with_name("plugins.py"))
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
FIGURES: dict[str, float] = {}


def say(name: str, value: float, unit: str, goal: str = "") -> None:
    FIGURES[name] = round(value, 4)
    print(f"{name:<58} {value:>10.3f} {unit:<6} {goal and 'goal ' + goal}", flush=True)


def manifest(mode: str) -> Manifest:
    return Manifest("bench", "bench", (sys.executable, PLUGINS, mode))


def contexts() -> AgentContextBuilder:
    return AgentContextBuilder(agent_id="bench", framework="bench", session_id="session-1")


def tool_call() -> dict:
    """A small tool call; its InterceptRequest is 326 bytes."""
    body = "item=0042&quantity=3&ship_to=warehouse-7&note=deliver+to+the+back+door+after+nine"
    url = "https://api.example.com/v1/orders"
    args = {"url": url, "method": "POST", "retries": 3, "body": body}
    return contexts().pre_tool_call(call_id="call_0123456789", name="http_request", args=args)


def chat(size: int) -> dict:
    """A model call whose messages are about `size` bytes."""
    text = "The quick brown fox jumps over the lazy dog. " * 20
    messages = [{"role": "user", "content": text} for _ in range(max(size // len(text), 1))]
    return contexts().pre_model_call(model_id="m", messages=messages)


def request_bytes(context: dict) -> bytes:
    return encode_request(
        check_context(context, Bounds(), "agent-hooks/0.1"),
        emission_id="0" * 32,
        mode=EnforcementMode.ENFORCE,
        approval_available=False,
        timeout_ms=5000,
    )


def timed(function, count: int) -> list[float]:
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
    return seconds


async def atimed(function, count: int) -> list[float]:
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        await function()
        seconds.append(time.perf_counter() - began)
    return seconds


class Echo:
    """The yardstick's server process."""

    def __enter__(self) -> str:
        self.folder = tempfile.TemporaryDirectory()
        path = f"{self.folder.name}/echo.sock"
        command = [sys.executable, PLUGINS, "echo", path]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.process.stdout.readline()
        return f"unix:{path}"

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.folder.cleanup()


def against_echo(label: str, context: dict, rounds: int, goal: str = "") -> None:
    """Emission through one plugin ÷ bare echo of the same bytes, synchronous and asyncio."""
    data = request_bytes(context)
    with Echo() as address, Supervisor([Binding("p", manifest("allow"))]) as supervisor:
        echo = grpc.insecure_channel(address, options=OPTIONS).unary_unary("/e/e")
        emitter = SyncInterceptionEmitter()
        emitter.register(supervisor.interceptor("p"), "p")
        ours: list[float] = []
        bare: list[float] = []
        for _ in range(12):
            ours += timed(lambda: emitter.emit_unchecked(context), rounds)
            bare += timed(lambda: echo(data, timeout=5), rounds)
        drop = len(ours) // 12  # the first round warms up
        ours, bare = ours[drop:], bare[drop:]
        assert emitter.results[-1].verdict == ALLOW
        asynchronous = asyncio.run(_against_aio(supervisor, address, context, data, rounds))
    size = f"{label} ({len(data)} B)"
    say(f"{size}: bare echo, sync", statistics.median(bare) * 1e3, "ms")
    say(f"{size}: emission, sync", statistics.median(ours) * 1e3, "ms")
    say(f"{size}: emission / echo, sync", _ratio(ours, bare), "x", goal)
    say(f"{size}: emission / echo, asyncio", _ratio(*asynchronous), "x", goal)


async def _against_aio(supervisor, address, context, data, rounds):
    emitter = InterceptionEmitter()
    emitter.register(supervisor.interceptor("p"), "p")
    ours: list[float] = []
    bare: list[float] = []
    async with grpc.aio.insecure_channel(address, options=OPTIONS) as channel:
        echo = channel.unary_unary("/e/e")
        for _ in range(12):
            ours += await atimed(lambda: emitter.emit_unchecked(context), rounds)
            bare += await atimed(lambda: echo(data, timeout=5), rounds)
    drop = len(ours) // 12
    return ours[drop:], bare[drop:]


def _ratio(ours: list[float], bare: list[float]) -> float:
    return statistics.median(ours) / statistics.median(bare)


def parallel() -> None:
    """Five plugins of 50 ms under parallel/strictest ÷ the slowest of them alone."""
    bindings = [Binding(f"p{index}", manifest("sleep")) for index in range(5)]
    with Supervisor(bindings) as supervisor:
        context = tool_call()
        alone = []
        for binding in bindings:
            emitter = SyncInterceptionEmitter()
            emitter.register(supervisor.interceptor(binding.id), binding.id)
            alone.append(statistics.median(timed(lambda e=emitter: e.emit_unchecked(context), 6)))
        together = SyncInterceptionEmitter(composition=CompositionConfig.strictest())
        for binding in bindings:
            together.register(supervisor.interceptor(binding.id), binding.id)
        took = statistics.median(timed(lambda: together.emit_unchecked(context), 12))
    say("parallel/strictest, five plugins of 50 ms / slowest", took / max(alone), "x", "<= 1.1")


def in_process() -> None:
    """Emission of a small tool call with one interceptor in the same process."""

    class Async:
        async def intercept(self, _):
            return ALLOW

    class Sync:
        def intercept(self, _):
            return ALLOW

    context = tool_call()
    count = 3000
    for name, interceptor in (("async", Async()), ("sync, on a worker thread", Sync())):
        emitter = InterceptionEmitter()
        emitter.register(interceptor)
        took = asyncio.run(atimed(lambda e=emitter: e.emit_unchecked(context), count))
        goal = "<= 60" if name == "async" else ""
        say(f"in process, {name} interceptor", statistics.median(took) * 1e6, "us", goal)


def resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def memory() -> None:
    """Resident sizes, growth over many emissions, peak on the largest context."""
    count = 5_000 if QUICK else 100_000
    with Supervisor([Binding("a", manifest("allow")), Binding("b", manifest("allow"))]) as both:
        emitter = SyncInterceptionEmitter()
        emitter.set_max_records(100)
        for binding in ("a", "b"):
            emitter.register(both.interceptor(binding), binding)
        context = tool_call()
        timed(lambda: emitter.emit_unchecked(context), 2000)
        plugin = both.status()[0]["pid"]
        say("resident: a Python plugin", resident(plugin), "MB", "<= 45")
        before = resident(os.getpid())
        say("resident: the host with two plugins", before, "MB")
        for _ in range(count):
            emitter.emit_unchecked(context)
        grown = resident(os.getpid()) - before
        say(f"growth of the host over {count} emissions", grown, "MB", "none")
        big = chat(2_500_000)  # the target mirrors the messages: 5 MiB in all
        timed(lambda: emitter.emit_unchecked(big), 3)
        assert emitter.results[-1].verdict == ALLOW
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        say("peak of the host on a context of 5 MiB", peak, "MB")


def main() -> None:
    rounds = 100 if QUICK else 250
    against_echo("small tool call", tool_call(), rounds, "<= 1.25")
    against_echo("20 KB of messages", chat(20_000), rounds // 2)
    against_echo("1 MB of messages", chat(1_000_000), max(rounds // 20, 5))
    parallel()
    in_process()
    memory()
    print(json.dumps(FIGURES))


if __name__ == "__main__":
    main()
