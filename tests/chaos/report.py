"""What a run is said to have been: a line for each kind of fault, then JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from tests.chaos.run import Kind, Outcome


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of them do not exceed."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def recoveries(kind: Kind) -> dict[str, float] | None:
    """Median, 95th percentile and maximum, in milliseconds."""
    values = kind.recoveries
    if not values:
        return None
    return {
        "count": len(values),
        "p50_ms": round(quantile(values, 0.5) * 1000),
        "p95_ms": round(quantile(values, 0.95) * 1000),
        "max_ms": round(max(values) * 1000),
    }


def lines(outcome: Outcome) -> Iterator[str]:
    """One for each kind of fault."""
    for name, kind in sorted(outcome.kinds.items()):
        ready = recoveries(kind)
        times = (
            f"ready again p50 {ready['p50_ms']} p95 {ready['p95_ms']} max {ready['max_ms']} ms"
            if ready
            else ""
        )
        held = ", ".join(f"{slot} {count}" for slot, count in kind.held.most_common())
        yield f"{name:<18} {kind.count:>5} x {kind.seconds / kind.count:5.2f} s  {times:<48} {held}"


def summary(seed: int, outcome: Outcome, seconds: float) -> dict[str, Any]:
    """The figures as JSON."""
    crashes = Kind(
        recoveries=[
            value
            for name, kind in outcome.kinds.items()
            if name not in ("kill_host", "kill_warden", "kill_starting")
            for value in kind.recoveries
        ]
    )
    return {
        "seed": seed,
        "faults": sum(kind.count for kind in outcome.kinds.values()),
        "emissions": outcome.emissions,
        "seconds": round(seconds, 1),
        "recovery": recoveries(crashes),
        "kinds": {
            name: {
                "count": kind.count,
                "recovery": recoveries(kind),
                "slots": dict(kind.held.most_common()),
            }
            for name, kind in sorted(outcome.kinds.items())
        },
        "violation": outcome.violation,
        "step": None if outcome.step is None else str(outcome.step),
    }


def text(figures: dict[str, Any]) -> str:
    """On one line."""
    return json.dumps(figures)
