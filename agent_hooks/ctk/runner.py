"""Runs vectors: load, stage, drive a harness, judge."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from agent_hooks.core.context import AgentContext
from agent_hooks.core.identity import JCS_SHA256
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from agent_hooks.core.values import ValueDomainError, parse_json
from agent_hooks.ctk.assertions import judge
from agent_hooks.ctk.harness import Capability, Harness, RunRecord, Scenario
from agent_hooks.ctk.scripted import ScriptedResolver
from agent_hooks.ctk.staging import Rules, Staging, in_process

VECTORS: Final = "AGENT_HOOKS_VECTORS"
"""The environment variable that names a folder of vectors."""

_REQUIRED = ("id", "title", "spec_clause", "scenario", "expect")


@dataclass(slots=True)
class VectorResult:
    """What became of one vector.

    Attributes:
        status: "pass", "fail" or "skip".
        detail: why it was skipped or could not be run.
        failures: a sentence for each expectation that was not met.
    """

    id: str
    title: str
    status: str
    detail: str = ""
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Observed:
    """What a vector is judged by.

    Attributes:
        recorded: the contexts that the first interceptor received, in order.
        run: the harness's report.
    """

    recorded: list[AgentContext]
    run: RunRecord


def load_vectors(directory: str | Path | None = None) -> list[dict[str, Any]]:
    """Every `*.json` of a folder, in the order of the files' names.

    Numbers keep their exact value, integers of any size included.

    Args:
        directory: None takes the folder that AGENT_HOOKS_VECTORS names.

    Raises:
        ValueError: no folder is named, it holds no vector, or a file is none.
    """
    named = directory or os.environ.get(VECTORS)
    if not named:
        raise ValueError(f"no folder of vectors: pass `directory`, or set {VECTORS}")
    files = sorted(Path(named).glob("*.json"))
    if not files:
        raise ValueError(f"{named}: no vectors there (*.json)")
    return [_load(file) for file in files]


def _load(file: Path) -> dict[str, Any]:
    try:
        vector = parse_json(file.read_bytes())
    except ValueDomainError as refusal:
        raise ValueError(f"{file}: {refusal}") from None
    if not isinstance(vector, dict):
        raise ValueError(f"{file}: not a JSON object")
    missing = [name for name in _REQUIRED if name not in vector]
    if missing:
        raise ValueError(f"{file}: no {', '.join(missing)}")
    if "interceptor_script" in vector and "interceptor_scripts" in vector:
        raise ValueError(f"{file}: both interceptor_script and interceptor_scripts")
    return vector


async def run_vectors(
    harness_factory: Callable[[], Harness],
    vectors: list[dict[str, Any]],
    *,
    interceptors: Staging = in_process,
    at_once: int = 1,
) -> list[VectorResult]:
    """Run vectors, each with a harness of its own; the results are in their order.

    Args:
        interceptors: see `run_vector`.
        at_once: how many may run concurrently.
    """
    places = asyncio.Semaphore(at_once)

    async def run(vector: dict[str, Any]) -> VectorResult:
        async with places:
            return await run_vector(harness_factory(), vector, interceptors=interceptors)

    return await asyncio.gather(*map(run, vectors))


async def run_vector(
    harness: Harness, vector: dict[str, Any], *, interceptors: Staging = in_process
) -> VectorResult:
    """Run one vector.

    Args:
        interceptors: where its interceptors live: `staging.in_process`, or
            `staging.in_processes` for a plugin process each.

    Returns:
        "skip" where the vector needs a capability that the harness has not;
        "fail" for whatever the harness raises too. Nothing is raised.
    """
    result = VectorResult(vector["id"], vector["title"], "skip")
    lacking = sorted(_names(vector.get("capabilities", ())) - _names(harness.capabilities))
    if lacking:
        result.detail = f"the harness does not declare {', '.join(lacking)}"
        return result
    posture = getattr(harness, "tool_seam_host_error", "continue")
    try:
        observed = await observe(harness, vector, interceptors)
        result.failures = judge(vector["expect"], observed.recorded, observed.run, posture)
    except Exception as exc:  # noqa: BLE001 - whatever went wrong, the vector has not passed
        result.detail = f"{type(exc).__name__}: {exc}"
        result.failures = [f"the run ended in {result.detail}"]
    result.status = "fail" if result.failures else "pass"
    return result


async def observe(
    harness: Harness, vector: dict[str, Any], interceptors: Staging = in_process
) -> Observed:
    """Drive the harness through a vector, without judging what comes of it.

    Raises:
        ValueError: the vector asks for something that the kit cannot do.
        Exception: whatever the harness raises.
    """
    if "host_declaration" in vector:
        raise ValueError("host_declaration: this kit cannot run declaration vectors yet")
    script = vector.get("approval_script")
    redact = vector.get("redact_for_approval")
    async with interceptors(scripts_of(vector)) as staged:
        harness.setup(
            Scenario.from_wire(vector["scenario"]),
            staged.interceptors,
            ScriptedResolver(script) if script else None,
            EnforcementMode(vector.get("mode", "enforce")),
            CompositionConfig.from_wire(vector.get("composition")),
            vector.get("identity_provider", JCS_SHA256),
            # A harness from before redaction has no such parameter.
            **({"redact_for_approval": redact} if redact else {}),
        )
        try:
            run = await _run(harness)
        finally:
            harness.teardown()
        return Observed(staged.recorded(), run)


def scripts_of(vector: dict[str, Any]) -> list[Rules]:
    """One rule list per interceptor to register.

    Raises:
        ValueError: the vector has neither form of script.
    """
    if "interceptor_script" in vector:
        return [vector["interceptor_script"]]
    if "interceptor_scripts" in vector:
        return list(vector["interceptor_scripts"])
    raise ValueError("neither interceptor_script nor interceptor_scripts")


async def _run(harness: Harness) -> RunRecord:
    if inspect.iscoroutinefunction(harness.run):
        run: Any = await harness.run()
    else:  # it may block, or start an event loop of its own
        run = await asyncio.to_thread(harness.run)
        if inspect.isawaitable(run):
            run = await run
    if not isinstance(run, RunRecord):
        raise TypeError(f"run() returned {type(run).__name__}, not a RunRecord")
    return run


def _names(capabilities: Any) -> set[str]:
    return {item.value if isinstance(item, Capability) else str(item) for item in capabilities}
