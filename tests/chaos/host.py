"""A host that is about to be killed: `python -m tests.chaos.host FOLDER`.

Two plugins, emissions from two threads, records to a file in the folder; it
says with one line that all of that runs.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from agent_hooks import AgentContextBuilder, Binding, Supervisor, SyncInterceptionEmitter
from agent_hooks.host.sinks import NdjsonSink
from tests.chaos.arena import SETTINGS, manifest
from tests.chaos.killed import PLUGINS, RECORDS
from tests.processes.support import PROFILES


def emit(emitter: SyncInterceptionEmitter, builder: AgentContextBuilder) -> None:
    """One numbered emission."""
    args: dict[str, int] = {}
    context = builder.pre_tool_call(call_id="c", name="t", args=args)
    args["n"] = context["sequence"]
    emitter.emit_unchecked(context)


def main(folder: Path) -> None:
    """Emit for ever."""
    builder = AgentContextBuilder(agent_id="a", framework="chaos", session_id="killed")
    sink = NdjsonSink(folder / RECORDS)
    bindings = [Binding(name, manifest(name, folder / "seen")) for name in PLUGINS]
    with Supervisor(bindings, SETTINGS) as supervisor:
        emitters = []
        for profile in ("first_deny", "strictest"):
            emitter = SyncInterceptionEmitter(composition=PROFILES[profile])
            emitter.set_record_sink(sink).set_max_records(10)
            for name in PLUGINS:
                emitter.register(supervisor.interceptor(name), name)
            emit(emitter, builder)
            emitters.append(emitter)
        print("standing", flush=True)

        def loop(emitter: SyncInterceptionEmitter) -> None:
            while True:
                emit(emitter, builder)

        threading.Thread(target=loop, args=(emitters[0],), daemon=True).start()
        loop(emitters[1])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
