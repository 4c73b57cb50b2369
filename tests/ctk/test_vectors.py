"""Both kits' vectors against the reference host, in one process and in many."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agent_hooks.ctk import ReferenceHarness, run_vectors
from agent_hooks.ctk.assertions import judge
from agent_hooks.ctk.runner import Observed, observe
from tests.ctk.support import (
    DECLARATION,
    INCREMENTAL,
    Vector,
    applicable,
    fixed_harness,
    own,
    upstream,
)
from tests.shared import shared

each_vector = pytest.mark.parametrize(
    "vector", [pytest.param(vector, id=name) for name, vector in applicable().items()]
)


def failures_of(vector: Vector, observed: Observed) -> list[str]:
    return judge(vector["expect"], observed.recorded, observed.run, "continue")


@each_vector
def test_vector_passes_in_process(vector: Vector) -> None:
    observed = asyncio.run(observe(fixed_harness(), vector))
    assert failures_of(vector, observed) == []


@each_vector
def test_vector_passes_in_processes_with_the_same_records(
    vector: Vector, in_processes_observed: dict[str, Any]
) -> None:
    remote = in_processes_observed[vector["id"]]
    if isinstance(remote, Exception):
        raise remote
    assert failures_of(vector, remote) == []
    local = asyncio.run(observe(fixed_harness(), vector))
    assert json.dumps(remote.run.records) == json.dumps(local.run.records)
    assert remote.run == local.run
    # What a plugin reads is what an interceptor in the host is given; by value,
    # since canonical JSON writes 3.0 as 3.
    assert remote.recorded == local.recorded


def test_upstream_vectors_pass_but_for_the_declared_skips() -> None:
    shared("ctk", "vectors")
    results = asyncio.run(run_vectors(ReferenceHarness, list(upstream().values())))
    skipped = {result.id for result in results if result.status == "skip"}
    assert skipped == INCREMENTAL | DECLARATION
    assert {result.status for result in results if result.id not in skipped} == {"pass"}
    assert len(results) - len(skipped) == 47


def test_no_own_vector_skips() -> None:
    results = asyncio.run(run_vectors(ReferenceHarness, list(own().values()), at_once=8))
    assert [(r.id, r.status, r.failures) for r in results if r.status != "pass"] == []
