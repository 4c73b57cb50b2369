"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ctk.support import OWN

CONFORMANCE = "def test_conformance(agent_hooks_assert):\n    pass\n"
BROKEN = """
from agent_hooks.ctk import Capability, ReferenceHarness

class Broken(ReferenceHarness):
    async def emit(self, context):
        record = await super().emit(context)
        self.report.records[-1]["decided_by"] = 99
        return record

class Toolless(ReferenceHarness):
    capabilities = {Capability.MODEL_CALLS}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_host.py").write_text(CONFORMANCE)
    (tmp_path / "hosts.py").write_text(BROKEN)
    (tmp_path / "vectors").mkdir()
    for number in ("500", "510"):
        vector = next(OWN.glob(f"AH-CTK-{number}-*.json"))
        (tmp_path / "vectors" / vector.name).write_bytes(vector.read_bytes())
    return tmp_path


def pytest_in(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    inherited = {k: v for k, v in os.environ.items() if k != "AGENT_HOOKS_VECTORS"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *arguments],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_reference_harness_is_the_default(folder: Path) -> None:
    code, output = pytest_in(folder, "--agent-hooks-vectors=vectors")
    assert code == 0, output
    assert "test_conformance[AH-CTK-500]" in output
    assert "2 passed" in output


def test_interceptors_may_be_processes(folder: Path) -> None:
    code, output = pytest_in(
        folder, "--agent-hooks-processes", "-k510", AGENT_HOOKS_VECTORS="vectors"
    )
    assert code == 0, output
    assert "1 passed" in output


@pytest.mark.parametrize("named", ["hosts:Broken", "hosts.Broken"])
def test_a_broken_host_fails_with_what_was_expected(folder: Path, named: str) -> None:
    code, output = pytest_in(
        folder, f"--agent-hooks-harness={named}", "--agent-hooks-vectors=vectors"
    )
    assert code == 1
    assert "decided_by: expected 0, got 99" in output


def test_a_vector_beyond_the_host_is_skipped(folder: Path) -> None:
    code, output = pytest_in(
        folder, "--agent-hooks-harness=hosts:Toolless", "--agent-hooks-vectors=vectors"
    )
    assert code == 0, output
    assert "1 passed, 1 skipped" in output
    assert "does not declare tool_calls" in output


def test_an_unknown_harness_and_no_vectors_are_told(folder: Path) -> None:
    code, output = pytest_in(
        folder, "--agent-hooks-harness=hosts:Nobody", "--agent-hooks-vectors=vectors"
    )
    assert code != 0
    assert "--agent-hooks-harness=hosts:Nobody" in output
    code, output = pytest_in(folder)
    assert code != 0
    assert "AGENT_HOOKS_VECTORS" in output
