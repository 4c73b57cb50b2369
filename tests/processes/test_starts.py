"""Programs that never become plugins (PROTOCOL: Launch, Lifecycle)."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.supervisor import Binding, Manifest, PluginStartError, Supervisor
from tests.processes.support import (
    BAD,
    EMITTERS,
    PROFILES,
    QUICK,
    SLACK,
    Allower,
    bad,
    context,
    judge,
    processes,
    ready,
    status,
    until,
)

NEVER = replace(QUICK, start_timeout=1, configure_timeout=0.3, shutdown_grace=0.2, term_grace=0.2)
"""For programs that are not expected to answer."""


def program(*command: str) -> Manifest:
    return Manifest(name="p", kind="k", command=command)


# What is launched, and what its owner is told.
FAULTS: dict[str, tuple[Manifest, tuple[str, ...]]] = {
    "program_missing": (program("/nowhere/at-all"), ("cannot execute", "No such file")),
    "program_not_on_path": (program("no-such-program-anywhere"), ("cannot execute", "No such")),
    "program_not_executable": (program(str(BAD)), ("cannot execute", "Permission denied")),
    "program_is_a_folder": (program("/"), ("cannot execute", "Permission denied")),
    "exits_at_once": (bad("exit"), ("exited with status 3",)),
    "exits_before_anyone_looks": (program("/bin/true"), ("exited with status 0",)),
    "never_listens": (
        bad("mute"),
        ("does not listen", "AGENT_HOOKS_PLUGIN_ADDRESS", "after 1 s"),
    ),
    "describe_other_protocol": (bad("describe_protocol"), ("protocol version 2", "speaks 1")),
    "describe_later_protocol": (bad("describe_future"), ("protocol version 2", "speaks 1")),
    "describe_other_spec": (bad("describe_spec"), ("agent-hooks/7.3", "agent-hooks/0.1")),
    "describe_no_points": (bad("describe_no_points"), ("bound at", "no point")),
    "describe_unknown_point": (bad("describe_unknown_point"), ("Describe", "interception_point")),
    "describe_unspecified_kind": (bad("describe_no_kind"), ("Describe", "kind")),
    "describe_unknown_kind": (bad("describe_unknown_kind"), ("Describe", "kind")),
    "describe_unknown_field": (bad("describe_unknown_field"), ("Describe", "does not define")),
    "describe_garbage": (bad("describe_garbage"), ("Describe", "not a valid message")),
    "describe_empty": (bad("describe_empty"), ("Describe",)),
    "describe_refuses": (bad("describe_status"), ("Describe", "this plugin speaks version 2")),
    "describe_hangs": (bad("describe_hangs"), ("Describe", "DEADLINE_EXCEEDED")),
    "configure_refuses": (
        bad("configure_refuses"),
        ("/rules/0/when: not an expression", "/limit: too small"),
    ),
    "configure_hangs": (bad("configure_hangs"), ("Configure", "DEADLINE_EXCEEDED")),
}


@contextlib.contextmanager
def starting(manifest: Manifest, seconds: float) -> Iterator[Supervisor]:
    """A supervisor that does not wait; ended by force if the test finds it stuck."""
    supervisor = Supervisor([Binding("p", manifest)], replace(NEVER, start_timeout=seconds))
    supervisor.start(wait=False)
    try:
        yield supervisor
    finally:
        within(10, supervisor.close)


def within(seconds: float, act: Any) -> Any:
    """Do something that must not hang; hand on what it raises."""
    outcome: list[Any] = []

    def work() -> None:
        try:
            outcome.append((True, act()))
        except BaseException as exc:
            outcome.append((False, exc))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    assert outcome, f"still not done after {seconds} s"
    fine, value = outcome[0]
    if not fine:
        raise value
    return value


@pytest.mark.parametrize("fault", FAULTS)
def test_program_that_never_becomes_ready_denies_in_time_and_says_why(
    tidy: Path, fault: str
) -> None:
    """PROTOCOL Deadlines: what is not sent waits within its own deadline, then fails closed."""
    manifest, told = FAULTS[fault]
    patient = 1 if fault in ("never_listens", "describe_hangs") else 10
    with starting(manifest, patient) as supervisor:
        why = until(lambda: status(supervisor)["last_error"], 15, "nobody is told why")
        assert [part for part in told if part not in why] == []
        for kind, profile in zip(EMITTERS, ("run_all", "strictest"), strict=True):
            rest = Allower()
            judged = judge(
                kind,
                context(),
                supervisor.interceptor("p"),
                rest,
                timeout=0.1,
                composition=PROFILES[profile],
            )
            assert judged.reason == "host_error:interceptor_timeout"
            assert judged.record.decided_by == 0
            assert len(judged.records) == 1
            assert rest.seen == 1
            assert judged.seconds < 0.1 + SLACK


@pytest.mark.parametrize(
    "fault", ["program_missing", "exits_at_once", "never_listens", "configure_refuses"]
)
def test_start_raises_with_a_line_for_the_plugin_and_leaves_nothing(tidy: Path, fault: str) -> None:
    """PROTOCOL Launch 3: a misfit stops it, with an error that names both sides."""
    manifest, told = FAULTS[fault]
    settings = replace(NEVER, start_timeout=1 if fault == "never_listens" else 10)
    with pytest.raises(PluginStartError) as raised:
        within(20, Supervisor([Binding("policy", manifest)], settings).start)
    assert "plugin policy" in str(raised.value)
    assert [part for part in told if part not in str(raised.value)] == []


def test_program_that_exits_at_once_is_always_noticed(tidy: Path) -> None:
    """PROTOCOL Lifecycle: exit seen at once, however soon it comes; start never hangs."""
    bindings = [Binding(f"p{n}", program("/bin/true")) for n in range(40)]
    supervisor = Supervisor(bindings, NEVER)
    try:
        with pytest.raises(PluginStartError) as raised:
            within(20, supervisor.start)
        assert str(raised.value).count("exited with status 0") == len(bindings)
    finally:
        within(10, supervisor.close)


@pytest.mark.parametrize("config", [{"a": {1, 2}}, {"a": object()}], ids=["a_set", "an_object"])
def test_configuration_that_is_no_json_is_refused_not_waited_for(tidy: Path, config: Any) -> None:
    """PROTOCOL Services: Configure carries JSON; `start` never hangs."""
    supervisor = Supervisor([Binding("p", bad(), config)], NEVER)
    try:
        with pytest.raises((PluginStartError, TypeError, ValueError)):
            within(10, supervisor.start)
    finally:
        within(10, supervisor.close)


def test_failed_start_does_not_wait_for_the_dead(tidy: Path) -> None:
    """PROTOCOL Lifecycle: stop is Shutdown with its grace; a process that is gone needs none."""
    settings = replace(NEVER, start_timeout=10, shutdown_grace=6, term_grace=1)
    begun = time.monotonic()
    with pytest.raises(PluginStartError):
        within(30, Supervisor([Binding("p", bad("exit"))], settings).start)
    assert time.monotonic() - begun < 4


def test_listener_outside_the_launched_tree_is_refused(tidy: Path) -> None:
    """PROTOCOL Launch 3: SO_PEERCRED must belong to the launched process."""
    ends = threading.Event()

    def impostor() -> None:
        home = until(lambda: next(iter(tidy.glob("agent-hooks-*/0.1")), None))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(home / "plugin.sock"))
            listener.listen()
            ends.wait()

    thread = threading.Thread(target=impostor)
    thread.start()
    try:
        with pytest.raises(PluginStartError) as raised:
            within(20, Supervisor([Binding("p", bad("mute"))], NEVER).start)
    finally:
        ends.set()
        thread.join()
    assert "listens at the plugin's address" in str(raised.value)


def test_listener_may_be_a_child_of_the_launched_program(tidy: Path) -> None:
    """PROTOCOL Launch 3: a launcher script is not an impostor."""
    script = program("/bin/sh", "-c", f"{sys.executable} {BAD} serve; exit 0")
    with Supervisor([Binding("p", script)], QUICK) as supervisor:
        assert judge(EMITTERS[1], context(), supervisor.interceptor("p")).decision == "allow"


@pytest.mark.parametrize("kind", EMITTERS)
def test_standard_output_is_only_a_log(
    tidy: Path, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """PROTOCOL Launch 2: a library that prints, before or during a call, breaks nothing."""
    with caplog.at_level("INFO", "agent_hooks.plugin.p"):
        with Supervisor([Binding("p", bad("noise"))], QUICK) as supervisor:
            for _ in range(3):
                assert judge(kind, context(), supervisor.interceptor("p")).decision == "allow"
            assert status(supervisor)["restarts"] == 0
    assert any("1|1|unix" in record.getMessage() for record in caplog.records)
    assert not any(set("\x00\x1b\n") & set(record.getMessage()) for record in caplog.records)


def test_flood_of_standard_error_delays_no_verdict(tidy: Path) -> None:
    """PROTOCOL Launch 2: output is drained, whatever there is of it, and calls are answered."""
    with Supervisor([Binding("p", bad("flood"))], QUICK) as supervisor:
        end = time.monotonic() + 1.2
        while time.monotonic() < end:
            judged = judge(EMITTERS[1], context(), supervisor.interceptor("p"), timeout=2)
            assert judged.decision == "allow"


def test_plugin_that_serves_nothing_we_launched_is_never_asked_twice(tidy: Path) -> None:
    """PROTOCOL Launch 4: every failed launch is ended before the next begins."""
    with starting(bad("mute"), 0.3) as supervisor:
        until(lambda: status(supervisor)["restarts"] >= 3)
        assert len([line for line in processes(str(tidy)).values() if "bad.py" in line]) <= 1


@pytest.mark.parametrize("kind", EMITTERS)
def test_call_made_while_the_plugin_starts_waits_for_it(tidy: Path, kind: Any) -> None:
    """PROTOCOL Deadlines: a request not yet sent waits within its own deadline."""
    with starting(bad(), 10) as supervisor:
        assert status(supervisor)["state"] == "starting"
        assert judge(kind, context(), supervisor.interceptor("p")).decision == "allow"


def test_limit_that_is_none_is_the_hosts(tidy: Path) -> None:
    """PROTOCOL Lifecycle, concurrency: what Describe says; a negative number says nothing."""
    with Supervisor([Binding("p", bad("describe_negative_limit"))], QUICK) as supervisor:
        for kind in EMITTERS:
            judged = judge(kind, context(), supervisor.interceptor("p"), timeout=5)
            assert judged.decision == "allow"


def test_two_bindings_of_one_id_are_refused() -> None:
    """A binding is named by its id: a second one must not silently take the first one's place."""
    with pytest.raises(ValueError, match="twice"):
        Supervisor([Binding("p", bad()), Binding("p", bad("mute"))])


def test_supervisor_can_be_used_again_or_says_that_it_cannot(tidy: Path) -> None:
    """Whichever it is, the second use leaves nothing."""
    supervisor = Supervisor([Binding("p", bad())], QUICK)
    with supervisor:
        ready(supervisor)
    try:
        supervisor.start()
    except RuntimeError:
        return
    assert judge(EMITTERS[1], context(), supervisor.interceptor("p")).decision == "allow"
    within(10, supervisor.close)


def test_start_ends_when_another_thread_closes(tidy: Path, tmp_path: Path) -> None:
    """Closing while the first launch is under way ends the wait for it, however slow the loop."""
    runs = tmp_path / "runs"
    settings = replace(NEVER, start_timeout=60, shutdown_grace=0.05, term_grace=0.05)
    supervisor = Supervisor([Binding("p", bad("mute", str(runs)))], settings)

    def close() -> None:
        until(runs.exists)
        loop = supervisor._loop
        assert loop is not None

        def dawdle() -> None:
            time.sleep(0.005)
            loop.call_later(0, dawdle)  # at the end of each turn

        loop.call_soon_threadsafe(dawdle)
        supervisor.close()

    closing = threading.Thread(target=close)
    closing.start()
    try:
        with contextlib.suppress(PluginStartError, RuntimeError):
            within(10, supervisor.start)
    finally:
        closing.join()
