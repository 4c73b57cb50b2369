"""One emission under way: its effects as questions to interceptors and resolver."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from agent_hooks.core.call import Call, Cancel, Done
from agent_hooks.core.context import Snapshot
from agent_hooks.core.effects import Consult, Effect, Failed, Invoke, InvokeAll, Rules
from agent_hooks.core.reasons import HostError
from agent_hooks.core.record import InterceptionRecord
from agent_hooks.host.drivers import Question
from agent_hooks.host.starters import Start, StartResolve

_log = logging.getLogger("agent_hooks.host")

_FOREVER: Final = 86400.0


class Observation(Protocol):
    """What a tracer keeps of one emission while it runs."""

    def calling(self, index: int, name: str | None, remote: bool) -> str | None:
        """A call begins; returns its traceparent."""

    def called(self, index: int, reply: object) -> None:
        """A call is over."""

    def end(self, record: InterceptionRecord) -> None:
        """The emission is over."""


class Observer(Protocol):
    """A tracer (see `agent_hooks.telemetry`)."""

    def begin(self, context: object) -> Observation | None:
        """An emission begins."""


def observe(observer: Observer, context: object) -> Observation | None:
    """Begin an observation that can fail without harm (§10.3: a record comes first)."""
    try:
        observation = observer.begin(context)
    except Exception as exc:  # noqa: BLE001 - a tracer's bug costs spans, nothing else
        _tracer_failed(exc)
        return None
    return None if observation is None else _Contained(observation)


class _Contained:
    """An observation whose failures are logged."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation

    def calling(self, index: int, name: str | None, remote: bool) -> str | None:
        try:
            return self._observation.calling(index, name, remote)
        except Exception as exc:  # noqa: BLE001 - as above
            _tracer_failed(exc)
            return None

    def called(self, index: int, reply: object) -> None:
        try:
            self._observation.called(index, reply)
        except Exception as exc:  # noqa: BLE001 - as above
            _tracer_failed(exc)

    def end(self, record: InterceptionRecord) -> None:
        try:
            self._observation.end(record)
        except Exception as exc:  # noqa: BLE001 - as above
            _tracer_failed(exc)


def _tracer_failed(exc: Exception) -> None:
    _log.error("the tracer raised %s: spans are lost", type(exc).__name__)


@dataclass(frozen=True, slots=True)
class Registered:
    """One registration: how to ask, for how long, and where."""

    start: Start
    ask: Callable[[Call], object] | None
    name: str | None
    timeout: float | None
    points: frozenset[str]
    remote: bool


class Running:
    """Turns the effects of one emission into questions."""

    __slots__ = ("_asked", "_id", "_resolver", "_rules", "observation")

    def __init__(
        self,
        rules: Rules,
        asked: tuple[Registered, ...],
        resolver: tuple[StartResolve, float | None] | None,
        observation: Observation | None,
    ) -> None:
        self._rules = rules
        self._asked = asked
        self._resolver = resolver
        self._id = f"{random.getrandbits(128):032x}"
        self.observation = observation

    def questions(self, effect: Effect) -> list[Question]:
        """What to ask for an effect, in registration order."""
        match effect:
            case Invoke():
                return [self._question(effect.index, effect)]
            case InvokeAll():
                return [self._question(index, effect) for index in range(effect.count)]
            case Consult():
                return [self._consultation(effect)]

    def _question(self, index: int, effect: Invoke | InvokeAll) -> Question:
        asked = self._asked[index]
        asking = _Asking(self, index, asked, effect.snapshot)
        ask = asking.ask if asked.ask is not None else None
        return Question(asking.start, asked.timeout, HostError.INTERCEPTOR_TIMEOUT, ask)

    def call(self, index: int, asked: Registered, snapshot: Snapshot) -> Call:
        """One interceptor's call, traced if anybody traces."""
        traceparent = _traceparent(snapshot.context.get("trace"))
        if self.observation is not None:
            traced = self.observation.calling(index, asked.name, asked.remote)
            traceparent = traced or traceparent
        return Call(
            snapshot,
            self._id,
            self._rules.mode,
            self._rules.resolver,
            asked.timeout if asked.timeout is not None else _FOREVER,
            traceparent,
        )

    def _consultation(self, effect: Consult) -> Question:
        assert self._resolver is not None  # the core consults only where one is registered
        resolver, timeout = self._resolver

        def start(done: Done) -> Cancel:
            try:
                return resolver(effect.request, timeout if timeout is not None else _FOREVER, done)
            except Exception as exc:  # noqa: BLE001 - §9: a failure leaves the deny standing
                done(Failed(HostError.APPROVAL_RESOLVER_FAILED, f"raised {type(exc).__name__}"))
                return _nothing

        return Question(start, timeout, HostError.APPROVAL_RESOLVER_FAILED)


class _Asking:
    """One interceptor about to be asked; its failures are values in its slot (§6.3)."""

    __slots__ = ("_asked", "_index", "_running", "_snapshot")

    def __init__(self, running: Running, index: int, asked: Registered, snapshot: Snapshot) -> None:
        self._running = running
        self._index = index
        self._asked = asked
        self._snapshot = snapshot

    def start(self, done: Done) -> Cancel:
        observed = self._observed(done)
        try:
            return self._observed_cancel(self._asked.start(self._call(), observed))
        except Exception as exc:  # noqa: BLE001 - §6.3
            observed(Failed(HostError.INTERCEPTOR_FAILED, f"raised {type(exc).__name__}"))
            return _nothing

    def ask(self) -> object:
        assert self._asked.ask is not None
        try:
            reply = self._asked.ask(self._call())
        except Exception as exc:  # noqa: BLE001 - §6.3
            reply = Failed(HostError.INTERCEPTOR_FAILED, f"raised {type(exc).__name__}")
        if self._running.observation is not None:
            self._running.observation.called(self._index, reply)
        return reply

    def _call(self) -> Call:
        return self._running.call(self._index, self._asked, self._snapshot)

    def _observed(self, done: Done) -> Done:
        observation, index = self._running.observation, self._index
        if observation is None:
            return done

        def observed(reply: object) -> None:
            observation.called(index, reply)
            done(reply)

        return observed

    def _observed_cancel(self, cancel: Cancel) -> Cancel:
        observation, index = self._running.observation, self._index
        if observation is None:
            return cancel

        def observed(timed_out: bool) -> None:
            if timed_out:  # before the interceptor says that it was cancelled
                observation.called(index, Failed(HostError.INTERCEPTOR_TIMEOUT))
            cancel(timed_out)

        return observed


def _nothing(_: bool) -> None:
    pass


def _traceparent(trace: object) -> str | None:
    """The W3C header of a context's trace block, where both ids are well-formed."""
    if type(trace) is not dict:
        return None
    trace_id, span_id = trace.get("trace_id"), trace.get("span_id")
    if _hex(trace_id, 32) and _hex(span_id, 16):
        return f"00-{trace_id}-{span_id}-01"
    return None


def _hex(text: object, length: int) -> bool:
    return (
        type(text) is str
        and len(text) == length
        and set(text) <= set("0123456789abcdef")
        and text.strip("0") != ""
    )
