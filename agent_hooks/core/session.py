"""Order within a session: §3.1, §6.1a, §12.2. State without I/O; the lock is injected."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from agent_hooks.core.context import Snapshot
from agent_hooks.core.points import InterceptionPoint as P

MAX_CLOSED: Final = 65_536
"""Sessions that are remembered after their shutdown; the oldest are forgotten first."""

_MAX_SEEN = 1024

PAIRS = {P.POST_TOOL_CALL: P.PRE_TOOL_CALL, P.POST_MODEL_CALL: P.PRE_MODEL_CALL}
"""Each `post_` point and the `pre_` point that must have been permitted (§3.1, §6.2)."""


@dataclass(slots=True)
class _Session:
    started: bool = False
    ready: bool = False
    denied: bool = False
    closed: bool = False
    floor: int = -1
    seen: set[int] = field(default_factory=set)
    open: dict[tuple[P, str], int] = field(default_factory=dict)


class Sessions:
    """Which sessions may still emit.

    A session whose startup was denied emits nothing more but its shutdown
    (§6.1a); that always holds. With `strict`, §3.1's order holds too: startup
    first, nothing after shutdown, each `post_` after its permitted `pre_`, and
    no sequence number twice (concurrent emissions may arrive out of order,
    §12.2).
    """

    def __init__(
        self, *, strict: bool = False, lock: AbstractContextManager[object] | None = None
    ) -> None:
        self.strict = strict
        self._lock = lock or nullcontext()
        self._sessions: dict[str, _Session] = {}

    def enter(self, snapshot: Snapshot) -> str | None:
        """Begin one emission: why it breaks the session's order, or None.

        The sequence number and the open call are taken here, so that of two
        emissions at once only one can have them.
        """
        with self._lock:
            session = self._sessions.get(snapshot.context["session"]["id"])
            shutdown = snapshot.point.name is P.AGENT_SHUTDOWN
            if session is not None and session.denied and (session.closed or not shutdown):
                return "/session: its startup was denied; only agent_shutdown may follow (§6.1a)"
            return self._enter_in_order(snapshot) if self.strict else None

    def leave(self, snapshot: Snapshot, permitted: bool) -> None:
        """End one emission that was entered."""
        point, session_id = snapshot.point.name, snapshot.context["session"]["id"]
        if point is P.AGENT_STARTUP and not permitted:
            self.bar(session_id)
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None:
                return
            if point is P.AGENT_SHUTDOWN:
                self._close(session_id, session)
            elif point is P.AGENT_STARTUP:
                session.ready = permitted
            elif self.strict and permitted and point in PAIRS.values():
                key = point, _pairing(snapshot)
                session.open[key] = session.open.get(key, 0) + 1

    def bar(self, session_id: str) -> None:
        """A startup was denied: nothing but the shutdown may follow (§6.1a)."""
        with self._lock:
            self._sessions.setdefault(session_id, _Session()).denied = True

    def _enter_in_order(self, snapshot: Snapshot) -> str | None:
        session_id = snapshot.context["session"]["id"]
        session = self._sessions.get(session_id) or _Session()
        point, sequence = snapshot.point.name, snapshot.context["sequence"]
        if session.closed:
            return "/interception_point: the session is shut down (§3.1)"
        if not _in_turn(session, point):
            return "/interception_point: agent_startup comes first, and once (§3.1)"
        if sequence <= session.floor or sequence in session.seen:
            return "/sequence: does not grow within the session (§4.1)"
        if point in PAIRS and not _take(session, (PAIRS[point], _pairing(snapshot))):
            return "/interception_point: no permitted pre_ point before it (§3.1)"
        session.started |= point is P.AGENT_STARTUP
        session.closed |= point is P.AGENT_SHUTDOWN
        _see(session, sequence)
        self._sessions[session_id] = session
        return None

    def _close(self, session_id: str, session: _Session) -> None:
        session.closed = True
        del self._sessions[session_id]  # to the end: the order of closing
        self._sessions[session_id] = session
        if len(self._sessions) > MAX_CLOSED:
            oldest = next(name for name, known in self._sessions.items() if known.closed)
            del self._sessions[oldest]


def _in_turn(session: _Session, point: P) -> bool:
    """Startup once; everything else after it was permitted, shutdown after any outcome."""
    if point is P.AGENT_STARTUP:
        return not session.started and not session.denied
    if point is P.AGENT_SHUTDOWN:
        return session.ready or session.denied
    return session.ready


def _pairing(snapshot: Snapshot) -> str:
    if snapshot.point.name in (P.PRE_TOOL_CALL, P.POST_TOOL_CALL):
        return str(snapshot.context["tool_call"]["id"])
    request_id = snapshot.context.get("request_id")
    return request_id if isinstance(request_id, str) else ""


def _take(session: _Session, key: tuple[P, str]) -> bool:
    left = session.open.pop(key, 0)
    if left > 1:
        session.open[key] = left - 1
    return left > 0


def _see(session: _Session, sequence: int) -> None:
    session.seen.add(sequence)
    while session.floor + 1 in session.seen:
        session.floor += 1
        session.seen.discard(session.floor)
    if len(session.seen) > _MAX_SEEN:
        session.floor = min(session.seen)
        session.seen.discard(session.floor)
