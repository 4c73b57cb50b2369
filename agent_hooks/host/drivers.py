"""Two small drivers of the same generator: asyncio and synchronous.

Neither knows a rule. Both bound every question by the host's own clock, and
both see an emission through to its record when they are interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from agent_hooks.core.call import Cancel, Done
from agent_hooks.core.effects import Consult, Effect, Failed, Invoke, InvokeAll
from agent_hooks.core.emission import Emission, Emitted
from agent_hooks.core.reasons import HostError


@dataclass(frozen=True, slots=True)
class Question:
    """One thing to ask: how, for how long, and what silence means.

    Attributes:
        ask: asks and waits, where that is cheaper; bounds itself by `timeout`.
    """

    start: Callable[[Done], Cancel]
    timeout: float | None
    silence: HostError
    ask: Callable[[], object] | None = None


Plan = Callable[[Effect], list[Question]]
"""The questions of an effect: one, or one per interceptor for InvokeAll."""


def _answer(effect: Effect, replies: list[object]) -> object:
    return replies if isinstance(effect, InvokeAll) else replies[0]


def _given_up(effect: Effect) -> object:
    """What an interrupted driver answers: nobody is asked any more."""
    match effect:
        case Invoke():
            return Failed(HostError.INTERCEPTOR_FAILED, "the emission was interrupted")
        case InvokeAll():
            failed = Failed(HostError.INTERCEPTOR_FAILED, "the emission was interrupted")
            return [failed] * effect.count
        case Consult():
            return Failed(HostError.APPROVAL_RESOLVER_FAILED, "the emission was interrupted")


async def adrive(steps: Emission, plan: Plan) -> tuple[Emitted, BaseException | None]:
    """Drive on the running event loop.

    Returns:
        The outcome, and the interruption to re-raise once it is recorded.
    """
    loop = asyncio.get_running_loop()
    interruption: BaseException | None = None
    reply: object = None
    while True:
        try:
            effect = steps.send(reply)
        except StopIteration as stop:
            return stop.value, interruption
        if interruption is not None:
            reply = _given_up(effect)
            continue
        waiters: list[_Waiter] = []
        try:
            for question in plan(effect):
                waiters.append(_Waiter(question, loop))
            reply = _answer(effect, [await waiter.future for waiter in waiters])
        except BaseException as exc:  # noqa: BLE001 - cancelled: record first, then re-raise
            interruption = exc
            reply = _given_up(effect)
        finally:
            for waiter in waiters:
                waiter.close()


class _Waiter:
    """One question on an event loop."""

    __slots__ = ("_cancel", "_loop", "_silence", "_thread", "_timer", "future")

    def __init__(self, question: Question, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[object] = loop.create_future()
        self._loop = loop
        self._thread = threading.get_ident()
        self._silence = question.silence
        self._cancel: Cancel | None = question.start(self._done)
        self._timer = question.timeout and loop.call_later(question.timeout, self._time_out)

    def _done(self, reply: object) -> None:
        if threading.get_ident() == self._thread:
            self._settle(reply)
            return
        try:
            self._loop.call_soon_threadsafe(self._settle, reply)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def _settle(self, reply: object) -> None:
        if not self.future.done():  # a late answer is dropped
            self.future.set_result(reply)

    def _time_out(self) -> None:
        if not self.future.done():
            self.future.set_result(Failed(self._silence, "no answer in time"))
            self._give_up(True)

    def _give_up(self, timed_out: bool) -> None:
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel(timed_out)

    def close(self) -> None:
        """Give up what is still open."""
        if self._timer:
            self._timer.cancel()
        if not self.future.done() or self.future.cancelled():
            self._give_up(False)
            self.future.cancel()


def drive(steps: Emission, plan: Plan) -> tuple[Emitted, BaseException | None]:
    """Drive on the calling thread; see `adrive`."""
    interruption: BaseException | None = None
    reply: object = None
    while True:
        try:
            effect = steps.send(reply)
        except StopIteration as stop:
            return stop.value, interruption
        if interruption is not None:
            reply = _given_up(effect)
            continue
        blockers: list[_Blocker] = []
        try:
            questions = plan(effect)
            if len(questions) == 1 and questions[0].ask is not None:
                reply = _answer(effect, [questions[0].ask()])
                continue
            blockers = [_Blocker(question) for question in questions]
            reply = _answer(effect, [blocker.wait() for blocker in blockers])
        except BaseException as exc:  # noqa: BLE001 - interrupted: record first, then re-raise
            interruption = exc
            reply = _given_up(effect)
            for blocker in blockers:
                blocker.give_up()


class _Blocker:
    """One question that a thread waits for."""

    __slots__ = ("_answered", "_cancel", "_deadline", "_replies", "_silence")

    def __init__(self, question: Question) -> None:
        self._answered = threading.Lock()
        self._answered.acquire()
        self._replies: list[object] = []
        self._silence = question.silence
        self._deadline = question.timeout and time.monotonic() + question.timeout
        self._cancel = question.start(self._done)

    def _done(self, reply: object) -> None:
        self._replies.append(reply)
        with contextlib.suppress(RuntimeError):  # answered already: the first one counts
            self._answered.release()

    def wait(self) -> object:
        """The answer, or what silence means."""
        left = -1.0 if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)
        if self._answered.acquire(timeout=left):
            return self._replies[0]
        self._cancel(True)
        return Failed(self._silence, "no answer in time")

    def give_up(self) -> None:
        """Nobody waits any more."""
        self._cancel(False)
