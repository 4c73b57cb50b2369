"""The pytest plugin: run the vectors against a harness as tests.

    def test_conformance(agent_hooks_assert):
        pass

    pytest --agent-hooks-harness=package.module:MyHarness --agent-hooks-vectors=FOLDER

It is loaded into every pytest run, so it imports the kit only when it is used.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The three options of the kit."""
    group = parser.getgroup("agent-hooks", "agent-hooks conformance kit")
    group.addoption(
        "--agent-hooks-harness",
        metavar="MODULE:CLASS",
        help="the harness to drive; the reference harness where it is not given",
    )
    group.addoption(
        "--agent-hooks-vectors",
        metavar="FOLDER",
        help="the vectors; AGENT_HOOKS_VECTORS names the folder where it is not given",
    )
    group.addoption(
        "--agent-hooks-processes",
        action="store_true",
        help="run each scripted interceptor as a plugin process of its own",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per vector for whoever asks for `agent_hooks_vector`."""
    if "agent_hooks_vector" not in metafunc.fixturenames:
        return
    from agent_hooks.ctk.runner import load_vectors

    vectors = load_vectors(metafunc.config.getoption("--agent-hooks-vectors"))
    metafunc.parametrize("agent_hooks_vector", vectors, ids=[vector["id"] for vector in vectors])


@pytest.fixture
def agent_hooks_harness(request: pytest.FixtureRequest) -> type[Any]:
    """The class that `--agent-hooks-harness` names."""
    named = request.config.getoption("--agent-hooks-harness")
    if named is None:
        from agent_hooks.ctk.reference import ReferenceHarness

        return ReferenceHarness
    module, colon, attribute = named.partition(":")
    if not colon:
        module, _, attribute = named.rpartition(".")
    try:
        harness: type[Any] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as exc:
        raise pytest.UsageError(f"--agent-hooks-harness={named}: {exc}") from None
    return harness


@pytest.fixture
def agent_hooks_assert(
    request: pytest.FixtureRequest,
    agent_hooks_harness: type[Any],
    agent_hooks_vector: dict[str, Any],
) -> None:
    """Runs one vector: the test passes, fails or skips with it."""
    from agent_hooks.ctk.runner import run_vector
    from agent_hooks.ctk.staging import in_process, in_processes

    processes = request.config.getoption("--agent-hooks-processes")
    result = asyncio.run(
        run_vector(
            agent_hooks_harness(),
            agent_hooks_vector,
            interceptors=in_processes if processes else in_process,
        )
    )
    if result.status == "skip":
        pytest.skip(result.detail)
    if result.status != "pass":
        pytest.fail("\n".join([result.title, *result.failures]), pytrace=False)
