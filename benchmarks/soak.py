"""Emissions without end through two plugins, one of them killed every hundredth of the way.

    python benchmarks/soak.py [EMISSIONS] [--kills 100]

What must not happen: a lost record, a deny, a thread or a descriptor that
stays, memory of the host that grows. The figures are the last line, as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # connections of killed plugins break

from agent_hooks import AgentContextBuilder, Binding, Supervisor, SyncInterceptionEmitter
from agent_hooks.host.sinks import NdjsonSink
from agent_hooks.supervisor import Manifest, Settings

PLUGIN = str(Path(__file__).with_name("plugins.py"))
MANIFEST = Manifest("soak", "soak", (sys.executable, PLUGIN, "allow"))
PLUGINS = ("a", "b")
SETTINGS = Settings(backoff_first=0, quarantine_restarts=1_000_000)
TIMEOUT = 60.0
"""Seconds for one call: what is looked for is loss, not slowness."""
WARMING, SAMPLES = 0.1, 500
MAX_SLOPE = 4096.0
"""Bytes per 1,000 emissions that count as flat: at a million a day, 4 MB."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Seen:
    """What the host held along the way.

    Attributes:
        resident: emissions so far, and resident bytes then; after warming.
        threads: how many, at each sample.
        descriptors: likewise.
    """

    resident: list[tuple[int, int]] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    denied: int = 0
    kills: int = 0

    def sample(self, emissions: int) -> None:
        """Look now."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.resident.append((emissions, pages * _PAGE))
        self.threads.append(sum(_counts(thread) for thread in threading.enumerate()))
        self.descriptors.append(len(os.listdir("/proc/self/fd")))

    @property
    def is_warm(self) -> bool:
        """A plugin that was killed once is called as it will be after every further kill."""
        return self.kills >= len(PLUGINS)

    @property
    def slope(self) -> float:
        """Bytes per 1,000 emissions, by least squares over the samples."""
        emissions, resident = zip(*self.resident, strict=True)
        return statistics.linear_regression(emissions, resident).slope * 1000


def _counts(thread: threading.Thread) -> bool:
    """Not those of an event loop's executor: it keeps a few, and starts them when it needs one."""
    return not thread.name.startswith("asyncio_")


def soak(count: int, kills: int, records: Path) -> tuple[Seen, int]:
    """Emit; what was seen, and how many records were written."""
    sink, seen = NdjsonSink(records), Seen()
    contexts = AgentContextBuilder(agent_id="soak", framework="soak", session_id="soak")
    with Supervisor([Binding(name, MANIFEST) for name in PLUGINS], SETTINGS) as supervisor:
        emitter = SyncInterceptionEmitter().set_record_sink(sink).set_max_records(100)
        for name in PLUGINS:
            emitter.register(supervisor.interceptor(name), name, timeout=TIMEOUT)
        every_kill, every_sample = max(count // kills, 1), max(count // SAMPLES, 1)
        for number in range(1, count + 1):
            context = contexts.pre_tool_call(call_id="c", name="t", args={"n": number})
            seen.denied += not emitter.emit_unchecked(context).proceeds
            if number % every_sample == 0 and number > WARMING * count and seen.is_warm:
                seen.sample(number)
            if number % every_kill == 0:
                os.kill(_pid(supervisor, seen.kills % len(PLUGINS)), signal.SIGKILL)
                seen.kills += 1
    sink.close()
    return seen, sink.written


def _pid(supervisor: Supervisor, index: int) -> int:
    while (status := supervisor.status()[index])["state"] != "ready":
        time.sleep(0.005)
    return int(status["pid"])


def figures(count: int, seen: Seen, written: int, lines: int, seconds: float) -> dict[str, Any]:
    """What is reported."""
    return {
        "emissions": count,
        "seconds": round(seconds, 1),
        "kills": seen.kills,
        "denied": seen.denied,
        "records_written": written,
        "record_lines": lines,
        "bytes_per_1000_emissions": round(seen.slope, 1),
        "resident_mb_first": round(seen.resident[0][1] / 1e6, 2),
        "resident_mb_last": round(seen.resident[-1][1] / 1e6, 2),
        "threads": [seen.threads[0], seen.threads[-1], max(seen.threads)],
        "descriptors": [seen.descriptors[0], seen.descriptors[-1], max(seen.descriptors)],
    }


def faults(found: dict[str, Any], max_slope: float) -> list[str]:
    """What broke its promise."""
    count, slope = found["emissions"], found["bytes_per_1000_emissions"]
    broken = []
    if (found["records_written"], found["record_lines"]) != (count, count):
        broken.append(f"records: {count} emissions have {found['record_lines']} lines")
    if found["denied"]:
        broken.append(f"denied: {found['denied']} emissions, and every plugin allows")
    if slope > max_slope:
        broken.append(f"memory: grows by {slope:.0f} bytes per 1,000 emissions")
    for what in ("threads", "descriptors"):
        first, last, _ = found[what]
        if last > first:
            broken.append(f"{what}: {first} at first, {last} in the end")
    return broken


def main() -> int:
    """Run, report; 1 where something broke its promise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("emissions", type=int, nargs="?", default=1_000_000)
    parser.add_argument(
        "--max-slope", type=float, default=MAX_SLOPE, help="bytes per 1,000 emissions"
    )
    parser.add_argument("--kills", type=int, default=100, help="at even intervals")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ah-") as folder:
        records, began = Path(folder) / "records.ndjson", time.monotonic()
        seen, written = soak(options.emissions, options.kills, records)
        with records.open("rb") as file:
            lines = sum(1 for _ in file)
    found = figures(options.emissions, seen, written, lines, time.monotonic() - began)
    broken = faults(found, options.max_slope)
    for line in broken:
        print(line)
    print(json.dumps(found | {"broken": broken}))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
