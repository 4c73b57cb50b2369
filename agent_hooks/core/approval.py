"""The approval seam (§9): what is shown to whom, and what an answer is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from agent_hooks.core.context import AgentContext, Bounds, ContextError, Snapshot, check_context
from agent_hooks.core.identity import Provider, identify
from agent_hooks.core.points import InterceptionPoint
from agent_hooks.core.reasons import HostError
from agent_hooks.core.verdict import Decision, Verdict, VerdictError, check_verdict


class ApprovalOutcome(str, Enum):
    """What a resolver may answer (§9)."""

    APPROVE = "approve"
    REJECT = "reject"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A liftable deny and the context as presented (§9).

    Attributes:
        context_identity: identity of `context` as presented; None without a
            provider.
        verdict: the deny that may be lifted.
        context: the resolver's own copy, redacted as the host's policy says.
    """

    context_identity: str | None
    interception_point: InterceptionPoint
    verdict: Verdict
    context: AgentContext


@dataclass(frozen=True, slots=True)
class ApprovalResolution:
    """A resolver's answer (§9). `context_identity` echoes the request's."""

    outcome: ApprovalOutcome
    context_identity: str | None
    verdict: Verdict | None = None


class ApprovalResolver(Protocol):
    """Decides whether a liftable deny is lifted; sync or async."""

    def resolve(self, request: ApprovalRequest, /) -> ApprovalResolution:
        """Answer one request."""
        ...


def present(
    snapshot: Snapshot,
    deny: Verdict,
    redactor: Callable[[AgentContext], AgentContext] | None,
    provider: Provider,
    bounds: Bounds,
) -> ApprovalRequest:
    """The request for one consultation; its identity is that of what is shown (§9).

    Raises:
        ContextError: the redactor raised, or made something that is no context.
    """
    shown = snapshot
    if redactor is not None:
        try:
            redacted = redactor(snapshot.copy())
        except Exception as exc:  # noqa: BLE001 - a redactor's failure is a value: fail closed
            raise ContextError(f"approval redactor raised {type(exc).__name__} (§9)") from None
        shown = check_context(redacted, bounds, snapshot.context["spec"])
    identity = identify(shown, provider)
    return ApprovalRequest(identity, snapshot.point.name, deny, shown.copy())


def settle(request: ApprovalRequest, answer: object) -> Verdict:
    """The verdict that an answer amounts to: a permit lifts, a deny stands.

    §9 fixes the order of the checks, so that independent hosts report the same
    reason: echo, shape, §5, consistency.
    """
    match answer:
        case ApprovalResolution():
            outcome, identity, carried = answer.outcome, answer.context_identity, answer.verdict
        case dict():
            try:
                outcome, identity, carried = _members(answer)
            except Exception:  # noqa: BLE001 - a subclass may do anything when it is read
                return Verdict.host_error(HostError.APPROVAL_RESOLVER_FAILED)
        case _:
            return Verdict.host_error(HostError.APPROVAL_RESOLVER_FAILED)
    if type(identity) is not type(request.context_identity) or identity != request.context_identity:
        return Verdict.host_error(HostError.APPROVAL_IDENTITY_MISMATCH)
    try:
        outcome = ApprovalOutcome(outcome)
    except ValueError:
        return Verdict.host_error(HostError.APPROVAL_RESOLVER_FAILED)
    if (carried is None) != (outcome is ApprovalOutcome.UNRESOLVED):
        return Verdict.host_error(HostError.APPROVAL_RESOLVER_FAILED)
    if outcome is ApprovalOutcome.UNRESOLVED:
        return Verdict.host_error(HostError.APPROVAL_UNRESOLVED)
    return _carried(outcome, carried)


def _members(answer: dict[str, Any]) -> tuple[Any, Any, Any]:
    return answer.get("outcome"), answer.get("context_identity"), answer.get("verdict")


def _carried(outcome: ApprovalOutcome, carried: object) -> Verdict:
    try:
        verdict = check_verdict(carried)
    except VerdictError:
        return Verdict.host_error(HostError.VERDICT_INVALID)
    if (verdict.decision is Decision.DENY) != (outcome is ApprovalOutcome.REJECT):
        return Verdict.host_error(HostError.VERDICT_INVALID)
    return verdict
