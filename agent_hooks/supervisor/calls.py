"""The calls of one plugin: waiting, in flight, answered. Thread-safe, never blocking."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import grpc

from agent_hooks.core.effects import Failed
from agent_hooks.core.reasons import HostError
from agent_hooks.supervisor.pending import Counters, Pending, nowhere
from agent_hooks.supervisor.settings import Settings
from agent_hooks.supervisor.streams import Live, Stream
from agent_hooks.supervisor.watchdog import WATCHDOG

_log = logging.getLogger("agent_hooks.supervisor")

_SILENCE = Failed(HostError.INTERCEPTOR_TIMEOUT, "no answer in time")
_LEEWAY = 0.25
"""Seconds by which gRPC's own deadline lies after the host's: the host's clock decides."""


class Calls:
    """Queues calls while the plugin starts or is busy, and sends each at most once.

    Args:
        name: the binding's id, for the log.
        on_answered: called with True after an answer, False after a timeout;
            from any thread.
    """

    def __init__(self, name: str, settings: Settings, on_answered: Callable[[bool], None]) -> None:
        self.name = name
        self.counters = Counters()
        self.timeouts_in_a_row = 0
        self._settings = settings
        self._on_answered = on_answered
        self._lock = threading.Lock()
        self._live: Live | None = None
        self._closed: str | None = None
        self._waiting: deque[Pending] = deque()
        self._pid = os.getpid()

    @property
    def in_flight(self) -> int:
        """Calls sent to the present launch and not yet over."""
        live = self._live
        return len(live.in_flight) if live is not None else 0

    @property
    def waiting(self) -> int:
        """Calls that wait for a place or for the plugin."""
        return len(self._waiting)

    def submit(self, pending: Pending) -> None:
        """Send now, or wait for a ready plugin and a place; or fail at once."""
        place = self._claim(pending)
        if isinstance(place, Failed):
            pending.answer(place)
        elif place is not None:
            self._send(pending, place)
        else:
            self.pump()

    def ask(self, pending: Pending) -> object:
        """Like `submit`, but wait for the answer on the calling thread.

        Sending from the thread that waits spares two hand-overs. Silence until
        the deadline is INTERCEPTOR_TIMEOUT.
        """
        answered = threading.Lock()
        answered.acquire()
        replies: list[object] = []

        def done(reply: object) -> None:
            replies.append(reply)
            answered.release()

        pending.done = done
        place = self._claim(pending)
        if isinstance(place, Failed):
            return place
        try:
            if place is not None:
                return self._ask(pending, place)
            self.pump()
            if answered.acquire(timeout=max(pending.deadline - time.monotonic(), 0.0)):
                return replies[0]
        except BaseException:
            self.cancel(pending, timed_out=False)
            self._leave(pending)
            raise
        self.cancel(pending, timed_out=True)
        return _SILENCE

    def _claim(self, pending: Pending) -> Live | Failed | None:
        """A place in flight, a refusal, or None: the call waits."""
        if os.getpid() != self._pid:
            return self._refusal("the process was forked: start a supervisor in the child")
        with self._lock:
            refusal = self._closed or self._misfit(pending)
            live = None if refusal is not None or self._waiting else self._place()
            if live is not None:
                live.carry(pending)
                return live
            if refusal is None and len(self._waiting) < self._settings.waiting:
                self._waiting.append(pending)
                return None
            refusal = refusal or f"{len(self._waiting)} calls are waiting already"
        return self._refusal(refusal)

    def _ask(self, pending: Pending, live: Live) -> object:
        pending.done = nowhere  # whoever asks has the answer from here
        reply: object
        try:
            stream = live.streams.take() if live.streams is not None else None
            if stream is None:
                reply = self._ask_unary(pending, live)
            else:
                reply = self._ask_on(stream, pending)
        except (ValueError, RuntimeError) as exc:  # the channel is being closed, or no thread
            reply = Failed(HostError.INTERCEPTOR_FAILED, type(exc).__name__)
        if isinstance(reply, Failed) and reply.reason is HostError.INTERCEPTOR_TIMEOUT:
            self.cancel(pending, timed_out=True)
            self._leave(pending)
            return reply
        return reply if self._finish(pending, reply) else _SILENCE

    def _ask_on(self, stream: Stream, pending: Pending) -> object:
        WATCHDOG.watch(pending, partial(self.cancel, pending, timed_out=True))
        try:
            return stream.ask(pending)
        finally:
            WATCHDOG.forget(pending)

    def _ask_unary(self, pending: Pending, live: Live) -> object:
        remaining = max(pending.deadline - time.monotonic(), 0.0)
        try:
            data = live.blocking(
                pending.request, timeout=remaining, metadata=live.metadata_of(pending)
            )
        except grpc.RpcError as error:
            return pending.failure(error)
        return pending.read(data)

    def _leave(self, pending: Pending) -> None:
        with self._lock:
            pending.leave()
        self.pump()

    def cancel(self, pending: Pending, timed_out: bool) -> None:
        """Give a call up; its answer, if one comes, is dropped."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if pending.over:
                return
            pending.over = True
            sent = pending.is_sent
            if not sent and pending in self._waiting:
                self._waiting.remove(pending)
            if timed_out:
                self.counters.timed_out += 1
                self.timeouts_in_a_row += sent
        if (abandon := pending.abandon) is not None:
            abandon()
        if timed_out and sent:
            self._on_answered(False)

    def open(self, live: Live) -> None:
        """A launch is ready: send what waited. What another has in flight stays with it."""
        with self._lock:
            before, self._live = self._live, live
            self._closed = None
            self.timeouts_in_a_row = 0
        if before is not None:
            before.close()
        self.pump()

    def lose(self) -> None:
        """The plugin is not ready any more; what was not sent waits on."""
        with self._lock:
            live, self._live = self._live, None
        if live is not None:
            live.close()

    def close(self, why: str) -> None:
        """Fail what waits, and everything from now on, at once."""
        with self._lock:
            self._closed = why
            waiting = list(self._waiting)
            self._waiting.clear()
        self.lose()
        for pending in waiting:
            pending.answer(self._refusal(why))

    def reopen(self) -> None:
        """Let calls wait again."""
        with self._lock:
            self._closed = None

    def _misfit(self, pending: Pending) -> str | None:
        """An approval's bytes could be read as a verdict's: ask only who can answer."""
        if self._live is None or self._live.kind == pending.kind:
            return None
        return f"the plugin is of kind {self._live.kind}, not {pending.kind}"

    def _place(self) -> Live | None:
        """The launch that one more call may be sent to, if there is one."""
        live = self._live
        if live is None or len(live.in_flight) >= live.limit:
            return None
        # One that is dead or dying is not called: its successor will be.
        return live if live.pulse.beats() else None

    def pump(self) -> None:
        """Send what waits, as far as there are places."""
        while True:
            with self._lock:
                live = self._place() if self._waiting else None
                if live is None:
                    return
                pending = self._waiting.popleft()
                if pending.over:
                    continue
                misfit = self._misfit(pending)
                if misfit is None:
                    live.carry(pending)
            if misfit is None:
                self._send(pending, live)
            else:
                pending.answer(self._refusal(misfit))

    def _send(self, pending: Pending, live: Live) -> None:
        if self._send_on_stream(pending, live):
            return
        remaining = max(pending.deadline - time.monotonic(), 0.0)
        try:
            call = live.future(
                pending.request, timeout=remaining + _LEEWAY, metadata=live.metadata_of(pending)
            )
        except Exception as exc:  # noqa: BLE001 - a channel that is closing raises ValueError
            self._finish(pending, Failed(HostError.INTERCEPTOR_FAILED, type(exc).__name__))
            return
        pending.abandon = call.cancel
        call.add_done_callback(lambda call: self._answered(pending, call))
        if pending.over:
            call.cancel()

    def _send_on_stream(self, pending: Pending, live: Live) -> bool:
        """Whether it needs no unary call any more."""
        try:
            stream = live.streams.take() if live.streams is not None else None
            if stream is not None:
                stream.start(pending, self._finish)
        except Exception as exc:  # noqa: BLE001 - as above; or no thread can be started
            self._finish(pending, Failed(HostError.INTERCEPTOR_FAILED, type(exc).__name__))
            return True
        return stream is not None

    def _answered(self, pending: Pending, call: Any) -> None:
        """On gRPC's thread."""
        try:
            ok = call.code() is grpc.StatusCode.OK
            reply = pending.read(call.result()) if ok else pending.failure(call)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the slot must be filled
            reply = Failed(HostError.INTERCEPTOR_FAILED, type(exc).__name__)
        self._finish(pending, reply)

    def _finish(self, pending: Pending, reply: object) -> bool:
        """Take a call's end; whether it still counts."""
        with self._lock:
            pending.leave()
            first = not pending.over
            pending.over = True
            if first and isinstance(reply, Failed):
                self.counters.failed += 1
            elif first:
                self.counters.answered += 1
                self.timeouts_in_a_row = 0
        if first:
            if isinstance(reply, Failed):
                _log.warning("plugin %s: %s", self.name, reply.detail)
            else:
                self._on_answered(True)
            pending.answer(reply)
        self.pump()
        return first

    def _refusal(self, why: str) -> Failed:
        self.counters.refused += 1
        _log.warning("plugin %s: not called: %s", self.name, why)
        return Failed(HostError.INTERCEPTOR_FAILED, why)
