"""The faults, what each may cause, and the sequence of them that a seed gives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tests.processes.test_answers import REASONS

FAILED = "host_error:interceptor_failed"
TIMEOUT = "host_error:interceptor_timeout"
INVALID = "host_error:verdict_invalid"
JUDGED = "judged"
"""The slot holds what the plugin itself says of the emission's number."""

EVEN, UNARY, STREAM = "even", "unary", "stream"
PLUGINS = (EVEN, UNARY, STREAM)
RAW = (UNARY, STREAM)

Slot = frozenset[str]
CLEAN: Slot = frozenset({JUDGED})


def _or(*reasons: str) -> Slot:
    return CLEAN | {*reasons}


def _only(*reasons: str) -> Slot:
    return frozenset(reasons)


@dataclass(frozen=True)
class Fault:
    """One kind of fault, and all that it may cause.

    Attributes:
        weight: how often it stands in a deck of faults.
        load: what the plugin's slot may hold in emissions under way meanwhile.
        poke: what it holds in the emissions that the fault is aimed at.
        plugins: whom it can befall.
        dies: whether the plugin's process ends; "replaced" by an upgrade.
        quiet: nothing else is under way.
        everyone: it befalls all plugins at once.
        starts: how many launches its recovery takes.
    """

    name: str
    weight: int
    load: Slot = CLEAN
    poke: Slot = CLEAN
    plugins: tuple[str, ...] = PLUGINS
    dies: Literal["yes", "no", "maybe", "replaced"] = "no"
    quiet: bool = False
    everyone: bool = False
    starts: int = 1


FAULTS = {
    fault.name: fault
    for fault in (
        # A crash while nothing is sent denies nothing: the next emission waits.
        Fault("kill_idle", 6, dies="yes", quiet=True),
        Fault("kill_busy", 6, _or(FAILED), _only(FAILED), dies="yes"),
        Fault("kill_with_child", 2, _or(FAILED), dies="yes"),
        Fault("kill_starting", 2, _or(FAILED), dies="yes", starts=2),
        Fault("kill_keeper", 2, _or(FAILED), _only(FAILED), dies="yes"),
        Fault("kill_warden", 1, _or(FAILED), _only(FAILED), dies="yes", everyone=True, starts=3),
        Fault("die_in_call", 5, _or(FAILED), _only(FAILED), dies="yes"),
        # Who is stopped for less than the deadline is only late.
        Fault("stop_continue", 4, poke=_only(TIMEOUT)),
        Fault("stop_for_good", 2, _or(FAILED), _or(FAILED, TIMEOUT), dies="yes"),
        Fault("starve", 2),
        Fault("flood", 2),
        Fault("late", 4, poke=_only(TIMEOUT)),
        Fault("cancel", 3, poke=_only(FAILED)),
        Fault("drip", 2, plugins=(UNARY,)),
        Fault("drip_late", 2, poke=_only(TIMEOUT), plugins=(UNARY,)),
        Fault("corrupt_bytes", 3, _or(FAILED), _only(FAILED), plugins=(UNARY,)),
        Fault("reset_connection", 3, _or(FAILED), _only(FAILED), plugins=(UNARY,)),
        Fault("unlink_socket", 2, dies="yes", quiet=True),
        Fault("close_socket", 1, _or(FAILED), _only(FAILED), plugins=RAW, dies="yes"),
        Fault("answer", 20),  # the answer says what becomes of it
        # What it says beyond its answer is nobody's verdict; the next call may meet it.
        Fault("answer_twice", 2, poke=_or(INVALID), plugins=(STREAM,), quiet=True),
        Fault("memory", 2, _or(FAILED), _or(FAILED, TIMEOUT), dies="maybe"),
        Fault("descriptors", 2),
        Fault("disk", 1, _or(FAILED), _or(FAILED), dies="yes"),
        Fault("upgrade", 3, dies="replaced"),
        Fault("upgrade_to_broken", 2),
        Fault("kill_in_upgrade", 2, _or(FAILED), dies="replaced"),
        Fault("sink_full", 2),
        Fault("kill_host", 1),  # another host; what its own records may hold, `killed` says
    )
}

_IN_PYTHON = {
    "raise": FAILED,
    "exit": FAILED,
    "nonsense": INVALID,
    "own_reserved_reason": INVALID,
}
_UNARY = {name: str(reason) for name, reason in REASONS.items() if name != "hang"}
_ON_STREAM = {
    "id_of_another": INVALID,
    "id_missing": INVALID,
    "id_twice": INVALID,
    "ends": FAILED,
}
"""Not the end of a stream after an answer: another emission may be sent on it just then,
and may have been read."""
ANSWERS = {EVEN: _IN_PYTHON, UNARY: _UNARY, STREAM: _UNARY | _ON_STREAM}
"""Plugin → what it may answer → what its slot holds then."""


@dataclass(frozen=True)
class Step:
    """One fault of a sequence; `draw`, in [0, 1), settles what else is left to chance."""

    number: int
    fault: Fault
    plugin: str
    draw: float

    @property
    def answer(self) -> str:
        """Which answer, where the fault is one."""
        names = sorted(ANSWERS[self.plugin])
        return names[int(self.draw * len(names))]

    @property
    def poke(self) -> Slot:
        """What the slot of an emission that the fault is aimed at may hold."""
        if self.fault.name == "answer":
            return _only(ANSWERS[self.plugin][self.answer])
        return self.fault.poke

    @property
    def struck(self) -> tuple[str, ...]:
        """The plugins that it befalls."""
        return PLUGINS if self.fault.everyone else (self.plugin,)

    def __str__(self) -> str:
        what = f" ({self.answer})" if self.fault.name == "answer" else ""
        return f"step {self.number}: {self.fault.name}{what} of {self.plugin}"


def plan(seed: int, count: int, only: str | None = None) -> Iterator[Step]:
    """`count` steps: shuffled decks of all faults, so that a short run meets each kind.

    Args:
        only: the one kind of fault to draw.
    """
    chance = random.Random(seed)
    deck: list[Fault] = []
    for number in range(1, count + 1):
        if not deck:
            kinds = [FAULTS[only]] if only else FAULTS.values()
            deck = [fault for fault in kinds for _ in range(fault.weight)]
            chance.shuffle(deck)
        fault = deck.pop()
        yield Step(number, fault, chance.choice(fault.plugins), chance.random())
