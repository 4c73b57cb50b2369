"""What a coroutine interceptor may do on the caller's loop: everything that a task may."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import time
from typing import Any

import pytest

from agent_hooks.core.profile import CompositionConfig
from agent_hooks.core.verdict import ALLOW, Verdict
from agent_hooks.host import InterceptionEmitter
from tests.core.support import context
from tests.host.support import Async, emitted

FAILED = "host_error:interceptor_failed"
LATE = "host_error:interceptor_timeout"


def emitter_of(*judges: Any, **options: Any) -> InterceptionEmitter:
    emitter = InterceptionEmitter(**{"timeout": 30, **options})
    for judge in judges:
        emitter.register(Async(judge))
    return emitter


# -- its task --


@pytest.mark.parametrize("suspended", [False, True])
def test_it_runs_in_a_task_of_its_own_and_only_that_one(suspended: bool) -> None:
    """What it takes to be the current task before it waits still is afterwards."""
    seen: list[Any] = []

    async def judge(_: Any) -> Verdict:
        seen.append(asyncio.current_task())
        if suspended:
            await asyncio.sleep(0)
        seen.append(asyncio.current_task())
        return ALLOW

    async def run() -> Any:
        record = await emitter_of(judge).emit_unchecked(context())
        return record, asyncio.current_task()

    record, caller = asyncio.run(run())
    assert record.proceeds
    assert seen[0] is seen[1]
    assert isinstance(seen[0], asyncio.Task)
    assert seen[0] is not caller


@pytest.mark.parametrize("suspended", [False, True])
def test_it_may_cancel_itself_but_not_the_emission(suspended: bool) -> None:
    """§6.3: a failure in its slot; the next emission of the same task is untouched."""

    async def judge(_: Any) -> Verdict:
        if suspended:
            await asyncio.sleep(0)
        current = asyncio.current_task()
        assert current is not None
        current.cancel()
        await asyncio.sleep(600)
        return ALLOW

    emitter = emitter_of(judge)

    async def run() -> Any:
        records = [await emitter.emit_unchecked(context()) for _ in range(2)]
        current = asyncio.current_task()
        assert current is not None
        assert current.cancelling() == 0
        await asyncio.sleep(0)
        return records

    records = asyncio.run(run())
    assert [record.verdict.reason for record in records] == [FAILED, FAILED]
    assert emitter.results == records


@pytest.mark.parametrize("suspended", [False, True])
def test_it_may_use_timeouts_and_groups_of_its_own(suspended: bool) -> None:
    """asyncio binds both to the current task."""

    async def fails() -> None:
        raise LookupError

    async def judge(_: Any) -> Verdict:
        if suspended:
            await asyncio.sleep(0)
        reasons = []
        try:
            async with asyncio.timeout(0.02):
                await asyncio.sleep(600)
        except TimeoutError:
            reasons.append("timeout")
        try:
            await asyncio.wait_for(asyncio.sleep(600), 0.02)
        except TimeoutError:
            reasons.append("wait_for")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
                await asyncio.sleep(600)
        except* LookupError:
            reasons.append("group")
        return Verdict.deny(reason="_".join(reasons))

    async def run() -> Any:
        return await emitter_of(judge).emit_unchecked(context())

    assert asyncio.run(run()).verdict.reason == "timeout_wait_for_group"


def test_a_timeout_that_it_leaves_behind_never_reaches_the_caller() -> None:
    """It is given up inside `asyncio.timeout` and goes on: that one is its own business."""

    async def judge(_: Any) -> Verdict:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(600)
                await asyncio.sleep(600)
        return ALLOW

    async def run() -> Any:
        record = await emitter_of(judge, timeout=0.05).emit_unchecked(context())
        await asyncio.sleep(0.4)  # the caller's own task, meanwhile elsewhere
        return record

    assert asyncio.run(run()).verdict.reason == LATE


def test_it_sees_the_callers_context_variables_and_keeps_its_changes() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    seen: list[str] = []

    async def judge(_: Any) -> Verdict:
        seen.append(variable.get())
        variable.set("interceptor")
        await asyncio.sleep(0)
        seen.append(variable.get())
        return ALLOW

    async def run() -> str:
        variable.set("caller")
        await emitter_of(judge, judge).emit(context())
        return variable.get()

    assert asyncio.run(run()) == "caller"
    assert seen == ["caller", "interceptor"] * 2


# -- its failures --


@pytest.mark.parametrize("suspended", [False, True])
@pytest.mark.parametrize(
    "exc",
    [
        SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration, StopAsyncIteration,
        asyncio.CancelledError, asyncio.InvalidStateError, TimeoutError,
        ExceptionGroup("", [OSError()]),
    ],
    ids=str,
)  # fmt: skip
def test_whatever_it_raises_is_a_deny_in_its_slot(exc: Any, suspended: bool) -> None:
    """§6.3: no exit, interruption or cancellation of its own reaches the host."""

    async def judge(_: Any) -> Verdict:
        if suspended:
            await asyncio.sleep(0.01)
        raise exc

    emitter = emitter_of(judge, composition=CompositionConfig.strictest())
    emitter.register(Async())
    record = emitted(emitter, context())
    assert [slot.reason for slot in record.verdicts] == [FAILED, None]
    assert not record.proceeds
    assert emitter.results == [record]


# -- interruptions --


@pytest.mark.parametrize("turns", range(1, 8))
@pytest.mark.parametrize("suspended", [False, True])
def test_an_emission_cancelled_in_any_turn_of_the_loop_has_one_record(
    turns: int, suspended: bool
) -> None:
    """§10.3; it proceeds only where the caller got it back."""

    async def judge(_: Any) -> Verdict:
        if suspended:
            await asyncio.sleep(0)
        return ALLOW

    emitter = emitter_of(judge, judge)

    async def run() -> bool:
        task = asyncio.create_task(emitter.emit_unchecked(context()))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return not task.cancelled()

    returned = asyncio.run(run())
    [record] = emitter.results
    assert record.proceeds == returned


def test_an_interceptor_that_turns_a_cancellation_into_an_allow_is_not_heard() -> None:
    """The caller cancelled: it gets its cancellation, and the record a deny."""
    asked = asyncio.Event()

    async def judge(_: Any) -> Verdict:
        asked.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(600)
        return ALLOW

    emitter = emitter_of(judge)

    async def run() -> bool:
        task = asyncio.create_task(emitter.emit_unchecked(context()))
        await asked.wait()
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(run())
    assert [record.proceeds for record in emitter.results] == [False]


# -- what it costs the loop --


@pytest.mark.parametrize(("naps", "timers"), [(0, 0), (1, 1), (3, 1)])
def test_only_an_interceptor_that_waits_costs_a_timer(naps: int, timers: int) -> None:
    async def judge(_: Any) -> Verdict:
        for _nap in range(naps):
            await asyncio.sleep(0)
        return ALLOW

    emitter = emitter_of(judge)
    armed: list[float] = []

    async def run() -> Any:
        loop = asyncio.get_running_loop()
        call_at = loop.call_at

        def counted(when: float, *rest: Any, **more: Any) -> Any:
            armed.append(when)
            return call_at(when, *rest, **more)

        loop.call_at = counted  # type: ignore[method-assign]
        return await emitter.emit_unchecked(context())

    assert asyncio.run(run()).proceeds
    assert len(armed) == timers


def test_time_counts_from_the_asking() -> None:
    """§7: also the time in which its first step blocked the loop."""

    async def judge(_: Any) -> Verdict:
        time.sleep(0.3)
        await asyncio.sleep(600)
        return ALLOW

    async def run() -> Any:
        begun = time.monotonic()
        record = await emitter_of(judge, timeout=0.25).emit_unchecked(context())
        return record, time.monotonic() - begun

    record, seconds = asyncio.run(run())
    assert record.verdict.reason == LATE
    assert seconds < 0.5


def test_a_caller_that_only_emits_leaves_turns_to_others() -> None:
    """An emission that asks a coroutine gives the loop a turn, however fast it answers."""
    emitter = emitter_of(lambda _: ALLOW)

    async def run() -> int:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        task = asyncio.create_task(other())
        for _ in range(20):
            await emitter.emit(context())
        task.cancel()
        return turns

    assert asyncio.run(run()) >= 19
