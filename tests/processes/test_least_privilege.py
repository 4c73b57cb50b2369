"""Plugins that see and may return less, as real processes (PROTOCOL Least privilege, Services)."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.core.approval import ApprovalOutcome, ApprovalResolution
from agent_hooks.core.grants import EVERYTHING, Grants, parse_grants
from agent_hooks.core.identity import context_identity
from agent_hooks.core.narrow import WITHHELD
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from agent_hooks.core.verdict import ALLOW, Verdict
from agent_hooks.host import InterceptionEmitter, SyncInterceptionEmitter
from agent_hooks.supervisor import Binding, Manifest, PluginStartError, Supervisor
from tests.core.support import context
from tests.processes.support import (
    EMITTERS,
    HERE,
    PROFILES,
    QUICK,
    Allower,
    bad,
    judge,
    ready,
    status,
    until,
)

INVALID = "host_error:verdict_invalid"
WITNESS = HERE / "plugins" / "witness.py"
HOW = ("unary", "stream")


def witness(how: str = "stream", grants: Grants = EVERYTHING) -> Manifest:
    command = (sys.executable, str(WITNESS), how)
    return Manifest(name="witness", kind="witness", command=command, grants=grants)


def payment(**more: Any) -> dict[str, Any]:
    args = {"to": "alice", "amount": 7, "card": {"number": "4111-canary"}, "lines": ["a", "b"]}
    return context(
        tool_call={"id": "c-1", "name": "pay", "args": args}, tenant={"id": "canary"}, **more
    )


SEES = parse_grants({"sees": ["$target.to", "$target.lines[0]", "$extensions.acs"]})


class Watched:
    """One binding of the witness, and its folder."""

    def __init__(self, supervisor: Supervisor, folder: Path) -> None:
        self.supervisor, self.folder = supervisor, folder

    @property
    def interceptor(self) -> Any:
        return self.supervisor.interceptor("p")

    def answers(self, verdict: Verdict) -> None:
        (self.folder / "answer.json").write_text(json.dumps(verdict.to_wire()))

    def seen(self) -> dict[str, Any]:
        """What it saw last; whatever it sees from now on is news."""
        seen: dict[str, Any] = json.loads((self.folder / "seen.json").read_text())
        (self.folder / "seen.json").unlink()
        return seen


@pytest.fixture
def watch(tidy: Path, tmp_path: Path) -> Iterator[Any]:
    """Launch a witness under grants."""
    launched: list[Supervisor] = []

    def watch(how: str, grants: Grants) -> Watched:
        binding = Binding("p", witness(how, grants), {"folder": str(tmp_path)})
        launched.append(Supervisor([binding], QUICK).start())
        return Watched(launched[-1], tmp_path)

    yield watch
    for supervisor in launched:
        supervisor.close()


# -- sees --


@pytest.mark.parametrize("how", HOW)
def test_plugin_sees_what_it_is_granted_and_the_record_is_of_all(watch: Any, how: str) -> None:
    """On both call paths, with both emitters, under every profile (§10)."""
    watched = watch(how, SEES)
    raw = payment(extensions={"acs": {"labels": ["x"]}, "own": "canary"})
    for profile, composition in PROFILES.items():
        for kind in EMITTERS:
            judged = judge(kind, raw, watched.interceptor, composition=composition)
            args = {"to": "alice", "amount": WITHHELD, "card": WITHHELD, "lines": ["a", WITHHELD]}
            seen = watched.seen()["context"]
            assert seen == {
                **context(tool_call={"id": "c-1", "name": "pay", "args": args}),
                "tenant": WITHHELD,
                "extensions": {
                    "acs": {"labels": ["x"]},
                    "own": WITHHELD,
                    "agent_hooks_host": {
                        "redacted": [
                            "$target.amount",
                            "$target.card",
                            "$target.lines[1]",
                            "$tenant",
                            "$extensions.own",
                        ]
                    },
                },
            }, profile
            assert judged.decision == "allow"
            assert judged.record.input_identity == context_identity(raw)
            assert judged.record.enforced_identity == judged.record.input_identity
            record = judged.record.to_wire()
            unnarrowed = judge(kind, raw, Allower(), composition=composition).record.to_wire()
            assert record == unnarrowed


def test_plugin_without_grants_sees_the_context_as_it_is(watch: Any) -> None:
    """Also one that looks as if something were withheld."""
    watched = watch("stream", EVERYTHING)
    raw = payment(extensions={"agent_hooks_host": {"redacted": ["$target.to"]}, "own": WITHHELD})
    judge(SyncInterceptionEmitter, raw, watched.interceptor)
    seen = watched.seen()
    assert seen["context"] == raw
    assert seen["may_return"] == ["approval", "deny", "transform"]
    assert seen["transform_paths"] == ["$target"]


# -- may, transform_paths --

ANY = Verdict.rewrite("$target", {})
# Grants, a verdict beyond them.
BEYOND: dict[str, tuple[dict[str, list[str]], Verdict]] = {
    "deny": ({"may": ["transform", "approval"]}, Verdict.deny(reason="r")),
    "approval": ({"may": ["deny"]}, Verdict.escalate(reason="r")),
    "transform": ({"may": ["deny"]}, Verdict.rewrite("$target.to", "bob")),
    "path": ({"transform_paths": ["$target.to"]}, Verdict.rewrite("$target.amount", 1)),
    "above_path": ({"transform_paths": ["$target.to"]}, ANY),
    "over": ({"sees": ["$target.to"]}, ANY),
    "the_place": ({"sees": ["$target.to"]}, Verdict.rewrite("$target.card", 1)),
    "through": ({"sees": ["$target.to"]}, Verdict.rewrite("$target.card.number", 1)),
    "absent": ({"sees": ["$target.to"]}, Verdict.rewrite("$target.card.expiry", 1)),
    "around": ({"sees": ["$target.to"]}, Verdict.rewrite("$target.to", {"card": WITHHELD})),
}
WITHIN: dict[str, tuple[dict[str, list[str]], Verdict, str]] = {
    "allow": ({"may": []}, ALLOW, "allow"),
    "deny": ({"may": ["deny"]}, Verdict.deny(reason="r"), "deny"),
    "approval": ({"may": ["approval"]}, Verdict.escalate(reason="r"), "deny"),
    "transform": ({"may": ["transform"]}, Verdict.rewrite("$target.to", "bob"), "transform"),
    "path": ({"transform_paths": ["$target.to"]}, Verdict.rewrite("$target.to", 1), "transform"),
    "seen": ({"sees": ["$target.card"]}, Verdict.rewrite("$target.card.number", 1), "transform"),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("right", BEYOND)
def test_verdict_beyond_its_rights_takes_its_slot_and_the_others_compose(
    watch: Any, right: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """§6.3, §7: in every profile, with both emitters, enforced or not; and it is logged."""
    table, verdict = BEYOND[right]
    watched = watch(how, parse_grants(table))
    watched.answers(verdict)
    for profile, composition in PROFILES.items():
        for kind in EMITTERS:
            for mode in EnforcementMode:
                before, after = Allower(), Allower()
                judged = judge(
                    kind, payment(), before, watched.interceptor, after,
                    composition=composition, mode=mode,
                )  # fmt: skip
                slots = [(slot.decision.value, slot.reason) for slot in judged.record.verdicts]
                rest, stops = ("allow", None), profile == "first_deny"
                assert slots == [rest, ("deny", INVALID), *([] if stops else [rest])]
                assert judged.decision == "deny"
                if profile != "unanimous":
                    assert (judged.reason, judged.record.decided_by) == (INVALID, 1)
                assert judged.records == [judged.record]
                assert judged.record.input_identity == context_identity(payment())
    assert "canary" not in caplog.text
    assert "plugin p: transform." in caplog.text or "plugin p: decision: " in caplog.text
    assert status(watched.supervisor)["failed"] == 2 * len(PROFILES) * len(EMITTERS)
    assert status(watched.supervisor)["restarts"] == 0


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("right", WITHIN)
def test_verdict_within_its_rights_is_honoured(watch: Any, right: str, how: str) -> None:
    """So the table above refuses for the right, not for the verdict."""
    table, verdict, decision = WITHIN[right]
    watched = watch(how, parse_grants(table))
    watched.answers(verdict)
    for kind in EMITTERS:
        judged = judge(kind, payment(), watched.interceptor)
        assert (judged.decision, judged.reason) == (decision, verdict.reason)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("$context.to", "host_error:transform_target_forbidden"),
        ("$target..to", "host_error:transform_invalid"),
    ],
)
def test_path_that_is_none_is_refused_as_anybodys(watch: Any, path: str, reason: str) -> None:
    """§5.2: grants take nothing away from the gate's own reasons."""
    watched = watch("stream", parse_grants({"sees": ["$target.to"]}))
    watched.answers(Verdict.rewrite(path, 1))
    assert judge(SyncInterceptionEmitter, payment(), watched.interceptor).reason == reason


def test_request_says_what_may_be_returned(watch: Any) -> None:
    """PROTOCOL Services: and what would be refused is said to be."""

    class Approver:
        def resolve(self, request: Any) -> ApprovalResolution:
            return ApprovalResolution(ApprovalOutcome.APPROVE, request.context_identity, ALLOW)

    table = {"may": ["deny", "transform"], "transform_paths": ["$target.to", "$target.lines"]}
    watched = watch("stream", parse_grants(table))
    judge(SyncInterceptionEmitter, payment(), watched.interceptor, resolver=Approver())
    seen = watched.seen()
    assert seen["may_return"] == ["deny", "transform"]
    assert seen["transform_paths"] == ["$target.to", "$target.lines"]
    assert (seen["transform_permitted"], seen["approval_available"]) == (True, False)
    assert seen["enforced"]
    watched = watch("unary", parse_grants({"may": ["approval"]}))
    mode = EnforcementMode.EVALUATE_ONLY
    judge(SyncInterceptionEmitter, payment(), watched.interceptor, resolver=Approver(), mode=mode)
    seen = watched.seen()
    assert (seen["may_return"], seen["transform_paths"]) == (["approval"], [])
    assert (seen["transform_permitted"], seen["approval_available"]) == (False, True)
    assert not seen["enforced"]


# -- folds --


class Rewriter:
    def __init__(self, path: str, value: Any) -> None:
        self.verdict = Verdict.rewrite(path, value)

    def intercept(self, _: Any) -> Verdict:
        return self.verdict


@pytest.mark.parametrize("how", HOW)
def test_fold_goes_through_a_narrowed_plugin_without_loss(watch: Any, how: str) -> None:
    """§7.4: it sees what was folded as far as it may, and what it folds keeps the rest."""
    watched = watch(how, parse_grants({"sees": ["$target.to"]}))
    watched.answers(Verdict.rewrite("$target.to", "carol"))
    emitter = SyncInterceptionEmitter(composition=CompositionConfig.run_all())
    emitter.register(Rewriter("$target.to", "bob")).register(watched.interceptor)
    emitter.register(Rewriter("$target.amount", 8))
    raw = payment()
    outcome = emitter.emit(raw)
    assert watched.seen()["context"]["target"]["to"] == "bob"
    assert outcome.target == {**raw["target"], "to": "carol", "amount": 8}


def test_plugins_of_one_emission_do_not_share_a_view(tidy: Path, tmp_path: Path) -> None:
    """§7.5: at once, each under its own grants."""
    sees: dict[str, list[str]] = {"a": ["$target.to"], "b": ["$target.amount"], "c": ["target"]}
    bindings = []
    for name, places in sees.items():
        (tmp_path / name).mkdir()
        manifest = witness(grants=parse_grants({"sees": places}))
        bindings.append(Binding(name, manifest, {"folder": str(tmp_path / name)}))
    bindings.append(Binding("d", witness(), {"folder": str(tmp_path)}))
    with Supervisor(bindings, QUICK) as supervisor:
        judged = judge(
            InterceptionEmitter, payment(), *(supervisor.interceptor(item.id) for item in bindings),
            composition=CompositionConfig.unanimous(),
        )  # fmt: skip
    assert judged.decision == "allow"
    folders = [*(tmp_path / name for name in sees), tmp_path]
    seen = [json.loads((folder / "seen.json").read_text())["context"] for folder in folders]
    assert [item["target"]["to"] == "alice" for item in seen] == [True, False, True, True]
    assert [item["target"]["amount"] == 7 for item in seen] == [False, True, True, True]
    assert [item["tenant"] == WITHHELD for item in seen] == [True, True, True, False]


# -- who else --


def test_grants_of_an_approval_resolver_are_refused_at_its_start(tidy: Path) -> None:
    """§9: never silently without effect."""
    manifest = bad("resolver", grants=parse_grants({"sees": []}))
    with pytest.raises(PluginStartError, match=r"\[grants\].*approval resolver.*redactor"):
        Supervisor([Binding("p", manifest)], QUICK).start()


def test_upgrade_brings_the_new_manifests_grants(watch: Any) -> None:
    """What is registered goes on, and is held to them."""
    watched = watch("stream", EVERYTHING)
    interceptor = watched.interceptor
    watched.answers(Verdict.rewrite("$target.card", 1))
    assert judge(SyncInterceptionEmitter, payment(), interceptor).decision == "transform"
    watched.supervisor.upgrade("p", witness(grants=SEES))
    assert judge(SyncInterceptionEmitter, payment(), interceptor).reason == INVALID
    assert watched.seen()["context"]["tenant"] == WITHHELD


# -- secrets --

SECRET = 'hunter2"canary\\é'


def config(folder: Path, **more: Any) -> dict[str, Any]:
    return {"folder": str(folder), **more}


@pytest.fixture
def reference(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "key").write_text(SECRET + "\n")
    return {"$secret": f"file:{tmp_path}/key"}


def test_secret_reaches_the_plugin_and_nobody_else(
    tidy: Path,
    tmp_path: Path,
    reference: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Not its argv, its environment, the host's log or status."""
    monkeypatch.setenv("AH_TEST_SECRET", SECRET)
    told = config(tmp_path, keys=[reference, {"$secret": "env:AH_TEST_SECRET"}], shout=reference)
    caplog.set_level(logging.DEBUG)
    with Supervisor([Binding("p", witness(), told)], QUICK) as supervisor:
        pid = ready(supervisor)["pid"]
        until(lambda: caplog.text.count("(secret)") >= 5)
        for name in ("cmdline", "environ"):
            assert b"canary" not in Path(f"/proc/{pid}/{name}").read_bytes()
        assert "canary" not in repr(supervisor.status())
    assert json.loads((tmp_path / "told.json").read_text()) == config(
        tmp_path, keys=[SECRET, SECRET], shout=SECRET
    )
    assert "canary" not in caplog.text
    assert not any("canary" in repr(vars(record)) for record in caplog.records)


def test_refusal_that_repeats_a_secret_is_shown_without_it(
    tidy: Path, tmp_path: Path, reference: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """In the error, the status and the log."""
    caplog.set_level(logging.DEBUG)
    supervisor = Supervisor([Binding("p", witness(), config(tmp_path, refuse=reference))], QUICK)
    with pytest.raises(PluginStartError, match=r"/refuse: .*\(secret\)") as raised:
        supervisor.start()
    assert raised.value.is_configuration
    assert "canary" not in str(raised.value)
    assert status(supervisor)["last_error"]
    assert "canary" not in repr(supervisor.status())
    assert "canary" not in caplog.text


def test_secret_that_is_not_there_is_a_start_error_of_configuration(
    tidy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With pointer and reference; the plugin is not asked."""
    monkeypatch.delenv("AH_TEST_UNSET", raising=False)
    told = config(tmp_path, keys=[{"$secret": "env:AH_TEST_UNSET"}])
    with pytest.raises(PluginStartError, match="/keys/0: env:AH_TEST_UNSET: is not set") as raised:
        Supervisor([Binding("p", witness(), told)], QUICK).start()
    assert raised.value.is_configuration
    assert not (tmp_path / "told.json").exists()


def test_secret_is_read_anew_for_each_launch(tidy: Path, tmp_path: Path, reference: Any) -> None:
    """Just before Configure: a rotated one counts from the next start."""
    told = config(tmp_path, key=reference)
    with Supervisor([Binding("p", witness(), told)], QUICK) as supervisor:
        (tmp_path / "key").write_text("rotated")
        supervisor.upgrade("p")
        assert json.loads((tmp_path / "told.json").read_text())["key"] == "rotated"
