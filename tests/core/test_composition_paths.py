"""Every path through the four profiles, against a second reading of the text.

Up to two interceptors the walk takes the whole alphabet of replies and answers. With
three it leaves out replies of a class that stays represented: of the failed slots
(foreign root, timeout, garbage) the timeout stays, of the transforms that do not apply
the missing place stays, and of the answers that do not lift the refusal stays; and it
leaves out evaluate_only without a resolver, which up to two interceptors is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from agent_hooks.core.effects import Rules
from agent_hooks.core.identity import context_identity
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from tests.core.oracle import ANSWERS, REPLIES, Case, Said, tell
from tests.core.support import Run, aliased, context, drive, every_path

KNOBS = {
    "sequential/first_deny": ("on_approval", ("stop", "resume")),
    "sequential/run_all": ("", (None,)),
    "parallel/strictest": ("on_transform_conflict", ("deny", "approval")),
    "parallel/unanimous": ("on_disagreement", ("deny", "approval")),
}
CASES = [
    Case(profile, knob, mode, resolver)
    for profile, (_, knobs) in KNOBS.items()
    for knob in knobs
    for mode in ("enforce", "evaluate_only")
    for resolver in (True, False)
]
BOUNDARIES = [
    Case(case.profile, case.knob, case.mode, True, point)
    for case in CASES
    if case.resolver
    for point in ("agent_startup", "agent_shutdown")
]
UNBOUND = [Case(case.profile, case.knob, case.mode, bound=False) for case in CASES if case.resolver]
ALL_REPLIES, ALL_ANSWERS = tuple(REPLIES), tuple(ANSWERS)
FEW_REPLIES = ("allow", "noted", "deny", "liftable", "rewrite", "misplaced", "timeout")
FEW_ANSWERS = ("permit", "amend", "amend_misplaced", "refuse")


def rules_of(case: Case, count: int) -> Rules:
    knob, _ = KNOBS[case.profile]
    wire = {"profile": case.profile, **({knob: case.knob} if knob else {})}
    return Rules(
        names=(None,) * count,
        composition=CompositionConfig.from_wire(wire),
        mode=EnforcementMode(case.mode),
        provider="jcs-sha256" if case.bound else None,
        resolver=case.resolver,
    )


@cache
def raw_of(point: str, alias: bool) -> Any:
    return aliased(point) if alias else context(point)


@cache
def number_of(point: str) -> dict[str | None, int | None]:
    """Identity → the number `n` of the context that has it."""
    numbers: dict[str | None, int | None] = {None: None}
    for n in (*range(9), 99):
        changed = context(point)
        member = next(iter(changed.keys() & {"agent_init", "summary", "tool_call"}))
        (changed[member].get("args") or changed[member])["n"] = changed["target"]["n"] = n
        numbers[context_identity(changed)] = n
    return numbers


def observe(case: Case, run: Run) -> dict[str, Any]:
    """An emission in the oracle's terms."""
    record, verdict = run.wire, run.wire["verdict"]
    numbers = number_of(case.point)
    assert numbers[record["input_identity"]] == (0 if case.bound else None)
    if case.bound:
        for request in run.asked:
            # §9: bound to the content as shown, after what was folded.
            assert numbers[request.context_identity] == request.context["target"]["n"]
    return {
        "verdict": Said(
            verdict["decision"],
            verdict.get("reason"),
            "approval" in verdict,
            tuple(item["reason"] for item in verdict.get("warnings", ())),
            tuple(verdict.get("result_labels", ())),
            verdict.get("evidence", {}).get("artefact"),
            verdict.get("transform", {}).get("path"),
        ),
        "decided_by": record["decided_by"],
        "resolved_by": record.get("resolved_by"),
        "fold_truncated": record.get("fold_truncated"),
        "slots": [(slot["decision"], slot.get("reason")) for slot in record.get("verdicts", ())],
        "proceeds": run.emitted.record.proceeds,
        "target": run.emitted.target["n"] if run.emitted.rewritten else None,
        "seen": [snapshot.context["target"]["n"] for _, snapshot in run.invoked],
        "asked": [(asked.verdict.reason, asked.context["target"]["n"]) for asked in run.asked],
        "enforced": numbers[record["enforced_identity"]],
    }


def uphold(case: Case, run: Run, outcome: dict[str, Any]) -> None:
    """What holds on every path, whatever the oracle says."""
    decisions = [decision for decision, _ in outcome["slots"]]
    plain = [slot for slot in run.emitted.record.verdicts if slot.decision.value == "deny"]
    verdict = run.emitted.verdict
    if case.mode == "evaluate_only":
        assert outcome["proceeds"]
        assert not run.emitted.rewritten
        assert not run.asked
        assert run.wire["enforced_identity"] == run.wire["input_identity"]
    if case.point == "agent_shutdown" or not case.resolver:
        assert not run.asked
    if verdict.decision.value != "deny":
        # Never an allow that nobody gave: all permitted, or a resolver lifted.
        assert decisions
        assert "deny" not in decisions or outcome["resolved_by"] == "approval"
        reasons = {slot.reason for slot in plain}
        if case.profile != "parallel/unanimous":
            assert all(reason and reason.startswith("ask-") for reason in reasons)
    else:
        assert not verdict.result_labels
    assert len(run.asked) <= (len(decisions) if case.knob == "resume" else 1)
    assert [index for index, _ in run.invoked] == list(range(len(decisions)))


def walk(
    case: Case,
    count: int,
    replies: tuple[str, ...] = ALL_REPLIES,
    answers: tuple[str, ...] = ALL_ANSWERS,
) -> int:
    """Check every path; how many there were."""
    rules = rules_of(case, count)
    raw = raw_of(case.point, alias=not case.resolver or case.point != "pre_tool_call")

    def once(choose: Callable[[int], int]) -> None:
        said: list[str] = []
        answered: list[str] = []

        def reply(index: int, _: object) -> object:
            said.append(replies[choose(len(replies))])
            return REPLIES[said[-1]][index][0]

        def answer(request: Any) -> object:
            answered.append(answers[choose(len(answers))])
            return ANSWERS[answered[-1]][0](request.context_identity)

        run = drive(raw, rules, reply, answer)
        outcome = observe(case, run)
        expected = tell(case, count, said, answered)
        assert outcome == expected, f"{case}: {said} {answered}"
        uphold(case, run, outcome)

    return sum(1 for _ in every_path(once))


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("count", [0, 1, 2])
def test_every_path_of_up_to_two_interceptors_ends_as_the_text_says(case: Case, count: int) -> None:
    """§7, §8, §9, §10.3"""
    assert walk(case, count) >= (len(ALL_REPLIES) if count else 1)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.mode == "enforce" or case.resolver], ids=str
)
def test_every_path_of_three_interceptors_ends_as_the_text_says(case: Case) -> None:
    """§7, §8, §9, §10.3"""
    assert walk(case, 3, FEW_REPLIES, FEW_ANSWERS) > len(FEW_REPLIES)


@pytest.mark.parametrize("case", BOUNDARIES, ids=str)
def test_the_boundary_points_forbid_transforms_and_shutdown_consults_nobody(case: Case) -> None:
    """§3, §6.1a"""
    assert walk(case, 2, answers=FEW_ANSWERS)


@pytest.mark.parametrize("case", UNBOUND, ids=str)
def test_without_a_provider_only_identities_and_the_integer_domain_change(case: Case) -> None:
    """§10.1: approvals echo null, and no integer is too large for the core."""
    assert walk(case, 2, answers=FEW_ANSWERS)
