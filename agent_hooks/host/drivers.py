"""Two small drivers of the same generator: asyncio and synchronous.

Neither knows a rule. Both bound every question by the host's own clock, and
both see an emission through to its record when they are interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from agent_hooks.core.call import Cancel, Done
from agent_hooks.core.effects import Consult, Effect, Failed, Invoke, InvokeAll
from agent_hooks.core.emission import Emission, Emitted
from agent_hooks.core.reasons import HostError


class Question(Protocol):
    """One thing to ask: how, for how long, and what silence means."""

    @property
    def timeout(self) -> float | None:
        """Seconds; None waits for ever."""

    @property
    def silence(self) -> HostError:
        """The failure that no answer in time is."""

    @property
    def ask(self) -> Callable[[], object] | None:
        """Asks and waits, where that is cheaper; bounds itself by `timeout`."""

    def start(self, done: Done) -> Cancel:
        """Ask; `done` takes the answer."""


Plan = Callable[[Effect], Sequence[Question]]
"""The questions of an effect: one, or one per interceptor for InvokeAll."""


def _answer(effect: Effect, replies: list[object]) -> object:
    return replies if isinstance(effect, InvokeAll) else replies[0]


def _deadline(question: Question) -> float | None:
    """On the monotonic clock; None where silence may last."""
    return None if question.timeout is None else time.monotonic() + question.timeout


def _in_time(reply: object, deadline: float | None, silence: HostError) -> object:
    """The reply, or what silence means, where it comes too late (§6.3).

    Judged where the answer is given: nobody may be looking at the clock just
    then, since an interceptor blocks the loop, or another is waited for.
    """
    late = deadline is not None and time.monotonic() > deadline
    return Failed(silence, "no answer in time") if late else reply


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
            reply = _answer(effect, await _replies(waiters))
        except BaseException as exc:  # noqa: BLE001 - cancelled: record first, then re-raise
            interruption = exc
            reply = _given_up(effect)
        finally:
            for waiter in waiters:
                waiter.close()


async def _replies(waiters: list[_Waiter]) -> list[object]:
    """What was answered to each question, or what its silence means."""
    silent = [waiter for waiter in waiters if not waiter.replies]
    if silent:
        # The tasks just started take their first steps in this turn of the loop; what
        # needs no more of them needs no timer and no future.
        await asyncio.sleep(0)
        for future in [waiter.wait() for waiter in silent if not waiter.replies]:
            await future
    return [waiter.replies[0] for waiter in waiters]


class _Waiter:
    """One question on an event loop."""

    __slots__ = (
        "_cancel",
        "_deadline",
        "_future",
        "_loop",
        "_question",
        "_thread",
        "_timer",
        "replies",
    )

    def __init__(self, question: Question, loop: asyncio.AbstractEventLoop) -> None:
        self.replies: list[object] = []  # the first one counts
        self._loop = loop
        self._thread = threading.get_ident()
        self._question = question
        self._future: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = _deadline(question)
        self._cancel: Cancel | None = question.start(self._done)

    def wait(self) -> asyncio.Future[None]:
        """Done once there is an answer, or time is up."""
        self._future = self._loop.create_future()
        if self._deadline is not None:
            left = max(self._deadline - time.monotonic(), 0.0)
            self._timer = self._loop.call_later(left, self._time_out)
        return self._future

    def _done(self, reply: object) -> None:
        reply = _in_time(reply, self._deadline, self._question.silence)
        if threading.get_ident() == self._thread:
            self._settle(reply)
            return
        try:
            self._loop.call_soon_threadsafe(self._settle, reply)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def _settle(self, reply: object) -> None:
        self.replies.append(reply)
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def _time_out(self) -> None:
        if not self.replies:
            self._settle(Failed(self._question.silence, "no answer in time"))
            self._give_up(True)

    def _give_up(self, timed_out: bool) -> None:
        cancel, self._cancel = self._cancel, None
        if cancel is not None:
            cancel(timed_out)

    def close(self) -> None:
        """Give up what is still open."""
        if self._timer is not None:
            self._timer.cancel()
        if not self.replies:
            self._give_up(False)


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
            if len(questions) == 1 and (ask := questions[0].ask) is not None:
                deadline = _deadline(questions[0])
                given = _in_time(ask(), deadline, questions[0].silence)
                reply = _answer(effect, [given])
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
        self._deadline = _deadline(question)
        self._cancel = question.start(self._done)

    def _done(self, reply: object) -> None:
        self._replies.append(_in_time(reply, self._deadline, self._silence))
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
