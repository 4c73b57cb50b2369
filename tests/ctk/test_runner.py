from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.ctk import (
    Capability,
    ReferenceHarness,
    RunOutcome,
    RunRecord,
    VectorResult,
    load_vectors,
    run_vector,
    run_vectors,
)
from tests.ctk.support import own

PLAIN = own()["AH-CTK-509"]
REDACTING = own()["AH-CTK-567"]


def result_of(harness: Any, vector: dict[str, Any] = PLAIN) -> VectorResult:
    return asyncio.run(run_vector(harness, vector))


# -- loading --


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")


MINIMAL = (
    '{"id": "AH-CTK-%d", "title": "t", "spec_clause": "1", "scenario": {"input": %s},'
    ' "interceptor_script": [], "expect": {"interceptions": [], "run_outcome": "completed"}}'
)


def test_vectors_load_in_the_order_of_names_with_exact_numbers(tmp_path: Path) -> None:
    write(tmp_path, "b.json", MINIMAL % (2, "9007199254740993"))
    write(tmp_path, "a.json", MINIMAL % (1, "9007199254740993.0"))
    write(tmp_path, "notes.txt", "not a vector")
    first, second = load_vectors(tmp_path)
    assert (first["id"], second["id"]) == ("AH-CTK-1", "AH-CTK-2")
    assert repr(first["scenario"]["input"]) == "9007199254740992.0"
    assert second["scenario"]["input"] == 9007199254740993


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.json", MINIMAL % (1, "{}"))
    monkeypatch.setenv("AGENT_HOOKS_VECTORS", str(tmp_path))
    assert [vector["id"] for vector in load_vectors()] == ["AH-CTK-1"]


def test_no_folder_is_an_error_that_names_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_HOOKS_VECTORS", raising=False)
    with pytest.raises(ValueError, match=r"`directory`.*AGENT_HOOKS_VECTORS"):
        load_vectors()


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no vectors"):
        load_vectors(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"id": "a", "id": "b"}',
        '{"id": "a", "title": "t", "spec_clause": "1", "scenario": {}}',
        (MINIMAL % (1, "{}"))[:-1] + ', "interceptor_scripts": []}',
        (MINIMAL % (1, "NaN")),
    ],
)
def test_a_file_that_is_no_vector_is_named(tmp_path: Path, text: str) -> None:
    write(tmp_path, "odd.json", text)
    with pytest.raises(ValueError, match=r"odd\.json"):
        load_vectors(tmp_path)


# -- running --


class Modest(ReferenceHarness):
    capabilities = frozenset({Capability.TOOL_CALLS})


class Stringly(ReferenceHarness):
    capabilities: Any = frozenset({"tool_calls", "model_calls"})


def test_a_vector_beyond_the_capabilities_is_skipped_and_says_what_lacks() -> None:
    result = result_of(Modest())
    assert (result.status, result.failures) == ("skip", [])
    assert result.detail.endswith("model_calls")


def test_capabilities_may_be_plain_strings() -> None:
    assert result_of(Stringly()).status == "pass"


class BreaksInSetup(ReferenceHarness):
    def setup(self, *args: Any, **kwargs: Any) -> None:
        raise OSError("no model")


class BreaksInRun(ReferenceHarness):
    closed = False

    async def run(self) -> RunRecord:
        raise OSError("no model")

    def teardown(self) -> None:
        self.closed = True


class ReturnsNothing(ReferenceHarness):
    async def run(self) -> RunRecord:
        return None  # type: ignore[return-value]


@pytest.mark.parametrize("broken", [BreaksInSetup, BreaksInRun, ReturnsNothing])
def test_a_broken_harness_fails_the_vector(broken: type[ReferenceHarness]) -> None:
    result = result_of(broken())
    assert result.status == "fail"
    assert result.failures


def test_a_harness_that_raises_is_torn_down() -> None:
    harness = BreaksInRun()
    result_of(harness)
    assert harness.closed


class Synchronous(ReferenceHarness):
    def run(self) -> RunRecord:  # type: ignore[override]
        return asyncio.run(super().run())


def test_run_may_be_synchronous_with_a_loop_of_its_own() -> None:
    assert result_of(Synchronous()).status == "pass"


class BeforeRedaction(ReferenceHarness):
    def setup(  # type: ignore[override]
        self,
        scenario: Any,
        interceptors: Any,
        resolver: Any,
        mode: Any,
        composition: Any,
        provider: Any,
    ) -> None:
        super().setup(scenario, interceptors, resolver, mode, composition, provider)


def test_a_harness_without_redaction_runs_what_needs_none_and_fails_the_rest() -> None:
    assert result_of(BeforeRedaction()).status == "pass"
    assert result_of(BeforeRedaction(), REDACTING).status == "fail"


class Boastful(ReferenceHarness):
    capabilities = frozenset(Capability)


def test_a_declaration_vector_is_never_passed_unrun() -> None:
    vector = {**PLAIN, "capabilities": ["host_declaration"], "host_declaration": {}}
    assert result_of(Boastful(), vector).status == "fail"


def test_a_vector_without_scripts_fails() -> None:
    vector = {name: value for name, value in PLAIN.items() if name != "interceptor_script"}
    assert result_of(ReferenceHarness(), vector).status == "fail"


def test_a_tool_called_with_what_it_does_not_know_ends_the_run_in_error() -> None:
    vector = json.loads(json.dumps(PLAIN))
    vector["scenario"]["tools"][0]["behavior"][0]["when_args"] = {"other": 1}
    result = result_of(ReferenceHarness(), vector)
    assert any("got error (error: LookupError" in failure for failure in result.failures)


class Terminating(ReferenceHarness):
    """Ends the turn after a host error at a tool, as §6.2 permits."""

    tool_seam_host_error = "terminate"

    async def call_tool(self, call_id: str, name: str, args: dict[str, Any]) -> Any:
        told = await super().call_tool(call_id, name, args)
        if str(told).startswith("blocked: host_error:"):
            self.report.outcome = RunOutcome.BLOCKED
            raise asyncio.CancelledError
        return told

    async def session(self) -> Any:
        try:
            return await super().session()
        except asyncio.CancelledError:
            return None


def test_a_host_that_terminates_passes_every_own_vector_too() -> None:
    results = asyncio.run(run_vectors(Terminating, list(own().values()), at_once=8))
    assert [(r.id, r.failures) for r in results if r.status != "pass"] == []


def test_results_are_in_the_order_of_the_vectors() -> None:
    vectors = list(own().values())[:12]
    results = asyncio.run(run_vectors(ReferenceHarness, vectors, at_once=5))
    assert [result.id for result in results] == [vector["id"] for vector in vectors]
