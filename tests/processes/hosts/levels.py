"""A host that is about to be killed: the hostile plugin at a level, with something under way.

    levels.py LEVEL ACT [NAME=VALUE…]

It says with one line that it stands, and then waits for its end.
"""

import sys
import threading
import time

from agent_hooks import Binding, Supervisor, SyncInterceptionEmitter
from tests.processes.support import QUICK, hostile, hostile_call, until

level, act, *arguments = sys.argv[1:]
supervisor = Supervisor([Binding("p", hostile(level))], QUICK).start()
emitter = SyncInterceptionEmitter()
emitter.register(supervisor.interceptor("p"), timeout=600)
call = hostile_call(act, **dict(argument.split("=") for argument in arguments))
threading.Thread(target=lambda: emitter.emit_unchecked(call), daemon=True).start()
until(lambda: supervisor.status()[0]["in_flight"] == 1 or supervisor.status()[0]["answered"] == 1)
print(supervisor.status()[0]["pid"], flush=True)
time.sleep(600)
