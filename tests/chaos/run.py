"""One run: step after step, and after each of them every promise is looked at."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.chaos.arena import Arena
from tests.chaos.faults import DEEDS
from tests.chaos.killed import kill_host
from tests.chaos.leaks import Baseline
from tests.chaos.ledger import Violation
from tests.chaos.plan import CLEAN, PLUGINS, Step
from tests.chaos.watch import Watch

RECOVERY = 0.5
"""Seconds from a crash outside back-off until the plugin is ready again."""
WARMING = 24
"""Emissions through each plugin before anything is counted."""


@dataclass
class Kind:
    """What was seen of one kind of fault.

    Attributes:
        recoveries: seconds until ready again; for a killed host, until nothing was left.
        held: what the slots held, by reason.
    """

    count: int = 0
    seconds: float = 0.0
    recoveries: list[float] = field(default_factory=list)
    held: Counter[str] = field(default_factory=Counter)


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        kinds: by fault.
        violation: what did not stand, and `step` where; no step: at the end.
    """

    kinds: dict[str, Kind] = field(default_factory=dict)
    emissions: int = 0
    violation: str | None = None
    step: Step | None = None


def run(
    steps: Iterable[Step], slow: float = 1.0, tell: Callable[[Step], None] | None = None
) -> Outcome:
    """Do the steps one after another, until one of them breaks a promise.

    Args:
        slow: factor by which times may be missed on a slow machine.
        tell: hears of each step before it is done.
    """
    outcome = Outcome()
    with Arena() as arena:
        baseline = _warmed(arena)
        for step in steps:
            if tell is not None:
                tell(step)
            began = time.monotonic()
            kind = outcome.kinds.setdefault(step.fault.name, Kind())
            kind.count += 1
            try:
                _one(arena, step, baseline, kind, slow)
            except AssertionError as broken:  # a Violation, or a state that never came
                outcome.violation, outcome.step = str(broken), step
                break
            except Exception as broken:  # what should not have been raised
                outcome.violation, outcome.step = f"{type(broken).__name__}: {broken}", step
                break
            kind.seconds += time.monotonic() - began
        outcome.emissions = arena.ledger.total
    if arena.left and outcome.violation is None:
        outcome.violation = f"{len(arena.left)} processes are left after the supervisor's end"
    return outcome


def _warmed(arena: Arena) -> Baseline:
    """Let everything be made that is made once and kept."""
    arena.load.resume()
    for plugin in PLUGINS:
        for turn in range(WARMING):
            arena.poke(plugin, CLEAN, 20, is_async=turn % 2 == 0)
    arena.load.pause()
    arena.ledger.settle({})
    return Baseline(arena)


def _one(arena: Arena, step: Step, baseline: Baseline, kind: Kind, slow: float) -> None:
    fault = step.fault
    if not fault.quiet:
        arena.load.resume()
    watches = [Watch(arena, plugin) for plugin in step.struck]
    try:
        if fault.name == "kill_host":
            seconds, held = kill_host(arena, step, slow)
            kind.recoveries.append(seconds)
            kind.held.update(held)
        else:
            DEEDS[fault.name](arena, step)
    finally:
        for watch in watches:
            watch.finish(must_die=fault.dies == "yes")
    for watch in watches:
        _check_recovery(watch, step, kind, slow)
    arena.load.resume()
    for plugin in PLUGINS:
        for _ in range(2):
            arena.poke(plugin, CLEAN)
    arena.load.pause()
    kind.held.update(arena.ledger.settle(dict.fromkeys(step.struck, fault.load)))
    baseline.check()


def _check_recovery(watch: Watch, step: Step, kind: Kind, slow: float) -> None:
    if watch.died and step.fault.dies == "no":
        raise Violation(f"{watch.plugin}'s process ended, and nothing here should end it")
    if step.fault.dies != "yes" or watch.seconds is None:
        return
    kind.recoveries.append(watch.seconds)
    bound = RECOVERY * step.fault.starts * slow
    if watch.seconds > bound:
        raise Violation(
            f"{watch.plugin} was ready {watch.seconds:.3f} s after its end; "
            f"{bound:g} s are promised for {step.fault.starts} start(s)"
        )
