"""The emitters: one for asyncio, one for synchronous code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_hooks.core.context import AgentContext
from agent_hooks.core.emission import Emitted
from agent_hooks.core.record import InterceptionRecord
from agent_hooks.core.verdict import Verdict
from agent_hooks.host.base import BaseEmitter
from agent_hooks.host.drivers import adrive, drive
from agent_hooks.host.exceptions import InterceptionBlocked


@dataclass(frozen=True, slots=True)
class EmitOutcome:
    """An emission that may proceed.

    Attributes:
        target: what the action must use.
        verdict: the combined verdict whole; for this process only (§10.3).
    """

    record: InterceptionRecord
    target: Any
    verdict: Verdict | None = None


class InterceptionEmitter(BaseEmitter):
    """Emits from asyncio code. One emitter serves several loops and threads."""

    _tasks = True

    async def emit(self, ctx: AgentContext) -> EmitOutcome:
        """One emission; a transform is written back into `ctx` (§4.3).

        Raises:
            InterceptionBlocked: the action must not proceed (§6).
        """
        emitted = await self._run(ctx)
        if not emitted.record.proceeds:
            raise InterceptionBlocked(emitted.record)
        return _outcome(emitted, ctx)

    async def emit_unchecked(self, ctx: AgentContext) -> InterceptionRecord:
        """One emission; the caller must look at `record.proceeds`."""
        return (await self._run(ctx)).record

    async def _run(self, ctx: AgentContext) -> Emitted:
        steps, running = self._begin(ctx)
        try:
            emitted, interruption = await adrive(steps, running.questions)
        except BaseException as exc:  # noqa: BLE001 - §10.3: whatever raised, one record
            emitted, interruption = self._broken(ctx, exc)
        self._finish(ctx, emitted, running)
        if interruption is not None:
            raise interruption
        return emitted


class SyncInterceptionEmitter(BaseEmitter):
    """Emits from synchronous code, over the same generator."""

    _tasks = False

    def emit(self, ctx: AgentContext) -> EmitOutcome:
        """One emission; a transform is written back into `ctx` (§4.3).

        Raises:
            InterceptionBlocked: the action must not proceed (§6).
        """
        emitted = self._run(ctx)
        if not emitted.record.proceeds:
            raise InterceptionBlocked(emitted.record)
        return _outcome(emitted, ctx)

    def emit_unchecked(self, ctx: AgentContext) -> InterceptionRecord:
        """One emission; the caller must look at `record.proceeds`."""
        return self._run(ctx).record

    def _run(self, ctx: AgentContext) -> Emitted:
        steps, running = self._begin(ctx)
        try:
            emitted, interruption = drive(steps, running.questions)
        except BaseException as exc:  # noqa: BLE001 - §10.3: whatever raised, one record
            emitted, interruption = self._broken(ctx, exc)
        self._finish(ctx, emitted, running)
        if interruption is not None:
            raise interruption
        return emitted


def _outcome(emitted: Emitted, ctx: object) -> EmitOutcome:
    # §8: evaluate_only lets through what is no context at all.
    target = ctx.get("target") if isinstance(ctx, dict) else None
    return EmitOutcome(emitted.record, target, emitted.verdict)
