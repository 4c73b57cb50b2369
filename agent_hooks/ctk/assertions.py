"""Whether a run is what a vector expects. One function per part of `expect`.

Each yields a sentence per failure. Equality is typed (1 is not 1.0), and a
path that leads nowhere is a failure wherever a value is expected.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from agent_hooks.core.context import AgentContext, Bounds, ContextError, check_context
from agent_hooks.ctk.harness import RunRecord
from agent_hooks.ctk.paths import MISSING, json_equal, lookup

JSON = dict[str, Any]

KNOWN = frozenset({
    "interceptions", "sequence_strict", "interceptions_absent", "tool_invocations",
    "tool_not_invoked", "final_output", "released_output", "persisted_must_not_contain",
    "run_outcome", "run_outcome_by_posture", "identities_equal", "records",
})  # fmt: skip


def judge(expect: JSON, recorded: list[AgentContext], run: RunRecord, posture: str) -> list[str]:
    """The failures of one run; none means that the vector passes.

    Args:
        expect: the vector's `expect`.
        recorded: the contexts that the first interceptor received.
        posture: the harness's `tool_seam_host_error`.
    """
    unknown = expect.keys() - KNOWN
    failures = [f"expect.{name}: this kit does not know it" for name in sorted(unknown)]
    failures += _interceptions(expect, recorded)
    failures += _sequence(recorded)
    failures += _outcome(expect, run, posture)
    failures += _effects(expect, run)
    failures += _egress(expect, run)
    failures += _identities(expect, run)
    failures += _records(expect, run)
    return failures


def _show(value: Any) -> str:
    if value is MISSING:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 300 else text[:300] + "…"


def _differs(what: str, expected: Any, actual: Any) -> Iterator[str]:
    if not json_equal(expected, actual):
        yield f"{what}: expected {_show(expected)}, got {_show(actual)}"


# -- interceptions --


def _interceptions(expect: JSON, recorded: list[AgentContext]) -> Iterator[str]:
    for point in expect.get("interceptions_absent", ()):
        if any(context["interception_point"] == point for context in recorded):
            yield f"interceptions_absent: {point} was seen"
    expected = expect["interceptions"]
    if expect.get("sequence_strict", True):
        pairs = yield from _strict(expected, recorded)
    else:
        pairs = yield from _scanned(expected, recorded)
    for index, (wanted, context) in enumerate(pairs):
        where = f"interceptions[{index}] ({wanted['interception_point']})"
        for failure in _context(wanted, context):
            yield f"{where}: {failure}"


_Pairs = list[tuple[JSON, AgentContext]]


def _strict(expected: list[JSON], recorded: list[AgentContext]) -> Any:
    wanted = [item["interception_point"] for item in expected]
    seen = [context["interception_point"] for context in recorded]
    if wanted != seen:
        yield f"interceptions: expected exactly {wanted}, got {seen}"
        return []
    return list(zip(expected, recorded, strict=True))


def _scanned(expected: list[JSON], recorded: list[AgentContext]) -> Any:
    pairs: _Pairs = []
    left = iter(recorded)
    for index, item in enumerate(expected):
        point = item["interception_point"]
        found = next((c for c in left if c["interception_point"] == point), None)
        if found is None:
            yield f"interceptions[{index}]: no {point} after those before it"
            return []
        pairs.append((item, found))
    return pairs


def _context(wanted: JSON, context: AgentContext) -> Iterator[str]:
    if wanted.get("context_must_validate", True):
        try:
            check_context(context, Bounds(), context.get("spec", ""))
        except ContextError as refusal:
            yield f"not a valid context: {refusal}"
    for path, expected in wanted.get("context", {}).items():
        yield from _differs(path, expected, lookup(context, path))
    text = json.dumps(context, ensure_ascii=False)
    for needle in wanted.get("context_must_contain", ()):
        if needle not in text:
            yield f"the context does not contain {needle!r}"
    for needle in wanted.get("context_must_not_contain", ()):
        if needle in text:
            yield f"the context contains {needle!r}"


def _sequence(recorded: list[AgentContext]) -> Iterator[str]:
    numbers = [context.get("sequence") for context in recorded]
    if not all(type(number) is int for number in numbers):
        yield f"sequence: not integers: {numbers}"
    elif any(one >= other for one, other in itertools.pairwise(numbers)):  # type: ignore[operator]
        yield f"sequence: does not grow strictly (§4.1): {numbers}"


# -- what the run did --


def _outcome(expect: JSON, run: RunRecord, posture: str) -> Iterator[str]:
    expected = expect["run_outcome"]
    if by_posture := expect.get("run_outcome_by_posture"):
        outcomes = by_posture["outcomes"]
        if by_posture["posture"] != "tool_seam_host_error" or outcomes["continue"] != expected:
            yield "run_outcome_by_posture: the vector contradicts itself"
        expected = outcomes.get(posture)
    actual = run.outcome.value
    if actual != expected:
        error = f" (error: {run.error})" if run.error else ""
        yield f"run_outcome: expected {expected}, got {actual}{error}"


def _effects(expect: JSON, run: RunRecord) -> Iterator[str]:
    if "final_output" in expect:
        yield from _differs("final_output", expect["final_output"], run.final_output)
    if "tool_invocations" in expect:
        yield from _differs("tool_invocations", expect["tool_invocations"], run.tool_invocations)
    called = {call["name"] for call in run.tool_invocations}
    for name in expect.get("tool_not_invoked", ()):
        if name in called:
            yield f"tool_not_invoked: {name} was invoked"


def _egress(expect: JSON, run: RunRecord) -> Iterator[str]:
    if "released_output" in expect:
        yield from _differs("released_output", expect["released_output"], run.released_output)
    text = json.dumps(run.persisted, ensure_ascii=False)
    for needle in expect.get("persisted_must_not_contain", ()):
        if needle in text:
            yield f"persisted_must_not_contain: {needle!r} was persisted"


# -- records --


def _identities(expect: JSON, run: RunRecord) -> Iterator[str]:
    wanted = expect.get("identities_equal")
    if wanted is None:
        return
    if not run.identities:
        yield "identities_equal: the harness reports no identities"
    elif wanted != all(before == after for before, after in run.identities):
        yield f"identities_equal: expected {_show(wanted)}"


def _records(expect: JSON, run: RunRecord) -> Iterator[str]:
    left = iter(run.records)
    for index, item in enumerate(expect.get("records", ())):
        point = item["interception_point"]
        record = next((r for r in left if r.get("interception_point") == point), None)
        if record is None:
            yield f"records[{index}]: no record of {point} after those before it"
            return
        for failure in _record(item, record):
            yield f"records[{index}] ({point}): {failure}"


def _record(item: JSON, record: JSON) -> Iterator[str]:
    for path, expected in item.get("assert", {}).items():
        yield from _differs(path, expected, lookup(record, path))
    yield from _presence(item.get("absent", ()), record, "expected nothing", _is_there)
    yield from _presence(item.get("present", ()), record, "expected something", _is_missing)


def _presence(
    paths: list[str], record: JSON, problem: str, wrong: Callable[[Any], bool]
) -> Iterator[str]:
    for path in paths:
        if wrong(lookup(record, path)):
            yield f"{path}: {problem}"


def _is_there(value: Any) -> bool:
    return value is not MISSING


def _is_missing(value: Any) -> bool:
    return value is MISSING
