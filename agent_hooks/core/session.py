"""Order within a session: §3.1, §6.1a, §12.2. State without I/O; the lock is injected."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from agent_hooks.core.context import Snapshot
from agent_hooks.core.points import InterceptionPoint as P

_SEEN_LIMIT = 1024

PAIRS = {P.POST_TOOL_CALL: P.PRE_TOOL_CALL, P.POST_MODEL_CALL: P.PRE_MODEL_CALL}
"""Each `post_` point and the `pre_` point that must have been permitted (§3.1, §6.2)."""


@dataclass(slots=True)
class _Session:
    started: bool = False
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

    def refuse(self, snapshot: Snapshot) -> str | None:
        """Why this emission breaks the session's order, or None."""
        with self._lock:
            session = self._sessions.get(snapshot.context["session"]["id"])
            if (
                session is not None
                and session.denied
                and snapshot.point.name is not P.AGENT_SHUTDOWN
            ):
                return "/session: its startup was denied; only agent_shutdown may follow (§6.1a)"
            return self._refuse_order(session or _Session(), snapshot) if self.strict else None

    def note(self, snapshot: Snapshot, permitted: bool) -> None:
        """Take one finished emission into account."""
        with self._lock:
            point, context = snapshot.point.name, snapshot.context
            if not self.strict and (permitted or point is not P.AGENT_STARTUP):
                if point is P.AGENT_SHUTDOWN:
                    self._sessions.pop(context["session"]["id"], None)
                return
            session = self._sessions.setdefault(context["session"]["id"], _Session())
            session.started = True
            session.denied |= point is P.AGENT_STARTUP and not permitted
            session.closed |= point is P.AGENT_SHUTDOWN
            _see(session, context["sequence"])
            key = point, _pairing(snapshot)
            if permitted and point in PAIRS.values():
                session.open[key] = session.open.get(key, 0) + 1
            elif point in PAIRS:
                _close(session, (PAIRS[point], key[1]))

    def forget(self, session_id: str) -> None:
        """Drop what is known of a session that is over."""
        with self._lock:
            self._sessions.pop(session_id, None)

    def _refuse_order(self, session: _Session, snapshot: Snapshot) -> str | None:
        point, sequence = snapshot.point.name, snapshot.context["sequence"]
        if session.closed:
            return "/interception_point: the session is shut down (§3.1)"
        if (point is P.AGENT_STARTUP) == session.started:
            return "/interception_point: agent_startup comes first, and once (§3.1)"
        if sequence <= session.floor or sequence in session.seen:
            return "/sequence: does not grow within the session (§4.1)"
        if point in PAIRS and (PAIRS[point], _pairing(snapshot)) not in session.open:
            return "/interception_point: no permitted pre_ point before it (§3.1)"
        return None


def _pairing(snapshot: Snapshot) -> str:
    if snapshot.point.name in (P.PRE_TOOL_CALL, P.POST_TOOL_CALL):
        return str(snapshot.context["tool_call"]["id"])
    request_id = snapshot.context.get("request_id")
    return request_id if isinstance(request_id, str) else ""


def _close(session: _Session, key: tuple[P, str]) -> None:
    left = session.open.get(key, 0) - 1
    if left > 0:
        session.open[key] = left
    else:
        session.open.pop(key, None)


def _see(session: _Session, sequence: int) -> None:
    session.seen.add(sequence)
    while session.floor + 1 in session.seen:
        session.floor += 1
        session.seen.discard(session.floor)
    if len(session.seen) > _SEEN_LIMIT:
        session.floor = min(session.seen)
        session.seen.discard(session.floor)
