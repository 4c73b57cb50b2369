"""HARNESS.md's example is a harness, and CLAIMS.md says what is so."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any

import pytest

from agent_hooks.ctk import ReferenceHarness, run_vectors
from tests.ctk.support import applicable, own, upstream
from tests.shared import ROOT, shared

HARNESS = (ROOT / "conformance" / "HARNESS.md").read_text(encoding="utf-8")
CLAIMS = (ROOT / "conformance" / "CLAIMS.md").read_text(encoding="utf-8")


def test_the_example_harness_passes_every_vector_it_does_not_skip() -> None:
    code = re.findall(r"```python\n(.*?)```", HARNESS, re.DOTALL)
    names: dict[str, Any] = {}
    exec(next(block for block in code if "class ChatHarness" in block), names)
    vectors = [*own().values(), *upstream().values()]
    results = asyncio.run(run_vectors(names["ChatHarness"], vectors))
    assert [(r.id, r.failures) for r in results if r.status == "fail"] == []
    assert "AH-CTK-503" in {result.id for result in results if result.status == "pass"}


def test_the_claim_names_the_capabilities_in_the_code() -> None:
    declared = ", ".join(sorted(item.value for item in ReferenceHarness.capabilities))
    assert f"[{declared}]" in CLAIMS
    assert f"tool_seam_host_error: {ReferenceHarness.tool_seam_host_error}" in CLAIMS


def _counts(vectors: dict[str, Any]) -> Counter[str]:
    return Counter(vector.get("part", "(core)") for vector in vectors.values())


@pytest.mark.parametrize("column", ["upstream", "ours"])
def test_the_report_counts_what_the_tests_run(column: str) -> None:
    if column == "upstream":
        shared("ctk", "vectors")
    run = (
        own()
        if column == "ours"
        else {name: vector for name, vector in applicable().items() if name in upstream()}
    )
    rows = re.findall(r"^\| `?([^|`]+?)`? \| (\d+) \| (\d+) \|$", CLAIMS, re.MULTILINE)
    claimed = {part: int(counts[column == "ours"]) for part, *counts in rows}
    assert claimed.pop("total") == len(run)
    assert {part: count for part, count in claimed.items() if count} == _counts(run)
