"""The approval seam (§9)."""

from __future__ import annotations

import copy
from itertools import combinations
from typing import Any

import pytest

from agent_hooks.core.approval import (
    ApprovalOutcome,
    ApprovalRequest,
    ApprovalResolution,
    present,
    settle,
)
from agent_hooks.core.context import Bounds, ContextError, Snapshot, check_context
from agent_hooks.core.effects import Failed
from agent_hooks.core.identity import IdentityProvider, context_identity
from agent_hooks.core.points import InterceptionPoint
from agent_hooks.core.reasons import HostError
from agent_hooks.core.verdict import ALLOW, Decision, Verdict
from tests.core.support import SPEC, approve, context, run, validator

ASK = Verdict.escalate(reason="ask")
DENY = {"decision": "deny", "reason": "no"}
ALLOWED = {"decision": "allow"}
REWRITE = {"decision": "transform", "transform": {"path": "$target.n", "value": 7}}
FAILED = HostError.APPROVAL_RESOLVER_FAILED.value
MISMATCH = HostError.APPROVAL_IDENTITY_MISMATCH.value
UNRESOLVED = HostError.APPROVAL_UNRESOLVED.value
INVALID = HostError.VERDICT_INVALID.value


def snapshot(**changed: Any) -> Snapshot:
    return check_context(context(**changed), Bounds(), SPEC)


def request(identity: str | None = "sha256:1") -> ApprovalRequest:
    return ApprovalRequest(identity, InterceptionPoint.PRE_TOOL_CALL, ASK, context())


def both(members: dict[str, Any]) -> list[Any]:
    """The answer as JSON and, where it can be one, as an object."""
    forms: list[Any] = [members]
    if {"outcome", "context_identity"} <= members.keys():
        forms.append(ApprovalResolution(**members))
    return forms


@pytest.mark.parametrize(
    ("outcome", "verdict", "stands"),
    [
        ("approve", ALLOWED, ALLOWED),
        ("approve", REWRITE, REWRITE),
        ("reject", DENY, DENY),
        ("reject", {**DENY, "approval": {"x": 1}}, {**DENY, "approval": {"x": 1}}),
    ],
)
@pytest.mark.parametrize("identity", ["sha256:1", None])
def test_a_consistent_answer_is_the_verdict_it_carries(
    outcome: str, verdict: Any, stands: Any, identity: str | None
) -> None:
    """§9"""
    members = {"outcome": outcome, "context_identity": identity, "verdict": verdict}
    assert validator_of_resolutions().is_valid(members)
    for answer in both(members):
        assert settle(request(identity), answer).to_wire() == stands
    objects = ApprovalResolution(ApprovalOutcome(outcome), identity, Verdict.from_wire(verdict))
    assert settle(request(identity), objects).to_wire() == stands


def validator_of_resolutions() -> Any:
    schema = validator("approval.schema.json")
    return schema.evolve(schema={**schema.schema, "$ref": "#/$defs/resolution"})


# One fault for each step, in the order of the steps.
FAULTS: list[tuple[str, dict[str, Any]]] = [
    (MISMATCH, {"context_identity": "sha256:2"}),
    (FAILED, {"outcome": "perhaps"}),
    (INVALID, {"verdict": {"decision": "allow", "reason": "host_error:x"}}),
    (INVALID, {"outcome": "reject"}),
]


@pytest.mark.parametrize("faults", [f for n in range(1, 5) for f in combinations(range(4), n)])
def test_the_first_step_that_fails_gives_the_reason(faults: tuple[int, ...]) -> None:
    """§9: echo, shape, §5, consistency, in this order"""
    members = {"outcome": "approve", "context_identity": "sha256:1", "verdict": ALLOWED}
    for fault in reversed(faults):
        members |= FAULTS[fault][1]
    for answer in both(members):
        stands = settle(request(), answer)
        assert stands.is_plain_deny
        assert stands.reason == FAULTS[faults[0]][0]


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        pytest.param({"outcome": "unresolved"}, UNRESOLVED, id="unresolved"),
        pytest.param({"outcome": "unresolved", "verdict": DENY}, FAILED, id="unresolved-but-deny"),
        pytest.param({"outcome": "approve"}, FAILED, id="approve-without-verdict"),
        pytest.param({"outcome": "reject", "verdict": None}, FAILED, id="reject-without-verdict"),
        pytest.param({"verdict": ALLOWED}, FAILED, id="no-outcome"),
        pytest.param({"outcome": "APPROVE", "verdict": ALLOWED}, FAILED, id="upper-case"),
        pytest.param({"outcome": True, "verdict": ALLOWED}, FAILED, id="boolean"),
        pytest.param({"outcome": ["approve"], "verdict": ALLOWED}, FAILED, id="array"),
        pytest.param({"outcome": "approve", "verdict": DENY}, INVALID, id="approve-carrying-deny"),
        pytest.param({"outcome": "reject", "verdict": REWRITE}, INVALID, id="reject-transform"),
        pytest.param({"outcome": "approve", "verdict": "allow"}, INVALID, id="verdict-is-text"),
        pytest.param({"outcome": "approve", "verdict": {}}, INVALID, id="verdict-is-empty"),
        pytest.param(
            {"outcome": "approve", "verdict": Verdict("allow")},  # type: ignore[arg-type]
            INVALID,
            id="verdict-built-wrong",
        ),
    ],
)
def test_an_answer_that_lifts_nothing_is_a_plain_deny(members: Any, reason: str) -> None:
    """§9"""
    for answer in both({"context_identity": "sha256:1", **members}):
        stands = settle(request(), answer)
        assert (stands.decision, stands.reason) == (Decision.DENY, reason)
        assert stands.message is None


@pytest.mark.parametrize("answer", [None, True, "approve", 5, [], ALLOW, object()], ids=repr)
def test_what_is_no_resolution_at_all_is_a_failed_resolver(answer: object) -> None:
    """§9"""
    assert settle(request(), answer).reason == FAILED


@pytest.mark.parametrize(
    ("asked", "echoed"),
    [
        ("sha256:1", None),
        ("sha256:1", "SHA256:1"),
        ("sha256:1", "sha256:1 "),
        ("sha256:1", b"sha256:1"),
        (None, ""),
        (None, "null"),
        (None, False),
        ("", None),
    ],
)
def test_the_echo_is_exact(asked: str | None, echoed: Any) -> None:
    """§9: byte for byte; null echoes as null"""
    members = {"outcome": "approve", "context_identity": echoed, "verdict": ALLOWED}
    for answer in both(members):
        assert settle(request(asked), answer).reason == MISMATCH


class Hostile(dict[str, Any]):
    """A mapping that misbehaves when it is read."""

    def get(self, *_: Any) -> Any:
        raise RuntimeError("canary")


def test_an_answer_that_raises_when_it_is_read_is_a_failed_resolver() -> None:
    """§9"""
    assert settle(request(), Hostile(outcome="approve")).reason == FAILED


# --- what is presented ---


def test_a_request_shows_a_copy_and_its_identity() -> None:
    """§9"""
    held = snapshot()
    shown = present(held, ASK, None, "jcs-sha256", Bounds())
    assert shown.context == context()
    assert shown.context_identity == context_identity(context())
    assert shown.interception_point is InterceptionPoint.PRE_TOOL_CALL
    assert shown.verdict is ASK
    shown.context["target"].clear()
    assert held.context == context()


def test_an_identity_follows_the_redacted_context() -> None:
    """§9: the approval is bound to what was shown"""

    def redact(raw: Any) -> Any:
        raw["target"]["n"] = raw["tool_call"]["args"]["n"] = "[redacted]"
        return raw

    held = snapshot()
    shown = present(held, ASK, redact, "jcs-sha256", Bounds())
    redacted = redact(context())
    assert shown.context == redacted
    assert shown.context_identity == context_identity(redacted)
    assert held.context == context()


def raises(_: Any) -> Any:
    raise KeyError("canary")


@pytest.mark.parametrize(
    "redactor",
    [
        pytest.param(raises, id="raises"),
        pytest.param(lambda _: None, id="returns-nothing"),
        pytest.param(lambda raw: {**raw, "spec": "agent-hooks/9.9"}, id="changes-the-version"),
        pytest.param(lambda raw: raw.pop("tool_call"), id="returns-a-part"),
        pytest.param(lambda raw: {**raw, "target": float("nan")}, id="not-json"),
        pytest.param(lambda raw: {**raw, "target": {"n": 2**53}}, id="beyond-the-domain"),
    ],
)
def test_a_redactor_that_fails_fails_the_consultation_closed(redactor: Any) -> None:
    """§9"""
    with pytest.raises(ContextError) as caught:
        present(snapshot(), ASK, redactor, "jcs-sha256", Bounds())
    assert "canary" not in str(caught.value)
    done = run(context(), ASK, answer=approve(ALLOWED), redactor=redactor)
    assert not done.asked
    assert done.reason == FAILED
    assert done.wire["resolved_by"] == "rejection"
    assert done.wire["decided_by"] == 0
    assert "canary" not in str(done.wire)


def test_redaction_leaves_the_record_and_enforcement_alone() -> None:
    """§9"""

    def redact(raw: Any) -> Any:
        raw["target"]["n"] = raw["tool_call"]["args"]["n"] = "[redacted]"
        return raw

    done = run(context(), ASK, answer=approve(ALLOWED), redactor=redact)
    assert done.asked[0].context["target"]["n"] == "[redacted]"
    assert done.wire["input_identity"] == done.wire["enforced_identity"]
    assert done.wire["input_identity"] == context_identity(context())
    assert not done.emitted.rewritten
    assert done.emitted.record.proceeds


def test_an_approved_transform_is_applied_to_the_whole_context_not_the_redacted_one() -> None:
    """§9"""
    done = run(
        context(),
        ASK,
        answer=approve(REWRITE),
        redactor=lambda raw: {**raw, "target": {}, "tool_call": {**raw["tool_call"], "args": {}}},
    )
    assert done.emitted.target == {"n": 7, "to": {"list": ["a", "b"]}}


def test_the_identity_presented_is_that_of_the_folded_context() -> None:
    """§9: after any transforms that folded earlier"""
    done = run(context(), REWRITE, ASK, answer=approve(ALLOWED))
    folded = copy.deepcopy(context())
    folded["target"]["n"] = folded["tool_call"]["args"]["n"] = 7
    assert done.asked[0].context == folded
    assert done.asked[0].context_identity == context_identity(folded)


def test_a_custom_provider_names_what_is_shown() -> None:
    """§10.1"""
    provider = IdentityProvider("by-number", lambda raw: str(raw["target"]["n"]))
    done = run(context(), REWRITE, ASK, answer=approve(ALLOWED), provider=provider)
    assert done.asked[0].context_identity == "7"
    assert done.wire["resolved_by"] == "approval"
    assert (done.wire["input_identity"], done.wire["enforced_identity"]) == ("0", "7")


@pytest.mark.parametrize("answer", [None, Failed(HostError.APPROVAL_RESOLVER_FAILED)], ids=repr)
def test_a_resolver_that_gives_nothing_leaves_the_deny_and_its_index(answer: object) -> None:
    """§9, §7.6"""
    done = run(context(), ALLOW, ASK, answer=lambda _: answer)
    assert done.reason == FAILED
    assert done.wire["decided_by"] == 1
    assert done.wire["resolved_by"] == "rejection"
    assert not done.emitted.record.proceeds
