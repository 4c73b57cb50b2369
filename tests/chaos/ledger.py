"""Every emission, its one record, and whether anybody can have given the verdict in it."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_hooks.core.builder import AgentContextBuilder
from agent_hooks.core.profile import CompositionProfile
from agent_hooks.core.reasons import RESERVED_PREFIX, HostError
from agent_hooks.core.record import InterceptionRecord, VerdictSummary
from agent_hooks.core.verdict import Decision
from tests.chaos.plan import CLEAN, JUDGED, Slot

SLACK = 3.0
"""Seconds that an emission may take beyond its plugins' timeouts on a busy machine."""


class Violation(AssertionError):
    """A promise that did not stand; the text says which."""


@dataclass
class Emission:
    """One emission that has ended.

    Attributes:
        asked: the plugins registered, in order.
        poke: what the first one's slot must hold; None: it is load.
        limit: seconds that it may take.
    """

    number: int
    asked: tuple[str, ...]
    record: InterceptionRecord
    seconds: float
    limit: float
    poke: Slot | None = None


@dataclass
class Ledger:
    """What happened since it was last settled. Any thread may write to it.

    Args:
        seen: folder in which each plugin writes down the numbers that it was sent.
    """

    seen: Path
    builder: AgentContextBuilder = field(
        default_factory=lambda: AgentContextBuilder(
            agent_id="a", framework="chaos", session_id="chaos"
        )
    )
    total: int = 0
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: set[int] = set()
        self._ended: list[Emission] = []
        self._records: Counter[int] = Counter()
        self._sent: dict[str, set[int]] = {}
        self._read: Counter[str] = Counter()

    def context(self, **args: Any) -> dict[str, Any]:
        """A context whose tool call carries its own number, `args.n`."""
        context = self.builder.pre_tool_call(call_id="c", name="t", args=args)
        args["n"] = context["sequence"]
        with self._lock:
            self._begun.add(args["n"])
        return context

    def keep(self, record: InterceptionRecord) -> None:
        """The record sink."""
        with self._lock:
            self._records[record.sequence] += 1

    def ended(self, emission: Emission) -> None:
        """An emission is over."""
        with self._lock:
            self._ended.append(emission)

    def complain(self, what: str) -> None:
        """Something went wrong that no verdict shows."""
        with self._lock:
            self.complaints.append(what)

    def settle(self, load: Mapping[str, Slot]) -> Counter[str]:
        """Check all that happened, while nothing is under way; what the slots held.

        Args:
            load: plugin → what its slot may hold in load, where not CLEAN.

        Raises:
            Violation: a promise did not stand.
        """
        with self._lock:
            ended, self._ended = self._ended, []
            begun, self._begun = self._begun, set()
            records, self._records = self._records, Counter()
            complaints, self.complaints = self.complaints, []
        self.total += len(ended)
        sent = self._newly_sent()
        held: Counter[str] = Counter()
        for emission in ended:
            slots = check_verdict(emission.number, emission.asked, emission.record)
            held.update(slots.values())
            _check_permitted(emission, slots, load)
            for plugin, slot in slots.items():
                if slot == JUDGED and emission.number not in sent[plugin]:
                    raise Violation(f"{plugin} judged emission {emission.number}, unasked")
        _check_records(begun, {emission.number for emission in ended}, records)
        if complaints:
            raise Violation(f"the host complained: {'; '.join(sorted(set(complaints)))}")
        return held

    def _newly_sent(self) -> dict[str, set[int]]:
        """Plugin → all it was ever sent; each number at most once (PROTOCOL, Deadlines)."""
        for path in self.seen.iterdir():
            with path.open("rb") as file:
                file.seek(self._read[path.name])
                lines = file.read()
            self._read[path.name] += len(lines)
            sent = self._sent.setdefault(path.name, set())
            for number in map(int, lines.split()):
                if number in sent:
                    raise Violation(f"emission {number} was sent to {path.name} twice")
                sent.add(number)
        return self._sent


def check_verdict(
    number: int, asked: tuple[str, ...], record: InterceptionRecord
) -> dict[str, str]:
    """Plugin → what its slot holds: JUDGED, or a reserved reason.

    Raises:
        Violation: a slot or the combined verdict holds what nobody can have given.
    """
    slots = {}
    for slot in record.verdicts:
        if slot.name != asked[slot.index]:
            raise Violation(f"emission {number}: slot {slot.index} is not {asked[slot.index]}'s")
        slots[asked[slot.index]] = _held(number, slot)
    wanted, reason = _combined(asked, record)
    verdict = record.verdict
    if (verdict.decision, verdict.reason) != (wanted, reason):
        raise Violation(
            f"emission {number}: {verdict.decision.value} {verdict.reason} is not what its slots "
            f"combine to under {record.composition.profile.value}"
        )
    labels = {f"{plugin}:{number}" for plugin in asked} if wanted is Decision.ALLOW else set()
    if set(verdict.result_labels) != labels:
        raise Violation(f"emission {number}: {wanted.value} with another one's labels, or none")
    return slots


def _held(number: int, slot: VerdictSummary) -> str:
    odd = number % 2 == 1
    if slot.decision is Decision.DENY and (slot.reason or "").startswith(RESERVED_PREFIX):
        return str(slot.reason)
    if (slot.decision, slot.reason) == ((Decision.DENY, "odd") if odd else (Decision.ALLOW, None)):
        return JUDGED
    raise Violation(
        f"emission {number}: {slot.name} cannot have given {slot.decision.value} {slot.reason}"
    )


def _combined(asked: tuple[str, ...], record: InterceptionRecord) -> tuple[Decision, str | None]:
    """What the slots combine to (§7), where nobody transforms and nobody lifts."""
    slots, profile = record.verdicts, record.composition.profile
    denies = [slot for slot in slots if slot.decision is Decision.DENY]
    stops = profile is CompositionProfile.SEQUENTIAL_FIRST_DENY
    if len(slots) != (denies[0].index + 1 if stops and denies else len(asked)):
        raise Violation(f"emission {record.sequence}: {len(slots)} slots for {len(asked)} plugins")
    if not denies:
        return Decision.ALLOW, None
    if profile is CompositionProfile.PARALLEL_UNANIMOUS:
        return Decision.DENY, HostError.COMPOSITION_DISAGREEMENT.value
    return Decision.DENY, denies[0].reason


def _check_permitted(
    emission: Emission, slots: Mapping[str, str], load: Mapping[str, Slot]
) -> None:
    for plugin, slot in slots.items():
        permitted = load.get(plugin, CLEAN) if emission.poke is None else emission.poke
        if slot not in permitted:
            kind = "load" if emission.poke is None else "aimed at"
            raise Violation(
                f"emission {emission.number} ({kind}): {plugin}'s slot holds {slot} after "
                f"{emission.seconds:.2f} s; this fault can cause {', '.join(sorted(permitted))}"
            )
    if emission.seconds > emission.limit + SLACK:
        raise Violation(
            f"emission {emission.number} took {emission.seconds:.1f} s, "
            f"its timeouts are {emission.limit:g} s"
        )


def _check_records(begun: set[int], ended: set[int], records: Counter[int]) -> None:
    if lost := begun - ended:
        raise Violation(f"{len(lost)} emissions never ended, {min(lost)} among them")
    if wrong := {number: count for number, count in records.items() if count != 1}:
        raise Violation(f"emissions with more than one record: {sorted(wrong)[:5]}")
    if ended != set(records):
        missing = sorted(ended.symmetric_difference(records))
        raise Violation(f"{len(missing)} emissions without a record of theirs: {missing[:5]}")


class Complaints(logging.Handler):
    """Errors that the host logs are defects of ours, whatever the verdicts say."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(logging.ERROR)
        self._ledger = ledger

    def emit(self, record: logging.LogRecord) -> None:
        """Note it, with where it was raised."""
        kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
        self._ledger.complain(f"{record.getMessage()} {kind}".strip())
