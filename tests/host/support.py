"""Both emitters through one call, and interceptors of every colour."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

from agent_hooks.core.verdict import ALLOW, Verdict
from agent_hooks.host import InterceptionEmitter, SyncInterceptionEmitter

EMITTERS = (InterceptionEmitter, SyncInterceptionEmitter)


class Sync:
    """An interceptor from a function of the context."""

    def __init__(self, judge: Callable[[Any], Any] = lambda _: ALLOW) -> None:
        self.judge = judge
        self.seen: list[Any] = []

    def intercept(self, context: Any) -> Any:
        self.seen.append(context)
        return self.judge(context)


class Async(Sync):
    """The same as a coroutine; a coroutine function as `judge` is awaited."""

    async def intercept(self, context: Any) -> Any:
        self.seen.append(context)
        returned = self.judge(context)
        return await returned if inspect.isawaitable(returned) else returned


COLOURS = (Sync, Async)


def finished(outcome: Any) -> Any:
    """The outcome of a call of either emitter."""
    return asyncio.run(_awaited(outcome)) if inspect.isawaitable(outcome) else outcome


async def _awaited(outcome: Any) -> Any:
    return await outcome


def emitted(emitter: Any, raw: Any) -> Any:
    """The record of one emission."""
    return finished(emitter.emit_unchecked(raw))


def escalator(_: Any) -> Verdict:
    """Denies, liftably."""
    return Verdict.escalate(reason="ask")


def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """Wait for a state."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.002)
    return value
