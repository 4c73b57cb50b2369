"""The conformance test kit (§13.2): vectors, a harness to drive a host, the verdict on it.

The names are loaded when they are first used, so that the scripted plugin and
the pytest plugin carry no host with them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_hooks.ctk.harness import (
        Capability,
        Harness,
        LoadRecord,
        ModelResponse,
        RunOutcome,
        RunRecord,
        Scenario,
        ToolBehavior,
        ToolSpec,
    )
    from agent_hooks.ctk.reference import ReferenceHarness
    from agent_hooks.ctk.runner import (
        VectorResult,
        load_vectors,
        run_vector,
        run_vectors,
    )
    from agent_hooks.ctk.scripted import (
        RecordingInterceptor,
        ScriptedInterceptor,
        ScriptedResolver,
        redact_paths,
    )
    from agent_hooks.ctk.staging import Staged, in_process, in_processes

_HOME = {
    "harness": (
        "Capability", "Harness", "LoadRecord", "ModelResponse", "RunOutcome", "RunRecord",
        "Scenario", "ToolBehavior", "ToolSpec",
    ),
    "reference": ("ReferenceHarness",),
    "runner": ("VectorResult", "load_vectors", "run_vector", "run_vectors"),
    "scripted": (
        "RecordingInterceptor", "ScriptedInterceptor", "ScriptedResolver", "redact_paths",
    ),
    "staging": ("Staged", "in_process", "in_processes"),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Capability",
    "Harness",
    "LoadRecord",
    "ModelResponse",
    "RecordingInterceptor",
    "ReferenceHarness",
    "RunOutcome",
    "RunRecord",
    "Scenario",
    "ScriptedInterceptor",
    "ScriptedResolver",
    "Staged",
    "ToolBehavior",
    "ToolSpec",
    "VectorResult",
    "in_process",
    "in_processes",
    "load_vectors",
    "redact_paths",
    "run_vector",
    "run_vectors",
]


def __getattr__(name: str) -> Any:
    try:
        module = import_module(f"agent_hooks.ctk.{_MODULE_OF[name]}")
    except KeyError:
        raise AttributeError(f"module 'agent_hooks.ctk' has no attribute {name!r}") from None
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
