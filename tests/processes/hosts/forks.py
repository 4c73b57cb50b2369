"""A host that forks while its supervisor lives. Prints a JSON object per emission.

Parent and child each emit through the remote interceptor, with either emitter;
the child leaves with os._exit.
"""

import asyncio
import json
import os
import sys
import time
import warnings

from agent_hooks import Binding, InterceptionEmitter, Supervisor, SyncInterceptionEmitter
from tests.processes.support import QUICK, Allower, bad, context

warnings.simplefilter("ignore", DeprecationWarning)


def emit(who, emitter):
    begun = time.monotonic()
    record = emitter.emit_unchecked(context())
    if asyncio.iscoroutine(record):
        record = asyncio.run(record)
    said = {
        "who": who,
        "kind": type(emitter).__name__,
        "reason": record.verdict.reason,
        "slots": [slot.decision.value for slot in record.verdicts],
        "records": len(emitter.results),
        "seconds": time.monotonic() - begun,
    }
    os.write(1, json.dumps(said).encode() + b"\n")


def emitters():
    for kind in (InterceptionEmitter, SyncInterceptionEmitter):
        emitter = kind(timeout=60)
        emitter.register(Allower())
        emitter.register(supervisor.interceptor("p"), timeout=60)
        yield emitter


with Supervisor([Binding("p", bad())], QUICK) as supervisor:
    ours = list(emitters())
    for emitter in ours:
        emit("before", emitter)
        emitter.take_records()
    child = os.fork()
    if child == 0:
        for emitter in ours:
            emit("child", emitter)
        supervisor.close()  # another process's: refused, or nothing, but no hang
        os._exit(0)
    _, status = os.waitpid(child, 0)
    for emitter in ours:
        emit("parent", emitter)
    sys.exit(os.waitstatus_to_exitcode(status))
