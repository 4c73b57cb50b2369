"""A second reading of §7 to §9: from replies to the outcome that the text asks for.

Nothing here uses the core. `REPLIES` and `ANSWERS` are the alphabets of the walks:
name → what is said (JSON, or a failure), and how the specification speaks of it.
Targets are objects with a number `n`, 0 at first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent_hooks.core.effects import Failed
from agent_hooks.core.reasons import HostError

MOST = 8
"""Interceptors in the longest story."""


@dataclass(frozen=True)
class Said:
    """A verdict, as far as it matters here."""

    decision: str
    reason: str | None = None
    liftable: bool = False
    warnings: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    evidence: str | None = None
    path: str | None = None
    value: Any = None
    fits: str = "host_error:"
    """The reason for which a transform does not apply; "host_error:" where it does."""


def host(error: str, liftable: bool = False) -> Said:
    """A deny that the host synthesises."""
    return Said("deny", f"host_error:{error}", liftable)


def _wire(said: Said) -> dict[str, Any]:
    members = {
        "decision": said.decision,
        "reason": said.reason,
        "warnings": [{"reason": reason} for reason in said.warnings],
        "approval": {"queue": "night"} if said.liftable else None,
        "transform": said.path and {"path": said.path, "value": said.value},
        "evidence": said.evidence and {"artefact": said.evidence},
        "result_labels": list(said.labels),
    }
    return {name: value for name, value in members.items() if value}


def _rewrite(path: str, value: Any, fits: str = "", **more: Any) -> Said:
    return Said("transform", path=path, value=value, fits=f"host_error:{fits}", **more)


_SPOKEN: dict[str, Callable[[int], Said]] = {
    "allow": lambda i: Said("allow", f"fine-{i}"),
    "noted": lambda i: Said(
        "allow", None, False, ("shared", f"w-{i}"), ("common", f"l-{i}"), f"proof-{i}"
    ),
    "deny": lambda i: Said("deny", f"no-{i}", False, ("shared",), ("lost",)),
    "liftable": lambda i: Said("deny", f"ask-{i}", True, (f"q-{i}",), ("lost",), f"doubt-{i}"),
    "rewrite": lambda i: _rewrite("$target.n", i + 1, labels=(f"t-{i}", "common")),
    "misplaced": lambda i: _rewrite(
        "$target.absent", 5, "transform_invalid", warnings=(f"m-{i}",), labels=("misplaced",)
    ),
    "unfit": lambda i: _rewrite("$target", i, "transform_invalid"),
    "beyond": lambda i: _rewrite("$target.n", 2**53, "context_invalid", warnings=(f"b-{i}",)),
}
_FAILED: dict[str, tuple[object, str]] = {
    "foreign": (
        {"decision": "transform", "transform": {"path": "$session.id", "value": 1}},
        "transform_target_forbidden",
    ),
    "timeout": (Failed(HostError.INTERCEPTOR_TIMEOUT), "interceptor_timeout"),
    "garbage": ({"decision": "perhaps"}, "verdict_invalid"),
}
REPLIES: dict[str, list[tuple[object, Said]]] = {
    **{
        name: [(_wire(said(index)), said(index)) for index in range(MOST)]
        for name, said in _SPOKEN.items()
    },
    **{name: [(reply, host(error))] * MOST for name, (reply, error) in _FAILED.items()},
}

_PERMIT = Said("allow", "ok", warnings=("seen", "shared"), labels=("lifted",), evidence="ticket")
_ANSWERED: dict[str, tuple[str, Said, Said | None]] = {
    # name → outcome, verdict carried, what it amounts to where that is something else
    "permit": ("approve", _PERMIT, None),
    "amend": ("approve", _rewrite("$target.n", 99, labels=("amended",)), None),
    "amend_misplaced": ("approve", _rewrite("$target.absent", 5, "transform_invalid"), None),
    "refuse": ("reject", Said("deny", "refused", warnings=("why",)), None),
    "contradict": ("approve", Said("deny", "refused"), host("verdict_invalid")),
    "mismatch": ("approve", _PERMIT, host("approval_identity_mismatch")),
}


def _resolution(name: str) -> Callable[[str | None], object]:
    outcome, carried, _ = _ANSWERED[name]
    members = {"outcome": outcome, "verdict": _wire(carried)}
    if name == "mismatch":
        return lambda _: {**members, "context_identity": "sha256:other"}
    return lambda identity: {**members, "context_identity": identity}


ANSWERS: dict[str, tuple[Callable[[str | None], object], Said]] = {
    **{
        name: (_resolution(name), meaning or carried)
        for name, (_, carried, meaning) in _ANSWERED.items()
    },
    "unresolved": (
        lambda identity: {"outcome": "unresolved", "context_identity": identity},
        host("approval_unresolved"),
    ),
    "failed": (
        lambda _: Failed(HostError.APPROVAL_RESOLVER_FAILED),
        host("approval_resolver_failed"),
    ),
}


@dataclass(frozen=True)
class Case:
    """Host configuration of one emission. `knob` is the one that its profile consults."""

    profile: str
    knob: str | None = None
    mode: str = "enforce"
    resolver: bool = True
    point: str = "pre_tool_call"
    bound: bool = True
    """Whether jcs-sha256 is the identity provider; else there is none."""

    def __str__(self) -> str:
        seam = "resolver" if self.resolver else "no-resolver"
        point = "" if self.point == "pre_tool_call" else self.point
        parts = (self.profile, self.knob, self.mode, seam, point, "" if self.bound else "null")
        return "-".join(part for part in parts if part)


@dataclass
class _Story:
    case: Case
    count: int
    replies: Sequence[str]
    answers: list[str]
    n: Any = 0
    folded: bool = False
    slots: list[Said] = field(default_factory=list)
    heard: list[Said] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    asked: list[tuple[str | None, Any]] = field(default_factory=list)
    resolved: str | None = None

    # --- the three things that happen ---

    def listen(self, index: int) -> Said:
        said = REPLIES[self.replies[index]][index][1]
        self.seen.append(self.n)
        self.slots.append(said)
        self.heard.append(said)
        return said

    def fold(self, said: Said) -> Said | None:
        """§5.2: apply a transform; the deny that it becomes where it doesn't apply."""
        if said.decision != "transform":
            return None
        if self.case.point in ("agent_startup", "agent_shutdown"):  # §3
            return host("transform_target_forbidden")
        if said.fits != "host_error:" and (
            self.case.bound or said.fits != "host_error:context_invalid"
        ):
            return Said("deny", said.fits)
        if self.case.mode == "enforce":  # §8
            self.n, self.folded = said.value, True
        return None

    def seam(self, deny: Said) -> Said:
        """§9: what stands after the resolver was asked, where it is asked at all."""
        silent = self.case.mode == "evaluate_only" or self.case.point == "agent_shutdown"
        if not deny.liftable or not self.case.resolver or silent:
            return deny
        self.asked.append((deny.reason, self.n))
        meant = ANSWERS[self.answers.pop(0)][1]
        self.heard.append(meant)
        self.resolved = "rejection" if meant.decision == "deny" else "approval"
        return meant

    # --- the four profiles; each ends in (combined verdict, decided_by) ---

    def first_deny(self) -> tuple[Said, int | None]:
        lifted: list[int] = []
        last: tuple[Said, int] | None = None
        for index in range(self.count):
            said = stands = self.listen(index)
            if said.decision == "deny":
                stands = self.seam(said)
                if stands.decision == "deny":
                    return stands, index
                lifted.append(index)
            if unfit := self.fold(stands):
                if stands is said:
                    self.slots[index] = unfit
                return unfit, None
            if index in lifted and self.case.knob == "stop":
                return stands, index
            if stands.decision == "transform":
                last = stands, index
        if last:
            return last
        return self.bare_allow(), lifted[0] if lifted else None

    def run_all(self) -> tuple[Said, int | None]:
        unfit = None
        for index in range(self.count):
            said = self.listen(index)
            if unfit := self.fold(said):
                self.slots[index] = unfit
                if unfit.reason == "host_error:context_invalid":
                    return unfit, None
                break
        winner = self.strongest()
        if self.slots[winner] is unfit:
            return unfit, None
        if self.slots[winner].decision == "deny":
            return self.lift(self.slots[winner], winner)
        for index in reversed(range(self.count)):  # §7.3: the last transform returned
            if self.slots[index].decision == "transform":
                return self.slots[index], index
        return self.slots[winner], None

    def strictest(self) -> tuple[Said, int | None]:
        for index in range(self.count):
            self.listen(index)
        winner = self.strongest()
        said = self.slots[winner]
        if said.decision == "deny":
            return self.lift(said, winner)
        if [slot.decision for slot in self.slots].count("transform") >= 2:
            return self.lift(host("transform_conflict", self.case.knob == "approval"), None)
        if unfit := self.fold(said):
            return unfit, None
        return said, winner if said.decision == "transform" else None

    def unanimous(self) -> tuple[Said, int | None]:
        for index in range(self.count):
            self.listen(index)
        if {slot.decision for slot in self.slots} == {"allow"}:
            return self.bare_allow(), None
        return self.lift(host("composition_disagreement", self.case.knob == "approval"), None)

    # --- what they share ---

    def strongest(self) -> int:
        """§5.1's order; the lowest index among equals."""
        rank = {("deny", False): 0, ("deny", True): 1, ("transform", False): 2}
        order = [rank.get((slot.decision, slot.liftable), 3) for slot in self.slots]
        return order.index(min(order))

    def lift(self, deny: Said, decided_by: int | None) -> tuple[Said, int | None]:
        """One consultation over the whole outcome (§7.4, §7.5)."""
        stands = self.seam(deny)
        if unfit := self.fold(stands):
            return unfit, None
        return stands, decided_by

    def bare_allow(self) -> Said:
        proofs = [said.evidence for said in self.heard if said.evidence]
        return Said("allow", evidence=proofs[0] if proofs else None)

    def outcome(self) -> dict[str, Any]:
        if self.count == 0:
            verdict, decided_by = host("no_interceptor"), None
        else:
            verdict, decided_by = getattr(self, self.case.profile.split("/")[1])()
        denied = verdict.decision == "deny"
        enforced = self.case.mode == "enforce"
        permits = [said for said in self.heard if said.decision != "deny"]
        lost = enforced and verdict.reason == "host_error:context_invalid"
        rewritten = enforced and not denied and self.folded
        return {
            "verdict": replace(
                verdict,
                warnings=tuple(dict.fromkeys(w for said in self.heard for w in said.warnings)),
                labels=()
                if denied
                else tuple(dict.fromkeys(label for said in permits for label in said.labels)),
                value=None,
                fits="host_error:",
            ),
            "decided_by": decided_by,
            "resolved_by": self.resolved,
            "fold_truncated": len(self.slots) < self.count
            if self.case.profile.startswith("sequential")
            else None,
            "slots": [(slot.decision, slot.reason) for slot in self.slots],
            "proceeds": not (enforced and denied),
            "target": self.n if rewritten else None,
            "seen": self.seen,
            "asked": self.asked,
            "enforced": self.n if self.case.bound and not lost else None,
        }


def tell(case: Case, count: int, replies: Sequence[str], answers: Sequence[str]) -> dict[str, Any]:
    """The outcome of `count` interceptors that say `replies`, asked as far as it goes."""
    return _Story(case, count, replies, list(answers)).outcome()
