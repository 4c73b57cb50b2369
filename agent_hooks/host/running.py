"""One emission under way: its effects as questions to interceptors and resolver."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from agent_hooks.core.approval import ApprovalRequest
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

    __slots__ = ("_id", "_resolver", "asked", "observation", "rules")

    def __init__(
        self,
        rules: Rules,
        asked: tuple[Registered, ...],
        resolver: tuple[StartResolve, float | None] | None,
        observation: Observation | None,
    ) -> None:
        self.rules = rules
        self.asked = asked
        self.observation = observation
        self._resolver = resolver
        self._id: str | None = None

    @property
    def id(self) -> str:
        """The same for every call of the emission."""
        if self._id is None:
            self._id = f"{random.getrandbits(128):032x}"
        return self._id

    def questions(self, effect: Effect) -> Sequence[Question]:
        """What to ask for an effect, in registration order."""
        match effect:
            case Invoke():
                return [_Asking(self, effect.index, effect.snapshot)]
            case InvokeAll():
                return [_Asking(self, index, effect.snapshot) for index in range(effect.count)]
            case Consult():
                assert self._resolver is not None  # the core consults only where there is one
                return [_Consulting(effect.request, *self._resolver)]


class _Consulting:
    """The resolver about to be asked; its failure leaves the deny standing (§9)."""

    silence = HostError.APPROVAL_RESOLVER_FAILED
    ask = None

    def __init__(
        self, request: ApprovalRequest, resolver: StartResolve, timeout: float | None
    ) -> None:
        self.timeout = timeout
        self._request = request
        self._resolver = resolver

    def start(self, done: Done) -> Cancel:
        timeout = self.timeout if self.timeout is not None else _FOREVER
        try:
            return self._resolver(self._request, timeout, done)
        except Exception as exc:  # noqa: BLE001 - §9
            done(Failed(self.silence, f"raised {type(exc).__name__}"))
            return _nothing


class _Asking:
    """One interceptor about to be asked; its failures are values in its slot (§6.3)."""

    __slots__ = ("_asked", "_index", "_running", "_traced", "snapshot")

    silence = HostError.INTERCEPTOR_TIMEOUT

    def __init__(self, running: Running, index: int, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._running = running
        self._index = index
        self._asked = running.asked[index]
        self._traced: str | None = None

    @property
    def timeout(self) -> float | None:
        return self._asked.timeout

    @property
    def ask(self) -> Callable[[], object] | None:
        return None if self._asked.ask is None else self._ask

    def start(self, done: Done) -> Cancel:
        observation = self._running.observation
        if observation is not None:
            self._begin(observation)
            done = self._observed(observation, done)
        try:
            cancel = self._asked.start(self, done)
        except Exception as exc:  # noqa: BLE001 - §6.3
            done(Failed(HostError.INTERCEPTOR_FAILED, f"raised {type(exc).__name__}"))
            return _nothing
        return cancel if observation is None else self._observed_cancel(observation, cancel)

    def _ask(self) -> object:
        assert self._asked.ask is not None
        observation = self._running.observation
        if observation is not None:
            self._begin(observation)
        try:
            reply = self._asked.ask(self.call())
        except Exception as exc:  # noqa: BLE001 - §6.3
            reply = Failed(HostError.INTERCEPTOR_FAILED, f"raised {type(exc).__name__}")
        if observation is not None:
            observation.called(self._index, reply)
        return reply

    def call(self) -> Call:
        """The call for an interceptor that takes one; plain functions take a context only."""
        rules = self._running.rules
        return Call(
            self.snapshot,
            self._running.id,
            rules.mode,
            rules.resolver,
            self.timeout if self.timeout is not None else _FOREVER,
            self._traced or _traceparent(self.snapshot.context.get("trace")),
        )

    def _begin(self, observation: Observation) -> None:
        asked = self._asked
        self._traced = observation.calling(self._index, asked.name, asked.remote)

    def _observed(self, observation: Observation, done: Done) -> Done:
        def observed(reply: object) -> None:
            observation.called(self._index, reply)
            done(reply)

        return observed

    def _observed_cancel(self, observation: Observation, cancel: Cancel) -> Cancel:
        def observed(timed_out: bool) -> None:
            if timed_out:  # before the interceptor says that it was cancelled
                observation.called(self._index, Failed(HostError.INTERCEPTOR_TIMEOUT))
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
