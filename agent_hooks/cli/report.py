"""What a replay amounts to, as data and as tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from agent_hooks.cli.agent import Run
from agent_hooks.core.record import InterceptionRecord
from agent_hooks.core.verdict import Decision


def escalated(record: InterceptionRecord | None) -> bool:
    """Whether a person had, or would have had, to decide."""
    return record is not None and (record.resolved_by is not None or record.verdict.is_liftable)


def denied(record: InterceptionRecord | None) -> bool:
    """Whether it was denied with nobody to ask."""
    return record is not None and record.verdict.decision is Decision.DENY and not escalated(record)


def summarise(runs: Sequence[Run], tools: frozenset[str]) -> dict[str, Any]:
    """The figures of a replay.

    Args:
        tools: injected calls to these are counted; all of them where empty.
    """
    records = [record for run in runs for record in run.records]
    seconds = sorted(second for run in runs for second in run.seconds)
    benign = [run for run in runs if run.kind == "benign"]
    injected = [
        step
        for run in runs
        for step in run.steps
        if step.injected and (not tools or step.tool in tools)
    ]
    return {
        "runs": len(runs),
        "blocked_runs": sum(run.blocked for run in runs),
        "emissions": len(records),
        "latency_ms": {
            "p50": _percentile(seconds, 0.5),
            "p99": _percentile(seconds, 0.99),
        },
        "plugins": _by_plugin(records),
        "host_errors": _host_errors(records),
        # A call that an earlier block kept from being made was stopped too.
        "injected_calls": len(injected),
        "injected_stopped": sum(
            step.record is None or escalated(step.record) or denied(step.record)
            for step in injected
        ),
        "benign_runs": len(benign),
        "benign_denied": sum(any(map(denied, run.records)) for run in benign),
        "benign_escalated": sum(any(map(escalated, run.records)) for run in benign),
    }


def _percentile(values: list[float], share: float) -> float:
    if not values:
        return 0.0
    if share == 0.5:
        return round(statistics.median(values) * 1000, 3)
    return round(values[min(int(len(values) * share), len(values) - 1)] * 1000, 3)


def _by_plugin(records: list[InterceptionRecord]) -> dict[str, dict[str, int]]:
    plugins: dict[str, dict[str, int]] = {}
    for record in records:
        for item in record.verdicts:
            counts = plugins.setdefault(
                item.name or f"#{item.index}",
                {"allow": 0, "transform": 0, "deny": 0, "escalate": 0},
            )
            decision = item.decision.value
            if item.index == record.decided_by and escalated(record):
                decision = "escalate"
            counts[decision] += 1
    return plugins


def _host_errors(records: list[InterceptionRecord]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for record in records:
        reason = record.verdict.reason or ""
        if reason.startswith("host_error:"):
            counts[reason] = counts.get(reason, 0) + 1
    return counts


def print_tables(console: Console, summary: dict[str, Any]) -> None:
    """For people."""
    table = Table(title="Verdicts by plugin", title_justify="left")
    for column in ("plugin", "allow", "transform", "deny", "escalate"):
        table.add_column(column, justify="left" if column == "plugin" else "right")
    for name, counts in summary["plugins"].items():
        table.add_row(
            name, *(str(counts[key]) for key in ("allow", "transform", "deny", "escalate"))
        )
    console.print(table)
    totals = Table(title="Replay", title_justify="left")
    for column in ("runs", "blocked", "emissions", "p50 ms", "p99 ms"):
        totals.add_column(column, justify="right")
    totals.add_row(
        str(summary["runs"]),
        str(summary["blocked_runs"]),
        str(summary["emissions"]),
        f"{summary['latency_ms']['p50']:.2f}",
        f"{summary['latency_ms']['p99']:.2f}",
    )
    console.print(totals)
    for reason, count in summary["host_errors"].items():
        console.print(f"{reason}: {count}")
