"""A host that is killed: nothing of it is left, and its records can be read."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from agent_hooks.core.record import InterceptionRecord
from tests.chaos.arena import Arena
from tests.chaos.ledger import Violation, check_verdict
from tests.chaos.plan import FAILED, JUDGED, Step
from tests.processes.support import folders, processes, until
from tests.shared import ROOT

PROMISE = 2.0
"""Seconds after which nothing of a killed host is left (PROTOCOL Lifecycle)."""
PLUGINS = ("even", "stream")
RECORDS = "records.ndjson"
_START = 30.0


def kill_host(arena: Arena, step: Step, slow: float) -> tuple[float, Counter[str]]:
    """Start a host, kill it in the middle of its emissions, look for what is left.

    Returns:
        Seconds until nothing was left; what the slots of its records hold.

    Raises:
        Violation: something is left, or a record is wrong.
    """
    folder = arena.folder / f"h{step.number}"
    (folder / "seen").mkdir(parents=True)
    try:
        return _kill(folder, step.draw, slow), _read(folder / RECORDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _kill(folder: Path, draw: float, slow: float) -> float:
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.chaos.host", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=ROOT)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"standing\n":
            raise Violation("the host that is to be killed did not start")
        time.sleep(draw * 0.2)
    finally:
        process.kill()
        process.communicate()
    died = time.monotonic()
    with contextlib.suppress(AssertionError):
        until(lambda: not processes(str(folder)) and not folders(folder), PROMISE * slow)
    if left := processes(str(folder)):
        raise Violation(f"{len(left)} processes of a killed host are left after {PROMISE:g} s")
    if folders(folder):
        raise Violation(f"the folder of a killed host is left after {PROMISE:g} s")
    return time.monotonic() - died


def _read(path: Path) -> Counter[str]:
    """Every line but a torn last one is a record that stands (§10.3)."""
    *lines, _ = path.read_bytes().split(b"\n")  # what follows the last line feed may be torn
    if not lines:
        raise Violation("a killed host has left no record")
    held: Counter[str] = Counter()
    numbers: Counter[int] = Counter()
    for line in lines:
        try:
            record = InterceptionRecord.from_core(json.loads(line))
        except (ValueError, KeyError) as exc:
            raise Violation(
                f"a line of a killed host is no record ({type(exc).__name__})"
            ) from None
        numbers[record.sequence] += 1
        held.update(check_verdict(record.sequence, PLUGINS, record).values())
    if max(numbers.values()) > 1:
        raise Violation("a killed host has left two records of one emission")
    # The kernel closes its sockets before its last thread is gone.
    if not set(held) <= {JUDGED, FAILED}:
        raise Violation(f"a killed host has left {', '.join(held)}")
    return held
