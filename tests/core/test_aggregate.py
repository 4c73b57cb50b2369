"""Aggregation (§5.1, §7.3)."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.core.aggregate import severity, strictest, unite
from agent_hooks.core.verdict import Decision, Transform, Verdict, Warning

ALLOW = Verdict.allow()
DENY = Verdict.deny()
LIFTABLE = Verdict.escalate()
REWRITE = Verdict.rewrite("$target", 1)
ORDER = (ALLOW, REWRITE, LIFTABLE, DENY)

warnings = st.builds(Warning, st.sampled_from([None, "a", "b"]), st.sampled_from([None, "m", "n"]))
verdicts = st.builds(
    replace,
    st.sampled_from([ALLOW, DENY, Verdict(Decision.TRANSFORM, transform=Transform("$target"))]),
    warnings=st.lists(warnings, max_size=3).map(tuple),
    result_labels=st.lists(st.sampled_from("xyz"), max_size=3).map(tuple),
)


def test_plain_deny_outranks_liftable_outranks_transform_outranks_allow() -> None:
    """§5.1"""
    assert [severity(verdict) for verdict in ORDER] == [0, 1, 2, 3]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_strictest_is_the_first_of_the_most_severe(count: int) -> None:
    """§7.3: ties go to the lowest index"""
    for kinds in product(range(4), repeat=count):
        returned = [ORDER[kind] for kind in kinds]
        assert strictest(returned) == kinds.index(max(kinds))


def test_whatever_the_order_one_plain_deny_decides() -> None:
    """§5.1"""
    for returned in permutations(ORDER):
        assert returned[strictest(returned)] is DENY


@given(st.lists(verdicts, min_size=1, max_size=6), st.data())
def test_metadata_is_united_in_the_order_it_was_first_seen(
    returned: list[Verdict], data: st.DataObject
) -> None:
    """§7.3, §5.4"""
    winner = data.draw(st.sampled_from(returned))
    united = unite(winner, returned)
    said = [warning for verdict in returned for warning in verdict.warnings]
    assert list(united.warnings) == sorted(set(said), key=said.index)
    labels = [
        label
        for verdict in returned
        if verdict.decision is not Decision.DENY
        for label in verdict.result_labels
    ]
    if winner.decision is Decision.DENY:
        labels = []
    assert list(united.result_labels) == sorted(set(labels), key=labels.index)
    assert replace(united, warnings=(), result_labels=()) == replace(
        winner, warnings=(), result_labels=()
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Warning("a", "m"), Warning("a", "m"), True),
        (Warning("a"), Warning("a", "m"), False),
        (Warning("a", "m"), Warning("a", "n"), False),
        (Warning("a", "m"), Warning("b", "m"), False),
        (Warning(), Warning(), True),
    ],
)
def test_warnings_are_equal_where_reason_and_message_are(
    one: Warning, other: Warning, same: bool
) -> None:
    """§7.3"""
    united = unite(ALLOW, [Verdict(Decision.ALLOW, warnings=(item,)) for item in (one, other)])
    assert len(united.warnings) == (1 if same else 2)


def test_a_combined_deny_has_no_labels_not_even_its_own() -> None:
    """§5.4"""
    winner = replace(DENY, result_labels=("x",))
    assert unite(winner, [winner, replace(ALLOW, result_labels=("y",))]).result_labels == ()


def test_a_losing_transform_keeps_its_labels_in_the_union() -> None:
    """§7.3: every permit verdict returned"""
    losing = replace(REWRITE, result_labels=("x",))
    assert unite(ALLOW, [losing, LIFTABLE]).result_labels == ("x",)


def test_a_synthesised_winner_carries_what_the_others_said() -> None:
    """§7.5"""
    winner = Verdict.deny(reason="synthesised")
    said = Verdict(Decision.DENY, warnings=(Warning("w"),), result_labels=("x",))
    assert unite(winner, [said]) == replace(winner, warnings=(Warning("w"),))
    assert unite(winner, [ALLOW]) is winner
