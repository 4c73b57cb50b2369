"""Plugins that answer what is no verdict, late, or never (PROTOCOL: Verdicts fail closed)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.supervisor import Binding, Supervisor
from tests.processes.support import (
    EMITTERS,
    PROFILES,
    QUICK,
    SLACK,
    Allower,
    bad,
    context,
    judge,
    leaving_nothing,
    ready,
    status,
    until,
)

INVALID = (
    "garbage",
    "empty_message",
    "no_decision",
    "unspecified_decision",
    "unknown_decision",
    "negative_decision",
    "decision_of_wrong_type",
    "unknown_field_in_answer",
    "unknown_field_in_verdict",
    "unknown_field_in_warning",
    "unknown_field_in_transform",
    "unknown_field_in_evidence",
    "unknown_field_in_map_entry",
    "reason_of_bad_utf8",
    "reason_of_surrogate_utf8",
    "reserved_reason",
    "json_cut_short",
    "json_empty",
    "json_two_values",
    "json_duplicate_keys",
    "json_nan",
    "json_infinity",
    "json_beyond_double",
    "json_lone_surrogate",
    "json_lone_surrogate_key",
    "json_byte_order_mark",
    "json_depth_10000",
    "json_depth_129",
    "approval_no_object",
    "approval_duplicate_keys",
    "approval_on_allow",
    "transform_on_allow",
    "transform_missing",
    "evidence_too_large",
    "answer_of_20_mib",
)
FAILED = ("raise", "own_deadline_exceeded", "own_cancelled", "own_ok_details", "unavailable")
REASONS = {
    **dict.fromkeys(INVALID, "host_error:verdict_invalid"),
    **dict.fromkeys(FAILED, "host_error:interceptor_failed"),
    "hang": "host_error:interceptor_timeout",
}
TIMEOUTS = {"hang": 0.3}


@pytest.fixture(scope="module", params=["serve", "stream"])
def plugin(temporary: Path, request: pytest.FixtureRequest) -> Iterator[Supervisor]:
    """One process that misbehaves in every answer, and at the end leaves nothing.

    It is called unary, or on streams.
    """
    manifest = bad(request.param, points=("pre_tool_call",))
    with leaving_nothing(temporary):
        with Supervisor([Binding("p", manifest)], QUICK) as supervisor:
            yield supervisor


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("fault", REASONS)
def test_faulty_answer_takes_its_slot_and_the_others_compose(
    plugin: Supervisor, fault: str, profile: str, kind: Any
) -> None:
    """§6.3, §7: the slot's deny, decided_by its index, one record, in time."""
    timeout = TIMEOUTS.get(fault, 10)
    before, after = Allower(), Allower()
    judged = judge(
        kind,
        context(fault),
        before,
        plugin.interceptor("p"),
        after,
        timeout=timeout,
        composition=PROFILES[profile],
    )
    slots = [(slot.decision.value, slot.reason) for slot in judged.record.verdicts]
    faulty, rest = ("deny", REASONS[fault]), ("allow", None)
    stops = profile == "first_deny"
    synthesised = profile == "unanimous"
    assert judged.decision == "deny"
    assert slots == ([rest, faulty] if stops else [rest, faulty, rest])
    assert judged.reason == ("host_error:composition_disagreement" if synthesised else faulty[1])
    assert judged.record.decided_by == (None if synthesised else 1)
    assert (before.seen, after.seen) == (1, 0 if stops else 1)
    assert judged.records == [judged.record]
    assert judged.seconds < timeout + SLACK


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize(("fault", "decision"), [("allow", "allow"), ("good_rewrite", "transform")])
def test_the_same_plugin_may_answer_well(
    plugin: Supervisor, fault: str, decision: str, kind: Any
) -> None:
    """§5: so the table above refuses for its faults, not for its framing."""
    assert judge(kind, context(fault), plugin.interceptor("p")).decision == decision


@pytest.mark.parametrize("kind", EMITTERS)
def test_late_allow_never_lets_through(plugin: Supervisor, tmp_path: Path, kind: Any) -> None:
    """PROTOCOL Deadlines: the host's clock decides; a late answer is dropped."""
    mark = tmp_path / "answered"
    judged = judge(kind, context(sleep=0.6, mark=mark), plugin.interceptor("p"), timeout=0.2)
    assert judged.reason == "host_error:interceptor_timeout"
    assert judged.seconds < 0.2 + SLACK
    until(mark.exists)
    assert judge(kind, context("json_nan"), plugin.interceptor("p")).decision == "deny"
    assert [record.verdict.decision.value for record in judged.records] == ["deny"]


@pytest.mark.parametrize("kind", EMITTERS)
def test_own_timeout_is_never_taken_for_the_plugins(plugin: Supervisor, kind: Any) -> None:
    """PROTOCOL Deadlines: the host's clock decides, to the millisecond, every time."""
    interceptor = plugin.interceptor("p")
    for _ in range(40):
        judged = judge(kind, context("hang"), interceptor, timeout=0.02)
        assert judged.reason == "host_error:interceptor_timeout"


def test_answers_do_not_end_the_plugin(plugin: Supervisor) -> None:
    """PROTOCOL Lifecycle: a bad answer is the slot's fault, not a reason to restart."""
    assert status(plugin)["restarts"] == 0
    assert ready(plugin)
