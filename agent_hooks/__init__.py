"""Controls for AI agents that run outside the agent.

The names here are loaded when they are first used, so that a plugin process
that imports `Verdict` does not carry the host's machinery.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_hooks.core.approval import (
        ApprovalOutcome,
        ApprovalRequest,
        ApprovalResolution,
        ApprovalResolver,
    )
    from agent_hooks.core.builder import AgentContextBuilder
    from agent_hooks.core.canonical import canonical_json
    from agent_hooks.core.context import SPEC_VERSION, AgentContext, Bounds, ContextError
    from agent_hooks.core.identity import JCS_SHA256, IdentityProvider, context_identity
    from agent_hooks.core.path import PathError
    from agent_hooks.core.points import InterceptionPoint
    from agent_hooks.core.profile import (
        CompositionConfig,
        CompositionProfile,
        EnforcementMode,
        OnApproval,
        SynthesisPolicy,
    )
    from agent_hooks.core.reasons import HostError
    from agent_hooks.core.record import InterceptionRecord, VerdictSummary
    from agent_hooks.core.values import AgentHooksCoreError, ValueDomainError
    from agent_hooks.core.verdict import (
        ALLOW,
        Decision,
        Evidence,
        Transform,
        Verdict,
        VerdictError,
        Warning,
    )
    from agent_hooks.host import (
        AllowAll,
        EmitOutcome,
        EmitterSealed,
        InterceptionBlocked,
        InterceptionEmitter,
        InterceptionSuspended,
        Interceptor,
        NdjsonSink,
        SyncInterceptionEmitter,
    )
    from agent_hooks.supervisor import Binding, Settings, Supervisor, load_manifest, load_manifests

_HOME = {
    "core.approval": (
        "ApprovalOutcome", "ApprovalRequest", "ApprovalResolution", "ApprovalResolver",
    ),
    "core.builder": ("AgentContextBuilder",),
    "core.canonical": ("canonical_json",),
    "core.context": ("SPEC_VERSION", "AgentContext", "Bounds", "ContextError"),
    "core.identity": ("JCS_SHA256", "IdentityProvider", "context_identity"),
    "core.path": ("PathError",),
    "core.points": ("InterceptionPoint",),
    "core.profile": (
        "CompositionConfig", "CompositionProfile", "EnforcementMode", "OnApproval",
        "SynthesisPolicy",
    ),
    "core.reasons": ("HostError",),
    "core.record": ("InterceptionRecord", "VerdictSummary"),
    "core.values": ("AgentHooksCoreError", "ValueDomainError"),
    "core.verdict": (
        "ALLOW", "Decision", "Evidence", "Transform", "Verdict", "VerdictError", "Warning",
    ),
    "host": (
        "AllowAll", "EmitOutcome", "EmitterSealed", "InterceptionBlocked", "InterceptionEmitter",
        "InterceptionSuspended", "Interceptor", "NdjsonSink", "SyncInterceptionEmitter",
    ),
    "supervisor": ("Binding", "Settings", "Supervisor", "load_manifest", "load_manifests"),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "ALLOW",
    "JCS_SHA256",
    "SPEC_VERSION",
    "AgentContext",
    "AgentContextBuilder",
    "AgentHooksCoreError",
    "AllowAll",
    "ApprovalOutcome",
    "ApprovalRequest",
    "ApprovalResolution",
    "ApprovalResolver",
    "Binding",
    "Bounds",
    "CompositionConfig",
    "CompositionProfile",
    "ContextError",
    "Decision",
    "EmitOutcome",
    "EmitterSealed",
    "EnforcementMode",
    "Evidence",
    "HostError",
    "IdentityProvider",
    "InterceptionBlocked",
    "InterceptionEmitter",
    "InterceptionPoint",
    "InterceptionRecord",
    "InterceptionSuspended",
    "Interceptor",
    "NdjsonSink",
    "OnApproval",
    "PathError",
    "Settings",
    "Supervisor",
    "SyncInterceptionEmitter",
    "SynthesisPolicy",
    "Transform",
    "ValueDomainError",
    "Verdict",
    "VerdictError",
    "VerdictSummary",
    "Warning",
    "canonical_json",
    "context_identity",
    "load_manifest",
    "load_manifests",
]


def __getattr__(name: str) -> Any:
    try:
        module = import_module(f"agent_hooks.{_MODULE_OF[name]}")
    except KeyError:
        raise AttributeError(f"module 'agent_hooks' has no attribute {name!r}") from None
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
