"""What each member of `expect` demands."""

from __future__ import annotations

from typing import Any

import pytest

from agent_hooks.core.builder import AgentContextBuilder
from agent_hooks.ctk import RunOutcome, RunRecord
from agent_hooks.ctk.assertions import judge

STARTUP, INPUT, OUTPUT = "agent_startup", "input", "output"
ONE, TWO = "sha256:1", "sha256:2"


def contexts() -> list[Any]:
    build = AgentContextBuilder(agent_id="a", framework="f", session_id="s")
    return [
        build.agent_startup(tools_registered=["t"]),
        build.input(content="hello", n=1),
        build.output(content="first"),
        build.output(content="second"),
    ]


def record(point: str = INPUT, /, **members: Any) -> dict[str, Any]:
    return {"interception_point": point, **members}


def failures(
    recorded: list[Any] | None = None,
    run: RunRecord | None = None,
    posture: str = "continue",
    /,
    **expect: Any,
) -> list[str]:
    """The failures of a run that is otherwise as expected."""
    run = run or RunRecord(RunOutcome.COMPLETED, None)
    members = {"interceptions": [], "sequence_strict": False, "run_outcome": "completed", **expect}
    return judge(members, contexts() if recorded is None else recorded, run, posture)


def at(point: str, **more: Any) -> dict[str, Any]:
    return {"interception_point": point, **more}


def passes(*arguments: Any, **expect: Any) -> bool:
    return not failures(*arguments, **expect)


# -- interceptions --


def test_sequence_strict_is_the_default_and_demands_the_exact_list() -> None:
    exact = [at(STARTUP), at(INPUT), at(OUTPUT), at(OUTPUT)]
    members = {"interceptions": exact, "run_outcome": "completed"}
    run = RunRecord(RunOutcome.COMPLETED, None)
    assert judge(members, contexts(), run, "continue") == []
    assert judge({**members, "interceptions": exact[:3]}, contexts(), run, "continue")
    assert judge({**members, "interceptions": [*exact, at("agent_shutdown")]}, contexts(), run, "")
    assert judge({**members, "interceptions": []}, contexts(), run, "continue")


def test_forward_scan_goes_forward_only() -> None:
    assert passes(interceptions=[at(STARTUP), at(OUTPUT)])
    assert passes(interceptions=[at(OUTPUT), at(OUTPUT)])
    assert not passes(interceptions=[at(OUTPUT), at(INPUT)])
    assert not passes(interceptions=[at(OUTPUT), at(OUTPUT), at(OUTPUT)])


def test_forward_scan_takes_the_first_of_a_point_whatever_its_context() -> None:
    first = at(OUTPUT, context={"output.content": "first"})
    second = at(OUTPUT, context={"output.content": "second"})
    assert passes(interceptions=[first, second])
    assert not passes(interceptions=[second])


def test_after_a_failed_scan_no_context_is_looked_at() -> None:
    wrong = at(STARTUP, context={"sequence": 99})
    assert len(failures(interceptions=[wrong])) == 1
    assert len(failures(interceptions=[wrong, at("agent_shutdown")])) == 1


def test_context_values_are_typed_and_must_be_there() -> None:
    assert passes(interceptions=[at(INPUT, context={"input.n": 1, "sequence": 1})])
    for wrong in (1.0, True, "1", None):
        assert not passes(interceptions=[at(INPUT, context={"input.n": wrong})])
    assert not passes(interceptions=[at(INPUT, context={"input.m": None})])


def test_contexts_are_checked_against_the_envelope_unless_told_not_to() -> None:
    recorded = contexts()
    del recorded[1]["input"]["role"]
    assert not passes(recorded, interceptions=[at(INPUT)])
    assert passes(recorded, interceptions=[at(INPUT, context_must_validate=False)])


def test_needles() -> None:
    assert passes(interceptions=[at(INPUT, context_must_contain=["hell", "user"])])
    assert not passes(interceptions=[at(INPUT, context_must_contain=["hell", "heaven"])])
    assert passes(interceptions=[at(INPUT, context_must_not_contain=["heaven"])])
    assert not passes(interceptions=[at(INPUT, context_must_not_contain=["hello"])])


def test_interceptions_absent() -> None:
    assert passes(interceptions_absent=["pre_tool_call", "agent_shutdown"])
    assert not passes(interceptions_absent=["pre_tool_call", OUTPUT])


@pytest.mark.parametrize("sequence", [1, 0, True, 2.5, None, "3"])
def test_sequences_grow_strictly_whatever_is_expected(sequence: Any) -> None:
    recorded = contexts()
    recorded[2]["sequence"] = sequence
    assert not passes(recorded)


# -- outcome and effects --


def test_run_outcome() -> None:
    blocked = RunRecord(RunOutcome.BLOCKED, None)
    assert not passes(None, blocked)
    assert passes(None, blocked, run_outcome="blocked")


def test_posture_selects_one_outcome() -> None:
    either = {
        "posture": "tool_seam_host_error",
        "outcomes": {"continue": "completed", "terminate": "blocked"},
    }
    completed, blocked = (RunRecord(o, None) for o in (RunOutcome.COMPLETED, RunOutcome.BLOCKED))
    assert passes(None, completed, "continue", run_outcome_by_posture=either)
    assert passes(None, blocked, "terminate", run_outcome_by_posture=either)
    assert not passes(None, blocked, "continue", run_outcome_by_posture=either)
    assert not passes(None, completed, "terminate", run_outcome_by_posture=either)
    assert not passes(None, completed, "neither", run_outcome_by_posture=either)


def test_a_posture_that_contradicts_the_outcome_is_a_failure() -> None:
    either = {
        "posture": "tool_seam_host_error",
        "outcomes": {"continue": "blocked", "terminate": "blocked"},
    }
    assert not passes(run_outcome_by_posture=either)


def test_final_output_is_asserted_only_where_the_key_is_there_and_null_counts() -> None:
    said = RunRecord(RunOutcome.COMPLETED, "something")
    assert passes(None, said)
    assert passes(None, said, final_output="something")
    assert not passes(None, said, final_output=None)
    assert passes(final_output=None)
    assert not passes(None, RunRecord(RunOutcome.COMPLETED, 1.0), final_output=1)


def test_tool_invocations_are_the_exact_list() -> None:
    calls = [{"name": "t", "args": {"n": 1}}, {"name": "u", "args": {}}]
    run = RunRecord(RunOutcome.COMPLETED, None, calls)
    assert passes(None, run, tool_invocations=calls)
    assert not passes(None, run, tool_invocations=calls[:1])
    assert not passes(None, run, tool_invocations=calls[::-1])
    assert not passes(None, run, tool_invocations=[{"name": "t", "args": {"n": 1.0}}, calls[1]])
    assert not passes(tool_invocations=calls)


def test_tool_not_invoked() -> None:
    run = RunRecord(RunOutcome.COMPLETED, None, [{"name": "t", "args": {}}])
    assert passes(None, run, tool_not_invoked=["u"])
    assert not passes(None, run, tool_not_invoked=["u", "t"])


def test_released_output_is_exact_and_persisted_is_searched() -> None:
    run = RunRecord(RunOutcome.COMPLETED, None, released_output="ab", persisted={"log": ["ab"]})
    assert passes(None, run, released_output="ab", persisted_must_not_contain=["cd"])
    assert not passes(None, run, released_output="abc")
    assert not passes(None, run, persisted_must_not_contain=["cd", "ab"])
    assert passes(persisted_must_not_contain=["ab"])
    assert not passes(released_output="ab")


# -- records --


@pytest.mark.parametrize(
    ("identities", "equal"),
    [
        ([(ONE, ONE), (TWO, TWO)], True),
        ([(None, None)], True),
        ([(ONE, ONE), (ONE, TWO)], False),
        ([(ONE, None)], False),
    ],
)
def test_identities_equal(identities: Any, equal: bool) -> None:
    run = RunRecord(RunOutcome.COMPLETED, None, identities=identities)
    assert passes(None, run, identities_equal=equal)
    assert not passes(None, run, identities_equal=not equal)


@pytest.mark.parametrize("equal", [True, False])
def test_identities_that_are_not_reported_fail(equal: bool) -> None:
    assert not passes(identities_equal=equal)


def test_record_assertions() -> None:
    run = RunRecord(
        RunOutcome.COMPLETED, None, records=[record(decided_by=None, verdict={"decision": "deny"})]
    )
    assert passes(None, run, records=[record(**{"assert": {"verdict.decision": "deny"}})])
    assert passes(None, run, records=[record(**{"assert": {"decided_by": None}})])
    assert not passes(None, run, records=[record(**{"assert": {"decided_by": 0}})])
    assert not passes(None, run, records=[record(**{"assert": {"resolved_by": None}})])
    assert passes(None, run, records=[record(absent=["resolved_by"], present=["decided_by"])])
    assert not passes(None, run, records=[record(absent=["decided_by"])])
    assert not passes(None, run, records=[record(present=["timestamp"])])


def test_a_bad_path_is_never_absent() -> None:
    run = RunRecord(RunOutcome.COMPLETED, None, records=[record()])
    with pytest.raises(ValueError, match="bad syntax"):
        failures(None, run, records=[record(absent=["verdicts[]"])])


def test_each_expected_record_consumes_one() -> None:
    run = RunRecord(
        RunOutcome.COMPLETED, None, records=[record(n=1), record(STARTUP, n=2), record(n=3)]
    )
    ones = [record(**{"assert": {"n": 1}}), record(**{"assert": {"n": 3}})]
    assert passes(None, run, records=ones)
    assert not passes(None, run, records=[ones[1]])
    assert not passes(None, run, records=[*ones, record()])
    assert not passes(None, run, records=[ones[0], ones[1], record(STARTUP)])


def test_expected_records_fail_where_the_harness_returns_none() -> None:
    assert not passes(records=[record()])


def test_what_the_kit_does_not_know_fails() -> None:
    assert failures(tool_invocation=[]) == ["expect.tool_invocation: this kit does not know it"]
