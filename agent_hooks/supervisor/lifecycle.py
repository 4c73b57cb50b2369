"""The life of a launched plugin, as a table; and when it may start again."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from enum import Enum

import tenacity

from agent_hooks.supervisor.settings import Settings


class State(Enum):
    """Where a plugin stands."""

    STARTING = "starting"
    READY = "ready"
    SUSPECT = "suspect"
    DRAINING = "draining"
    STOPPED = "stopped"
    BACKOFF = "backoff"
    QUARANTINED = "quarantined"


class Event(Enum):
    """What can happen to it."""

    ANSWERED = "answered"  # Describe and Configure at first, any call or check later
    MISSED = "missed"  # a check or a call timed out
    LOST = "lost"  # it exited, or never became ready, or was given up
    RETRY = "retry"  # its back-off is over
    GIVE_UP = "give_up"  # too many restarts
    RESET = "reset"  # an operator's word
    STOP = "stop"  # the host is done with it
    GONE = "gone"  # its process is reaped


NEXT: dict[State, dict[Event, State]] = {
    State.STARTING: {
        Event.ANSWERED: State.READY,
        Event.LOST: State.BACKOFF,
        Event.STOP: State.DRAINING,
    },
    State.READY: {
        Event.ANSWERED: State.READY,
        Event.MISSED: State.SUSPECT,
        Event.LOST: State.BACKOFF,
        Event.STOP: State.DRAINING,
    },
    State.SUSPECT: {
        Event.ANSWERED: State.READY,
        Event.MISSED: State.SUSPECT,
        Event.LOST: State.BACKOFF,
        Event.STOP: State.DRAINING,
    },
    State.BACKOFF: {
        Event.RETRY: State.STARTING,
        Event.GIVE_UP: State.QUARANTINED,
        Event.STOP: State.DRAINING,
    },
    State.QUARANTINED: {Event.RESET: State.STARTING, Event.STOP: State.DRAINING},
    State.DRAINING: {Event.GONE: State.STOPPED},
    State.STOPPED: {},
}
"""State → event → next state. An event without an entry is a bug with a name."""


class LostError(Exception):
    """A life that ended without anybody asking; the text says why."""


class LifecycleError(RuntimeError):
    """An event that its state has no entry for."""


def step(state: State, event: Event) -> State:
    """The next state. Raises LifecycleError where the table has none."""
    try:
        return NEXT[state][event]
    except KeyError:
        raise LifecycleError(f"{event.value} in state {state.value}") from None


class Restarts:
    """Counts restarts in a window; too many mean quarantine."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._times: deque[float] = deque()

    def too_many(self) -> bool:
        """Count one restart now; whether it is one too many."""
        now = self._clock()
        self._times.append(now)
        while self._times[0] < now - self._settings.quarantine_window:
            self._times.popleft()
        return len(self._times) > self._settings.quarantine_restarts

    def clear(self) -> None:
        """Forget them: an operator's word."""
        self._times.clear()


def backoff(settings: Settings) -> Callable[[tenacity.RetryCallState], float]:
    """How long to wait before a restart: none, then doubling with jitter, bounded."""
    growing = tenacity.wait_exponential(multiplier=settings.backoff_first, max=settings.backoff_max)

    def wait(state: tenacity.RetryCallState) -> float:
        if state.attempt_number == 1:
            return 0.0
        state.attempt_number -= 1  # the first wait of the growing ones
        try:
            seconds = growing(state)
        finally:
            state.attempt_number += 1
        spread = settings.backoff_jitter
        return min(seconds * random.uniform(1 - spread, 1 + spread), settings.backoff_max)  # noqa: S311

    return wait
