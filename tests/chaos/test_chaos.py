"""The harness itself: its sequence, its report, and that it notices what it is there to notice."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from agent_hooks.core.effects import Failed
from agent_hooks.core.verdict import ALLOW
from agent_hooks.host.base import BaseEmitter
from agent_hooks.supervisor.peer import Pulse
from agent_hooks.supervisor.pending import Pending
from agent_hooks.supervisor.process import PluginProcess
from agent_hooks.supervisor.remote import RemoteInterceptor
from tests.chaos import __main__ as command
from tests.chaos import leaks, run
from tests.chaos.faults import DEEDS
from tests.chaos.plan import ANSWERS, FAULTS, PLUGINS, Step, plan

SLOW = 10.0
"""Times are the business of `make chaos`; here other tests may be running."""


def one(fault: str) -> run.Outcome:
    """A run of that fault alone."""
    return run.run([Step(1, FAULTS[fault], "even", 0.3)], SLOW)


# -- the sequence --


def test_a_seed_gives_its_sequence_and_no_other() -> None:
    """So that a violation can be met again."""
    assert list(plan(1, 300)) == list(plan(1, 300))
    assert list(plan(1, 300))[:200] == list(plan(1, 200))
    assert list(plan(1, 300)) != list(plan(2, 300))


def test_200_faults_are_of_every_kind_and_each_kind_is_done() -> None:
    for seed in range(20):
        assert {step.fault.name for step in plan(seed, 200)} == set(FAULTS)
    assert set(FAULTS) == {*DEEDS, "kill_host"}


def test_10000_faults_meet_every_answer_of_every_plugin() -> None:
    met = {(step.plugin, step.answer) for step in plan(1, 10_000) if step.fault.name == "answer"}
    assert met == {(plugin, answer) for plugin in PLUGINS for answer in ANSWERS[plugin]}


# -- the command --


def commanded(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["chaos", *arguments])
    return command.main()


def test_run_in_which_all_stands_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line for each kind, then JSON; exit code 0."""
    code = commanded(monkeypatch, "--seed", "3", "--faults", "20", "--slow", str(SLOW))
    *lines, last = capsys.readouterr().out.splitlines()
    found = json.loads(last)
    assert found["violation"] is None
    assert (code, found["seed"], found["faults"]) == (0, 3, 20)
    assert [line.split()[0] for line in lines] == sorted(found["kinds"])
    assert found["emissions"] > 20 * 6
    assert found["recovery"]["count"] > 0


def test_violation_names_seed_and_step_and_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No plugin starts in half a millisecond, so that this promise cannot stand."""
    options = ("--seed", "5", "--faults", "9", "--only", "kill_idle", "--slow", "0.001")
    code = commanded(monkeypatch, *options)
    out = capsys.readouterr().out
    assert code == 1
    assert "VIOLATION at seed 5, step 1: kill_idle of" in out
    assert "--seed 5 --faults 1 --only kill_idle" in out
    assert json.loads(out.splitlines()[-1])["step"].startswith("step 1: kill_idle")


# -- defects of a host, each of which has to show --


def retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What may have been received is sent again (PROTOCOL Deadlines)."""
    ask = RemoteInterceptor.ask

    def twice(self: RemoteInterceptor, call: Any) -> object:
        reply = ask(self, call)
        return ask(self, call) if isinstance(reply, Failed) else reply

    monkeypatch.setattr(RemoteInterceptor, "ask", twice)


def leaks_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replaced process is not ended."""

    async def left(self: PluginProcess, life: Any) -> None:
        pass

    monkeypatch.setattr(PluginProcess, "_drain", left)


def leaks_a_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replaced process is watched for ever."""
    monkeypatch.setattr(Pulse, "close", lambda self: None)


def forgets_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """An emission in which a plugin failed leaves no record (§10.3)."""
    keep = BaseEmitter._keep

    def forgetful(self: BaseEmitter, record: Any) -> None:
        if not any("failed" in (slot.reason or "") for slot in record.verdicts):
            keep(self, record)

    monkeypatch.setattr(BaseEmitter, "_keep", forgetful)


def keeps_a_record_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, the other way."""
    keep = BaseEmitter._keep
    monkeypatch.setattr(
        BaseEmitter, "_keep", lambda self, record: (keep(self, record), keep(self, record))
    )


def makes_up_an_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure becomes an allow (§6.3)."""
    monkeypatch.setattr(Pending, "failure", lambda self, call: ALLOW)


def mixes_up_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other emission gets what the plugin said to the one before."""
    ask, kept = RemoteInterceptor.ask, dict[RemoteInterceptor, list[object]]()

    def late(self: RemoteInterceptor, call: Any) -> object:
        answers = kept.setdefault(self, [])
        answers.append(ask(self, call))
        return answers[-2] if len(answers) % 2 == 0 else answers[-1]

    monkeypatch.setattr(RemoteInterceptor, "ask", late)


DEFECTS: list[tuple[Callable[[pytest.MonkeyPatch], None], str, str]] = [
    (retries, "kill_busy", "was sent to even twice"),
    (leaks_a_process, "upgrade", "processes left"),
    (leaks_a_descriptor, "kill_idle", "descriptors left"),
    (forgets_a_record, "kill_busy", "without a record"),
    (keeps_a_record_twice, "late", "more than one record"),
    (makes_up_an_allow, "kill_busy", "cannot have given allow|another one's labels"),
    (mixes_up_answers, "late", "cannot have given|another one's labels"),
]


@pytest.mark.parametrize(
    ("defect", "fault", "says"), DEFECTS, ids=[defect.__name__ for defect, _, _ in DEFECTS]
)
def test_defect_of_the_host_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
    defect: Callable[[pytest.MonkeyPatch], None],
    fault: str,
    says: str,
) -> None:
    """A harness that could not fail would be worth nothing."""
    monkeypatch.setattr(leaks, "PATIENCE", 1.0)
    warmed = run._warmed

    def then_defective(arena: Any) -> Any:
        baseline = warmed(arena)
        defect(monkeypatch)
        return baseline

    monkeypatch.setattr(run, "_warmed", then_defective)
    outcome = one(fault)
    assert outcome.violation is not None
    assert any(words in outcome.violation for words in says.split("|")), outcome.violation


@pytest.mark.parametrize("fault", sorted({fault for _, fault, _ in DEFECTS}))
def test_without_the_defect_the_same_fault_breaks_nothing(
    monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """So it was the defect that was noticed."""
    assert one(fault).violation is None
