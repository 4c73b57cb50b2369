"""Order within a session (§3.1, §6.1a, §12.2)."""

from __future__ import annotations

from typing import Any

import pytest

from agent_hooks.core.context import Bounds, check_context
from agent_hooks.core.effects import Rules
from agent_hooks.core.identity import IdentityProvider
from agent_hooks.core.profile import EnforcementMode
from agent_hooks.core.session import Sessions
from tests.core.support import POINTS, SPEC, Run, approve, context, drive, run

ALLOW = {"decision": "allow"}
DENY = {"decision": "deny", "reason": "no"}
ASK = {"decision": "deny", "approval": {}}
INVALID = "host_error:context_invalid"

Step = tuple[str, int] | tuple[str, int, str]


def raw_of(step: Step, session: str = "s-1") -> Any:
    """Point, sequence, and the id that pairs a call."""
    point, sequence, *pair = step
    raw = context(point, session=session, sequence=sequence)
    if pair and "tool_call" in raw:
        raw["tool_call"]["id"] = pair[0]
    elif pair:
        raw["request_id"] = pair[0]
    return raw


def emit(sessions: Sessions, step: Step, reply: object = ALLOW, **rules: Any) -> Run:
    return run(raw_of(step, rules.pop("session", "s-1")), reply, sessions=sessions, **rules)


def refused(done: Run) -> bool:
    """Whether the emission was refused before anybody was asked."""
    assert (done.reason == INVALID) == (not done.invoked)
    return not done.invoked


LEGAL: list[Step] = [
    ("agent_startup", 0),
    ("input", 1),
    ("pre_model_call", 2, "r1"),
    ("post_model_call", 3, "r1"),
    ("pre_tool_call", 4, "a"),
    ("pre_tool_call", 5, "b"),
    ("post_tool_call", 6, "b"),
    ("post_tool_call", 7, "a"),
    ("output", 8),
    ("input", 9),
    ("output", 10),
    ("agent_shutdown", 11),
]


@pytest.mark.parametrize("strict", [False, True])
def test_a_session_in_order_passes(strict: bool) -> None:
    """§3.1"""
    sessions = Sessions(strict=strict)
    assert not any(refused(emit(sessions, step)) for step in LEGAL)


@pytest.mark.parametrize(
    ("before", "step", "words"),
    [
        pytest.param([], ("input", 0), "agent_startup comes first", id="no-startup"),
        pytest.param([], ("agent_shutdown", 0), "agent_startup comes first", id="only-shutdown"),
        pytest.param(LEGAL[:1], ("agent_startup", 1), "and once", id="two-startups"),
        pytest.param(LEGAL, ("output", 12), "is shut down", id="after-shutdown"),
        pytest.param(LEGAL, ("agent_shutdown", 12), "is shut down", id="two-shutdowns"),
        pytest.param(LEGAL, ("agent_startup", 12), "is shut down", id="startup-after-shutdown"),
        pytest.param(LEGAL[:2], ("output", 1), "does not grow", id="same-sequence"),
        pytest.param(LEGAL[:2], ("output", 0), "does not grow", id="older-sequence"),
        pytest.param(LEGAL[:2], ("post_tool_call", 2), "no permitted pre_", id="post-tool"),
        pytest.param(LEGAL[:2], ("post_model_call", 2), "no permitted pre_", id="post-model"),
        pytest.param(LEGAL[:5], ("post_tool_call", 5, "b"), "no permitted", id="other-call"),
        pytest.param(LEGAL[:3], ("post_model_call", 3, "r2"), "no permitted", id="other-request"),
        pytest.param(LEGAL[:3], ("post_tool_call", 3, "r1"), "no permitted", id="other-kind"),
        pytest.param(LEGAL[:8], ("post_tool_call", 8, "a"), "no permitted", id="two-posts"),
    ],
)
def test_a_strict_guard_refuses_what_breaks_the_order(
    before: list[Step], step: Step, words: str
) -> None:
    """§3.1, §4.1; a bare emitter lets it pass"""
    strict, bare = Sessions(strict=True), Sessions()
    for earlier in before:
        emit(strict, earlier)
        emit(bare, earlier)
    done = emit(strict, step)
    assert refused(done)
    assert words in done.wire["verdict"]["message"]
    assert not refused(emit(bare, step))


def test_a_refused_emission_leaves_the_session_as_it_was() -> None:
    """An illegal move changes nothing."""
    sessions = Sessions(strict=True)
    for step in LEGAL[:4]:
        emit(sessions, step)
    for illegal in (("agent_startup", 4), ("post_tool_call", 4, "a"), ("output", 3)):
        assert refused(emit(sessions, illegal))  # type: ignore[arg-type]
    assert not any(refused(emit(sessions, step)) for step in LEGAL[4:])


@pytest.mark.parametrize(
    ("pre", "post"), [("pre_tool_call", "post_tool_call"), ("pre_model_call", "post_model_call")]
)
def test_no_post_point_follows_a_denied_pre_point(pre: str, post: str) -> None:
    """§6.2"""
    sessions = Sessions(strict=True)
    emit(sessions, LEGAL[0])
    emit(sessions, (pre, 1, "x"), DENY)
    assert refused(emit(sessions, (post, 2, "x")))
    emit(sessions, (pre, 3, "x"), DENY, mode=EnforcementMode.EVALUATE_ONLY)
    assert not refused(emit(sessions, (post, 4, "x"))), "§8: it proceeded all the same"


def test_calls_under_one_id_pair_one_by_one() -> None:
    """§3.1"""
    sessions = Sessions(strict=True)
    for step in (LEGAL[0], ("pre_tool_call", 1, "a"), ("pre_tool_call", 2, "a")):
        assert not refused(emit(sessions, step))  # type: ignore[arg-type]
    assert not refused(emit(sessions, ("post_tool_call", 3, "a")))
    assert not refused(emit(sessions, ("post_tool_call", 4, "a")))
    assert refused(emit(sessions, ("post_tool_call", 5, "a")))


@pytest.mark.parametrize("request_id", [None, 5])
def test_model_calls_without_a_request_id_pair_among_themselves(request_id: Any) -> None:
    """§4.5"""
    sessions = Sessions(strict=True)
    for sequence, point in enumerate(("agent_startup", "pre_model_call", "post_model_call")):
        raw = context(point, sequence=sequence, request_id=request_id)
        assert not refused(run(raw, ALLOW, sessions=sessions))


def test_concurrent_emissions_may_arrive_out_of_order_but_never_twice() -> None:
    """§12.2"""
    sessions = Sessions(strict=True)
    for sequence in (0, 5, 3, 4, 9, 1, 2):
        step = ("input" if sequence else "agent_startup", sequence)
        assert not refused(emit(sessions, step))
    for sequence in (0, 1, 2, 3, 4, 5, 9):
        assert refused(emit(sessions, ("input", sequence)))
    assert not refused(emit(sessions, ("input", 6)))


def meanwhile(sessions: Sessions, step: Step, other: Step) -> Run:
    """Emit `other` while the interceptor of `step` is still thinking; what became of it."""
    inner: list[Run] = []

    def reply(*_: Any) -> Any:
        inner.append(emit(sessions, other))
        return ALLOW

    outer = drive(raw_of(step), Rules(names=(None,)), reply, sessions=sessions)
    assert outer.emitted.record.proceeds
    return inner[0]


@pytest.mark.parametrize(
    ("step", "other"),
    [
        pytest.param(("output", 3), ("output", 3), id="one-number"),
        pytest.param(("post_tool_call", 3, "a"), ("post_tool_call", 4, "a"), id="one-call"),
        pytest.param(("agent_shutdown", 3), ("agent_shutdown", 4), id="two-shutdowns"),
        pytest.param(("agent_shutdown", 3), ("input", 4), id="after-shutdown-began"),
    ],
)
def test_of_two_emissions_at_once_only_one_is_in_order(step: Step, other: Step) -> None:
    """§3.1, §12.2: what can be had once is taken when the emission begins"""
    sessions = Sessions(strict=True)
    for earlier in (LEGAL[0], ("input", 1), ("pre_tool_call", 2, "a")):
        emit(sessions, earlier)  # type: ignore[arg-type]
    assert refused(meanwhile(sessions, step, other))


@pytest.mark.parametrize("other", [("input", 1), ("agent_startup", 1)], ids=["input", "startup"])
def test_nothing_begins_before_the_startup_is_decided(other: Step) -> None:
    """§3.1, §6.1a: it may yet be denied"""
    assert refused(meanwhile(Sessions(strict=True), LEGAL[0], other))


def test_emissions_of_different_calls_may_interleave() -> None:
    """§12.2"""
    sessions = Sessions(strict=True)
    emit(sessions, LEGAL[0])
    assert not refused(meanwhile(sessions, ("pre_tool_call", 1, "a"), ("pre_tool_call", 2, "b")))
    assert not refused(meanwhile(sessions, ("post_tool_call", 3, "a"), ("post_tool_call", 4, "b")))


def test_a_session_with_gaps_stays_bounded() -> None:
    """A host that skips numbers cannot make the guard grow without end."""
    sessions = Sessions(strict=True)
    for index in range(0, 6_000, 2):
        point = "input" if index else "agent_startup"
        snapshot = check_context(context(point, sequence=index + 10), Bounds(), SPEC)
        assert sessions.enter(snapshot) is None
        sessions.leave(snapshot, True)
    (state,) = sessions._sessions.values()
    assert len(state.seen) <= 1024
    assert refused(emit(sessions, ("input", 11))), "older than anything remembered"
    assert refused(emit(sessions, ("input", 6_008)))
    assert not refused(emit(sessions, ("input", 6_009)))


def test_refused_emissions_leave_nothing_behind() -> None:
    """Sessions that never began cannot make the guard grow without end."""
    sessions = Sessions(strict=True)
    assert refused(emit(sessions, ("input", 0)))
    assert not sessions._sessions


@pytest.mark.parametrize("strict", [False, True])
def test_of_closed_sessions_the_oldest_are_forgotten(
    strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard stays bounded, and an open session is never forgotten for a closed one."""
    monkeypatch.setattr("agent_hooks.core.session.MAX_CLOSED", 3)
    sessions = Sessions(strict=strict)
    for number in range(6):
        emit(sessions, ("agent_startup", 0), DENY, session=f"s-{number}")
        if number:
            emit(sessions, ("agent_shutdown", 1), session=f"s-{number}")
    assert set(sessions._sessions) == {"s-0", "s-4", "s-5"}
    assert refused(emit(sessions, ("input", 2), session="s-0"))


def test_sessions_are_apart() -> None:
    """§4.1"""
    sessions = Sessions(strict=True)
    emit(sessions, LEGAL[0], DENY)
    assert not refused(emit(sessions, LEGAL[0], session="s-2"))
    assert not refused(emit(sessions, LEGAL[1], session="s-2"))
    assert refused(emit(sessions, LEGAL[1]))


# --- a denied startup ---


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("point", [p for p in POINTS if p != "agent_shutdown"])
def test_a_denied_startup_denies_every_later_point_but_shutdown(point: str, strict: bool) -> None:
    """§6.1a; vector 074"""
    sessions = Sessions(strict=strict)
    assert not refused(emit(sessions, ("agent_startup", 0), DENY))
    done = emit(sessions, (point, 1))
    assert refused(done)
    assert "startup was denied" in done.wire["verdict"]["message"]
    assert not refused(emit(sessions, ("agent_shutdown", 2)))


INVALID_STARTUPS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("integer", {"target": {"n": 2**53}}, {}),
    ("provider", {}, {"provider": IdentityProvider("faulty", lambda _: None)}),  # type: ignore[arg-type, return-value]
    ("envelope", {"agent": {"id": "agent-1"}}, {}),
]


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("changed", "rules"),
    [row[1:] for row in INVALID_STARTUPS],
    ids=[r[0] for r in INVALID_STARTUPS],
)
def test_a_startup_denied_before_dispatch_binds_like_any_other(
    changed: Any, rules: Any, strict: bool
) -> None:
    """§6.1a: a combined deny, whatever it came from; the trail can still be closed"""
    sessions = Sessions(strict=strict)
    startup = {**context("agent_startup"), **changed}
    assert refused(run(startup, ALLOW, sessions=sessions, **rules))
    assert refused(emit(sessions, ("input", 1)))
    assert not refused(emit(sessions, ("agent_shutdown", 2)))


@pytest.mark.parametrize("strict", [False, True])
def test_a_denied_session_stays_denied_after_its_shutdown(strict: bool) -> None:
    """§6.1a: nothing may be emitted afterwards"""
    sessions = Sessions(strict=strict)
    emit(sessions, ("agent_startup", 0), DENY)
    emit(sessions, ("agent_shutdown", 1))
    assert refused(emit(sessions, ("input", 2)))


@pytest.mark.parametrize("strict", [False, True])
def test_a_startup_without_any_interceptor_is_denied_too(strict: bool) -> None:
    """§7, §6.1a"""
    sessions = Sessions(strict=strict)
    run(context("agent_startup"), sessions=sessions)
    assert refused(emit(sessions, ("input", 1)))


@pytest.mark.parametrize(
    ("reply", "rules"),
    [
        pytest.param(DENY, {"mode": EnforcementMode.EVALUATE_ONLY}, id="evaluate_only"),
        pytest.param(ASK, {"answer": approve(ALLOW)}, id="lifted"),
        pytest.param(ALLOW, {}, id="allowed"),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_a_startup_that_proceeds_binds_nothing(reply: Any, rules: Any, strict: bool) -> None:
    """§6.1a, §8, §9"""
    sessions = Sessions(strict=strict)
    emit(sessions, ("agent_startup", 0), reply, **rules)
    assert not refused(emit(sessions, ("input", 1)))


def test_a_deny_at_shutdown_binds_nothing_and_consults_nobody() -> None:
    """§6.1a"""
    sessions = Sessions()
    done = emit(sessions, ("agent_shutdown", 0), ASK, answer=approve(ALLOW))
    assert not done.asked
    assert not done.emitted.record.proceeds
    assert not refused(emit(sessions, ("agent_startup", 1)))


def test_a_bare_guard_keeps_nothing_of_sessions_that_were_not_denied() -> None:
    sessions = Sessions()
    for step in LEGAL[:-1]:
        emit(sessions, step)
    assert not sessions._sessions


class Lock:
    """Counts how often it was taken, and that it was never taken twice at once."""

    def __init__(self) -> None:
        self.taken = 0
        self.held = False

    def __enter__(self) -> None:
        assert not self.held
        self.held = True
        self.taken += 1

    def __exit__(self, *_: object) -> None:
        self.held = False


def test_every_access_takes_the_lock() -> None:
    """§12.2: the host injects one where it has threads"""
    lock = Lock()
    sessions = Sessions(strict=True, lock=lock)
    emit(sessions, LEGAL[0])
    assert lock.taken == 2, "when it begins and when it ends"
    emit(sessions, ("agent_startup", 0), DENY, session="s-2")
    emit(sessions, ("input", 1), session="s-2")
    assert not lock.held
