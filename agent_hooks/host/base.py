"""What the two emitters share: configuration, records, everything but the driver."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, Protocol

from agent_hooks.core.approval import ApprovalResolver
from agent_hooks.core.call import Askable
from agent_hooks.core.context import AgentContext, Bounds
from agent_hooks.core.effects import Rules
from agent_hooks.core.emission import Emission, Emitted, emission, host_failure, refused
from agent_hooks.core.identity import JCS_SHA256, IdentityProvider, check_provider
from agent_hooks.core.points import POINTS, InterceptionPoint
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from agent_hooks.core.record import InterceptionRecord
from agent_hooks.core.session import Sessions
from agent_hooks.host.running import Observer, Registered, Running, observe
from agent_hooks.host.starters import resolve_starter, starter

_log = logging.getLogger("agent_hooks.host")

DEFAULT_TIMEOUT: Final = 5.0
"""Seconds an interceptor has (§7)."""
DEFAULT_APPROVAL_TIMEOUT: Final = 300.0
"""Seconds a resolver, usually a person, has (§9)."""
DEFAULT_MAX_RECORDS: Final = 10_000


class Interceptor(Protocol):
    """What can be registered: `intercept(context)`, sync or async, here or elsewhere."""

    def intercept(self, context: AgentContext) -> Any:
        """A Verdict, or its JSON form."""
        ...


class BaseEmitter:
    """What the two emitters share: everything but the driver."""

    _tasks: ClassVar[bool]
    """Whether coroutine functions run on the caller's loop."""

    def __init__(
        self,
        *,
        mode: EnforcementMode = EnforcementMode.ENFORCE,
        resolver: ApprovalResolver | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        composition: CompositionConfig | None = None,
        identity_provider: str | IdentityProvider | None = JCS_SHA256,
        approval_timeout: float | None = DEFAULT_APPROVAL_TIMEOUT,
        bounds: Bounds | None = None,
        strict_order: bool = False,
        observer: Observer | None = None,
    ) -> None:
        """
        Args:
            mode: whether verdicts are honoured (§8).
            resolver: lifts liftable denies (§9); None leaves them standing.
            timeout: seconds for an interceptor that brings none of its own;
                None waits for ever.
            composition: profile and knobs (§7.2).
            identity_provider: §10.1.
            approval_timeout: seconds for the resolver.
            bounds: §12.3.
            strict_order: refuse emissions that break §3.1's order.
            observer: a tracer.
        """
        self._mode = mode
        self._timeout = _positive(timeout, "timeout")
        self._approval_timeout = _positive(approval_timeout, "approval_timeout")
        self._composition = composition or CompositionConfig()
        self._provider = check_provider(identity_provider)
        self._resolver = (
            resolve_starter(resolver, tasks=self._tasks) if resolver is not None else None
        )
        self._redactor: Callable[[AgentContext], AgentContext] | None = None
        self._bounds = bounds or Bounds()
        self._sessions = Sessions(strict=strict_order, lock=threading.Lock())
        self._observer = observer
        self._registered: tuple[Registered, ...] = ()
        self._plans: dict[object, tuple[Rules, tuple[Registered, ...]]] = {}
        self._sink: Callable[[InterceptionRecord], None] | None = None
        self._records: deque[InterceptionRecord] = deque(maxlen=DEFAULT_MAX_RECORDS)
        self._dropped = 0

    # -- configuration --

    @property
    def mode(self) -> EnforcementMode:
        """The mode in effect."""
        return self._mode

    @property
    def composition(self) -> CompositionConfig:
        """The profile and knobs in effect, defaults filled in."""
        return self._composition.resolved()

    def register(
        self,
        interceptor: Interceptor | object,
        name: str | None = None,
        at: Iterable[InterceptionPoint | str] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Add an interceptor; the order of registration is the order of §7.4.

        Args:
            name: payload-free identifier in records.
            at: the points it judges; None takes the interceptor's own `points`
                where it is remote, else all. A point that nobody judges denies
                (§7); see `AllowAll`.
            timeout: seconds; None takes the interceptor's own, else the emitter's.

        Returns:
            The emitter.

        Raises:
            TypeError: no `intercept`.
            ValueError: `at` names something that is no point.
        """
        remote = getattr(interceptor, "is_remote", False)
        if at is None:
            at = getattr(interceptor, "points", None) if remote else None
        points = frozenset(POINTS if at is None else map(_point, at))
        own = getattr(interceptor, "timeout", None)
        seconds = timeout if timeout is not None else own if own is not None else self._timeout
        added = Registered(
            starter(interceptor, name, tasks=self._tasks),
            interceptor.ask if isinstance(interceptor, Askable) else None,
            name,
            _positive(seconds, "timeout"),
            points,
            remote=remote,
        )
        self._registered = (*self._registered, added)
        self._plans = {}
        return self

    def set_composition(self, composition: CompositionConfig) -> Any:
        """Declare the profile for later emissions (§7.1). Returns the emitter."""
        self._composition = composition
        self._plans = {}
        return self

    def set_identity_provider(self, provider: str | IdentityProvider | None) -> Any:
        """Declare the identity provider (§10.1). Returns the emitter."""
        self._provider = check_provider(provider)
        self._plans = {}
        return self

    def set_approval_redactor(self, redactor: Callable[[AgentContext], AgentContext]) -> Any:
        """Shape what a resolver sees (§9). Returns the emitter."""
        self._redactor = redactor
        self._plans = {}
        return self

    def set_record_sink(self, sink: Callable[[InterceptionRecord], None]) -> Any:
        """Hand every record on as it is made. Returns the emitter."""
        self._sink = sink
        return self

    def set_max_records(self, max_records: int) -> Any:
        """Bound the buffer behind `results`; the oldest go first. Returns the emitter."""
        kept = deque(self._records, maxlen=max_records)
        if self._sink is None:
            self._dropped += len(self._records) - len(kept)
        self._records = kept
        return self

    # -- records --

    @property
    def results(self) -> list[InterceptionRecord]:
        """The records in the buffer, oldest first."""
        return list(self._records)

    def take_records(self) -> list[InterceptionRecord]:
        """Empty the buffer."""
        taken = []
        while self._records:
            taken.append(self._records.popleft())
        return taken

    @property
    def records_dropped(self) -> int:
        """Records that nobody has: refused by the sink, or pushed out with no sink set."""
        return self._dropped

    def record_host_failure(
        self,
        point: InterceptionPoint,
        detail: str | None = None,
        *,
        session_id: str | None = None,
        sequence: int | None = None,
        timestamp: str | None = None,
    ) -> InterceptionRecord:
        """Record an emission whose context the host could not build (§6.3)."""
        rules, _ = self._plan_for(point.value)
        record = host_failure(
            point,
            rules,
            detail,
            session_id=session_id or "",
            sequence=-1 if sequence is None else sequence,
            timestamp=timestamp,
        )
        self._keep(record)
        return record

    def _keep(self, record: InterceptionRecord) -> None:
        if self._sink is None:
            if len(self._records) == self._records.maxlen:
                self._dropped += 1
        else:
            try:
                self._sink(record)
            except Exception as exc:  # noqa: BLE001 - a sink's failure must not change a verdict
                self._dropped += 1
                _log.error("record sink raised %s: a record is lost", type(exc).__name__)
        self._records.append(record)

    # -- one emission --

    def _plan_for(self, point: object) -> tuple[Rules, tuple[Registered, ...]]:
        key = point if isinstance(point, str) and point in POINTS else None
        plans = self._plans  # a change of configuration puts a new one in its place
        plan = plans.get(key)
        if plan is None:
            asked = tuple(item for item in self._registered if key is None or key in item.points)
            rules = Rules(
                names=tuple(item.name for item in asked),
                composition=self._composition,
                mode=self._mode,
                provider=self._provider,
                resolver=self._resolver is not None,
                redactor=self._redactor,
                bounds=self._bounds,
            )
            plan = plans[key] = rules, asked
        return plan

    def _begin(self, context: object) -> tuple[Emission, Running]:
        point = context.get("interception_point") if isinstance(context, dict) else None
        rules, asked = self._plan_for(point)
        observation = observe(self._observer, context) if self._observer is not None else None
        resolver = self._resolver and (self._resolver, self._approval_timeout)
        running = Running(rules, asked, resolver, observation)
        return emission(context, rules, self._sessions), running

    def _broken(self, context: object, exc: BaseException) -> tuple[Emitted, BaseException | None]:
        """The outcome of an emission that a signal handler or a defect of ours broke off."""
        point = context.get("interception_point") if isinstance(context, dict) else None
        rules, _ = self._plan_for(point)
        if isinstance(exc, Exception):
            _log.error("an emission broke off: %s", type(exc).__name__)
        emitted = refused(context, rules, "(root): the emission was broken off", self._sessions)
        return emitted, None if isinstance(exc, Exception) else exc

    def _finish(self, context: Any, emitted: Emitted, running: Running) -> None:
        try:
            if emitted.rewritten:
                _write_back(context, emitted.target)
        finally:
            self._keep(emitted.record)
            if running.observation is not None:
                running.observation.end(emitted.record)


def _point(item: InterceptionPoint | str) -> str:
    name = item.value if isinstance(item, InterceptionPoint) else item
    if name not in POINTS:
        raise ValueError(f"at: not an interception point; the points are {', '.join(POINTS)}")
    return name


def _write_back(context: Any, target: Any) -> None:
    """§4.3: put the rewritten target where the action will look."""
    *way, last = POINTS[context["interception_point"]].target
    holder = context
    for step in way:
        holder = holder[step]
    holder[last] = target
    context["target"] = target


def _positive(seconds: float | None, name: str) -> float | None:
    if seconds is not None and not 0 < seconds < float("inf"):
        raise ValueError(f"{name}: expected seconds > 0, or None for no bound")
    return seconds
