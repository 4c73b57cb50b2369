"""The shells around the pure core: drivers, emitters, sinks."""

from agent_hooks.host.allow import AllowAll
from agent_hooks.host.base import DEFAULT_TIMEOUT, Interceptor
from agent_hooks.host.emitter import (
    EmitOutcome,
    InterceptionEmitter,
    SyncInterceptionEmitter,
)
from agent_hooks.host.exceptions import (
    EmitterSealed,
    InterceptionBlocked,
    InterceptionSuspended,
)
from agent_hooks.host.sinks import NdjsonSink

__all__ = [
    "DEFAULT_TIMEOUT",
    "AllowAll",
    "EmitOutcome",
    "EmitterSealed",
    "InterceptionBlocked",
    "InterceptionEmitter",
    "InterceptionSuspended",
    "Interceptor",
    "NdjsonSink",
    "SyncInterceptionEmitter",
]
