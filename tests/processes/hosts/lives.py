"""A host that is about to be killed: one plugin, perhaps with a call under way.

    lives.py CALL MODE [ARGUMENT…]

CALL is `idle`, or the fault that a call of the plugin is busy with. It says
with one line that it stands, and then waits for its end.
"""

import sys
import threading
import time

from agent_hooks import Binding, Supervisor, SyncInterceptionEmitter
from tests.processes.support import QUICK, bad, context, until

call, mode, *arguments = sys.argv[1:]
supervisor = Supervisor([Binding("p", bad(mode, *arguments))], QUICK).start()
if call != "idle":
    emitter = SyncInterceptionEmitter()
    emitter.register(supervisor.interceptor("p"), timeout=600)
    threading.Thread(target=lambda: emitter.emit_unchecked(context(call)), daemon=True).start()
    until(lambda: supervisor.status()[0]["in_flight"] == 1)
print(supervisor.status()[0]["pid"], flush=True)
time.sleep(600)
