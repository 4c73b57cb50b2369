"""Aggregation (§7.3): the winner, and the unions of metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from agent_hooks.core.verdict import Decision, Verdict


def severity(verdict: Verdict) -> int:
    """Place in the total order of §5.1: allow 0, transform 1, liftable deny 2, deny 3."""
    match verdict.decision:
        case Decision.ALLOW:
            return 0
        case Decision.TRANSFORM:
            return 1
        case Decision.DENY:
            return 2 if verdict.is_liftable else 3
        case unknown:
            assert_never(unknown)


def strictest(verdicts: Sequence[Verdict]) -> int:
    """Index of the most severe verdict; the lowest such index (§7.3)."""
    return max(range(len(verdicts)), key=lambda index: (severity(verdicts[index]), -index))


def unite(winner: Verdict, returned: Sequence[Verdict]) -> Verdict:
    """The winner with the emission's warnings and labels (§7.3).

    Warnings come from every verdict returned; labels from permits only, and
    none at all on a combined deny (§5.4).
    """
    for verdict in returned:
        if verdict.warnings or verdict.result_labels:
            break
    else:
        return winner
    warnings = dict.fromkeys(item for verdict in returned for item in verdict.warnings)
    labels = dict.fromkeys(
        label
        for verdict in returned
        if verdict.decision is not Decision.DENY
        for label in verdict.result_labels
    )
    permitted = winner.decision is not Decision.DENY
    return replace(
        winner, warnings=tuple(warnings), result_labels=tuple(labels) if permitted else ()
    )
