"""Time, threads, loops and interruptions: the emission ends, in time, in one record."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from agent_hooks.core.approval import ApprovalOutcome, ApprovalResolution
from agent_hooks.core.profile import CompositionConfig
from agent_hooks.core.verdict import ALLOW, Verdict
from agent_hooks.host import InterceptionEmitter, SyncInterceptionEmitter
from agent_hooks.host.workers import LIMIT
from tests.core.support import context
from tests.host.support import (
    COLOURS,
    EMITTERS,
    Async,
    Sync,
    emitted,
    escalator,
    until,
)

SLACK = 1.5
"""Seconds over a timeout that a slow machine may need."""
PARALLEL = (CompositionConfig.strictest(), CompositionConfig.unanimous())


def blocks(seconds: float) -> Any:
    """A synchronous judge that allows late."""

    def judge(_: Any) -> Verdict:
        time.sleep(seconds)
        return ALLOW

    return judge


async def sleeps_for_ever(_: Any) -> Verdict:
    await asyncio.sleep(600)
    return ALLOW


def timed(emitter: Any, raw: Any) -> tuple[Any, float]:
    begun = time.monotonic()
    record = emitted(emitter, raw)
    return record, time.monotonic() - begun


# -- timeouts --


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize(
    "silent",
    [Sync(blocks(2)), Async(sleeps_for_ever), SimpleNamespace(
        start=lambda call, done: lambda _: None, intercept=None)],
    ids=["sync_blocks", "async_sleeps", "callback_never_comes"],
)  # fmt: skip
def test_silence_is_a_timeout_whatever_the_interceptor_does(kind: Any, silent: Any) -> None:
    """§6.3, §7: the timeout binds, and one record says so."""
    emitter = kind(timeout=0.2)
    emitter.register(silent)
    record, seconds = timed(emitter, context())
    assert record.verdict.reason == "host_error:interceptor_timeout"
    assert record.decided_by == 0
    assert 0.2 <= seconds < 0.2 + SLACK
    assert emitter.results == [record]


@pytest.mark.parametrize("kind", EMITTERS)
def test_late_allow_is_dropped(kind: Any) -> None:
    """SEMANTICS, timeout: the SDK lets it through; here nobody hears it."""
    over = threading.Event()

    def late(_: Any) -> Verdict:
        time.sleep(0.4)
        over.set()
        return ALLOW

    emitter = kind(timeout=0.1)
    emitter.register(Sync(late))
    record = emitted(emitter, context())
    assert over.wait(10)
    assert emitted(kind().register(Sync()), context()).proceeds  # its worker serves others again
    assert emitter.results == [record]
    assert record.verdict.reason == "host_error:interceptor_timeout"


async def blocks_the_loop(_: Any) -> Verdict:
    time.sleep(0.3)
    return ALLOW


async def blocks_the_loop_later(_: Any) -> Verdict:
    await asyncio.sleep(0.01)
    return await blocks_the_loop(_)


EVERY_PROFILE = (CompositionConfig.first_deny(), CompositionConfig.run_all(), *PARALLEL)


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("judge", [blocks_the_loop, blocks_the_loop_later])
@pytest.mark.parametrize("profile", EVERY_PROFILE, ids=lambda item: item.profile.value)
def test_coroutine_that_blocks_past_its_time_is_not_heard(
    kind: Any, judge: Any, profile: CompositionConfig
) -> None:
    """§6.3: no timer can fire while it runs, so its answer itself is held to the clock."""
    emitter = kind(timeout=0.1, composition=profile)
    emitter.register(Async(judge))
    record = emitted(emitter, context())
    assert record.verdicts[0].reason == "host_error:interceptor_timeout"
    assert not record.proceeds
    assert emitter.results == [record]


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("profile", PARALLEL, ids=lambda item: item.profile.value)
def test_late_answer_is_late_though_another_is_waited_for(
    kind: Any, profile: CompositionConfig
) -> None:
    """§6.3: each has its own time, whoever is first in the list."""
    emitter = kind(composition=profile)
    emitter.register(Sync(blocks(0.6)), timeout=5)
    emitter.register(Sync(blocks(0.3)), timeout=0.1)
    record = emitted(emitter, context())
    reasons = [slot.reason for slot in record.verdicts]
    assert reasons == [None, "host_error:interceptor_timeout"]
    assert not record.proceeds


@pytest.mark.parametrize("kind", EMITTERS)
def test_interceptor_that_does_not_bound_itself_is_not_heard_late(kind: Any) -> None:
    """§6.3: what an `ask` promises, the host does not take on trust."""

    def ask(_: Any) -> Verdict:
        time.sleep(0.3)
        return ALLOW

    def start(call: Any, done: Any) -> Any:
        threading.Thread(target=lambda: done(ask(call))).start()
        return lambda _: None

    emitter = kind(timeout=0.1)
    emitter.register(SimpleNamespace(start=start, ask=ask, intercept=None))
    record = emitted(emitter, context())
    assert record.verdict.reason == "host_error:interceptor_timeout"


@pytest.mark.parametrize("kind", EMITTERS)
def test_approval_that_comes_too_late_lifts_nothing(kind: Any) -> None:
    """§9: also of a resolver that blocks the loop."""

    class Late:
        async def resolve(self, request: Any) -> Any:
            time.sleep(0.3)
            return ApprovalResolution(ApprovalOutcome.APPROVE, request.context_identity, ALLOW)

    emitter = kind(resolver=Late(), approval_timeout=0.1)
    emitter.register(Sync(escalator))
    record = emitted(emitter, context())
    assert record.verdict.reason == "host_error:approval_resolver_failed"
    assert not record.proceeds


def test_blocking_interceptor_does_not_block_the_event_loop() -> None:
    """SEMANTICS, timeout: a synchronous one runs on a worker thread."""
    emitter = InterceptionEmitter(timeout=0.6)
    emitter.register(Sync(blocks(1.5)))

    async def run() -> tuple[Any, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticker = asyncio.create_task(tick())
        record = await emitter.emit_unchecked(context())
        ticker.cancel()
        return record, ticks

    record, ticks = asyncio.run(run())
    assert record.verdict.reason == "host_error:interceptor_timeout"
    assert ticks >= 10


@pytest.mark.parametrize("kind", EMITTERS)
def test_interceptor_that_swallows_cancellation_is_given_up(kind: Any) -> None:
    """§6.3: its timeout binds all the same."""
    ended = threading.Event()

    async def stubborn(_: Any) -> Verdict:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)
        ended.set()
        return ALLOW

    emitter = kind(timeout=0.2)
    emitter.register(Async(stubborn))

    async def run() -> tuple[Any, float]:
        begun = time.monotonic()
        record = emitter.emit_unchecked(context())
        if kind is InterceptionEmitter:
            record = await record
        seconds = time.monotonic() - begun
        while not ended.is_set():  # so that the loop does not end before it has
            await asyncio.sleep(0.01)
        return record, seconds

    if kind is InterceptionEmitter:
        record, seconds = asyncio.run(run())
    else:
        record, seconds = timed(emitter, context())
    assert record.verdict.reason == "host_error:interceptor_timeout"
    assert seconds < 0.2 + SLACK / 2
    until(ended.is_set)
    assert emitter.results == [record]


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("source", ["emitter", "interceptor", "registration"])
def test_nearest_timeout_wins(kind: Any, source: str) -> None:
    """§7: registration, then the interceptor's own, then the emitter's."""
    silent: Any = Sync(blocks(2))
    emitter = kind(timeout=0.2 if source == "emitter" else 30)
    if source != "emitter":
        silent.timeout = 0.2 if source == "interceptor" else 30
    emitter.register(silent, timeout=0.2 if source == "registration" else None)
    _, seconds = timed(emitter, context())
    assert seconds < 0.2 + SLACK


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("colour", COLOURS)
def test_no_timeout_waits(kind: Any, colour: Any) -> None:
    """§7: None."""
    emitter = kind(timeout=None)
    emitter.register(Sync(blocks(0.3)) if colour is Sync else Async(_brief))
    assert emitted(emitter, context()).proceeds


async def _brief(_: Any) -> Verdict:
    await asyncio.sleep(0.3)
    return ALLOW


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("colour", COLOURS)
def test_resolver_that_is_silent_leaves_the_deny_standing(kind: Any, colour: Any) -> None:
    """§9: in time."""
    silent = colour(blocks(2)) if colour is Sync else Async(sleeps_for_ever)
    resolver = SimpleNamespace(resolve=silent.intercept)
    emitter = kind(resolver=resolver, approval_timeout=0.2)
    emitter.register(Sync(escalator))
    record, seconds = timed(emitter, context())
    assert record.verdict.reason == "host_error:approval_resolver_failed"
    assert record.resolved_by == "rejection"
    assert seconds < 0.2 + SLACK


# -- at once --


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("composition", PARALLEL, ids=lambda config: config.profile.value)
def test_parallel_profiles_are_really_concurrent(kind: Any, composition: Any) -> None:
    """SEMANTICS, parallel profiles: five that meet at a barrier can only meet at once."""
    meet = threading.Barrier(5)

    def judge(_: Any) -> Verdict:
        meet.wait(10)
        return ALLOW

    emitter = kind(composition=composition, timeout=10)
    for _ in range(5):
        emitter.register(Sync(judge))
    assert emitted(emitter, context()).proceeds


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("composition", PARALLEL, ids=lambda config: config.profile.value)
def test_parallel_timeouts_run_at_once(kind: Any, composition: Any) -> None:
    """§7.5: four that are silent take one timeout, and each gets its slot."""
    emitter = kind(composition=composition, timeout=0.4)
    for judge in (Sync(blocks(3)), Async(sleeps_for_ever), Sync(blocks(3)), Sync()):
        emitter.register(judge)
    record, seconds = timed(emitter, context())
    late = "host_error:interceptor_timeout"
    assert [slot.reason for slot in record.verdicts] == [late, late, late, None]
    assert seconds < 0.4 + SLACK / 2


def test_more_may_hang_than_there_are_workers_for() -> None:
    """Threads are bounded: what finds none still times out, and the pool recovers."""
    gate = threading.Event()

    def hang(_: Any) -> Verdict:
        gate.wait(30)
        return ALLOW

    emitter = InterceptionEmitter(timeout=2)
    emitter.register(Sync(hang))

    async def crowd(count: int) -> Any:
        return await asyncio.gather(*(emitter.emit_unchecked(context()) for _ in range(count)))

    records = asyncio.run(crowd(LIMIT + 20))
    assert {record.verdict.reason for record in records} == {"host_error:interceptor_timeout"}
    gate.set()
    fresh = SyncInterceptionEmitter(timeout=20)
    fresh.register(Sync())
    assert emitted(fresh, context()).proceeds
    assert threading.active_count() < LIMIT + 40


def test_one_emitter_serves_many_threads_and_loops() -> None:
    """PROTOCOL Channels, for interceptors in process: every emission its own record."""
    sync, async_ = SyncInterceptionEmitter(), InterceptionEmitter()
    for emitter in (sync, async_):
        emitter.register(Sync()).register(Async())
        emitter.set_composition(CompositionConfig.strictest())

    async def tasks() -> None:
        await asyncio.gather(*(async_.emit(context()) for _ in range(20)))

    failures: list[BaseException] = []

    def run(work: Any) -> None:
        try:
            work()
        except BaseException as exc:
            failures.append(exc)

    jobs = [lambda: asyncio.run(tasks()), lambda: [sync.emit(context()) for _ in range(20)]] * 4
    crowd = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert failures == []
    assert (len(sync.results), len(async_.results)) == (80, 80)


@pytest.mark.parametrize("colour", COLOURS)
def test_synchronous_emitter_works_where_a_loop_is_running(colour: Any) -> None:
    """A synchronous tool called from asyncio code must not wait for its own thread's loop."""
    emitter = SyncInterceptionEmitter(timeout=5)
    emitter.register(colour())

    async def run() -> Any:
        return emitter.emit_unchecked(context())

    assert asyncio.run(run()).proceeds


@pytest.mark.parametrize("kind", EMITTERS)
def test_interceptor_may_emit_itself(kind: Any) -> None:
    """Whichever thread it runs on, and nothing is locked meanwhile."""
    inner = kind(timeout=5)
    inner.register(Sync())

    def nested(_: Any) -> Verdict:
        assert emitted(inner, context("output")).proceeds
        return ALLOW

    emitter = kind(timeout=5)
    emitter.register(Sync(nested))
    assert emitted(emitter, context()).proceeds
    assert len(inner.results) == 1


# -- interruptions --


@pytest.mark.parametrize(
    "composition", [CompositionConfig(), *PARALLEL], ids=lambda c: c.profile.value
)
@pytest.mark.parametrize("where", ["interceptor", "resolver"])
def test_cancelled_emission_writes_its_record_and_then_is_cancelled(
    composition: Any, where: str
) -> None:
    """HOUSE: the record is still written before the driver re-raises."""
    asked = threading.Event()

    async def wait(_: Any) -> Verdict:
        asked.set()
        return await sleeps_for_ever(_)

    silent = Async(wait)
    resolver = SimpleNamespace(resolve=silent.intercept)
    emitter = InterceptionEmitter(timeout=60, resolver=resolver, composition=composition)
    emitter.register(Sync(escalator) if where == "resolver" else silent).register(Sync(escalator))
    if where == "resolver" and composition is PARALLEL[1]:
        pytest.skip("a disagreement is no liftable deny by default")

    async def run() -> None:
        task = asyncio.create_task(emitter.emit(context()))
        while not asked.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(run())
    [record] = emitter.results
    assert not record.proceeds
    assert record.verdict.decision.value == "deny"


def test_emission_under_a_timeout_of_its_caller_is_recorded() -> None:
    """`asyncio.timeout` is a cancellation, too."""
    emitter = InterceptionEmitter(timeout=60)
    emitter.register(Async(sleeps_for_ever))

    async def run() -> None:
        async with asyncio.timeout(0.1):
            await emitter.emit(context())

    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert len(emitter.results) == 1


def test_cancelled_interceptor_hears_of_it() -> None:
    """What nobody waits for any more is not left running."""
    heard: list[str] = []

    async def wait(_: Any) -> Verdict:
        try:
            return await sleeps_for_ever(_)
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    emitter = InterceptionEmitter(timeout=0.1)
    emitter.register(Async(wait))

    async def run() -> None:
        await emitter.emit_unchecked(context())
        await asyncio.sleep(0.05)

    asyncio.run(run())
    assert heard == ["cancelled"]


class Interrupt(BaseException):
    """Raised by a signal handler."""


@pytest.mark.parametrize(
    "composition", [CompositionConfig(), *PARALLEL], ids=lambda c: c.profile.value
)
@pytest.mark.parametrize("exc", [KeyboardInterrupt, Interrupt])
def test_interrupted_synchronous_emission_writes_its_record_and_then_raises(
    composition: Any, exc: type[BaseException]
) -> None:
    """HOUSE: the same for a thread: a signal handler that raises while it waits."""
    main = threading.main_thread()
    over = threading.Event()

    def judge(_: Any) -> Verdict:
        time.sleep(0.05)  # until the main thread waits
        signal.pthread_kill(main.ident or 0, signal.SIGUSR1)
        over.wait(10)
        return ALLOW

    def raises(*_: Any) -> None:
        raise exc

    emitter = SyncInterceptionEmitter(timeout=30, composition=composition)
    emitter.register(Sync(judge)).register(Sync())
    before = signal.signal(signal.SIGUSR1, raises)
    try:
        with pytest.raises(exc):
            emitter.emit(context())
    finally:
        signal.signal(signal.SIGUSR1, before)
        over.set()
    [record] = emitter.results
    assert not record.proceeds
    assert all(slot.decision.value == "deny" for slot in record.verdicts[:1])


# -- tracers and callbacks that misbehave --


class Tracer:
    """Fails in one of its methods."""

    def __init__(self, failing: str) -> None:
        self.failing = failing
        self.ended: list[Any] = []

    def _at(self, name: str) -> None:
        if name == self.failing:
            raise RuntimeError("a tracer's bug")

    def begin(self, _: object) -> Any:
        self._at("begin")
        return self

    def calling(self, *_: Any) -> None:
        self._at("calling")

    def called(self, *_: Any) -> None:
        self._at("called")

    def end(self, record: Any) -> None:
        self._at("end")
        self.ended.append(record)


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("failing", ["begin", "calling", "called", "end", "nothing"])
def test_tracer_that_fails_costs_no_record_and_changes_no_verdict(
    kind: Any, colour: Any, failing: str
) -> None:
    """§10.3 and PROTOCOL Records as spans: an outage loses spans but no record."""
    for judge, proceeds in ((colour(), True), (colour(lambda _: Verdict.deny()), False)):
        emitter = kind(timeout=2, observer=Tracer(failing))
        emitter.register(judge)
        record, seconds = timed(emitter, context())
        assert record.proceeds is proceeds
        assert emitter.results == [record]
        assert seconds < SLACK


class Repeats:
    """Answers more than once, or after it raised."""

    def __init__(self, *replies: Any, raises: bool = False) -> None:
        self.replies = replies
        self.raises = raises

    def start(self, _: Any, done: Any) -> Any:
        for reply in self.replies:
            done(reply)
        if self.raises:
            raise RuntimeError
        return lambda _: None

    def intercept(self, _: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (Repeats(Verdict.deny(reason="first"), ALLOW), "first"),
        (Repeats(Verdict.deny(reason="first"), raises=True), "first"),
        (Repeats(raises=True), "host_error:interceptor_failed"),
    ],
    ids=["answers_twice", "answers_and_raises", "raises"],
)
def test_first_answer_of_a_callback_counts(kind: Any, answers: Any, reason: str) -> None:
    """The port's contract broken: still one record, and never an allow after a deny."""
    emitter = kind(timeout=2)
    emitter.register(answers)
    with contextlib.suppress(RuntimeError):
        emitted(emitter, context())
    assert [record.verdict.reason for record in emitter.results] == [reason]


class Silent:
    """Never answers; keeps what its cancel is told."""

    def __init__(self) -> None:
        self.cancels: list[bool] = []

    def start(self, _: Any, done: Any) -> Any:
        return self.cancels.append

    def intercept(self, _: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize("kind", EMITTERS)
def test_call_that_timed_out_is_cancelled_once_and_told_so(kind: Any) -> None:
    """core.call: cancel(timed_out)."""
    emitter, silent = kind(timeout=0.1), Silent()
    emitter.register(silent)
    emitted(emitter, context())
    assert silent.cancels == [True]


def test_call_of_a_cancelled_emission_is_cancelled_once_and_told_so() -> None:
    """core.call: nobody waits, but no time was up."""
    emitter, silent = InterceptionEmitter(timeout=60), Silent()
    emitter.register(silent)

    async def run() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(emitter.emit(context()), 0.05)

    asyncio.run(run())
    assert silent.cancels == [False]
