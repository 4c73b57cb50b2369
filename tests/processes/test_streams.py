"""InterceptStream: what only a stream can do wrong, and what it must not change (PROTOCOL)."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.host import SyncInterceptionEmitter
from agent_hooks.supervisor import Binding, Supervisor
from tests.processes.support import (
    EMITTERS,
    QUICK,
    SLACK,
    bad,
    context,
    good,
    judge,
    ready,
    status,
    until,
)

INVALID = "host_error:verdict_invalid"
FAILED = "host_error:interceptor_failed"
TIMEOUT = "host_error:interceptor_timeout"


@pytest.fixture
def plugin(tidy: Path) -> Iterator[Supervisor]:
    """A process whose streams misbehave."""
    with Supervisor([Binding("p", bad("stream"))], QUICK) as supervisor:
        yield supervisor


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("id_of_another", INVALID),
        ("id_missing", INVALID),
        ("id_twice", INVALID),
        ("ends", FAILED),
    ],
)
def test_stream_that_answers_another_question_or_none_denies(
    plugin: Supervisor, fault: str, reason: str, kind: Any
) -> None:
    """An answer counts for the request whose id it repeats; the end is never a verdict."""
    interceptor = plugin.interceptor("p")
    assert judge(kind, context(fault), interceptor).reason == reason
    assert judge(kind, context(), interceptor).decision == "allow"


@pytest.mark.parametrize("kind", EMITTERS)
def test_second_answer_is_nobodys(plugin: Supervisor, kind: Any) -> None:
    """An allow left over from the last call must not answer the next one."""
    interceptor = plugin.interceptor("p")
    for _ in range(10):
        assert judge(kind, context("answers_twice"), interceptor).decision == "allow"
        after = judge(kind, context("hang"), interceptor, timeout=0.1)
        assert after.reason in (INVALID, TIMEOUT)
    assert judge(kind, context(), interceptor).decision == "allow"


@pytest.mark.parametrize("kind", EMITTERS)
def test_answer_ahead_of_every_request_is_nobodys(tidy: Path, kind: Any) -> None:
    """As above: a stream that begins with an allow is no allow."""
    with Supervisor([Binding("p", bad("stream_ahead"))], QUICK) as supervisor:
        for _ in range(10):
            judged = judge(kind, context("hang"), supervisor.interceptor("p"), timeout=0.2)
            assert judged.reason in (INVALID, FAILED, TIMEOUT)


@pytest.mark.parametrize("kind", EMITTERS)
def test_stream_that_ended_while_idle_costs_no_emission(plugin: Supervisor, kind: Any) -> None:
    """What was not sent may be sent elsewhere (PROTOCOL Deadlines)."""
    interceptor = plugin.interceptor("p")
    for _ in range(20):
        assert judge(kind, context("ends_after"), interceptor).decision == "allow"
        time.sleep(0.05)


def test_capability_that_is_not_served_denies(tidy: Path) -> None:
    """Fail closed: the host does not guess that a plugin meant the other method."""
    with Supervisor([Binding("p", bad("stream_unserved"))], QUICK) as supervisor:
        judged = judge(SyncInterceptionEmitter, context(), supervisor.interceptor("p"))
    assert judged.reason == FAILED


def test_calls_at_once_have_streams_of_their_own_and_beyond_them_are_unary(tidy: Path) -> None:
    """Concurrent up to the plugin's limit; at most 16 streams, which are used again."""
    with Supervisor([Binding("p", bad("stream"))], replace(QUICK, concurrency=24)) as supervisor:
        interceptor = supervisor.interceptor("p")
        for turn in range(2):
            gate, ways = tidy / f"gate{turn}", Counter[str | None]()
            marks = [tidy / f"{turn}.{index}" for index in range(24)]

            def call(mark: Path, kind: Any, gate: Path = gate, ways: Any = ways) -> None:
                raw = context("says_how", started=mark, gate=gate)
                ways[judge(kind, raw, interceptor).reason] += 1

            threads = [
                threading.Thread(target=call, args=(mark, EMITTERS[index % 2]))
                for index, mark in enumerate(marks)
            ]
            for thread in threads:
                thread.start()
            until(lambda marks=marks: all(mark.exists() for mark in marks))
            assert status(supervisor)["in_flight"] == 24
            gate.touch()
            for thread in threads:
                thread.join()
            assert ways == {"stream": 16, "unary": 8}


def test_time_runs_out_for_each_of_many_threads(plugin: Supervisor) -> None:
    """The host's clock decides for all of them, and the plugin is used on."""
    interceptor = plugin.interceptor("p")
    late: list[float] = []

    def call(timeout: float) -> None:
        judged = judge(SyncInterceptionEmitter, context("hang"), interceptor, timeout=timeout)
        assert judged.reason == TIMEOUT
        late.append(judged.seconds - timeout)

    threads = [threading.Thread(target=call, args=(0.5 - index / 25,)) for index in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(late) == 12
    assert min(late) >= 0
    assert max(late) < SLACK
    assert judge(SyncInterceptionEmitter, context(), interceptor).decision == "allow"


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("mode", ["serve", "stream"])
def test_traceparent_travels_with_each_call(tidy: Path, mode: str, kind: Any) -> None:
    """In a unary call's metadata; on a stream, which has only one set, in the request."""
    with Supervisor([Binding("p", bad(mode))], QUICK) as supervisor:
        for trace_id in ("a" * 32, "c" * 32):
            trace = {"trace_id": trace_id, "span_id": "b" * 16}
            raw = {**context("says_traceparent"), "trace": trace}
            judged = judge(kind, raw, supervisor.interceptor("p"))
            assert judged.reason == f"00-{trace_id}-{'b' * 16}-01"
        judged = judge(kind, context("says_traceparent"), supervisor.interceptor("p"))
        assert judged.reason == "no traceparent"


@pytest.mark.parametrize("how", ["host", "signal"])
def test_open_streams_do_not_hold_up_the_end(tidy: Path, how: str) -> None:
    """A Python plugin ends its idle streams, told by its host or by anyone (DECISIONS 27)."""
    settings = replace(QUICK, shutdown_grace=20, term_grace=20)
    with Supervisor([Binding("p", good())], settings) as supervisor:
        assert judge(SyncInterceptionEmitter, context(), supervisor.interceptor("p")).decision
        begun = time.monotonic()
        if how == "signal":
            first = ready(supervisor)["pid"]
            os.kill(first, signal.SIGTERM)
            until(lambda: not Path(f"/proc/{first}").exists())
            assert time.monotonic() - begun < 1.9, "the grace of 2 s was used up"
            ready(supervisor)
            begun = time.monotonic()
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("mode", ["serve", "stream"])
def test_an_emission_leaves_no_cycle_behind(tidy: Path, mode: str, kind: Any) -> None:
    """A request may have megabytes: it goes with its emission, not with the next collection."""
    with Supervisor([Binding("p", bad(mode))], QUICK) as supervisor:
        interceptor = supervisor.interceptor("p")
        judge(kind, context(), interceptor)

        async def emit(emitter: Any) -> None:
            for _ in range(100):
                record = emitter.emit_unchecked(context())
                if asyncio.iscoroutine(record):
                    record = await record
                assert record.proceeds

        emitter = kind().register(interceptor)
        gc.collect()
        gc.disable()
        try:
            asyncio.run(emit(emitter))
            assert gc.collect() < 100
        finally:
            gc.enable()
