"""Emitters: what they accept, whom they ask, what they write back."""

from __future__ import annotations

import copy
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_hooks.core.identity import IdentityProvider
from agent_hooks.core.points import POINTS, InterceptionPoint
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from agent_hooks.core.verdict import ALLOW, Verdict
from agent_hooks.host import InterceptionBlocked
from tests.core.support import FORBIDDING, MEMBERS, REWRITABLE, context
from tests.host.support import COLOURS, EMITTERS, Async, Sync, emitted, escalator, finished

pytestmark = pytest.mark.parametrize("kind", EMITTERS)


def deny(reason: str) -> Any:
    return lambda _: Verdict.deny(reason=reason)


# -- configuration --


@pytest.mark.parametrize("name", ["timeout", "approval_timeout"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")], ids=repr)
def test_timeout_that_makes_no_sense_is_refused_by_name(kind: Any, name: str, value: Any) -> None:
    """§7: seconds > 0, or None; infinity is None's to say."""
    with pytest.raises(ValueError, match=name):
        kind(**{name: value})


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")], ids=repr)
def test_interceptors_timeout_that_makes_no_sense_is_refused(kind: Any, value: Any) -> None:
    """§7: whether the host says it or the interceptor."""
    with pytest.raises(ValueError, match="timeout"):
        kind().register(Sync(), timeout=value)
    own = Sync()
    own.timeout = value  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="timeout"):
        kind().register(own)


@pytest.mark.parametrize(
    ("configure", "error"),
    [
        (lambda kind: kind(identity_provider="sha256"), "identity_provider"),
        (lambda kind: kind(identity_provider=len), "identity_provider"),
        (lambda kind: kind().set_identity_provider("none"), "identity_provider"),
        (lambda kind: kind(resolver=object()), "is no resolver"),
        (lambda kind: kind(resolver=SimpleNamespace(resolve=5)), "is no resolver"),
        (lambda kind: kind().register(object()), "is no interceptor"),
        (lambda kind: kind().register(SimpleNamespace(intercept=5)), "is no interceptor"),
        (lambda kind: kind().register(Sync(), at=["pre_tool"]), "not an interception point"),
        (lambda kind: kind().register(Sync(), at="pre_tool_call"), "not an interception point"),
        (lambda kind: kind().register(Sync(), at=[None]), "not an interception point"),
        (lambda kind: kind().set_max_records(-1), "negative"),
        (lambda kind: kind(identity_provider=IdentityProvider("jcs-x", str)), "reserved"),
    ],
    ids=[
        "provider_unknown", "provider_bare", "provider_set", "resolver_none", "resolve_no_function",
        "interceptor_none", "intercept_no_function", "point_unknown", "point_no_list", "point_none",
        "buffer_negative", "provider_reserved",
    ],
)  # fmt: skip
def test_configuration_error_is_raised_at_once(kind: Any, configure: Any, error: str) -> None:
    """An emitter that stands is one that can emit."""
    with pytest.raises((TypeError, ValueError), match=error):
        configure(kind)


def test_class_is_no_interceptor(kind: Any) -> None:
    """The commonest mistake: the class in place of an object would deny everything."""
    with pytest.raises(TypeError, match="instance"):
        kind().register(Sync)


def test_refused_registration_leaves_the_emitter_as_it_was(kind: Any) -> None:
    """No half of it stays."""
    emitter = kind()
    emitter.register(Sync(), "first")
    with pytest.raises(ValueError, match="point"):
        emitter.register(Sync(), "second", at=["nowhere"])
    assert emitted(emitter, context()).interceptors_registered == 1


def test_configuration_returns_the_emitter_and_is_seen(kind: Any) -> None:
    """So that it can be chained, as in the SDK."""
    emitter = kind(mode=EnforcementMode.EVALUATE_ONLY)
    assert emitter.mode is EnforcementMode.EVALUATE_ONLY
    assert emitter.set_composition(CompositionConfig.run_all()) is emitter
    assert emitter.composition == CompositionConfig.run_all().resolved()
    assert emitter.set_identity_provider(None) is emitter
    assert emitter.set_approval_redactor(lambda raw: raw) is emitter
    assert emitter.set_record_sink(lambda _: None) is emitter
    assert emitter.set_max_records(5) is emitter
    assert emitter.register(Sync()) is emitter
    record = emitted(emitter, context())
    assert (record.input_identity, record.identity_provider) == (None, None)
    assert record.composition == CompositionConfig.run_all().resolved()


def test_later_configuration_counts_from_the_next_emission(kind: Any) -> None:
    """§7.1: fixed before dispatch."""
    emitter = kind()
    emitter.register(Sync())
    assert emitted(emitter, context()).proceeds
    emitter.register(Sync(deny("late")), at=["pre_tool_call"])
    assert emitted(emitter, context()).verdict.reason == "late"
    assert emitted(emitter, context("output")).proceeds
    emitter.set_composition(CompositionConfig.unanimous())
    record = emitted(emitter, context())
    assert record.verdict.reason == "host_error:composition_disagreement"


def test_interceptor_registered_while_an_emission_begins_is_asked_from_the_next_on(
    kind: Any,
) -> None:
    """§7.1: registration from another thread must not be lost to a plan under way."""
    emitter, guard = kind(), Sync(deny("guard"))
    emitter.register(Sync())
    registering = threading.Thread(target=emitter.register, args=(guard,))

    class Sly(CompositionConfig):
        def resolved(self) -> CompositionConfig:  # called while the plan is made
            if registering.ident is None:
                registering.start()
                registering.join(2)
            return CompositionConfig()

    emitter.set_composition(Sly())
    emitted(emitter, context())
    assert emitted(emitter, context()).verdict.reason == "guard"


# -- points --


@pytest.mark.parametrize("point", POINTS)
def test_interceptor_is_asked_at_its_points_only(kind: Any, point: str) -> None:
    """§7: a point that nobody judges denies."""
    emitter, judge = kind(), Sync()
    emitter.register(judge, "j", at=[InterceptionPoint(point)])
    for other in POINTS:
        record = emitted(emitter, context(other, session=other))
        asked = other == point
        assert record.interceptors_registered == asked
        assert record.verdict.reason == (None if asked else "host_error:no_interceptor")
    assert [seen["interception_point"] for seen in judge.seen] == [point]


def test_order_of_registration_is_the_order_of_the_records_indexes(kind: Any) -> None:
    """§7.4, §10.3: an index counts the interceptors of its point."""
    emitter = kind(composition=CompositionConfig.run_all())
    for name, points in (("a", None), ("b", ["output"]), ("c", ["pre_tool_call"]), ("d", None)):
        emitter.register(Sync(deny(name)) if name == "d" else Sync(), name, at=points)
    record = emitted(emitter, context())
    assert [(slot.index, slot.name) for slot in record.verdicts] == [(0, "a"), (1, "c"), (2, "d")]
    assert record.decided_by == 2


def test_same_interceptor_may_be_registered_twice(kind: Any) -> None:
    """Each registration is a slot of its own."""
    emitter, judge = kind(), Sync()
    emitter.register(judge, "one").register(judge, "two")
    assert len(emitted(emitter, context()).verdicts) == 2
    assert len(judge.seen) == 2


# -- what is judged, and what is written back --


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("point", POINTS)
def test_interceptor_sees_its_own_copy(kind: Any, point: str, colour: Any) -> None:
    """SEMANTICS (104): what it does with it, nobody sees."""

    def vandal(raw: Any) -> Verdict:
        raw["target"] = None
        raw.clear()
        return ALLOW

    emitter, after, raw = kind(), colour(), context(point)
    kept = copy.deepcopy(raw)
    emitter.register(colour(vandal)).register(after)
    assert emitted(emitter, raw).proceeds
    assert raw == kept
    assert after.seen == [kept]
    assert after.seen[0] is not raw


@pytest.mark.parametrize("point", REWRITABLE)
def test_transform_is_written_back_to_target_and_member(kind: Any, point: str) -> None:
    """§4.3: where the action will look, at every point that permits one; nothing else moves."""
    path = "$target[0].n" if point == "pre_model_call" else "$target.n"
    emitter, raw = kind(), context(point, extensions={"x": {"keep": 1.5e-7}})
    before = copy.deepcopy(raw)
    emitter.register(Sync(lambda _: Verdict.rewrite(path, {"new": [1]})))
    outcome = finished(emitter.emit(raw))
    member: Any = raw
    for step in MEMBERS[point][1]:
        member = member[step]
    new = copy.deepcopy(before["target"])
    (new[0] if point == "pre_model_call" else new)["n"] = {"new": [1]}
    assert raw["target"] == member == outcome.target == new
    holder: Any = before
    *way, last = MEMBERS[point][1]
    for step in way:
        holder = holder[step]
    holder[last] = before["target"] = new
    assert raw == before
    assert outcome.verdict.decision.value == "transform"
    assert outcome.record.enforced_identity != outcome.record.input_identity


@pytest.mark.parametrize("point", FORBIDDING)
def test_transform_at_a_point_that_forbids_it_denies_and_changes_nothing(
    kind: Any, point: str
) -> None:
    """§3, §11."""
    emitter, raw = kind(), context(point)
    kept = copy.deepcopy(raw)
    emitter.register(Sync(lambda _: Verdict.rewrite("$target.n", 1)))
    record = emitted(emitter, raw)
    assert record.verdict.reason == "host_error:transform_target_forbidden"
    assert raw == kept


def test_denied_emission_writes_nothing_back(kind: Any) -> None:
    """§6: a deny discards what was folded."""
    emitter, raw = kind(), context()
    kept = copy.deepcopy(raw)
    emitter.register(Sync(lambda _: Verdict.rewrite("$target.n", 9))).register(Sync(deny("no")))
    with pytest.raises(InterceptionBlocked) as raised:
        finished(emitter.emit(raw))
    assert raw == kept
    assert raised.value.result is emitter.results[0]
    assert str(raised.value) == "pre_tool_call blocked: deny (no)"


class ReadOnly(dict):  # type: ignore[type-arg]
    """A host's context that cannot be written to."""

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("read-only")


def test_write_back_that_fails_leaves_one_record_and_lets_nothing_through(kind: Any) -> None:
    """§10.3: every emission ends in exactly one record, whatever raised."""
    emitter, raw = kind(), ReadOnly(context())
    emitter.register(Sync(lambda _: Verdict.rewrite("$target.n", 9)))
    try:
        proceeds = finished(emitter.emit(raw)).target["n"] == 9
    except Exception:
        proceeds = True  # nothing goes on with the old target
    assert proceeds
    assert len(emitter.results) == 1


@pytest.mark.parametrize(
    "verdict",
    [Verdict.deny(reason="x"), Verdict.rewrite("$target.n", 9), Verdict.escalate()],
    ids=["deny", "transform", "liftable_deny"],
)
def test_evaluate_only_lets_everything_through_untouched(kind: Any, verdict: Verdict) -> None:
    """§8: recorded, not honoured."""
    emitter, raw = kind(mode=EnforcementMode.EVALUATE_ONLY), context()
    kept, target = copy.deepcopy(raw), raw["target"]
    emitter.register(Sync(lambda _: verdict))
    outcome = finished(emitter.emit(raw))
    assert raw == kept
    assert outcome.target is target
    assert outcome.record.verdict.decision == verdict.decision
    assert outcome.record.mode is EnforcementMode.EVALUATE_ONLY


@pytest.mark.parametrize("raw", [None, {}, [], {"interception_point": "input"}], ids=repr)
def test_evaluate_only_lets_through_what_is_no_context(kind: Any, raw: Any) -> None:
    """§8, SEMANTICS (101): the record says deny, the action proceeds."""
    emitter = kind(mode=EnforcementMode.EVALUATE_ONLY)
    emitter.register(Sync())
    outcome = finished(emitter.emit(raw))
    assert outcome.record.verdict.reason == "host_error:context_invalid"
    assert outcome.record.proceeds


@pytest.mark.parametrize("raw", [None, {}, [], "x", {"interception_point": 5}], ids=repr)
def test_what_is_no_context_is_denied_unseen_with_one_record(kind: Any, raw: Any) -> None:
    """§6.3: before any interceptor."""
    emitter, judge = kind(), Sync()
    emitter.register(judge)
    with pytest.raises(InterceptionBlocked):
        finished(emitter.emit(raw))
    assert [record.verdict.reason for record in emitter.results] == ["host_error:context_invalid"]
    assert judge.seen == []


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize(
    "returned",
    [None, True, 1, "allow", [], {}, {"decision": "maybe"}, object(), Verdict, {"decision": None}],
    ids=repr,
)
def test_what_is_no_verdict_denies(kind: Any, colour: Any, returned: Any) -> None:
    """§5, §6.3."""
    emitter = kind()
    emitter.register(colour(lambda _: returned))
    record = emitted(emitter, context())
    assert record.verdict.reason == "host_error:verdict_invalid"
    assert record.decided_by == 0


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("exc", [ValueError("canary"), KeyError("canary")], ids=repr)
def test_what_raises_denies_without_its_text(
    kind: Any, colour: Any, exc: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    """§6.3, STYLE 6: and the next emission is answered as if nothing had happened."""

    def raises(_: Any) -> Any:
        raise exc

    emitter = kind(timeout=3)
    emitter.register(colour(raises), "bad", at=["pre_tool_call"])
    emitter.register(colour(), "good", at=["output"])
    record = emitted(emitter, context())
    assert record.verdict.reason == "host_error:interceptor_failed"
    assert emitted(emitter, context("output")).proceeds
    assert len(emitter.results) == 2
    assert "canary" not in caplog.text + str(record)


_EXITING = """
import asyncio, sys
from agent_hooks import InterceptionEmitter, SyncInterceptionEmitter
from tests.core.support import context

class Exits:
    COLOUR intercept(self, raw):
        if raw["interception_point"] == "output":
            raise EXC("canary")
        return {"decision": "allow"}

def run(emitter, point):
    outcome = emitter.emit_unchecked(context(point))
    return asyncio.run(outcome) if asyncio.iscoroutine(outcome) else outcome

emitter = KIND(timeout=3)
emitter.register(Exits())
said = [run(emitter, point).verdict.reason for point in ("input", "output", "input", "input")]
print(said, len(emitter.results))
"""


@pytest.mark.parametrize("colour", ["def", "async def"])
@pytest.mark.parametrize("exc", ["SystemExit", "KeyboardInterrupt"])
def test_exit_in_an_interceptor_is_a_failure_of_its_slot_and_of_no_other(
    kind: Any, colour: str, exc: str
) -> None:
    """§6.3: not the end of the host, of its event loop, or of the worker that ran it."""
    program = _EXITING.replace("COLOUR", colour).replace("EXC", exc).replace("KIND", kind.__name__)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parent.parent.parent,
    )
    assert done.stdout == f"{[None, 'host_error:interceptor_failed', None, None]} 4\n"
    assert "canary" not in done.stderr


# -- approvals --


def approving(verdict: Any = ALLOW) -> Any:
    return lambda request: {
        "outcome": "approve",
        "context_identity": request.context_identity,
        "verdict": verdict,
    }


class SyncResolver:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    def resolve(self, request: Any) -> Any:
        self.asked.append(request)
        return self.answer(request)


class AsyncResolver(SyncResolver):
    async def resolve(self, request: Any) -> Any:
        self.asked.append(request)
        return self.answer(request)


class RemoteResolver:
    """One that answers through a callback, from another thread."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Any] = []

    def start_resolve(self, request: Any, timeout: float, done: Any) -> Any:
        self.asked.append((request, timeout))
        threading.Thread(target=lambda: done(self.answer(request))).start()
        return lambda _: None


@pytest.mark.parametrize("resolver", [SyncResolver, AsyncResolver, RemoteResolver])
@pytest.mark.parametrize(
    ("answer", "decision", "reason"),
    [
        (approving(), "allow", None),
        (approving(Verdict.rewrite("$target.n", 7)), "transform", None),
        (approving(None), "deny", "host_error:approval_resolver_failed"),
        (lambda _: None, "deny", "host_error:approval_resolver_failed"),
        (lambda _: True, "deny", "host_error:approval_resolver_failed"),
        (
            lambda _: {"outcome": "approve", "context_identity": "x", "verdict": ALLOW},
            "deny",
            "host_error:approval_identity_mismatch",
        ),
    ],
    ids=["approve", "rewrite", "no_verdict", "none", "true", "other_identity"],
)
def test_liftable_deny_is_lifted_by_a_valid_approval_only(
    kind: Any, resolver: Any, answer: Any, decision: str, reason: str | None
) -> None:
    """§9: sync, async or elsewhere."""
    resolves = resolver(answer)
    emitter, raw = kind(resolver=resolves, approval_timeout=5), context()
    emitter.register(Sync(escalator))
    record = emitted(emitter, raw)
    assert (record.verdict.decision.value, record.verdict.reason) == (decision, reason)
    assert record.resolved_by == ("rejection" if reason else "approval")
    assert len(resolves.asked) == 1
    assert raw["target"]["n"] == (7 if decision == "transform" else 0)


@pytest.mark.parametrize("resolver", [SyncResolver, AsyncResolver])
def test_resolver_that_raises_leaves_the_deny_standing(kind: Any, resolver: Any) -> None:
    """§9: a failed call is no approval."""

    def fail(_: Any) -> Any:
        raise RuntimeError("canary")

    emitter = kind(resolver=resolver(fail), approval_timeout=5)
    emitter.register(Sync(escalator))
    record = emitted(emitter, context())
    assert record.verdict.reason == "host_error:approval_resolver_failed"
    assert record.resolved_by == "rejection"


def test_resolver_sees_its_own_copy_redacted(kind: Any) -> None:
    """§9: the identity is that of what is shown; the record's is of the whole."""
    resolver = SyncResolver(approving())
    emitter, raw = kind(resolver=resolver, approval_timeout=5), context()

    def redact(shown: Any) -> Any:
        shown["tool_call"]["args"] = shown["target"] = {"n": "redacted"}
        return shown

    emitter.register(Sync(escalator)).set_approval_redactor(redact)
    kept = copy.deepcopy(raw)
    record = emitted(emitter, raw)
    [request] = resolver.asked
    assert request.context["target"] == {"n": "redacted"}
    assert request.context_identity != record.input_identity
    assert raw == kept
    assert record.proceeds


def test_no_resolver_leaves_the_deny_standing(kind: Any) -> None:
    """§9: and nobody resolved it."""
    emitter = kind()
    emitter.register(Async(escalator))
    record = emitted(emitter, context())
    assert (record.verdict.reason, record.resolved_by) == ("ask", None)


# -- tracing --


class Calls:
    """An interceptor that answers through a callback and keeps the call."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def start(self, call: Any, done: Any) -> Any:
        self.calls.append(call)
        done(ALLOW)
        return lambda _: None

    def intercept(self, _: Any) -> Any:
        raise AssertionError("start comes first")


@pytest.mark.parametrize(
    ("trace", "header"),
    [
        ({"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b7169203331"},
         "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ({"trace_id": "0af7651916cd43dd8448eb211c80319c"}, None),
        ({"trace_id": "0" * 32, "span_id": "b7ad6b7169203331"}, None),
        ({"trace_id": "0AF7651916CD43DD8448EB211C80319C", "span_id": "b7ad6b7169203331"}, None),
        ({"trace_id": "a" * 32, "span_id": "b" * 16 + "\r\nx: y"}, None),
        ({"trace_id": 5, "span_id": []}, None),
        ("00-a-b-01", None),
        (None, None),
    ],
    ids=["both", "one", "zero", "upper_case", "header_injection", "types", "text", "none"],
)  # fmt: skip
def test_traceparent_goes_with_the_call_where_it_is_well_formed(
    kind: Any, trace: Any, header: str | None
) -> None:
    """PROTOCOL Records as spans: the context's trace block, W3C."""
    emitter, calls = kind(timeout=3.5), Calls()
    emitter.register(calls)
    emitted(emitter, context(trace=trace))
    assert calls.calls[0].traceparent == header
    assert calls.calls[0].timeout == 3.5


def test_call_says_what_can_be_honoured(kind: Any) -> None:
    """PROTOCOL Services: mode and resolver; one id for every call of an emission."""
    for mode in EnforcementMode:
        emitter, one, two = kind(mode=mode, resolver=SyncResolver(approving())), Calls(), Calls()
        emitter.register(one).register(two)
        emitted(emitter, context())
        emitted(emitter, context())
        assert {call.mode for call in one.calls} == {mode}
        assert all(call.approval_available for call in one.calls)
        ids = [call.emission_id for call in one.calls]
        assert ids == [call.emission_id for call in two.calls]
        assert len(set(ids)) == 2
