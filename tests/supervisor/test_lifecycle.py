"""The life of a plugin as a table, and when it may start again (PROTOCOL: Lifecycle)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agent_hooks.supervisor import Settings
from agent_hooks.supervisor.lifecycle import (
    NEXT,
    Event,
    LifecycleError,
    Restarts,
    State,
    backoff,
    step,
)

S, E = State, Event
LIVING = (S.STARTING, S.READY, S.SUSPECT)
# The table once more, as PROTOCOL draws it: what may happen in each state, and where it leads.
DRAWN: dict[tuple[State, Event], State] = {
    (S.STARTING, E.ANSWERED): S.READY,
    (S.READY, E.ANSWERED): S.READY,
    (S.READY, E.MISSED): S.SUSPECT,
    (S.SUSPECT, E.MISSED): S.SUSPECT,
    (S.SUSPECT, E.ANSWERED): S.READY,
    **{(state, E.LOST): S.BACKOFF for state in LIVING},
    (S.BACKOFF, E.RETRY): S.STARTING,
    (S.BACKOFF, E.GIVE_UP): S.QUARANTINED,
    (S.QUARANTINED, E.RESET): S.STARTING,
    **{(state, E.STOP): S.DRAINING for state in (*LIVING, S.BACKOFF, S.QUARANTINED)},
    (S.DRAINING, E.GONE): S.STOPPED,
}


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("state", State)
def test_pair_is_in_the_table_or_an_error_that_names_both(state: State, event: Event) -> None:
    """An event with no entry is a bug with a name, and changes nothing."""
    table = {key: dict(row) for key, row in NEXT.items()}
    if (state, event) in DRAWN:
        assert step(state, event) is DRAWN[state, event]
    else:
        with pytest.raises(LifecycleError, match=f"{event.value} in state {state.value}"):
            step(state, event)
    assert table == NEXT


def test_every_state_can_be_reached_and_only_stopped_is_an_end() -> None:
    """No state is a trap, and from each one a stop leads to STOPPED."""
    reached, todo = set(), [State.STARTING]
    while todo:
        state = todo.pop()
        if state not in reached:
            reached.add(state)
            todo += NEXT[state].values()
    assert reached == set(State)
    assert [state for state in State if not NEXT[state]] == [State.STOPPED]
    for state in set(State) - {State.STOPPED, State.DRAINING}:
        assert step(step(state, Event.STOP), Event.GONE) is State.STOPPED


class Clock:
    """Seconds, moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_more_restarts_than_allowed_in_the_window_are_too_many() -> None:
    """PROTOCOL Lifecycle, quarantine: more than 5 in 60 s."""
    restarts = Restarts(Settings(), Clock())
    assert [restarts.too_many() for _ in range(7)] == [False] * 5 + [True] * 2


@pytest.mark.parametrize(
    ("gap", "many"), [(9.9, True), (12.0, True), (12.1, False), (600.0, False)]
)
def test_restarts_before_the_window_do_not_count(gap: float, many: bool) -> None:
    """PROTOCOL Lifecycle, quarantine: the window slides."""
    clock = Clock()
    restarts = Restarts(Settings(), clock)
    seen = []
    for _ in range(12):
        seen.append(restarts.too_many())
        clock.now += gap
    assert any(seen) == many


def test_operators_word_forgets_them() -> None:
    """PROTOCOL Lifecycle, quarantine."""
    restarts = Restarts(Settings(quarantine_restarts=1), Clock())
    assert [restarts.too_many(), restarts.too_many()] == [False, True]
    restarts.clear()
    assert not restarts.too_many()


def _waits(settings: Settings, count: int) -> list[float]:
    wait: Any = backoff(settings)
    return [wait(SimpleNamespace(attempt_number=number)) for number in range(1, count + 1)]


def test_back_off_is_none_then_doubles_then_stays() -> None:
    """PROTOCOL Lifecycle, restart: at once, then 100 ms doubled, at most 30 s."""
    waits = _waits(Settings(backoff_jitter=0), 12)
    assert waits == pytest.approx([0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30])


def test_jitter_stays_within_its_share_and_below_the_maximum() -> None:
    """PROTOCOL Lifecycle, restart: ±20 %."""
    plain = _waits(Settings(backoff_jitter=0), 12)
    seen: set[float] = set()
    for _ in range(200):
        waits = _waits(Settings(), 12)
        assert waits[0] == 0
        for wait, middle in zip(waits, plain, strict=True):
            assert middle * 0.8 - 1e-9 <= wait <= min(middle * 1.2, 30) + 1e-9
        seen.add(waits[3])
    assert len(seen) > 100


def test_state_of_the_retry_is_left_as_it_was() -> None:
    """The wait only looks at it."""
    state = SimpleNamespace(attempt_number=4)
    wait: Any = backoff(Settings())
    wait(state)
    assert state.attempt_number == 4


@pytest.mark.parametrize("value", [-1, -0.001, float("nan")])
@pytest.mark.parametrize("name", ["start_timeout", "waiting", "backoff_jitter", "term_grace"])
def test_setting_that_makes_no_sense_is_refused_by_name(name: str, value: float) -> None:
    """Durations in seconds and counts, none of them negative."""
    with pytest.raises(ValueError, match=name):
        Settings(**{name: value})  # type: ignore[arg-type]


def test_settings_are_the_protocols() -> None:
    """PROTOCOL Lifecycle, the table of values."""
    told = Settings()
    assert (told.start_timeout, told.configure_timeout) == (10, 5)
    assert (told.health_interval, told.health_timeout, told.suspect_interval) == (5, 1, 1)
    assert told.circuit_timeouts == 5
    assert (told.backoff_first, told.backoff_max, told.backoff_jitter) == (0.1, 30, 0.2)
    assert (told.reset_after, told.quarantine_restarts, told.quarantine_window) == (60, 5, 60)
    assert (told.concurrency, told.waiting) == (16, 64)
    assert (told.shutdown_grace, told.term_grace) == (5, 2)
