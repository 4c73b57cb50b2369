"""The interception record and its projection (§10.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.core.effects import Rules
from agent_hooks.core.emission import host_failure
from agent_hooks.core.identity import IdentityProvider
from agent_hooks.core.points import InterceptionPoint
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from agent_hooks.core.record import InterceptionRecord, project, truncate
from agent_hooks.core.verdict import (
    Decision,
    Evidence,
    Transform,
    Verdict,
    Warning,
    check_verdict,
)
from tests.core.oracle import ANSWERS, REPLIES
from tests.core.support import POINTS, Run, context, drive, every_path, run, validator
from tests.core.test_composition_paths import CASES, FEW_ANSWERS, rules_of
from tests.core.test_context import JUNK
from tests.core.test_values import text
from tests.core.test_verdict import WHOLE

PROFILES = [
    {"profile": "sequential/first_deny"},
    {"profile": "sequential/first_deny", "on_approval": "resume"},
    {"profile": "sequential/run_all"},
    {"profile": "parallel/strictest", "on_transform_conflict": "approval"},
    {"profile": "parallel/unanimous"},
]


def valid(record: InterceptionRecord) -> dict[str, Any]:
    """The record's JSON, which has to satisfy the shared schema and to read back."""
    wire = record.to_wire()
    text = json.dumps(wire, ensure_ascii=False)
    text.encode()
    assert validator("interception-record.schema.json").is_valid(wire), text
    assert InterceptionRecord.from_core(json.loads(text)) == record
    return wire


@pytest.mark.parametrize("case", [case for case in CASES if case.resolver], ids=str)
def test_every_record_of_every_path_satisfies_the_schema(case: Any) -> None:
    """interception-record.schema.json"""
    seen: dict[str, InterceptionRecord] = {}
    names = tuple(REPLIES)

    def once(choose: Any) -> Run:
        return drive(
            context(),
            rules_of(case, 2),
            lambda index, _: REPLIES[names[choose(len(names))]][index][0],
            lambda request: ANSWERS[FEW_ANSWERS[choose(4)]][0](request.context_identity),
        )

    for done in every_path(once):
        shape = {**done.wire, "input_identity": 0, "enforced_identity": 0}
        seen.setdefault(json.dumps(shape), done.emitted.record)
    for record in seen.values():
        valid(record)
    assert len(seen) > 30


@pytest.mark.parametrize("profile", PROFILES, ids=lambda wire: "-".join(wire.values()))
@pytest.mark.parametrize("provider", ["jcs-sha256", None, IdentityProvider("mine", lambda _: "x")])
def test_records_of_refused_contexts_satisfy_the_schema(profile: Any, provider: Any) -> None:
    """§6.3, §10.2: best-effort envelope members, null identities"""
    breaches: list[Any] = [None, [], "x", {}, {"interception_point": "nowhere"}]
    breaches += [{**context(point), "agent": None} for point in POINTS]
    for member in ("agent", "session", "target", "timestamp", "sequence", "trace"):
        breaches += [{**context(), "spec": "x", member: junk} for junk in JUNK]
    for raw in breaches:
        done = run(
            raw,
            {"decision": "allow"},
            {"decision": "allow"},
            composition=CompositionConfig.from_wire(profile),
            provider=provider,
        )
        wire = valid(done.emitted.record)
        assert not done.invoked
        assert wire["verdict"]["reason"] == "host_error:context_invalid"
        assert wire["input_identity"] is wire["enforced_identity"] is wire["decided_by"] is None
        assert wire["interceptors_registered"] == 2
        assert wire.get("verdicts", []) == []
        assert wire.get("fold_truncated") == (True if "sequential" in profile["profile"] else None)


def test_a_refused_context_is_filed_under_what_it_says_of_itself() -> None:
    """§10.2"""
    trace = {"trace_id": "ab", "span_id": "cd", "x": 1}
    raw = context("output", session="s-9", sequence=7, trace=trace)
    raw["agent"] = None
    wire = valid(run(raw).emitted.record)
    assert wire["interception_point"] == "output"
    assert (wire["session_id"], wire["sequence"]) == ("s-9", 7)
    assert wire["timestamp"] == raw["timestamp"]
    assert wire["trace"] == {"trace_id": "ab", "span_id": "cd"}


def test_a_refused_context_may_name_its_point_by_the_enumeration() -> None:
    raw = {**context("output"), "interception_point": InterceptionPoint.OUTPUT, "agent": None}
    assert run(raw).wire["interception_point"] == "output"


@pytest.mark.parametrize(
    ("trace", "kept"),
    [
        (None, None),
        ("ab", None),
        ({}, None),
        ({"trace_id": 5}, None),
        ({"trace_id": "ab"}, {"trace_id": "ab"}),
        ({"span_id": "cd", "flags": "x"}, {"span_id": "cd"}),
    ],
)
def test_a_record_carries_the_trace_identifiers_and_nothing_else(trace: Any, kept: Any) -> None:
    """§10.3"""
    raw = context() if trace is None else context(trace=trace)
    assert valid(run(raw, {"decision": "allow"}).emitted.record).get("trace") == kept


@pytest.mark.parametrize("sequence", [2**53, 2**60, 2**63 - 1])
def test_a_record_has_the_sequence_of_the_context_it_is_of(sequence: int) -> None:
    """§10.3: copied; without jcs-sha256 the number may be large"""
    done = run(context(sequence=sequence), {"decision": "allow"}, provider=None)
    assert done.emitted.record.proceeds
    assert valid(done.emitted.record)["sequence"] == sequence


@pytest.mark.parametrize(
    "changed",
    [
        {"session": {"id": "\ud800"}},
        {"timestamp": "\udfff"},
        {"trace": {"trace_id": "\ud800"}},
        {"sequence": 10**5000},
    ],
    ids=["session", "timestamp", "trace", "sequence"],
)
def test_no_context_can_make_a_record_that_cannot_be_written(changed: Any) -> None:
    """§10.3: every emission ends in a record, hostile envelope members or not"""
    done = run({**context(), **changed}, {"decision": "allow"})
    assert done.reason == "host_error:context_invalid"
    valid(done.emitted.record)


# --- the projection ---


def test_the_projection_drops_content_and_keeps_the_rest() -> None:
    """§10.3"""
    verdict = check_verdict(
        {
            "decision": "deny",
            "reason": "r",
            "message": "m" * 300,
            "warnings": [{"reason": "w", "message": "é" * 200}, {"reason": "v"}],
            "approval": {"secret": 1},
            "evidence": {"artefact": "a", "verification_pointers": {"k": "u"}},
            "result_labels": ["l"],
        }
    )
    assert project(verdict).to_wire() == {
        "decision": "deny",
        "reason": "r",
        "message": "m" * 253 + "…",
        "warnings": [{"reason": "w", "message": "é" * 126 + "…"}, {"reason": "v"}],
        "approval": {},
        "evidence": {"artefact": "a", "verification_pointers": {"k": "u"}},
        "result_labels": ["l"],
    }


@pytest.mark.parametrize("value", [1, None, {"secret": "x"}], ids=repr)
def test_the_projection_keeps_a_path_and_drops_its_value(value: Any) -> None:
    """§10.3"""
    verdict = Verdict.rewrite("$target.a", value, reason="r")
    assert project(verdict).to_wire() == {
        "decision": "transform",
        "reason": "r",
        "transform": {"path": "$target.a"},
    }


@pytest.mark.parametrize("approval", [None, {}, {"secret": 1}], ids=repr)
def test_the_projection_keeps_the_presence_of_an_approval(approval: Any) -> None:
    """§10.3"""
    verdict = Verdict(Decision.DENY, approval=approval)
    assert project(verdict).approval == (None if approval is None else {})


@given(text, st.integers(0, 400))
def test_a_message_is_cut_on_a_character_boundary(piece: str, times: int) -> None:
    """§10.3: at most 256 bytes with the mark"""
    message = piece * times
    cut = truncate(message)
    assert cut is not None
    assert len(cut.encode()) <= 256
    if len(message.encode()) <= 256:
        assert cut == message
    else:
        assert cut.endswith("…")
        assert message.startswith(cut[:-1])
        kept = len(cut.encode())
        missed = message[len(cut) - 1].encode()
        assert kept + len(missed) > 256


@pytest.mark.parametrize(
    ("message", "cut"),
    [
        (None, None),
        ("", ""),
        ("a" * 256, "a" * 256),
        ("a" * 257, "a" * 253 + "…"),
        ("é" * 128, "é" * 128),
        ("é" * 129, "é" * 126 + "…"),
        ("a" + "🛫" * 64, "a" + "🛫" * 63 + "…"),
    ],
)
def test_messages_at_the_bound(message: str | None, cut: str | None) -> None:
    """§10.3"""
    assert truncate(message) == cut


def test_the_host_keeps_the_whole_verdict() -> None:
    """§10.3"""
    done = run(context(), {**WHOLE, "message": "m" * 300})
    assert done.emitted.verdict.message == "m" * 300
    assert done.emitted.verdict.approval == WHOLE["approval"]
    assert done.wire["verdict"]["approval"] == {}


# --- the JSON form ---


def test_a_record_reads_back() -> None:
    record = InterceptionRecord(
        interception_point=InterceptionPoint.OUTPUT,
        mode=EnforcementMode.EVALUATE_ONLY,
        verdict=project(
            Verdict(
                Decision.TRANSFORM,
                "r",
                "m",
                (Warning("w", "x"), Warning()),
                None,
                Transform("$target"),
                Evidence("a", {"k": "u"}),
                ("l",),
            )
        ),
        input_identity="sha256:1",
        enforced_identity="sha256:2",
        identity_provider="jcs-sha256",
        session_id="s",
        sequence=3,
        timestamp="2026-03-04T05:06:07Z",
        trace={"trace_id": "ab"},
        decided_by=0,
        composition=CompositionConfig.run_all(),
        declaration="agent-hooks-declaration/1.0",
        fold_truncated=False,
        resolved_by="approval",
        interceptors_registered=2,
    )
    assert valid(record)["verdicts"] == []


@pytest.mark.parametrize(
    ("profile", "summarised"),
    [("sequential/first_deny", False), ("sequential/run_all", True), ("parallel/strictest", True)],
)
def test_summaries_are_there_even_where_nobody_was_asked(profile: str, summarised: bool) -> None:
    """§10.3: required in the multi-verdict profiles"""
    done = run(context(), composition=CompositionConfig.from_wire({"profile": profile}))
    assert ("verdicts" in valid(done.emitted.record)) == summarised


def test_summaries_carry_the_names_the_host_gave() -> None:
    """§10.3"""
    done = run(context(), {"decision": "allow"}, {"decision": "allow"}, names=("first", None))
    assert done.wire["verdicts"] == [
        {"index": 0, "decision": "allow", "name": "first"},
        {"index": 1, "decision": "allow"},
    ]


@pytest.mark.parametrize(
    ("mode", "decision", "proceeds"),
    [
        ("enforce", "allow", True),
        ("enforce", "deny", False),
        ("evaluate_only", "allow", True),
        ("evaluate_only", "deny", True),
    ],
)
def test_a_deny_stops_only_where_it_is_enforced(mode: str, decision: str, proceeds: bool) -> None:
    """§6, §8"""
    done = run(context(), {"decision": decision}, mode=EnforcementMode(mode))
    assert done.emitted.record.proceeds is proceeds


@pytest.mark.parametrize("names", [(), (None, None)], ids=["none", "two"])
@pytest.mark.parametrize("profile", PROFILES, ids=lambda wire: "-".join(wire.values()))
def test_a_context_that_could_not_be_built_has_a_record_too(profile: Any, names: Any) -> None:
    """§6.3"""
    rules = Rules(names=names, composition=CompositionConfig.from_wire(profile))
    record = host_failure(InterceptionPoint.INPUT, rules, "no input", session_id="s", sequence=4)
    wire = valid(record)
    assert wire["verdict"] == {
        "decision": "deny",
        "reason": "host_error:context_invalid",
        "message": "no input",
    }
    assert wire["interception_point"] == "input"
    assert (wire["session_id"], wire["sequence"]) == ("s", 4)
    assert wire.get("fold_truncated") == (
        bool(names) if "sequential" in profile["profile"] else None
    )
    assert not record.proceeds


def test_a_record_names_the_declaration_it_was_made_under() -> None:
    """§10.3"""
    done = run(context(), {"decision": "allow"}, declaration="agent-hooks-declaration/1.0")
    assert valid(done.emitted.record)["declaration"] == "agent-hooks-declaration/1.0"
