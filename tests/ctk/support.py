"""The vectors of both kits, and a reference harness whose runs can be compared."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from agent_hooks.ctk import ReferenceHarness, load_vectors, run_vector
from tests.shared import ROOT

OWN = ROOT / "conformance" / "vectors"
UPSTREAM = ROOT.joinpath(os.environ.get("AGENT_HOOKS_SHARED") or "../shared", "ctk", "vectors")

INCREMENTAL = {f"AH-CTK-{number}" for number in range(110, 114)}
DECLARATION = {f"AH-CTK-{number}" for number in range(120, 144)}

Vector = dict[str, Any]


@cache
def own() -> dict[str, Vector]:
    """Our own vectors by id. Not to be changed."""
    return _by_id(OWN)


@cache
def upstream() -> dict[str, Vector]:
    """Upstream's vectors by id; empty where the shared data is absent."""
    return _by_id(UPSTREAM) if UPSTREAM.is_dir() else {}


def applicable() -> dict[str, Vector]:
    """Everything that the reference harness does not skip."""
    both = {**upstream(), **own()}
    return {name: vector for name, vector in both.items() if not _skips(vector)}


def status(harness: ReferenceHarness, vector: str) -> str:
    """What becomes of one of our own vectors: "pass", "fail" or "skip"."""
    return asyncio.run(run_vector(harness, own()[vector])).status


def _skips(vector: Vector) -> bool:
    declared = {item.value for item in ReferenceHarness.capabilities}
    return not declared.issuperset(vector["capabilities"])


def _by_id(folder: Path) -> dict[str, Vector]:
    return {vector["id"]: vector for vector in load_vectors(folder)}


def _noon() -> datetime:
    return datetime(2026, 1, 1, 12, tzinfo=UTC)


fixed_harness = partial(ReferenceHarness, clock=_noon)
"""Makes harnesses whose contexts bear one timestamp, so that identities compare."""
