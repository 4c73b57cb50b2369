"""Upgrades: a new launch beside the present one, and no emission that notices (PROTOCOL)."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.host import SyncInterceptionEmitter
from agent_hooks.supervisor import Binding, Manifest, PluginStartError, Supervisor
from tests.processes.support import (
    EMITTERS,
    GOOD,
    HERE,
    QUICK,
    bad,
    context,
    good,
    judge,
    processes,
    ready,
    status,
    until,
)

CONFIGURED = Manifest(
    "configured", "configured", (sys.executable, str(HERE / "plugins" / "configured.py"))
)


@pytest.fixture
def configured(tidy: Path) -> Iterator[Supervisor]:
    """A plugin that denies with its configured reason."""
    with Supervisor([Binding("p", CONFIGURED, {"reason": "first"})], QUICK) as supervisor:
        yield supervisor


def reason(supervisor: Supervisor, kind: Any = SyncInterceptionEmitter) -> str | None:
    return judge(kind, context(), supervisor.interceptor("p")).reason


@pytest.mark.parametrize("kind", EMITTERS)
def test_upgrade_brings_the_new_configuration_and_ends_the_old_process(
    configured: Supervisor, tidy: Path, kind: Any
) -> None:
    """PROTOCOL Services: a new configuration starts a new process."""
    old = ready(configured)["pid"]
    assert reason(configured, kind) == "first"
    configured.upgrade("p", config={"reason": "second"})
    assert reason(configured, kind) == "second"
    assert ready(configured)["pid"] != old
    assert status(configured)["restarts"] == 0
    until(lambda: old not in processes(str(tidy)), 5, "the old process is not ended")


@pytest.mark.parametrize("plugin", [good(), bad("stream"), bad("serve")], ids=lambda m: m.name)
def test_no_emission_is_lost_or_fails_while_a_plugin_is_upgraded(
    tidy: Path, plugin: Manifest
) -> None:
    """Under load from threads, over streams and unary calls, again and again."""
    with Supervisor([Binding("p", plugin)], QUICK) as supervisor:
        interceptor = supervisor.interceptor("p")
        going, decisions, pids = threading.Event(), Counter[str](), set()
        going.set()

        def emit() -> None:
            while going.is_set():
                judged = judge(SyncInterceptionEmitter, context(sleep=0.01), interceptor)
                decisions[f"{judged.decision} {judged.reason}"] += 1

        threads = [threading.Thread(target=emit) for _ in range(6)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            pids.add(status(supervisor)["pid"])
            supervisor.upgrade("p")
        going.clear()
        for thread in threads:
            thread.join()
        assert set(decisions) == {"allow None"}
        assert decisions.total() > 50
        assert len(pids) == 5


def test_call_in_flight_is_finished_by_the_process_that_has_it(tidy: Path) -> None:
    """Drain: the old one ends only after its last answer."""
    slow = {"reason": "old", "seconds": 1.5}
    with Supervisor([Binding("p", CONFIGURED, slow)], QUICK) as supervisor:
        old = ready(supervisor)["pid"]
        reasons: list[str | None] = []
        caller = threading.Thread(target=lambda: reasons.append(reason(supervisor)))
        caller.start()
        until(lambda: status(supervisor)["in_flight"] == 1)
        supervisor.upgrade("p", config={"reason": "new"})
        assert reason(supervisor) == "new"
        assert old in processes(str(tidy))
        caller.join()
        assert reasons == ["old"]
        until(lambda: old not in processes(str(tidy)), 5)


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (bad("exit"), "exited with status 3"),
        (bad("describe_garbage"), "not a valid message"),
        (bad("configure_refuses"), "/rules/0/when"),
        (bad("resolver"), "kind is approval_resolver, but was interceptor"),
        (replace(CONFIGURED, command=("/no/such/program",)), "cannot execute"),
    ],
    ids=lambda value: value.name if isinstance(value, Manifest) else None,
)
def test_upgrade_that_does_not_become_ready_changes_nothing(
    configured: Supervisor, manifest: Manifest, says: str
) -> None:
    """The present process stays, with its configuration; the error says what went wrong."""
    old = ready(configured)["pid"]
    with pytest.raises(PluginStartError, match=says):
        configured.upgrade("p", manifest, {"reason": "second"})
    assert reason(configured) == "first"
    assert ready(configured)["pid"] == old
    configured.upgrade("p", config={"reason": "third"})
    assert reason(configured) == "third"


def test_upgrade_of_a_quarantined_plugin_is_the_operators_word(tidy: Path, tmp_path: Path) -> None:
    """PROTOCOL Lifecycle: a program broken on disk, then mended by its successor."""
    program = tmp_path / "program.py"
    program.write_text(GOOD.read_text())
    settings = replace(QUICK, quarantine_restarts=1)
    manifest = good(command=(sys.executable, str(program)))
    with Supervisor([Binding("p", manifest)], settings) as supervisor:
        program.write_text("raise SystemExit(3)")
        os.kill(ready(supervisor)["pid"], signal.SIGKILL)
        until(lambda: status(supervisor)["state"] == "quarantined")
        assert reason(supervisor) == "host_error:interceptor_failed"
        with pytest.raises(PluginStartError, match="exited with status 3"):
            supervisor.upgrade("p")
        assert status(supervisor)["state"] == "quarantined"
        supervisor.upgrade("p", good())
        assert reason(supervisor) is None
        assert status(supervisor)["state"] == "ready"


def test_upgrades_at_once_take_turns_and_the_last_one_stands(configured: Supervisor) -> None:
    """Two operators: neither upgrade is lost, no process is left (the fixture looks)."""
    threads = [
        threading.Thread(target=configured.upgrade, args=("p",), kwargs={"config": {"reason": r}})
        for r in ("a", "b", "c")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reason(configured) in ("a", "b", "c")


def test_close_during_an_upgrade_leaves_nothing(tidy: Path) -> None:
    """The upgrade fails with a reason, and neither process is left."""
    supervisor = Supervisor([Binding("p", good())], QUICK).start()
    failures: list[BaseException] = []

    def upgrade() -> None:
        try:
            supervisor.upgrade("p", bad("mute"))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=upgrade)
    thread.start()
    until(lambda: len([line for line in processes(str(tidy)).values() if "mute" in line]) == 1)
    supervisor.close()
    thread.join(10)
    assert not thread.is_alive()
    assert [type(error) for error in failures] == [PluginStartError]


def test_close_does_not_wait_for_what_a_replaced_process_never_answers(tidy: Path) -> None:
    """The end of the host ends the drain, too."""
    settings = replace(QUICK, drain_timeout=60, shutdown_grace=0.2, term_grace=0.2)
    with Supervisor([Binding("p", bad("stream"))], settings) as supervisor:
        interceptor = supervisor.interceptor("p")
        hanging = threading.Thread(
            target=judge,
            args=(SyncInterceptionEmitter, context("hang"), interceptor),
            kwargs={"timeout": 30},
        )
        hanging.start()
        until(lambda: status(supervisor)["in_flight"] == 1)
        supervisor.upgrade("p")
        begun = time.monotonic()
    assert time.monotonic() - begun < 10
    hanging.join(10)
    assert not hanging.is_alive()


def test_plugin_killed_during_an_upgrade_is_succeeded_all_the_same(configured: Supervisor) -> None:
    """The old one's death costs at most what it had in flight."""
    done = threading.Event()

    def upgrade() -> None:
        configured.upgrade("p", config={"reason": "second"})
        done.set()

    thread = threading.Thread(target=upgrade)
    thread.start()
    os.kill(ready(configured)["pid"], signal.SIGKILL)
    thread.join(20)
    assert done.is_set()
    assert reason(configured) == "second"
