"""The four profiles as generators of effects (§7.4, §7.5). No I/O, no clock.

Each yields `Invoke`, `InvokeAll` or `Consult` and returns a `Combined`. What a
driver answers is judged here, so every path can be walked by a test.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from agent_hooks.core import aggregate, path
from agent_hooks.core.approval import present, settle
from agent_hooks.core.context import ContextError, Snapshot
from agent_hooks.core.effects import Consult, Effect, Failed, Invoke, InvokeAll, Rules
from agent_hooks.core.identity import JCS_SHA256
from agent_hooks.core.points import InterceptionPoint
from agent_hooks.core.profile import (
    CompositionProfile,
    EnforcementMode,
    OnApproval,
    SynthesisPolicy,
)
from agent_hooks.core.reasons import HostError
from agent_hooks.core.values import BIG_INTEGERS, ValueDomainError
from agent_hooks.core.verdict import (
    ALLOW,
    Decision,
    Transform,
    Verdict,
    VerdictError,
    check_verdict,
)


class Combined(NamedTuple):
    """What an emission's verdicts amount to (§7.3).

    Attributes:
        verdict: the combined verdict, metadata united.
        decided_by: as on the record (§10.3).
        snapshot: the context after every transform that was folded or applied.
        slots: one verdict per interceptor invoked, in order.
        resolved_by: "approval", "rejection", or None where nobody was consulted.
    """

    verdict: Verdict
    decided_by: int | None
    snapshot: Snapshot
    slots: tuple[Verdict, ...]
    resolved_by: str | None


Composing = Generator[Effect, object, Combined]


def compose(snapshot: Snapshot, rules: Rules) -> Composing:
    """Run the declared profile over one context; §7 with zero interceptors denies.

    So does a model response that its host could not assemble (§12.1): nobody is
    asked about a part.
    """
    if snapshot.is_partial:
        return _Run(snapshot, rules).combined(
            Verdict.host_error(HostError.STREAMING_UNSUPPORTED), None
        )
    if not rules.names:
        # §7, §8: in either mode; only enforcement differs.
        return _Run(snapshot, rules).combined(Verdict.host_error(HostError.NO_INTERCEPTOR), None)
    return (yield from _PROFILES[rules.composition.profile](_Run(snapshot, rules)))


@dataclass(slots=True)
class _Run:
    """The state of one composition."""

    snapshot: Snapshot
    rules: Rules
    slots: list[Verdict] = field(default_factory=list)
    returned: list[Verdict] = field(default_factory=list)
    resolved_by: str | None = None

    def receive(self, reply: object) -> Verdict:
        """Judge one interceptor's reply and give it its slot (§6.3)."""
        verdict = _judge(reply)
        self.slots.append(verdict)
        self.returned.append(verdict)
        return verdict

    def combined(self, winner: Verdict, decided_by: int | None) -> Combined:
        verdict = aggregate.unite(winner, self.returned)
        return Combined(verdict, decided_by, self.snapshot, tuple(self.slots), self.resolved_by)

    def allowed(self, decided_by: int | None = None) -> Combined:
        """A bare allow with the first evidence given (§5.3, §7.4, §7.5)."""
        for item in self.returned:
            if item.evidence is not None:
                allow = Verdict(Decision.ALLOW, evidence=item.evidence)
                return self.combined(allow, decided_by)
        return self.combined(ALLOW, decided_by)

    def apply(self, verdict: Verdict, slot: int | None = None) -> Verdict | None:
        """Apply a permit to the context (§5.2); the deny it becomes where it does not apply.

        That deny takes `slot` too, where one is given: the interceptor's own
        transform under a sequential profile (§7.4).
        """
        failure = None if verdict.transform is None else self._apply(verdict.transform)
        if failure is not None and slot is not None:
            self.slots[slot] = failure
        return failure

    def _apply(self, transform: Transform) -> Verdict | None:
        if not self.snapshot.point.transform_permitted:
            return Verdict.host_error(HostError.TRANSFORM_TARGET_FORBIDDEN)
        try:
            target = path.apply(self.snapshot.context["target"], transform.path, transform.value)
            folded = self.snapshot.with_target(target, self.rules.bounds)
            if folded.flags & BIG_INTEGERS and self.rules.provider == JCS_SHA256:
                folded.target_text()  # §10.2: nobody may judge what the identity cannot bind
        except path.PathError as refusal:
            return Verdict.host_error(refusal.host_error, refusal.detail)
        except ContextError as refusal:  # §11: the value could not be set
            return Verdict.host_error(HostError.TRANSFORM_INVALID, str(refusal))
        except ValueDomainError as refusal:
            return Verdict.host_error(HostError.CONTEXT_INVALID, f"/target: {refusal.problem}")
        if self.rules.mode is EnforcementMode.ENFORCE:  # §8: else validated, not applied
            self.snapshot = folded
        return None

    def consult(self, deny: Verdict) -> Generator[Effect, object, Verdict]:
        """Put a liftable deny to the resolver where there is one (§9); what then stands."""
        rules = self.rules
        if (
            not deny.is_liftable
            or not rules.resolver
            or rules.mode is EnforcementMode.EVALUATE_ONLY  # §8
            or self.snapshot.point.name is InterceptionPoint.AGENT_SHUTDOWN  # §6.1a
        ):
            return deny
        try:
            request = present(self.snapshot, deny, rules.redactor, rules.provider, rules.bounds)
        except ContextError as refusal:
            verdict = Verdict.host_error(HostError.APPROVAL_RESOLVER_FAILED, str(refusal))
        else:
            reply = yield Consult(request)
            verdict = (
                Verdict.host_error(reply.reason)
                if isinstance(reply, Failed)
                else settle(request, reply)
            )
        lifted = verdict.decision is not Decision.DENY
        self.resolved_by = "approval" if lifted else "rejection"
        self.returned.append(verdict)
        return verdict


def _judge(reply: object) -> Verdict:
    """One reply as a verdict (§5, §6.3); a foreign or malformed path takes the slot too."""
    if isinstance(reply, Failed):
        return Verdict.host_error(reply.reason)
    try:
        verdict = check_verdict(reply)
        if verdict.transform is not None:
            path.parse(verdict.transform.path)
    except VerdictError:
        return Verdict.host_error(HostError.VERDICT_INVALID)
    except path.PathError as refusal:
        return Verdict.host_error(refusal.host_error)
    return verdict


def _first_deny(run: _Run) -> Composing:
    """§7.4 `sequential/first_deny`."""
    last: tuple[Verdict, int] | None = None
    lifted: list[int] = []
    resume = run.rules.composition.on_approval is OnApproval.RESUME
    for index in range(len(run.rules.names)):
        verdict = run.receive((yield Invoke(index, run.snapshot)))
        denied = verdict.decision is Decision.DENY
        if denied:
            verdict = yield from run.consult(verdict)
            if verdict.decision is Decision.DENY:
                return run.combined(verdict, index)
            lifted.append(index)
        if failure := run.apply(verdict, slot=None if denied else index):
            return run.combined(failure, None)
        if denied and not resume:
            return run.combined(verdict, index)
        if verdict.decision is Decision.TRANSFORM:
            last = verdict, index
    if last is not None:
        return run.combined(*last)
    # §7.6: an allow that substitutes for a deny keeps that deny's index.
    return run.allowed(min(lifted, default=None))


def _run_all(run: _Run) -> Composing:
    """§7.4 `sequential/run_all`."""
    last: int | None = None
    failed: int | None = None
    for index in range(len(run.rules.names)):
        verdict = run.receive((yield Invoke(index, run.snapshot)))
        if failure := run.apply(verdict, slot=index):
            # §7.4: it becomes a deny and short-circuits; a value that nothing
            # can bind outranks whatever else was said (§10.2).
            failed = index
            if failure.reason == HostError.CONTEXT_INVALID.value:
                return run.combined(failure, None)
            break
        if verdict.decision is Decision.TRANSFORM:
            last = index
    winner = aggregate.strictest(run.slots)
    verdict = run.slots[winner]
    if verdict.decision is Decision.DENY:
        if winner == failed:
            return run.combined(verdict, None)
        return (yield from _lift(run, verdict, winner))
    if last is not None:  # §7.3: sequential transforms composed, so the last one wins
        return run.combined(run.slots[last], last)
    return run.combined(verdict, None)


def _strictest(run: _Run) -> Composing:
    """§7.5 `parallel/strictest`."""
    yield from _ask_all(run)
    winner = aggregate.strictest(run.slots)
    verdict = run.slots[winner]
    match verdict.decision:
        case Decision.DENY:
            return (yield from _lift(run, verdict, winner))
        case Decision.TRANSFORM:
            if sum(slot.decision is Decision.TRANSFORM for slot in run.slots) > 1:
                return (yield from _synthesise(
                    run, HostError.TRANSFORM_CONFLICT, run.rules.composition.on_transform_conflict
                ))  # fmt: skip
            if failure := run.apply(verdict):
                return run.combined(failure, None)
            return run.combined(verdict, winner)
        case Decision.ALLOW:
            return run.combined(verdict, None)
        case unknown:
            assert_never(unknown)


def _unanimous(run: _Run) -> Composing:
    """§7.5 `parallel/unanimous`."""
    yield from _ask_all(run)
    if all(slot.decision is Decision.ALLOW for slot in run.slots):
        return run.allowed()
    return (yield from _synthesise(
        run, HostError.COMPOSITION_DISAGREEMENT, run.rules.composition.on_disagreement
    ))  # fmt: skip


def _ask_all(run: _Run) -> Generator[Effect, object, None]:
    count = len(run.rules.names)
    replies = yield InvokeAll(run.snapshot, count)
    if not isinstance(replies, list) or len(replies) != count:
        # A driver that lost an answer must not turn it into a permit.
        replies = [Failed(HostError.INTERCEPTOR_FAILED)] * count
    for reply in replies:
        run.receive(reply)


def _synthesise(run: _Run, reason: HostError, policy: SynthesisPolicy | None) -> Composing:
    """A deny that no interceptor returned (§7.5), liftable where the knob says so."""
    deny = Verdict.host_error(reason, liftable=policy is SynthesisPolicy.APPROVAL)
    return (yield from _lift(run, deny, None))


def _lift(run: _Run, deny: Verdict, decided_by: int | None) -> Composing:
    """Consult once over the winning deny; a permit becomes the combined verdict (§7.6)."""
    verdict = yield from run.consult(deny)
    if failure := run.apply(verdict):
        return run.combined(failure, None)
    return run.combined(verdict, decided_by)


_PROFILES: dict[CompositionProfile, Callable[[_Run], Composing]] = {
    CompositionProfile.SEQUENTIAL_FIRST_DENY: _first_deny,
    CompositionProfile.SEQUENTIAL_RUN_ALL: _run_all,
    CompositionProfile.PARALLEL_STRICTEST: _strictest,
    CompositionProfile.PARALLEL_UNANIMOUS: _unanimous,
}
