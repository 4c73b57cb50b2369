"""Observes, once per session and several at a time, what the tests at hand need."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_hooks.ctk import in_processes
from agent_hooks.ctk.runner import Observed, observe
from tests.ctk.support import Vector, fixed_harness

AT_ONCE = 3
"""Vectors under way together: more only makes processes wait for processors."""


@pytest.fixture(scope="session")
def in_processes_observed(request: pytest.FixtureRequest) -> dict[str, Observed | Exception]:
    """By id, the run of each selected vector with every interceptor in a process of its own."""
    vectors: list[Any] = [
        item.callspec.params["vector"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and "in_processes_observed" in item.fixturenames
    ]
    return asyncio.run(_observe_all(vectors))


async def _observe_all(vectors: list[Vector]) -> dict[str, Any]:
    places = asyncio.Semaphore(AT_ONCE)

    async def observed(vector: Vector) -> Observed:
        async with places:
            return await observe(fixed_harness(), vector, in_processes)

    outcomes = await asyncio.gather(*map(observed, vectors), return_exceptions=True)
    return dict(zip([vector["id"] for vector in vectors], outcomes, strict=True))
