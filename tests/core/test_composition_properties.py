"""Properties of composition with up to eight interceptors and any JSON in the context."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_hooks.core import values
from agent_hooks.core.identity import context_identity
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from tests.core.oracle import ANSWERS, MOST, REPLIES, Case, tell
from tests.core.support import Run, aliased, approve, context, drive, run
from tests.core.test_composition_paths import CASES, observe, rules_of, uphold
from tests.core.test_path import places, written
from tests.core.test_values import json_values, numbers, text, typed

EVALUATE = EnforcementMode.EVALUATE_ONLY
PROFILES = tuple(dict.fromkeys(case.profile for case in CASES))
ALLOW: dict[str, Any] = {"decision": "allow"}
DENY = {"decision": "deny", "reason": "no"}
BOUND = "beyond"  # §10.2 ends an emission at once, whatever was said before

scripts = st.lists(st.sampled_from(sorted(REPLIES)), max_size=MOST)
plain_scripts = st.lists(st.sampled_from(sorted(REPLIES.keys() - {BOUND})), max_size=MOST - 1)
answers = st.lists(st.sampled_from(sorted(ANSWERS)), min_size=MOST, max_size=MOST)
cases = st.builds(
    lambda case, point: Case(case.profile, case.knob, case.mode, case.resolver, point),
    st.sampled_from(CASES),
    st.sampled_from(["pre_tool_call"] * 4 + ["agent_startup", "agent_shutdown"]),
)


def play(case: Case, script: list[str], answered: list[str], raw: Any = None) -> Run:
    """One emission over a script of names."""
    left = iter(answered)
    return drive(
        raw or context(case.point),
        rules_of(case, len(script)),
        lambda index, _: REPLIES[script[index]][index][0],
        lambda request: ANSWERS[next(left)][0](request.context_identity),
    )


def under(profile: str, **rules: Any) -> dict[str, Any]:
    return {"composition": CompositionConfig.from_wire({"profile": profile}), **rules}


@settings(max_examples=300)
@given(cases, scripts, answers, st.booleans())
def test_long_stories_end_as_the_text_says(
    case: Case, script: list[str], answered: list[str], alias: bool
) -> None:
    """§7, §8, §9, §10.3"""
    done = play(case, script, answered, aliased(case.point) if alias else None)
    outcome = observe(case, done)
    heard = script[: len(done.invoked)]
    assert outcome == tell(case, len(script), heard, answered[: len(done.asked)])
    uphold(case, done, outcome)


@given(cases, scripts, answers)
def test_the_same_story_ends_the_same(case: Case, script: list[str], answered: list[str]) -> None:
    """§1.3"""
    one, other = play(case, script, answered), play(case, script, answered)
    assert one.emitted == other.emitted
    assert [request.verdict for request in one.asked] == [
        request.verdict for request in other.asked
    ]


@given(st.sampled_from(CASES), plain_scripts, answers, st.integers(0, MOST - 1))
def test_one_more_plain_deny_never_turns_a_deny_into_an_allow(
    case: Case, script: list[str], answered: list[str], at: int
) -> None:
    """§5.1: in every profile where severity decides"""
    denied = [*script[:at], "deny", *script[at:]]
    done = play(case, denied, answered)
    if case.profile == "parallel/unanimous" and case.knob == "approval":
        return  # §7.5: there the synthesised deny can be lifted
    if case.knob == "stop" and done.wire.get("resolved_by") == "approval":
        return  # §7.4: an approval ended the emission before that deny was reached
    assert done.emitted.verdict.decision.value == "deny"


@settings(max_examples=30)
@given(
    st.permutations(range(5)), st.lists(st.sampled_from(sorted(REPLIES)), min_size=5, max_size=5)
)
def test_in_the_parallel_profiles_the_order_changes_no_decision(
    order: list[int], script: list[str]
) -> None:
    """§7.5: nothing folds"""
    for case in CASES:
        if case.profile.startswith("parallel") and not case.resolver:
            one = play(case, script, [])
            other = play(case, [script[index] for index in order], [])
            decision = one.emitted.verdict.decision
            assert other.emitted.verdict.decision is decision
            assert one.emitted.verdict.is_liftable == other.emitted.verdict.is_liftable


@given(st.sampled_from(PROFILES), st.integers(1, MOST), json_values)
def test_where_all_allow_nothing_moves(profile: str, count: int, value: Any) -> None:
    """§6"""
    raw = context(extensions={"ours": value}, target={"v": value})
    done = run(raw, *[ALLOW] * count, **under(profile, provider=None))
    assert done.emitted.record.proceeds
    assert not done.emitted.rewritten
    assert len(done.invoked) == count
    assert done.wire["decided_by"] is None
    assert all(
        typed(snapshot.context["target"]) == typed(raw["target"]) for _, snapshot in done.invoked
    )


small_values = st.recursive(
    st.none() | numbers | text,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
    max_leaves=3,
)


@st.composite
def foldings(draw: st.DrawFn) -> tuple[Any, list[tuple[list[str | int], Any]], list[Any]]:
    """Arguments, places in them with new values, and the arguments after each step."""
    first, _ = draw(places())
    args: Any = {"top": first}
    steps, states = [], [args]
    for _ in range(draw(st.integers(1, MOST - 1))):
        at: Any = args
        place: list[str | int] = ["top"]
        at = at["top"]
        while draw(st.booleans()):
            if isinstance(at, list) and at:
                place.append(draw(st.integers(0, len(at) - 1)))
            elif isinstance(at, dict) and (named := [k for k in at if k.isascii() and k.isalnum()]):
                place.append(draw(st.sampled_from(named)))
            else:
                break
            at = at[place[-1]]  # type: ignore[index]
        value = draw(small_values)
        args = copy.deepcopy(args)
        holder = args
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value
        steps.append((place, value))
        states.append(args)
    return states[0], steps, states


@pytest.mark.parametrize("profile", ["sequential/first_deny", "sequential/run_all"])
@settings(max_examples=40)
@given(folding=foldings(), extra=small_values)
def test_each_interceptor_sees_what_its_predecessors_made_and_nothing_else_moves(
    profile: str, folding: Any, extra: Any
) -> None:
    """§7.4, §5.2: exact floats and member order, whatever the values are"""
    args, steps, states = folding
    raw = context(
        tool_call={"id": "c", "name": "n", "args": args, "kept": extra},
        extensions={"ours": extra},
    )
    replies = [
        {"decision": "transform", "transform": {"path": written(place), "value": value}}
        for place, value in steps
    ]
    done = run(raw, *replies, ALLOW, **under(profile, provider=None))
    for (_, snapshot), state in zip(done.invoked, states, strict=True):
        assert typed(snapshot.context["target"]) == typed(state)
        assert typed(snapshot.context["tool_call"]["args"]) == typed(state)
        assert typed(snapshot.context["extensions"]) == typed({"ours": extra})
        assert typed(snapshot.context["tool_call"]["kept"]) == typed(extra)
    assert typed(done.emitted.target) == typed(states[-1])
    assert done.wire["decided_by"] == len(steps) - 1


@settings(max_examples=40)
@given(foldings())
def test_a_snapshot_is_the_same_for_every_peer_of_a_parallel_profile(folding: Any) -> None:
    """§7.5"""
    args, steps, _ = folding
    replies = [
        {"decision": "transform", "transform": {"path": written(place), "value": value}}
        for place, value in steps
    ]
    raw = context(tool_call={"id": "c", "name": "n", "args": args})
    done = run(raw, *replies, **under("parallel/strictest", provider=None))
    assert all(typed(snapshot.context["target"]) == typed(args) for _, snapshot in done.invoked)
    if len(steps) > 1:
        assert done.reason == "host_error:transform_conflict"
        assert not done.emitted.rewritten


@settings(max_examples=40)
@given(foldings())
def test_identities_are_those_of_the_contexts_before_and_after(folding: Any) -> None:
    """§10.3"""
    _, steps, states = folding
    raws = [context(tool_call={"id": "c", "name": "n", "args": state}) for state in states]
    if any(values.scan(raw) & values.BIG_INTEGERS for raw in raws):
        return
    replies = [
        {"decision": "transform", "transform": {"path": written(place), "value": value}}
        for place, value in steps
    ]
    done = run(raws[0], *replies)
    assert done.wire["input_identity"] == context_identity(raws[0])
    assert done.wire["enforced_identity"] == context_identity(raws[-1])
    watched = run(raws[0], *replies, mode=EVALUATE)
    assert watched.wire["enforced_identity"] == context_identity(raws[0])


@given(json_values)
def test_an_approval_is_bound_to_what_was_shown(value: Any) -> None:
    """§9"""
    raw = context(tool_call={"id": "c", "name": "n", "args": {"v": value}})
    if values.scan(raw) & values.BIG_INTEGERS:
        return
    stale = context_identity(context())
    done = run(
        raw,
        {"decision": "deny", "approval": {}},
        answer={"outcome": "approve", "context_identity": stale, "verdict": ALLOW},
    )
    assert done.reason == "host_error:approval_identity_mismatch"
    fresh = run(raw, {"decision": "deny", "approval": {}}, answer=approve(ALLOW))
    assert fresh.emitted.record.proceeds
    assert fresh.asked[0].context_identity == context_identity(raw)


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=3)
    | st.sampled_from([ALLOW, DENY, object(), ..., int]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
        | st.fixed_dictionaries(
            {},
            optional=dict.fromkeys(("decision", "transform", "path", "value", "outcome"), inner),
        )
    ),
    max_leaves=6,
)


@settings(max_examples=150)
@given(st.sampled_from(CASES), anything, st.lists(anything, min_size=3, max_size=3), anything)
def test_whatever_anybody_says_there_is_one_record_and_no_allow_that_nobody_gave(
    case: Case, raw: Any, replies: list[Any], answer: Any
) -> None:
    """§1.3, §10.3"""
    for given_context in (raw, context(extensions=raw)):
        done = drive(
            given_context, rules_of(case, 3), lambda index, _: replies[index], lambda _: answer
        )
        permits = [slot for slot in done.emitted.record.verdicts if slot.decision.value != "deny"]
        if done.emitted.verdict.decision.value != "deny":
            assert len(permits) == 3 or done.wire.get("resolved_by") == "approval"
