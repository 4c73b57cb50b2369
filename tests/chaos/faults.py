"""How each fault is done. What it may cause stands in `plan.FAULTS`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from agent_hooks.host import InterceptionEmitter, SyncInterceptionEmitter
from agent_hooks.host.sinks import NdjsonSink
from agent_hooks.supervisor import PluginStartError
from tests.chaos.arena import Arena
from tests.chaos.ledger import Emission, Violation
from tests.chaos.plan import CLEAN, FAILED, JUDGED, TIMEOUT, Step
from tests.processes.support import bad, stop, until

SHORT = 0.15
"""Seconds of a timeout that is meant to fire."""
EMISSIONS = 6
UPGRADE = 0.3
"""Seconds after which an upgrade is about at its end."""

Deed = Callable[[Arena, Step], object]


def _poke(arena: Arena, step: Step, fault: str, timeout: float = 5.0) -> None:
    arena.poke(step.plugin, step.poke, timeout, step.draw < 0.5, fault=fault)


def _idle_death(arena: Arena, step: Step) -> None:
    arena.kill(step.plugin)
    time.sleep(step.draw * 0.004)  # the signal is on its way, or has arrived, or is reaped
    arena.poke(step.plugin, step.poke, is_async=step.draw < 0.5)


def _busy_death(arena: Arena, step: Step) -> None:
    with arena.poking(step.plugin, step.poke, sleep=1):
        arena.kill(step.plugin)


def _death_of_a_parent(arena: Arena, step: Step) -> None:
    arena.poke(step.plugin, CLEAN, fault="child")
    arena.kill(step.plugin)


def _death_while_starting(arena: Arena, step: Step) -> None:
    before = set(arena.family())
    arena.kill(step.plugin)

    def started() -> list[int]:
        new = arena.family().items()
        return [pid for pid, line in new if pid not in before and "plugins/" in line]

    for pid in until(started, 5, "it was not started anew"):
        time.sleep(step.draw * 0.2)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _keepers_death(arena: Arena, step: Step) -> None:
    with arena.poking(step.plugin, step.poke, sleep=1):
        os.kill(arena.keeper(step.plugin), signal.SIGKILL)


def _wardens_death(arena: Arena, step: Step) -> None:
    with arena.poking(step.plugin, step.poke, sleep=1):
        os.kill(arena.warden(), signal.SIGKILL)


def _death_in_call(arena: Arena, step: Step) -> None:
    _poke(arena, step, "exit_in_call" if int(step.draw * 100) % 2 else "killed_in_call")


def _stop_and_continue(arena: Arena, step: Step) -> None:
    pid = arena.pid(step.plugin)
    stop(pid)
    try:
        arena.poke(step.plugin, step.poke, SHORT, is_async=step.draw < 0.5)
    finally:
        os.kill(pid, signal.SIGCONT)


def _stop_for_good(arena: Arena, step: Step) -> None:
    """Timeouts in a row open the circuit; what is in flight then fails with its process."""
    pid = arena.pid(step.plugin)
    stop(pid)
    until(
        lambda: (
            arena.poke(step.plugin, step.poke | CLEAN, SHORT) in ("allow", "odd")
            or arena.status(step.plugin)["pid"] != pid
        ),
        what="the circuit did not open",
    )


def _starve(arena: Arena, step: Step) -> None:
    pid = arena.pid(step.plugin)
    end = time.monotonic() + 0.2
    with arena.poking(step.plugin, step.poke, sleep=0.02):
        while time.monotonic() < end:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.02)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.004)


def _unlink(arena: Arena, step: Step) -> None:
    """The connection stands, so nobody notices; its next process listens anew."""
    arena.socket(step.plugin).unlink()
    for _ in range(3):
        arena.poke(step.plugin, step.poke)
    _idle_death(arena, step)


def _answer(arena: Arena, step: Step) -> None:
    _poke(arena, step, step.answer)


def _answer_twice(arena: Arena, step: Step) -> None:
    """While nothing else is under way, the next call is on the stream that said too much."""
    arena.poke(step.plugin, CLEAN, is_async=step.draw < 0.5, fault="answers_twice")
    arena.poke(step.plugin, step.poke, is_async=step.draw < 0.5)


def _late(arena: Arena, step: Step) -> None:
    late = SHORT * (1.5 + step.draw)
    arena.poke(step.plugin, step.poke, SHORT, step.draw < 0.5, sleep=late)


def _cancel(arena: Arena, step: Step) -> None:
    """Nobody waits any more: the record comes first, then the cancellation."""
    emitter = InterceptionEmitter().set_record_sink(arena.ledger.keep)
    emitter.register(arena.interceptors[step.plugin], step.plugin, timeout=5)
    context, began = arena.ledger.context(sleep=0.3), time.monotonic()
    has_come = arena.coming(step.plugin, context["sequence"])

    async def run() -> None:
        task = asyncio.create_task(emitter.emit_unchecked(context))
        while not has_come():
            await asyncio.sleep(0.005)
        task.cancel()
        await task

    try:
        asyncio.run(run())
    except asyncio.CancelledError:
        seconds, (record,) = time.monotonic() - began, emitter.results
        emission = Emission(context["sequence"], (step.plugin,), record, seconds, 5, step.poke)
        arena.ledger.ended(emission)
        return
    raise Violation("an emission that was cancelled returned")


def _drip(arena: Arena, step: Step) -> None:
    timeout = 5.0 if JUDGED in step.poke else SHORT
    arena.poke(step.plugin, step.poke, timeout, step.draw < 0.5, fault=step.fault.name)


def _memory(arena: Arena, step: Step) -> None:
    """It may survive, die, or live on deaf; whatever it does, it is back in the end."""
    _poke(arena, step, "memory", timeout=1.0)
    slot = CLEAN | {FAILED, TIMEOUT}
    until(lambda: arena.poke(step.plugin, slot, 0.5) in ("allow", "odd"), what="it stays deaf")


def _disk(arena: Arena, step: Step) -> None:
    pid = arena.pid(step.plugin)
    _poke(arena, step, "disk")
    until(lambda: arena.status(step.plugin)["pid"] != pid, 5, "it may fill the disk")


def _upgrade(arena: Arena, step: Step) -> None:
    before = arena.pid(step.plugin)
    arena.supervisor.upgrade(step.plugin)
    if arena.pid(step.plugin) == before:
        raise Violation("an upgrade that succeeded left the old process in place")


def _upgrade_to_broken(arena: Arena, step: Step) -> None:
    before, whole = arena.pid(step.plugin), arena.manifests[step.plugin]
    exits = (sys.executable, "-S", "-c", "raise SystemExit(3)")
    command = exits if step.draw < 0.7 else bad("describe_garbage").command
    try:
        arena.supervisor.upgrade(step.plugin, replace(whole, command=command))
    except PluginStartError:
        if arena.pid(step.plugin) != before:
            raise Violation("a failed upgrade replaced the process") from None
        return
    raise Violation("an upgrade to a broken program succeeded")


def _death_in_upgrade(arena: Arena, step: Step) -> None:
    thread = threading.Thread(target=arena.supervisor.upgrade, args=(step.plugin,))
    pid = arena.pid(step.plugin)
    thread.start()
    time.sleep(step.draw * UPGRADE)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    thread.join(20)
    if thread.is_alive():
        raise Violation("an upgrade hangs after its predecessor's death")


def _sink_full(arena: Arena, step: Step) -> None:
    """No record can be written: each is counted, and no verdict changes (§10.3)."""
    sink = NdjsonSink("/dev/full")
    emitter = SyncInterceptionEmitter().set_record_sink(sink)
    emitter.register(arena.interceptors[step.plugin], step.plugin, timeout=5)
    for _ in range(EMISSIONS):
        context, began = arena.ledger.context(), time.monotonic()
        record = emitter.emit_unchecked(context)
        seconds = time.monotonic() - began
        emission = Emission(context["sequence"], (step.plugin,), record, seconds, 5, step.poke)
        arena.ledger.ended(emission)
    sink.close()
    for record in emitter.take_records():
        arena.ledger.keep(record)
    if (sink.written, sink.dropped) != (0, EMISSIONS):
        raise Violation(f"a full disk took {sink.written} records and {sink.dropped} are counted")


DEEDS: dict[str, Deed] = {
    "kill_idle": _idle_death,
    "kill_busy": _busy_death,
    "kill_with_child": _death_of_a_parent,
    "kill_starting": _death_while_starting,
    "kill_keeper": _keepers_death,
    "kill_warden": _wardens_death,
    "die_in_call": _death_in_call,
    "stop_continue": _stop_and_continue,
    "stop_for_good": _stop_for_good,
    "starve": _starve,
    "flood": lambda arena, step: _poke(arena, step, "flood"),
    "late": _late,
    "cancel": _cancel,
    "drip": _drip,
    "drip_late": _drip,
    "corrupt_bytes": lambda arena, step: _poke(arena, step, "corrupt"),
    "reset_connection": lambda arena, step: _poke(arena, step, "reset"),
    "unlink_socket": _unlink,
    "close_socket": lambda arena, step: _poke(arena, step, "closes_its_socket"),
    "answer": _answer,
    "answer_twice": _answer_twice,
    "memory": _memory,
    "descriptors": lambda arena, step: _poke(arena, step, "descriptors"),
    "disk": _disk,
    "upgrade": _upgrade,
    "upgrade_to_broken": _upgrade_to_broken,
    "kill_in_upgrade": _death_in_upgrade,
    "sink_full": _sink_full,
}
