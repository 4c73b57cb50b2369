"""One emission, from a raw context to its record (§6, §8, §10)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_hooks.core import canonical, path
from agent_hooks.core.context import Bounds, check_context
from agent_hooks.core.effects import Failed, Invoke, InvokeAll, Rules
from agent_hooks.core.emission import Emitted, emission
from agent_hooks.core.identity import IdentityProvider, check_provider, context_identity
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from agent_hooks.core.reasons import HostError
from agent_hooks.core.session import Sessions
from agent_hooks.core.values import parse_json
from agent_hooks.core.verdict import Verdict
from tests.core.support import (
    FORBIDDING,
    POINTS,
    REWRITABLE,
    SPEC,
    approve,
    call,
    context,
    drive,
    run,
)
from tests.core.test_context import JUNK, full
from tests.core.test_values import CYCLE, nested, typed

ALLOW: dict[str, Any] = {"decision": "allow"}
DENY = {"decision": "deny", "reason": "no"}
ASK = {"decision": "deny", "reason": "ask", "approval": {}}
NOTED = {"decision": "allow", "warnings": [{"reason": "w"}], "result_labels": ["l"]}
PROFILES = {
    "stop": {"profile": "sequential/first_deny"},
    "resume": {"profile": "sequential/first_deny", "on_approval": "resume"},
    "run_all": {"profile": "sequential/run_all"},
    "strictest": {"profile": "parallel/strictest"},
    "unanimous": {"profile": "parallel/unanimous"},
}
EVALUATE = EnforcementMode.EVALUATE_ONLY
INVALID = "host_error:context_invalid"
CANARY = "canary-" + "7f3a"


def rewrite(where: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"decision": "transform", "transform": {"path": where, "value": value}, **more}


def under(name: str) -> CompositionConfig:
    return CompositionConfig.from_wire(PROFILES[name])


every_profile = pytest.mark.parametrize("profile", PROFILES)
sequential = pytest.mark.parametrize("profile", ["stop", "resume", "run_all"])
both_modes = pytest.mark.parametrize("mode", EnforcementMode, ids=lambda mode: mode.value)


# --- before dispatch ---


@every_profile
@both_modes
def test_without_an_interceptor_every_emission_is_denied(profile: str, mode: Any) -> None:
    """§7, §8; vectors 061, 101"""
    done = run(context(), composition=under(profile), mode=mode)
    assert done.reason == "host_error:no_interceptor"
    assert done.wire["decided_by"] is None
    assert done.wire["interceptors_registered"] == 0
    assert done.emitted.record.proceeds == (mode is EVALUATE)
    assert done.wire["input_identity"] == done.wire["enforced_identity"]


@every_profile
@pytest.mark.parametrize("mode", EnforcementMode)
def test_a_response_that_could_not_be_assembled_is_denied_unasked(profile: str, mode: Any) -> None:
    """§12.1: no interceptor judges a part; a whole response is judged as ever."""
    raw = context("post_model_call")
    raw["response"]["finish_reason"] = raw["target"]["finish_reason"] = "stream_incomplete"
    ran = run(raw, ALLOW, composition=under(profile), mode=mode)
    record = ran.emitted.record
    assert record.verdict.reason == "host_error:streaming_unsupported"
    assert (record.decided_by, record.verdicts) == (None, ())
    assert record.input_identity is not None
    assert record.proceeds is (mode is EVALUATE)
    elsewhere = context("pre_model_call", response=raw["response"])
    assert run(elsewhere, ALLOW, composition=under(profile)).emitted.record.proceeds


@every_profile
@pytest.mark.parametrize("answer", [KeyError(CANARY), None, 5, b"x"], ids=repr)
def test_a_provider_that_cannot_compute_denies_before_any_interceptor(
    profile: str, answer: Any
) -> None:
    """§10.1; vector 096"""

    def identity(_: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    provider = IdentityProvider("faulty", identity)
    done = run(context(), ALLOW, composition=under(profile), provider=provider)
    assert not done.invoked
    assert done.reason == INVALID
    assert done.wire["input_identity"] is done.wire["enforced_identity"] is None
    assert done.wire["identity_provider"] == "faulty"
    assert CANARY not in json.dumps(done.wire)


@both_modes
def test_a_refused_context_reaches_nobody(mode: EnforcementMode) -> None:
    """§6.3"""
    done = run({**context(), "sequence": -1}, ALLOW, mode=mode, resolver=True)
    assert not done.invoked
    assert not done.asked
    assert done.wire["verdict"] == {
        "decision": "deny",
        "reason": INVALID,
        "message": "/sequence: expected an integer >= 0 of 64 bits (§4)",
    }
    assert done.emitted.verdict == done.emitted.record.verdict


class HostileContext(dict[str, Any]):
    """A mapping that misbehaves when it is read."""

    def items(self) -> Any:
        raise RuntimeError(CANARY)

    def get(self, *_: Any) -> Any:
        raise RuntimeError(CANARY)


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(None, id="null"),
        pytest.param(context, id="function"),
        pytest.param({1: 2}, id="integer-key"),
        pytest.param({**context(), "target": CYCLE}, id="cycle"),
        pytest.param({**context(), "target": nested(10_000)}, id="depth-10000"),
        pytest.param({**context(), "target": 10**5000}, id="5000-digits"),
        pytest.param({**context(), "session": {"id": "\ud800"}}, id="surrogate"),
        pytest.param(HostileContext(context()), id="hostile"),
        pytest.param({**context(), "target": HostileContext()}, id="hostile-target"),
        pytest.param(HostileContext({**context(), "agent": None}), id="hostile-and-invalid"),
    ],
)
@pytest.mark.parametrize("provider", ["jcs-sha256", None])
def test_no_context_makes_an_emission_raise(raw: Any, provider: Any) -> None:
    """§10.3, §12.3: exactly one record, whatever the context is"""
    done = run(raw, ALLOW, provider=provider)
    assert done.reason == INVALID or type(raw) is HostileContext


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(rewrite("$target.n", nested(10_000)), id="depth-10000"),
        pytest.param(rewrite("$target.n", CYCLE), id="cycle"),
        pytest.param(HostileContext(ALLOW), id="hostile"),
        pytest.param(Verdict("allow"), id="built-wrong"),  # type: ignore[arg-type]
    ],
)
@every_profile
def test_no_reply_makes_an_emission_raise(profile: str, reply: Any) -> None:
    """§6.3"""
    done = run(context(), reply, composition=under(profile))
    assert done.wire["verdicts"][0]["reason"] == "host_error:verdict_invalid"
    assert not done.emitted.record.proceeds


@pytest.mark.parametrize("answers", [[], [ALLOW], [ALLOW] * 3, None, 5, {}], ids=repr)
@pytest.mark.parametrize("profile", ["strictest", "unanimous"])
def test_a_driver_that_loses_an_answer_gets_no_allow(profile: str, answers: Any) -> None:
    """§1.3: an unknown case never becomes allow, and no answer makes an emission raise"""
    steps = emission(context(), Rules(names=(None, None), composition=under(profile)), Sessions())
    assert isinstance(next(steps), InvokeAll)
    with pytest.raises(StopIteration) as stop:
        steps.send(answers)
    assert isinstance(stop.value.value, Emitted)
    assert not stop.value.value.record.proceeds


def test_an_emission_asks_one_after_the_other_and_returns_once() -> None:
    """§7.4"""
    steps = emission(context(), Rules(names=("a", "b")), Sessions())
    first = next(steps)
    assert isinstance(first, Invoke)
    assert first.index == 0
    second = steps.send(ALLOW)
    assert isinstance(second, Invoke)
    assert second.index == 1
    with pytest.raises(StopIteration) as stop:
        steps.send(ALLOW)
    assert isinstance(stop.value.value, Emitted)
    with pytest.raises(StopIteration) as again:
        next(steps)
    assert again.value.value is None


# --- enforcement ---


@pytest.mark.parametrize("point", REWRITABLE)
@pytest.mark.parametrize("profile", ["stop", "resume", "run_all", "strictest"])
def test_a_transform_reaches_the_host_and_the_identity(point: str, profile: str) -> None:
    """§6, §4.3"""
    raw = context(point)
    where = "$target[0].n" if point == "pre_model_call" else "$target.n"
    done = run(raw, ALLOW, rewrite(where, 1.5), composition=under(profile))
    expected = copy.deepcopy(raw["target"])
    (expected[0] if isinstance(expected, list) else expected)["n"] = 1.5
    assert done.emitted.rewritten
    assert typed(done.emitted.target) == typed(expected)
    assert done.wire["decided_by"] == 1
    assert done.wire["input_identity"] == context_identity(raw)
    assert done.wire["enforced_identity"] != done.wire["input_identity"]
    assert raw == context(point)


@pytest.mark.parametrize("point", FORBIDDING)
@pytest.mark.parametrize("profile", ["stop", "resume", "run_all", "strictest"])
@both_modes
def test_the_boundary_points_take_no_transform(point: str, profile: str, mode: Any) -> None:
    """§4.3; vector 022"""
    done = run(
        context(point), rewrite("$target.n", 1), ALLOW, composition=under(profile), mode=mode
    )
    assert done.reason == "host_error:transform_target_forbidden"
    assert done.wire["decided_by"] is None
    assert done.wire["input_identity"] == done.wire["enforced_identity"]
    assert not done.emitted.rewritten


@pytest.mark.parametrize(
    ("raw", "reply"),
    [
        pytest.param(context(), rewrite("$target", []), id="args"),
        pytest.param(context("input"), rewrite("$target.role", "robot"), id="role"),
        pytest.param(context("input"), rewrite("$target", "text"), id="input"),
        pytest.param(context("pre_model_call"), rewrite("$target[0]", {}), id="message"),
        pytest.param(context("pre_model_call"), rewrite("$target[0].role", None), id="role-of-it"),
        pytest.param(context("post_model_call"), rewrite("$target.tool_calls", None), id="calls"),
        pytest.param(
            context("post_model_call"), rewrite("$target.tool_calls[0].args", 1), id="call-args"
        ),
        pytest.param(context("output"), rewrite("$target", {"text": 1}), id="output"),
    ],
)
@pytest.mark.parametrize("profile", ["stop", "run_all", "strictest"])
@both_modes
def test_a_transform_may_not_leave_the_envelope(
    raw: Any, reply: Any, profile: str, mode: Any
) -> None:
    """§11 transform_invalid: the value could not be set"""
    done = run(raw, reply, ALLOW, composition=under(profile), mode=mode)
    assert done.reason == "host_error:transform_invalid"
    assert done.wire["decided_by"] is None
    assert len(done.invoked) == (2 if profile == "strictest" else 1)
    assert done.wire["verdicts"][0]["decision"] == (
        "transform" if profile == "strictest" else "deny"
    )


@pytest.mark.parametrize(
    "value",
    [2**53, -(2**53), [{"a": 2**64}], 10**400],
    ids=["2^53", "-2^53", "nested", "400-digits"],
)
@pytest.mark.parametrize("profile", ["stop", "resume", "run_all", "strictest"])
def test_a_fold_that_leaves_the_domain_ends_the_emission_at_once(profile: str, value: Any) -> None:
    """§10.2; vector 095: nobody may judge what the identity cannot bind"""
    done = run(
        context(), NOTED, rewrite("$target.n", value, warnings=[{"reason": "v"}]), ALLOW,
        composition=under(profile),
    )  # fmt: skip
    assert done.reason == INVALID
    assert done.wire["decided_by"] is None
    assert done.wire["input_identity"] == context_identity(context())
    assert done.wire["enforced_identity"] is None
    assert len(done.invoked) == (3 if profile == "strictest" else 2)
    assert done.wire["verdict"]["warnings"] == [{"reason": "w"}, {"reason": "v"}]
    assert "result_labels" not in done.wire["verdict"]
    assert not done.emitted.rewritten
    assert str(value) not in json.dumps(done.wire)


def test_leaving_the_domain_outranks_an_earlier_deny_in_run_all() -> None:
    """§10.2: what followed could not be bound"""
    done = run(context(), DENY, rewrite("$target.n", 2**53), composition=under("run_all"))
    assert done.reason == INVALID
    assert done.wire["enforced_identity"] is None


def test_an_approved_transform_can_leave_the_domain_too() -> None:
    """§9, §10.2"""
    done = run(context(), ASK, ALLOW, answer=approve(rewrite("$target.n", 2**53)))
    assert done.reason == INVALID
    assert done.wire["resolved_by"] == "approval"
    assert done.wire["decided_by"] is done.wire["enforced_identity"] is None


@pytest.mark.parametrize("provider", [None, IdentityProvider("mine", lambda raw: "id")])
@pytest.mark.parametrize("profile", ["stop", "run_all", "strictest"])
def test_without_jcs_a_large_integer_folds_like_any_other(profile: str, provider: Any) -> None:
    """§10.1: the domain is the provider's"""
    done = run(
        call({"n": 2**60}),
        rewrite("$target.n", 2**70),
        composition=under(profile),
        provider=provider,
    )
    assert done.emitted.target == {"n": 2**70}


def test_a_large_integer_outside_the_projection_does_not_end_a_fold() -> None:
    """§10.2"""
    raw = context(extensions={"ours": 2**60})
    assert run(raw, rewrite("$target.n", 1)).emitted.rewritten


@pytest.mark.parametrize(
    ("bounds", "value"),
    [(Bounds(max_bytes=1_000), "x" * 1_000), (Bounds(max_depth=8), nested(8))],
    ids=["bytes", "depth"],
)
@sequential
def test_a_fold_that_breaks_a_bound_ends_the_emission(
    profile: str, bounds: Bounds, value: Any
) -> None:
    """§12.3"""
    done = run(
        context(), rewrite("$target.n", value), ALLOW,
        composition=under(profile), bounds=bounds, provider=None,
    )  # fmt: skip
    assert done.reason == INVALID
    assert len(done.invoked) == 1


class After:
    """A provider that works until something was folded."""

    def __init__(self, failure: Any) -> None:
        self.failure = failure

    def __call__(self, raw: Any) -> Any:
        if raw["target"]["n"] == 0:
            return "before"
        if isinstance(self.failure, Exception):
            raise self.failure
        return self.failure


@pytest.mark.parametrize("failure", [KeyError(CANARY), None, 7], ids=repr)
@pytest.mark.parametrize("profile", ["stop", "run_all", "strictest"])
def test_a_provider_that_fails_after_the_fold_fails_closed(profile: str, failure: Any) -> None:
    """§10.1: fail closed the same way, and what was warned of stays on the record"""
    done = run(
        context(), NOTED, rewrite("$target.n", 1),
        composition=under(profile), provider=IdentityProvider("late", After(failure)),
    )  # fmt: skip
    assert done.reason == INVALID
    assert done.wire["input_identity"] == "before"
    assert done.wire["enforced_identity"] is done.wire["decided_by"] is None
    assert not done.emitted.rewritten
    assert not done.emitted.record.proceeds
    assert len(done.wire["verdicts"]) == 2
    assert "result_labels" not in done.wire["verdict"]
    assert CANARY not in json.dumps(done.wire)
    assert done.wire["verdict"].get("warnings") == [{"reason": "w"}], "§5.1"


@pytest.mark.parametrize("reply", [NOTED, DENY, ASK, rewrite("$target.n", 1), 5], ids=repr)
@every_profile
def test_evaluate_only_records_and_proceeds_with_everything(profile: str, reply: Any) -> None:
    """§8"""
    done = run(context(), reply, composition=under(profile), mode=EVALUATE, resolver=True)
    assert done.emitted.record.proceeds
    assert not done.emitted.rewritten
    assert not done.asked
    assert done.wire["mode"] == "evaluate_only"
    assert done.wire["input_identity"] == done.wire["enforced_identity"]


@pytest.mark.parametrize("value", [2**53, nested(127)], ids=["domain", "depth"])
@pytest.mark.parametrize("profile", ["stop", "run_all", "strictest"])
def test_in_evaluate_only_the_identities_are_always_equal(profile: str, value: Any) -> None:
    """§10.3: nothing was folded, so nothing left the domain"""
    done = run(context(), rewrite("$target.n", value), composition=under(profile), mode=EVALUATE)
    assert done.wire["enforced_identity"] == done.wire["input_identity"] is not None


@sequential
def test_evaluate_only_shows_everyone_the_untransformed_context(profile: str) -> None:
    """§7.4"""
    done = run(
        context(), rewrite("$target.n", 1), rewrite("$target.n", 2), ALLOW,
        composition=under(profile), mode=EVALUATE,
    )  # fmt: skip
    assert [snapshot.context["target"]["n"] for _, snapshot in done.invoked] == [0, 0, 0]
    assert done.wire["decided_by"] == 1


def test_a_deny_in_run_all_discards_what_was_folded_but_not_its_trail() -> None:
    """§7.4"""
    done = run(context(), rewrite("$target.n", 1), DENY, ALLOW, composition=under("run_all"))
    assert done.wire["enforced_identity"] != done.wire["input_identity"]
    assert not done.emitted.rewritten
    assert done.emitted.target is None


@every_profile
def test_what_one_reader_does_to_its_copy_nobody_sees(profile: str) -> None:
    """§7; vector 104"""
    seen = []

    def spoil(_: int, snapshot: Any) -> Any:
        received = snapshot.copy()
        seen.append(copy.deepcopy(received))
        received["target"] = received["tool_call"]["args"]["n"] = "spoiled"
        return ALLOW

    done = drive(context(), Rules(names=(None,) * 3, composition=under(profile)), spoil)
    assert seen == [context()] * 3
    assert done.wire["enforced_identity"] == context_identity(context())


@pytest.mark.parametrize(
    ("profile", "kept"),
    [("stop", {}), ("unanimous", {}), ("run_all", {"reason": "a", "message": "A"}),
     ("strictest", {"reason": "a", "message": "A"})],
)  # fmt: skip
def test_a_pure_allow_says_what_its_profile_lets_it_say(profile: str, kept: Any) -> None:
    """§7.3 to §7.5: a bare allow, or the first verdict; the first evidence is kept"""
    done = run(
        context(),
        {"decision": "allow", "reason": "a", "message": "A"},
        {"decision": "allow", "reason": "b", "evidence": {"artefact": "e"}},
        {"decision": "allow", "evidence": {"artefact": "f"}},
        composition=under(profile),
    )
    evidence = {} if kept else {"evidence": {"artefact": "e"}}
    assert done.wire["verdict"] == {"decision": "allow", **kept, **evidence}
    assert done.wire["decided_by"] is None


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Failed(HostError.INTERCEPTOR_FAILED, CANARY), "host_error:interceptor_failed"),
        (Failed(HostError.INTERCEPTOR_TIMEOUT), "host_error:interceptor_timeout"),
        ({"decision": CANARY}, "host_error:verdict_invalid"),
        (None, "host_error:verdict_invalid"),
        (rewrite("$session.id", 1), "host_error:transform_target_forbidden"),
        (rewrite("$target..n", 1), "host_error:transform_invalid"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("profile", ["stop", "run_all", "strictest"])
def test_a_failure_takes_its_slot_and_its_index_and_says_no_more(
    profile: str, reply: Any, reason: str
) -> None:
    """§6.3, §10.3; vectors 094, 097"""
    done = run(context(), ALLOW, reply, NOTED, composition=under(profile))
    assert done.wire["verdict"].get("message") is None
    assert done.reason == reason
    assert done.wire["decided_by"] == 1
    assert len(done.invoked) == (2 if profile == "stop" else 3)
    assert done.wire["verdicts"][1] == {"index": 1, "decision": "deny", "reason": reason}


# --- nothing of the target in a record or an error (§14) ---


def tainted(point: str) -> Any:
    """A context with the canary in every free string, and in names where they are free."""
    raw = full(point)

    def taint(value: Any) -> Any:
        if isinstance(value, str):
            return CANARY
        if isinstance(value, list):
            return [taint(item) for item in value]
        if isinstance(value, dict):
            return {name: taint(item) for name, item in value.items()}
        return value

    kept = {name: raw[name] for name in ("spec", "interception_point")}
    raw = {**taint(raw), **kept}
    for holder, name, value in (("input", "role", "user"), ("summary", "reason", "error")):
        if holder in raw:
            raw[holder][name] = raw["target"][name] = value
    raw["extensions"] = {CANARY: {CANARY: CANARY}}
    if isinstance(raw["target"], dict):
        raw["target"][CANARY] = CANARY
    raw[CANARY] = CANARY
    return raw


def leaks(wire: dict[str, Any]) -> bool:
    """Whether a record holds the canary elsewhere than in the identifiers it has to echo."""
    return CANARY in json.dumps(
        {k: v for k, v in wire.items() if k not in ("session_id", "timestamp", "trace")}
    )


FAULTS: tuple[Any, ...] = (float("nan"), "\ud800", nested(200), 2**60, {CANARY, 1}, {1: CANARY})


def breaches(point: str) -> Iterator[Any]:
    """Contexts that are refused, each for another cause."""
    raw = tainted(point)
    for member, value in raw.items():
        yield {name: value for name, value in raw.items() if name != member}
        yield from ({**raw, member: junk} for junk in (*JUNK[::3], *FAULTS))
        if isinstance(value, dict):
            for name in (*value, CANARY):
                yield from ({**raw, member: {**value, name: junk}} for junk in (None, *FAULTS))
    if point == "output":
        yield {**raw, "target": CANARY * 800_000}


@pytest.mark.parametrize("point", POINTS)
def test_no_refusal_of_a_context_repeats_it(point: str) -> None:
    """§14"""
    refused = 0
    for raw in breaches(point):
        done = run(raw, ALLOW)
        refused += done.reason == INVALID
        assert not leaks(done.wire), done.wire
    assert refused > 50


REPLIES: list[Any] = [
    {"decision": CANARY},
    {"decision": ["allow", CANARY]},
    {**ALLOW, CANARY: CANARY},
    {**ALLOW, "reason": "host_error:" + CANARY},
    {**ALLOW, "warnings": [{"reason": "host_error:" + CANARY}]},
    {**ALLOW, "warnings": [CANARY]},
    {**ALLOW, "message": [CANARY]},
    {**ALLOW, "result_labels": [[CANARY]]},
    {**ALLOW, "approval": {CANARY: CANARY}},
    {**ALLOW, "evidence": {"artefact": CANARY * 1000}},
    {**DENY, "approval": {CANARY: {CANARY: CANARY}}},
    rewrite("$target.n", {CANARY: CANARY}),
    rewrite("$target.n", {CANARY: float("nan")}),
    rewrite("$target.n", {CANARY: 2**60}),
    rewrite("$target.n", nested(200, CANARY)),
    rewrite("$target." + CANARY, 1),
    rewrite("$" + CANARY, 1),
    rewrite("$target.n " + CANARY, 1),
    rewrite("$target", CANARY),
    rewrite("$target", {CANARY: CANARY}),
    CANARY,
    [CANARY],
    KeyError(CANARY),
    Failed(HostError.INTERCEPTOR_FAILED, CANARY),
    Verdict("allow", CANARY, evidence=CANARY),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: repr(reply)[:50])
@every_profile
def test_no_refusal_of_a_verdict_repeats_it(profile: str, reply: Any) -> None:
    """§14, §10.3: nor does a record repeat a value that a transform sets"""
    done = run(context(), reply, composition=under(profile))
    assert not leaks(done.wire)


def _raise(_: Any) -> Any:
    raise KeyError(CANARY)


@pytest.mark.parametrize(
    "answer",
    [
        CANARY,
        {"outcome": CANARY, "context_identity": None, "verdict": ALLOW},
        {"outcome": "approve", "context_identity": CANARY, "verdict": ALLOW},
        {"outcome": "approve", "context_identity": None, "verdict": {"decision": CANARY}},
        {"outcome": "approve", "context_identity": None, "verdict": rewrite("$" + CANARY, 1)},
        {"outcome": "approve", "context_identity": None, "verdict": rewrite("$target", CANARY)},
        {"outcome": "approve", "context_identity": None, "verdict": {**DENY, "reason": CANARY}},
    ],
    ids=repr,
)
def test_no_refusal_of_an_approval_repeats_it(answer: Any) -> None:
    """§14"""
    done = run(tainted("pre_tool_call"), ASK, answer=answer, provider=None)
    assert done.asked
    assert not leaks(done.wire)
    failed = run(tainted("pre_tool_call"), ASK, answer=answer, redactor=_raise)
    assert not leaks(failed.wire)


@pytest.mark.parametrize(
    "call_",
    [
        pytest.param(lambda: Verdict.from_wire({"decision": CANARY}), id="decision"),
        pytest.param(lambda: Verdict.from_wire({**ALLOW, CANARY: 1}), id="member"),
        pytest.param(lambda: Verdict.from_wire({**ALLOW, "reason": [CANARY]}), id="reason"),
        pytest.param(
            lambda: Verdict.from_wire(rewrite("$target", {CANARY: float("nan")})), id="value"
        ),
        pytest.param(lambda: path.parse("$" + CANARY), id="root"),
        pytest.param(lambda: path.parse("$target[" + CANARY), id="syntax"),
        pytest.param(lambda: path.apply({}, "$target." + CANARY, CANARY), id="place"),
        pytest.param(lambda: CompositionConfig.from_wire({"profile": CANARY}), id="profile"),
        pytest.param(
            lambda: CompositionConfig.from_wire({"profile": "sequential/run_all", CANARY: 1}),
            id="knob",
        ),
        pytest.param(
            lambda: CompositionConfig.from_wire(
                {"profile": "sequential/run_all", "on_approval": CANARY}
            ),
            id="knob-value",
        ),
        pytest.param(lambda: IdentityProvider(CANARY + "!", lambda _: ""), id="provider-name"),
        pytest.param(lambda: check_provider(CANARY), id="provider"),
        pytest.param(lambda: canonical.canonical_json([CANARY, 2**60]), id="canonical"),
        pytest.param(lambda: canonical.canonical_json([CANARY + "\ud800"]), id="surrogate"),
        pytest.param(lambda: parse_json(f'["{CANARY}"'), id="text"),
        pytest.param(lambda: parse_json(f'["{CANARY}",NaN]'), id="text-nan"),
        pytest.param(lambda: parse_json(f'[{{"{CANARY}":1,"{CANARY}":2}}]'), id="duplicate"),
        pytest.param(lambda: canonical.parse(f'"{CANARY}\\ud800"', 9), id="text-surrogate"),
        pytest.param(lambda: context_identity(tainted("input") | {"spec": CANARY}), id="spec"),
        pytest.param(
            lambda: check_context(tainted("input") | {"agent": CANARY}, Bounds(), SPEC), id="agent"
        ),
    ],
)
def test_no_error_repeats_what_it_refuses(call_: Callable[[], Any]) -> None:
    """§14: neither in its text nor in an error it shows as its cause"""
    with pytest.raises(ValueError, match=r"\w") as caught:
        call_()
    assert CANARY not in str(caught.value)
    assert CANARY not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_taint_is_thorough() -> None:
    """The canary stands at every free place, so that a leak would show."""
    for point in POINTS:
        raw = tainted(point)
        assert json.dumps(raw).count(CANARY) >= 15
        assert run(raw, ALLOW).emitted.record.proceeds
