"""Small runs of the soak and of the availability figures, and what they count as broken."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from typing import Any

import pytest

from tests.shared import ROOT

BENCHMARKS = ROOT / "benchmarks"


def figures(program: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code, and the JSON of the last line."""
    command = [sys.executable, str(BENCHMARKS / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


def test_no_emission_is_denied_by_a_kill_at_idle_or_an_upgrade_under_load() -> None:
    """PROTOCOL Deadlines: a crash or an upgrade that fits the deadline denies nothing."""
    code, found = figures("availability.py", "--kills", "20", "--upgrades", "5")
    assert found["idle"]["outcomes"] == {"allow": 20}
    assert found["load"]["denied"] == 0
    assert found["load"]["emissions"] > 50
    assert code == 0


def test_many_emissions_and_a_few_kills_leave_every_record_and_nothing_else() -> None:
    """§10.3; threads and descriptors too. Memory needs a longer run: `make soak`."""
    code, found = figures("soak.py", "3000", "--kills", "4", "--max-slope", "1e9")
    assert found["broken"] == []
    assert (found["record_lines"], found["kills"], code) == (3000, 4, 0)


SOUND = {
    "emissions": 10,
    "denied": 0,
    "records_written": 10,
    "record_lines": 10,
    "bytes_per_1000_emissions": 100.0,
    "threads": [5, 5, 6],
    "descriptors": [20, 19, 21],
}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"record_lines": 9}, "records"),
        ({"records_written": 11}, "records"),
        ({"denied": 1}, "denied"),
        ({"bytes_per_1000_emissions": 2e4}, "memory"),
        ({"threads": [5, 6, 6]}, "threads"),
        ({"descriptors": [20, 21, 21]}, "descriptors"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_soak_names_what_broke_its_promise(changed: dict[str, Any], says: str) -> None:
    faults = runpy.run_path(str(BENCHMARKS / "soak.py"))["faults"]
    assert faults(SOUND, 1e4) == []
    (line,) = faults(SOUND | changed, 1e4)
    assert line.startswith(says)
