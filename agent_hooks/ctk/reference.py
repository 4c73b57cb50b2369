"""The reference host: the smallest agent loop that keeps the contract, and its harness."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from functools import partial
from typing import Any

from agent_hooks.core.approval import ApprovalResolver
from agent_hooks.core.builder import AgentContextBuilder
from agent_hooks.core.context import AgentContext
from agent_hooks.core.identity import JCS_SHA256
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from agent_hooks.core.record import InterceptionRecord
from agent_hooks.ctk.harness import (
    Capability,
    ModelResponse,
    RunOutcome,
    RunRecord,
    Scenario,
    named_provider,
)
from agent_hooks.ctk.scripted import redact_paths
from agent_hooks.host import InterceptionEmitter

_MODEL = "mock-model"

Messages = list[dict[str, Any]]


def _now() -> datetime:
    return datetime.now(UTC)


class Blocked(Exception):  # noqa: N818 - an outcome of a run, not an error
    """A point whose deny ends the run."""


class ReferenceHarness:
    """Drives the reference loop: startup, input, model and tools in turn, output, shutdown."""

    name: str = "agent-hooks-reference"
    capabilities: Collection[Capability] = frozenset({
        Capability.MODEL_CALLS,
        Capability.TOOL_CALLS,
        Capability.INT64_JSON,
        Capability.BIGINT_JSON,
    })  # fmt: skip
    tool_seam_host_error: str = "continue"

    def __init__(self, *, clock: Callable[[], datetime] = _now) -> None:
        """
        Args:
            clock: what contexts are stamped with, in UTC. A fixed one makes the
                identities of two runs comparable.
        """
        self._clock = clock

    def setup(
        self,
        scenario: Scenario,
        interceptors: list[Any],
        resolver: ApprovalResolver | None,
        mode: EnforcementMode,
        composition: CompositionConfig | None = None,
        identity_provider: str | None = JCS_SHA256,
        redact_for_approval: list[str] | None = None,
    ) -> None:
        """Make the emitter; see `Harness.setup`."""
        self.scenario = scenario
        self.emitter = InterceptionEmitter(
            mode=mode,
            resolver=resolver,
            composition=composition,
            identity_provider=named_provider(identity_provider),
            strict_order=True,
        )
        for index, interceptor in enumerate(interceptors):
            self.emitter.register(interceptor, name=f"script-{index}")
        if redact_for_approval:
            self.emitter.set_approval_redactor(partial(redact_paths, paths=redact_for_approval))
        self.build = AgentContextBuilder(
            agent_id="reference-agent",
            framework="reference",
            session_id="ctk-session",
            clock=self._clock,
        )
        self.report = RunRecord(RunOutcome.COMPLETED, None)

    async def run(self) -> RunRecord:
        """One session. Whatever happens in it, shutdown is emitted last (§3.1)."""
        report = self.report
        try:
            report.final_output = await self.session()
        except Blocked:
            report.outcome = RunOutcome.BLOCKED
        except Exception as exc:  # noqa: BLE001 - the outcome `error` is for whatever it is
            report.outcome = RunOutcome.ERROR
            report.error = f"{type(exc).__name__}: {exc}"
        completed = report.outcome is RunOutcome.COMPLETED
        await self.emit(self.build.agent_shutdown(reason="completed" if completed else "error"))
        return report

    def teardown(self) -> None:
        """Nothing is held."""

    async def emit(self, context: AgentContext) -> InterceptionRecord:
        """One emission, reported; a transform is in `context` afterwards."""
        record = await self.emitter.emit_unchecked(context)
        self.report.records.append(record.to_wire())
        self.report.identities.append((record.input_identity, record.enforced_identity))
        return record

    async def guard(self, context: AgentContext) -> AgentContext:
        """An emission whose deny ends the run.

        Raises:
            Blocked: it may not proceed (§6).
        """
        record = await self.emit(context)
        if not record.proceeds:
            raise Blocked
        return context

    async def session(self) -> Any:
        """From startup to output; what the caller gets, or None where the script says nothing."""
        await self.guard(self.build.agent_startup(tools_registered=sorted(self.scenario.tools)))
        asked = (await self.guard(self.build.input(**self.scenario.input)))["input"]
        messages: Messages = [{"role": asked["role"], "content": asked["content"]}]
        for scripted in self.scenario.model_script:
            answer, messages = await self.ask_model(scripted, messages)
            if not answer["tool_calls"]:
                said = await self.guard(self.build.output(content=answer["content"]))
                return said["output"]["content"]
            for call in answer["tool_calls"]:
                content = await self.call_tool(call["id"], call["name"], call["args"])
                messages.append({"role": "tool", "content": content})
            messages.append({"role": "assistant", "content": answer["content"] or ""})
        return None

    async def ask_model(
        self, scripted: ModelResponse, messages: Messages
    ) -> tuple[dict[str, Any], Messages]:
        """One model call: the response that may be used, and the messages that were sent."""
        before = await self.guard(self.build.pre_model_call(model_id=_MODEL, messages=messages))
        after = await self.guard(
            self.build.post_model_call(
                model_id=_MODEL,
                content=scripted.content,
                tool_calls=scripted.tool_calls,
                finish_reason=scripted.finish_reason,
            )
        )
        return after["response"], list(before["messages"])

    async def call_tool(self, call_id: str, name: str, args: dict[str, Any]) -> Any:
        """What the model is told of one tool call: its result, or why there is none (§6.2)."""
        before = self.build.pre_tool_call(call_id=call_id, name=name, args=args)
        record = await self.emit(before)
        if not record.proceeds:
            return _refusal(record)
        args = before["tool_call"]["args"]
        self.report.tool_invocations.append({"name": name, "args": copy.deepcopy(args)})
        value, is_error = self.scenario.tools[name].invoke(args)
        after = self.build.post_tool_call(
            call_id=call_id, name=name, args=args, value=value, is_error=is_error
        )
        record = await self.emit(after)
        # §6.1: a result that was denied is discarded as if the tool had failed.
        return after["tool_result"]["value"] if record.proceeds else _refusal(record)


def _refusal(record: InterceptionRecord) -> str:
    return f"blocked: {record.verdict.reason or 'denied'}"
