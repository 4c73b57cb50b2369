"""A private folder for temporary files, and a check that nothing is left in it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_hooks.supervisor import Binding, Supervisor
from tests.processes.support import (
    EMITTERS,
    QUICK,
    context,
    good,
    judge,
    leaving_nothing,
    processes,
)


@pytest.fixture(scope="session")
def _warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let gRPC and pytest make what they make once per process, before anything is counted."""
    tmp_path_factory.getbasetemp()
    with Supervisor([Binding("p", good())], QUICK) as supervisor:
        for kind in EMITTERS:
            judge(kind, context(), supervisor.interceptor("p"))


@pytest.fixture(scope="module")
def temporary(_warm: None) -> Iterator[Path]:
    """A short folder, since a socket's path must be, that only this module uses."""
    folder = Path(tempfile.mkdtemp(prefix="ah-"))
    kept, tempfile.tempdir = tempfile.tempdir, str(folder)
    yield folder
    tempfile.tempdir = kept
    for pid in processes(str(folder)):  # of tests that failed
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def tidy(temporary: Path) -> Iterator[Path]:
    """The folder; and nothing of the test may be left when it ends."""
    with leaving_nothing(temporary):
        yield temporary
