"""Plugins that die, hang or stop, and how they come back (PROTOCOL: Lifecycle)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.host import InterceptionEmitter, SyncInterceptionEmitter
from agent_hooks.supervisor import Binding, Supervisor
from tests.processes.support import (
    EMITTERS,
    PROFILES,
    QUICK,
    SLACK,
    Allower,
    bad,
    context,
    good,
    judge,
    processes,
    ready,
    status,
    stop,
    until,
)


def supervised(manifest: Any = None, **changed: Any) -> Supervisor:
    """One plugin with the id `p`."""
    return Supervisor([Binding("p", manifest or bad())], replace(QUICK, **changed))


def warden_of(folder: Path) -> int:
    return next(pid for pid, line in processes(str(folder)).items() if "warden.py" in line)


# -- death --


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("fault", ["exit_in_call", "killed_in_call"])
def test_death_in_a_call_fails_that_call_and_the_next_waits_for_the_restart(
    tidy: Path, fault: str, profile: str
) -> None:
    """§6.3 and PROTOCOL Deadlines: no retry of what may have been read; one record each."""
    with supervised() as supervisor:
        for kind in EMITTERS:
            rest = Allower()
            judged = judge(
                kind,
                context(fault),
                supervisor.interceptor("p"),
                rest,
                composition=PROFILES[profile],
            )
            first = judged.record.verdicts[0]
            assert (first.decision.value, first.reason) == ("deny", "host_error:interceptor_failed")
            assert judged.decision == "deny"
            assert judged.seconds < SLACK  # seen at once, not at the timeout of 10 s
            assert len(judged.records) == 1
            assert rest.seen == (0 if profile == "first_deny" else 1)
            assert judge(kind, context(), supervisor.interceptor("p")).decision == "allow"


def test_plugin_killed_while_idle_denies_nothing(tidy: Path) -> None:
    """PROTOCOL Deadlines: a crash that fits the deadline denies nothing; 30 times over."""
    with supervised() as supervisor:
        emitters = [kind() for kind in EMITTERS]
        for emitter in emitters:
            emitter.register(supervisor.interceptor("p"), timeout=20)
        asked = [lambda: asyncio.run(emitters[0].emit_unchecked(context())),
                 lambda: emitters[1].emit_unchecked(context())]  # fmt: skip
        for turn in range(30):
            os.kill(ready(supervisor)["pid"], signal.SIGKILL)
            record = asked[turn % 2]()
            assert (turn, record.verdict.decision.value) == (turn, "allow")
        assert sum(len(emitter.results) for emitter in emitters) == 30


def test_idle_death_is_answered_within_the_default_limits_too(tidy: Path) -> None:
    """PROTOCOL Lifecycle: five restarts in the window are not yet too many."""
    with Supervisor([Binding("p", bad())]) as supervisor:
        for _ in range(5):
            os.kill(ready(supervisor)["pid"], signal.SIGKILL)
            judged = judge(SyncInterceptionEmitter, context(), supervisor.interceptor("p"))
            assert judged.decision == "allow"


@pytest.mark.parametrize("kind", EMITTERS)
def test_plugin_that_closed_its_socket_fails_closed(tidy: Path, kind: Any) -> None:
    """§6.3: the process lives, nobody listens; the call in flight and the next ones fail."""
    with supervised() as supervisor:
        interceptor = supervisor.interceptor("p")
        judged = judge(kind, context("closes_its_socket"), interceptor, timeout=5)
        assert judged.reason == "host_error:interceptor_failed"
        again = judge(kind, context(), interceptor, timeout=0.5)
        assert again.decision == "deny"
        assert again.reason in ("host_error:interceptor_failed", "host_error:interceptor_timeout")
        assert again.seconds < 0.5 + SLACK


def test_plugin_that_answers_no_health_check_is_started_anew(tidy: Path) -> None:
    """PROTOCOL Lifecycle: alive and deaf is no better than dead."""
    quick = {"health_interval": 0.1, "suspect_interval": 0.1, "circuit_timeouts": 3}
    with supervised(**quick) as supervisor:
        deaf = ready(supervisor)["pid"]
        judge(SyncInterceptionEmitter, context("closes_its_socket"), supervisor.interceptor("p"))
        until(lambda: ready(supervisor)["pid"] != deaf)
        assert "3 health checks in a row" in status(supervisor)["last_error"]
        assert judge(SyncInterceptionEmitter, context(), supervisor.interceptor("p")).decision == (
            "allow"
        )


def test_host_without_descriptors_fails_closed_and_leaves_nothing(tidy: Path) -> None:
    """A restart that cannot be made costs neither folders nor descriptors, and says why."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with supervised(backoff_first=0.05, backoff_max=0.05) as supervisor:
        interceptor, pid = supervisor.interceptor("p"), ready(supervisor)["pid"]
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # none can be opened from here
        try:
            os.kill(pid, signal.SIGKILL)
            judged = judge(SyncInterceptionEmitter, context(), interceptor, timeout=0.5)
            assert judged.decision == "deny"
            assert "Too many open files" in status(supervisor)["last_error"]
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        ready(supervisor)
        assert judge(SyncInterceptionEmitter, context(), interceptor).decision == "allow"
        os.kill(ready(supervisor)["pid"], signal.SIGKILL)  # so that what is left goes with it
        judge(SyncInterceptionEmitter, context(), interceptor)
        [base] = tidy.glob("agent-hooks-*")
        assert len([path for path in base.iterdir() if path.is_dir()]) == 1


@pytest.mark.parametrize("kind", EMITTERS)
def test_killed_warden_takes_its_plugins_along_and_is_replaced(tidy: Path, kind: Any) -> None:
    """PROTOCOL Lifecycle: the kernel kills the plugins; the next emission waits or fails."""
    with supervised() as supervisor:
        old = ready(supervisor)["pid"]
        os.kill(warden_of(tidy), signal.SIGKILL)
        judged = judge(kind, context(), supervisor.interceptor("p"))
        assert judged.reason in (None, "host_error:interceptor_failed")
        until(lambda: old not in processes(str(tidy)), what="the plugin outlived its warden")
        assert judge(kind, context(), supervisor.interceptor("p")).decision == "allow"


def test_call_in_flight_fails_when_the_warden_is_killed(tidy: Path, tmp_path: Path) -> None:
    """§6.3: the slot fails closed at once."""
    started = tmp_path / "started"
    with supervised() as supervisor:
        killer = threading.Thread(
            target=lambda: (until(started.exists), os.kill(warden_of(tidy), signal.SIGKILL))
        )
        killer.start()
        raw = context("hang", started=started)
        judged = judge(SyncInterceptionEmitter, raw, supervisor.interceptor("p"), timeout=20)
        killer.join()
        assert judged.reason == "host_error:interceptor_failed"
        assert judged.seconds < 10


# -- silence --


@pytest.mark.parametrize("kind", EMITTERS)
def test_stopped_plugin_is_used_again_once_it_continues(tidy: Path, kind: Any) -> None:
    """PROTOCOL Lifecycle: SUSPECT is still used, and READY again on the next answer."""
    with supervised() as supervisor:
        interceptor, pid = supervisor.interceptor("p"), ready(supervisor)["pid"]
        stop(pid)
        judged = judge(kind, context(), interceptor, timeout=0.3)
        assert judged.reason == "host_error:interceptor_timeout"
        os.kill(pid, signal.SIGCONT)
        assert judge(kind, context(), interceptor, timeout=5).decision == "allow"
        assert status(supervisor)["restarts"] == 0


@pytest.mark.parametrize("how", ["hangs", "stopped"])
def test_five_timeouts_in_a_row_start_the_plugin_anew(tidy: Path, how: str) -> None:
    """PROTOCOL Lifecycle: a hung server keeps its workers; the circuit opens at the fifth."""
    fault = "hang" if how == "hangs" else "allow"
    with supervised(circuit_timeouts=5) as supervisor:
        interceptor, pid = supervisor.interceptor("p"), ready(supervisor)["pid"]
        if how == "stopped":
            stop(pid)
        for turn in range(4):
            judged = judge(EMITTERS[turn % 2], context(fault), interceptor, timeout=0.2)
            assert judged.reason == "host_error:interceptor_timeout"
        assert status(supervisor)["pid"] == pid
        assert judge(EMITTERS[0], context(fault), interceptor, timeout=0.2).decision == "deny"
        until(lambda: status(supervisor)["restarts"] == 1, 5, "it was not started anew")
        assert judge(EMITTERS[1], context(), interceptor).decision == "allow"
        assert ready(supervisor)["pid"] != pid


def test_answer_between_timeouts_keeps_the_circuit_closed(tidy: Path) -> None:
    """PROTOCOL Lifecycle: five in a row, not five in all."""
    with supervised(circuit_timeouts=3) as supervisor:
        interceptor, pid = supervisor.interceptor("p"), ready(supervisor)["pid"]
        for fault in ("hang", "hang", "allow", "hang", "hang", "allow"):
            judge(SyncInterceptionEmitter, context(fault), interceptor, timeout=0.2)
        assert (status(supervisor)["pid"], status(supervisor)["restarts"]) == (pid, 0)


def test_missed_check_makes_it_suspect_and_an_answer_ready(tidy: Path) -> None:
    """PROTOCOL Lifecycle, liveness: checked while idle, watched faster while suspect."""
    with supervised(health_interval=0.1, suspect_interval=0.1, health_timeout=0.2) as supervisor:
        pid = ready(supervisor)["pid"]
        stop(pid)
        until(lambda: status(supervisor)["state"] == "suspect")
        os.kill(pid, signal.SIGCONT)
        ready(supervisor)
        assert status(supervisor)["restarts"] == 0


def test_busy_plugin_is_not_a_sick_one(tidy: Path, tmp_path: Path) -> None:
    """PROTOCOL Lifecycle, liveness: no check while anything is in flight."""
    gate, started = tmp_path / "gate", tmp_path / "started"
    with supervised(health_interval=0.05, health_timeout=0.05) as supervisor:
        raw = context(gate=gate, started=started)
        emitter = SyncInterceptionEmitter()
        emitter.register(supervisor.interceptor("p"), timeout=20)
        caller = threading.Thread(target=lambda: emitter.emit_unchecked(raw))
        caller.start()
        until(started.exists)
        pid = status(supervisor)["pid"]
        stop(pid)  # a check would be missed now
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            assert status(supervisor)["state"] == "ready"
            time.sleep(0.01)
        os.kill(pid, signal.SIGCONT)
        gate.touch()
        caller.join()
        assert emitter.results[0].proceeds


# -- quarantine --


def test_too_many_restarts_quarantine_fail_at_once_until_reset(tidy: Path) -> None:
    """PROTOCOL Lifecycle: more than 5 in 60 s; an operator's word ends it."""
    with supervised(quarantine_restarts=5) as supervisor:
        interceptor = supervisor.interceptor("p")
        for turn in range(6):
            assert status(supervisor)["state"] != "quarantined", f"after {turn} deaths"
            os.kill(ready(supervisor)["pid"], signal.SIGKILL)
            until(lambda turn=turn: status(supervisor)["restarts"] > turn)
        until(lambda: status(supervisor)["state"] == "quarantined")
        for kind in EMITTERS:
            judged = judge(kind, context(), interceptor, timeout=10)
            assert judged.reason == "host_error:interceptor_failed"
            assert judged.seconds < 0.1 + SLACK / 3
        supervisor.reset("p")
        ready(supervisor)
        assert judge(EMITTERS[0], context(), interceptor).decision == "allow"


def test_call_that_waits_is_failed_when_its_plugin_is_quarantined(tidy: Path) -> None:
    """PROTOCOL Deadlines: a quarantined plugin fails at once, whoever waits already included."""
    supervisor = supervised(bad("exit"), quarantine_restarts=2, backoff_first=0.3, backoff_max=0.3)
    supervisor.start(wait=False)
    try:
        judged = judge(EMITTERS[0], context(), supervisor.interceptor("p"), timeout=20)
        assert judged.reason == "host_error:interceptor_failed"
        assert judged.seconds < 15
    finally:
        supervisor.close()


# -- concurrency --


def test_one_at_a_time_queues_in_order(tidy: Path) -> None:
    """PROTOCOL Lifecycle, concurrency: what Describe says in flight, the rest waits, FIFO."""
    with supervised(bad("one_at_a_time")) as supervisor:
        emitter = InterceptionEmitter()
        emitter.register(supervisor.interceptor("p"), timeout=20)
        calls = [context(sleep=0.1) for _ in range(5)]

        async def all_at_once() -> float:
            begun = time.monotonic()
            tasks = [asyncio.create_task(emitter.emit_unchecked(raw)) for raw in calls]
            await asyncio.sleep(0.05)
            seen = status(supervisor)
            assert (seen["in_flight"], seen["waiting"]) == (1, 4)
            await asyncio.gather(*tasks)
            return time.monotonic() - begun

        assert asyncio.run(all_at_once()) >= 0.5
        order = [record.sequence for record in emitter.results]
        assert order == [raw["sequence"] for raw in calls]
        assert all(record.proceeds for record in emitter.results)


def test_one_at_a_time_queues_blocking_callers(tidy: Path, tmp_path: Path) -> None:
    """PROTOCOL Lifecycle, concurrency: the same for callers that block."""
    gate = tmp_path / "gate"
    with supervised(bad("one_at_a_time")) as supervisor:
        emitter = SyncInterceptionEmitter()
        emitter.register(supervisor.interceptor("p"), timeout=20)
        calls = [context(gate=gate) for _ in range(4)]
        crowd = []
        for number, raw in enumerate(calls):
            crowd.append(threading.Thread(target=emitter.emit, args=(raw,)))
            crowd[-1].start()
            until(lambda number=number: status(supervisor)["waiting"] == number)
        assert status(supervisor)["in_flight"] == 1
        gate.touch()
        for thread in crowd:
            thread.join()
        assert [record.proceeds for record in emitter.results] == [True] * 4
        assert status(supervisor)["answered"] == 4


def test_one_more_than_may_wait_fails_at_once(tidy: Path, tmp_path: Path) -> None:
    """PROTOCOL Lifecycle, concurrency: 64 waiting, then interceptor_failed at once."""
    gate = tmp_path / "gate"
    with supervised(bad("one_at_a_time")) as supervisor:
        emitter = InterceptionEmitter()
        emitter.register(supervisor.interceptor("p"), timeout=30)

        async def crowd() -> None:
            tasks = [
                asyncio.create_task(emitter.emit_unchecked(context(gate=gate))) for _ in range(65)
            ]
            while status(supervisor)["waiting"] < 64:
                await asyncio.sleep(0.01)
            begun = time.monotonic()
            refused = await emitter.emit_unchecked(context())
            assert refused.verdict.reason == "host_error:interceptor_failed"
            assert time.monotonic() - begun < 0.1 + SLACK / 3
            gate.touch()
            assert all(record.proceeds for record in await asyncio.gather(*tasks))

        asyncio.run(crowd())
        assert len(emitter.results) == 66


def test_call_that_timed_out_while_waiting_is_never_sent(tidy: Path, tmp_path: Path) -> None:
    """PROTOCOL Deadlines: one timeout covers queueing; nobody judges what nobody awaits."""
    gate, late = tmp_path / "gate", tmp_path / "late"
    with supervised(bad("one_at_a_time")) as supervisor:
        holder = SyncInterceptionEmitter()
        holder.register(supervisor.interceptor("p"), timeout=20)
        thread = threading.Thread(target=lambda: holder.emit_unchecked(context(gate=gate)))
        thread.start()
        until(lambda: status(supervisor)["in_flight"] == 1)
        raw = context(mark=late)
        for kind in EMITTERS:
            judged = judge(kind, raw, supervisor.interceptor("p"), timeout=0.2)
            assert judged.reason == "host_error:interceptor_timeout"
        gate.touch()
        thread.join()
        assert judge(EMITTERS[0], context(), supervisor.interceptor("p")).decision == "allow"
        assert not late.exists()
        assert status(supervisor)["restarts"] == 0


def test_many_threads_and_loops_use_one_emitter_and_one_supervisor(tidy: Path) -> None:
    """PROTOCOL Channels: one set of channels serves every event loop and every thread."""
    with supervised() as supervisor:
        sync, async_ = SyncInterceptionEmitter(), InterceptionEmitter()
        for emitter in (sync, async_):
            emitter.register(Allower())
            emitter.register(supervisor.interceptor("p"), timeout=20)
            emitter.set_composition(PROFILES["strictest"])
        failures: list[BaseException] = []

        def guarded(work: Any) -> Any:
            def run() -> None:
                try:
                    work()
                except BaseException as exc:
                    failures.append(exc)

            return run

        async def tasks() -> None:
            await asyncio.gather(*(async_.emit(context()) for _ in range(25)))

        work = [lambda: asyncio.run(tasks()), lambda: [sync.emit(context()) for _ in range(25)]] * 3
        crowd = [threading.Thread(target=guarded(item)) for item in work]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        assert failures == []
        assert (len(sync.results), len(async_.results)) == (75, 75)
        assert status(supervisor)["answered"] == 150


class Interrupt(BaseException):
    """Raised by a signal handler."""


@contextlib.contextmanager
def interrupted_when(condition: Any) -> Iterator[None]:
    """Interrupt this thread once a state is reached."""

    def raises(*_: Any) -> None:
        raise Interrupt

    def watch() -> None:
        until(condition)
        time.sleep(0.05)  # until the thread waits for what it has begun
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, raises)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with pytest.raises(Interrupt):
            yield
    finally:
        watcher.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("profile", ["first_deny", "strictest"])
@pytest.mark.parametrize("state", ["in_flight", "waiting"])
def test_interrupted_call_is_recorded_and_given_up(tidy: Path, state: str, profile: str) -> None:
    """HOUSE: the record first, then the interruption; and nothing is left in flight or waiting."""
    supervisor = supervised(bad("serve" if state == "in_flight" else "mute"), start_timeout=60)
    supervisor.start(wait=state == "in_flight")
    try:
        emitter = SyncInterceptionEmitter(composition=PROFILES[profile])
        emitter.register(supervisor.interceptor("p"), timeout=600).register(Allower())
        with interrupted_when(lambda: status(supervisor)[state] == 1):
            emitter.emit(context("hang"))
        assert [record.proceeds for record in emitter.results] == [False]
        until(lambda: status(supervisor)[state] == 0, 5, f"still {state}")
    finally:
        supervisor.close()


@pytest.mark.parametrize("state", ["in_flight", "waiting"])
def test_cancelled_call_is_recorded_and_given_up(tidy: Path, state: str) -> None:
    """HOUSE: the same on an event loop."""
    supervisor = supervised(bad("serve" if state == "in_flight" else "mute"), start_timeout=60)
    supervisor.start(wait=state == "in_flight")
    try:
        emitter = InterceptionEmitter()
        emitter.register(supervisor.interceptor("p"), timeout=600)

        async def run() -> None:
            task = asyncio.create_task(emitter.emit(context("hang")))
            while status(supervisor)[state] == 0:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(run())
        assert [record.proceeds for record in emitter.results] == [False]
        until(lambda: status(supervisor)[state] == 0, 5, f"still {state}")
    finally:
        supervisor.close()


# -- the end --


def test_call_in_flight_finishes_within_the_grace(tidy: Path, tmp_path: Path) -> None:
    """PROTOCOL Lifecycle, stop: what is in flight is answered, what comes later is refused."""
    program = tmp_path / "slow.py"
    program.write_text(
        "import time\n"
        "from pathlib import Path\n"
        "from agent_hooks.plugin import ALLOW, serve\n"
        "class Slow:\n"
        "    def intercept(self, context):\n"
        "        Path(context['tool_call']['args']['started']).touch()\n"
        "        time.sleep(0.7)\n"
        "        return ALLOW\n"
        "serve(Slow())\n"
    )
    started = tmp_path / "started"
    manifest = good(command=(good().command[0], str(program)))
    supervisor = supervised(manifest, shutdown_grace=8).start()
    interceptor = supervisor.interceptor("p")
    emitter = SyncInterceptionEmitter()
    emitter.register(interceptor, timeout=20)
    caller = threading.Thread(target=lambda: emitter.emit_unchecked(context(started=started)))
    caller.start()
    until(started.exists)
    begun = time.monotonic()
    supervisor.close()
    caller.join()
    assert emitter.results[0].verdict.decision.value == "allow"
    assert time.monotonic() - begun < 6
    assert judge(EMITTERS[0], context(), interceptor).reason == "host_error:interceptor_failed"


def test_call_that_outlasts_the_grace_fails_closed(tidy: Path, tmp_path: Path) -> None:
    """PROTOCOL Lifecycle, stop: the process is ended, the slot fails."""
    started = tmp_path / "started"
    supervisor = supervised(bad("deaf"), shutdown_grace=0.3, term_grace=0.2).start()
    emitter = SyncInterceptionEmitter()
    emitter.register(supervisor.interceptor("p"), timeout=20)
    caller = threading.Thread(
        target=lambda: emitter.emit_unchecked(context("hang", started=started))
    )
    caller.start()
    until(started.exists)
    supervisor.close()
    caller.join()
    assert [record.verdict.reason for record in emitter.results] == [
        "host_error:interceptor_failed"
    ]


def test_deaf_plugin_is_killed_after_both_graces(tidy: Path) -> None:
    """PROTOCOL Lifecycle, stop: it ignores Shutdown, SIGTERM and standard input."""
    supervisor = supervised(bad("deaf"), shutdown_grace=0.5, term_grace=0.5).start()
    begun = time.monotonic()
    supervisor.close()
    assert 1.0 <= time.monotonic() - begun < 1.0 + SLACK


def test_stopped_plugin_is_killed_after_both_graces_once(tidy: Path) -> None:
    """PROTOCOL Lifecycle, stop: the Shutdown call's own silence is part of its grace."""
    supervisor = supervised(shutdown_grace=2, term_grace=0.1).start()
    stop(ready(supervisor)["pid"])
    begun = time.monotonic()
    supervisor.close()
    assert time.monotonic() - begun < 2.1 + SLACK


@pytest.mark.parametrize("end", ["killed", "closed"])
def test_daemonised_descendant_ends_with_its_plugin(tidy: Path, end: str) -> None:
    """PROTOCOL Launch 4: everything it started, a double fork with no environment included."""
    mark = str(tidy / "daemon")
    supervisor = supervised(bad("daemon", mark)).start()
    try:
        until(lambda: len(processes(mark)) >= 2, what="the daemon never ran")
        if end == "killed":
            old = set(processes(mark))
            os.kill(ready(supervisor)["pid"], signal.SIGKILL)
            until(lambda: not old & set(processes(mark)), 5, "the daemon outlived its plugin")
    finally:
        supervisor.close()
    until(lambda: not processes(mark), 5, "the daemon outlived the supervisor")


def test_chain_of_sessions_ends_with_its_plugin(tidy: Path) -> None:
    """PROTOCOL Launch 4: a descendant's own descendants in sessions of their own, too."""
    mark = str(tidy / "chain")
    with supervised(bad("chain", mark)) as supervisor:
        until(lambda: len(processes(mark)) >= 3, what="the chain never ran")
        old = set(processes(mark))
        os.kill(ready(supervisor)["pid"], signal.SIGKILL)
        until(lambda: not old & set(processes(mark)), 5, "a descendant outlived its plugin")


def test_descendant_of_a_live_plugin_is_left_alone(tidy: Path) -> None:
    """A plugin's helper process is no orphan, whoever else dies."""
    mark = str(tidy / "helper")
    bindings = [Binding("p", bad("helper", mark)), Binding("q", bad())]
    with Supervisor(bindings, QUICK) as supervisor:
        until(lambda: len(processes(mark)) >= 2, what="the helper never ran")
        helpers = set(processes(mark))
        for turn in range(2):
            os.kill(ready(supervisor, "q")["pid"], signal.SIGKILL)
            until(lambda turn=turn: status(supervisor, "q")["restarts"] > turn)
            ready(supervisor, "q")
        assert helpers <= set(processes(mark))
