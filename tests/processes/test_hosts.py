"""Hosts that are killed or fork (PROTOCOL: Launch 4, Lifecycle "host death", Channels)."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.support import HERE, folders, processes, stop, until

PROMISE = 2.0
SLOW = 3.0
"""PROTOCOL promises 2 s; a machine three times slower is allowed its factor."""


@contextlib.contextmanager
def host(program: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A host process whose temporary files are this module's."""
    argv = [sys.executable, str(HERE / "hosts" / program), *arguments]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(autouse=True)
def _inherited(tidy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tidy))
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent.parent))


@pytest.mark.parametrize(
    ("call", "mode"),
    [
        ("idle", "serve"),
        ("hang", "serve"),
        ("stopped", "serve"),
        ("idle", "deaf"),
        ("idle", "daemon"),
        ("idle", "chain"),
    ],
    ids=["idle", "busy_in_a_call", "stopped", "deaf", "daemonised_grandchild", "chain_of_sessions"],
)
def test_no_plugin_outlives_a_killed_host(tidy: Path, call: str, mode: str) -> None:
    """PROTOCOL Lifecycle, host death: SIGKILL included, within 2 s, and the folder goes too."""
    family = {"daemon": 2, "chain": 3}.get(mode, 1)
    mark = str(tidy / "family")
    with host("lives.py", "idle" if call == "stopped" else call, mode, mark) as process:
        assert process.stdout is not None
        plugin = int(process.stdout.readline())
        until(lambda: len(processes(mark)) >= family + 1)  # the host itself has the mark too
        assert folders(tidy)
        if call == "stopped":
            stop(plugin)
        process.kill()
        process.wait()
        begun = time.monotonic()
        until(lambda: not processes(str(tidy)), PROMISE * SLOW, f"left: {processes(str(tidy))}")
        until(lambda: not folders(tidy), PROMISE * SLOW, "its folder is left")
        assert time.monotonic() - begun < PROMISE * SLOW


def test_terminated_host_leaves_nothing(tidy: Path) -> None:
    """PROTOCOL Lifecycle, host death: SIGTERM, which Python does not clean up after."""
    with host("lives.py", "hang", "serve") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.wait()
        until(lambda: not processes(str(tidy)), PROMISE * SLOW)
        until(lambda: not folders(tidy), PROMISE * SLOW)


def test_forked_child_is_refused_at_once_and_its_parent_goes_on(tidy: Path) -> None:
    """PROTOCOL Channels: detect the fork and refuse; the emission ends in a record (§10.3)."""
    with host("forks.py") as process:
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
    said = [json.loads(line) for line in out.splitlines()]
    kinds = ("InterceptionEmitter", "SyncInterceptionEmitter")
    assert [(item["who"], item["kind"]) for item in said] == [
        (who, kind) for who in ("before", "child", "parent") for kind in kinds
    ]
    for item in said:
        refused = item["who"] == "child"
        assert item["reason"] == ("host_error:interceptor_failed" if refused else None)
        assert item["slots"] == ["allow", "deny" if refused else "allow"]
        assert item["records"] == 1
        assert item["seconds"] < 5  # the timeout is 60
