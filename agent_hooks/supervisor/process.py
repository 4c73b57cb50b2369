"""One plugin's life: launch, ready, watch, restart, stop. Runs on the supervisor's loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine
from typing import Any

import tenacity

from agent_hooks.supervisor.binding import Binding
from agent_hooks.supervisor.calls import Calls
from agent_hooks.supervisor.channel import HandshakeError
from agent_hooks.supervisor.launcher import Launcher, LaunchError
from agent_hooks.supervisor.life import Life
from agent_hooks.supervisor.lifecycle import (
    NEXT,
    Event,
    LostError,
    Restarts,
    State,
    backoff,
    step,
)
from agent_hooks.supervisor.logs import PluginLog
from agent_hooks.supervisor.peer import PeerError
from agent_hooks.supervisor.settings import Settings
from agent_hooks.supervisor.succession import Succession

_log = logging.getLogger("agent_hooks.supervisor")


class PluginProcess:
    """The owner of one binding's process, and of its state."""

    def __init__(
        self, binding: Binding, number: int, settings: Settings, launcher: Launcher
    ) -> None:
        self.binding = binding
        self._number = number
        self.state = State.STARTING
        self.transitions: dict[tuple[State, Event], int] = {}
        self.pid: int | None = None
        self.restarts = 0
        self.last_error: str | None = None
        self._settings = settings
        self._launcher = launcher
        self._loop = asyncio.get_running_loop()
        self._restarts = Restarts(settings, time.monotonic)
        self._stopping = asyncio.Event()
        self._give_up = asyncio.Event()
        self._reset = asyncio.Event()
        self._first_outcome: asyncio.Future[None] = self._loop.create_future()
        self._launches = 0
        self._life: Life | None = None
        self._succession = Succession()
        self._kind = ""
        self._draining: set[asyncio.Task[None]] = set()
        self.log = PluginLog(binding.id, settings)
        self.calls = Calls(binding.id, settings, self._heard)

    async def run(self) -> None:
        """Live until stopped. Never raises."""
        while not self._stopping.is_set():
            retrying = tenacity.AsyncRetrying(
                retry=tenacity.retry_if_exception_type(LostError),
                wait=backoff(self._settings),
                stop=self._too_many,
                sleep=self._rest,
            )
            try:
                await retrying(self._live_once)
            except tenacity.RetryError:
                await self._quarantine()
        if late := self._succession.take():
            await late.end(graceful=False)
        await asyncio.gather(*self._draining)
        self._event(Event.GONE)
        if not self._first_outcome.done():
            self._first_outcome.set_exception(LostError("it was stopped before it was ready"))
            self._first_outcome.exception()

    async def started(self) -> None:
        """Wait until it is ready for the first time.

        Raises:
            Exception: why its first launch failed; ConfigRefusedError among others.
        """
        await asyncio.shield(self._first_outcome)

    def stop(self) -> None:
        """Begin to end it."""
        if not self._stopping.is_set():
            self._event(Event.STOP)
            self._stopping.set()
            self._reset.set()
            self.calls.close("the host is shutting down")

    def reset(self) -> None:
        """An operator's word: leave quarantine."""
        self._reset.set()

    async def healthy(self) -> bool:
        """Whether it answers a health check now."""
        life = self._life
        return life is not None and await life.channel.healthy(self._settings.health_timeout)

    async def upgrade(self, binding: Binding) -> None:
        """Put a launch of `binding` in the place of the present one, once it is ready.

        Until then calls go to the present one, which stays if this fails. What
        it has in flight it finishes.

        Raises:
            Exception: one of LIFE_ERRORS: why the new one did not become ready.
        """
        async with self._succession.turn:
            life = self._new_life(binding)
            try:
                await life.launch()
                await self._until_lost(life, life.become_ready())
                if self._stopping.is_set():
                    raise LostError("the host is shutting down")
                if self._kind not in ("", life.kind):
                    raise HandshakeError(f"Describe: kind is {life.kind}, but was {self._kind}")
            except BaseException as error:
                await life.end(graceful=False)
                if isinstance(error, Exception) and not isinstance(error, LIFE_ERRORS):
                    raise _unexpected(error) from None
                raise
            self.binding = binding
            self._reset.set()
            await self._succession.offer(life)
            if self._stopping.is_set():
                raise LostError("the host is shutting down")

    # -- one life --

    async def _live_once(self) -> None:
        """Launch and serve; returns when stopped or succeeded, or when a long life has ended."""
        if self._stopping.is_set():
            return
        if self.state is State.BACKOFF:
            self._event(Event.RETRY)
        ready_at = None
        successor = self._succession.take()
        life = successor or self._new_life(self.binding)
        try:
            if successor is None:
                await life.launch()
                await self._until_lost(life, life.become_ready())
            if not self._succession.pending.is_set():
                ready_at = time.monotonic()
                self._became_ready(life)
                await self._until_lost(life, self._watch(life))
        except Exception as error:  # noqa: BLE001 - a life that ends badly is a life that ended
            self._lost(error if isinstance(error, LIFE_ERRORS) else _unexpected(error))
            if ready_at is None or time.monotonic() - ready_at < self._settings.reset_after:
                raise LostError from None
        finally:
            await self._leave(life, ready_at is not None)

    async def _leave(self, life: Life, was_ready: bool) -> None:
        if self._succession.pending.is_set() and was_ready and not life.exited.done():
            # It is called until its successor opens; it ends beside that one.
            drain = asyncio.create_task(self._drain(life))
            self._draining.add(drain)
            drain.add_done_callback(self._draining.discard)
        else:
            self.calls.lose()
            await life.end(graceful=self.state is State.DRAINING)

    async def _drain(self, life: Life) -> None:
        """Let a life that is not called any more finish, and end it."""
        await life.quiet(self._settings.drain_timeout, self._stopping)
        await life.end(graceful=True)

    async def _until_lost(self, life: Life, work: Coroutine[Any, Any, None]) -> None:
        """Do something with the process while it lives, and nobody stops or succeeds it."""
        task = asyncio.create_task(work)
        ends = self._succession.or_else(self._stopping)
        try:
            futures: set[asyncio.Future[Any]] = {task, *ends, life.exited}
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if self._stopping.is_set() or self._succession.pending.is_set():
                return
            if life.exited.done():
                raise LostError(f"the process {life.exited.result()}")
            await task
        finally:
            for waiting in (task, *ends):
                waiting.cancel()

    async def _watch(self, life: Life) -> None:
        """Health checks while idle; ends only by giving the process up."""
        missed = 0
        while missed < self._settings.circuit_timeouts:
            suspect = self.state is State.SUSPECT
            pause = self._settings.suspect_interval if suspect else self._settings.health_interval
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._give_up.wait(), pause)
            if self._give_up.is_set():
                self._give_up.clear()
                raise LostError(f"{self._settings.circuit_timeouts} calls in a row timed out")
            if self.calls.in_flight == 0:
                healthy = await life.channel.healthy(self._settings.health_timeout)
                missed = 0 if healthy else missed + 1
                self._event(Event.ANSWERED if healthy else Event.MISSED)
                self.calls.pump()
        raise LostError(f"{missed} health checks in a row were not answered")

    def _became_ready(self, life: Life) -> None:
        if self._stopping.is_set():
            return
        self._event(Event.ANSWERED)
        self._life, self.pid, self._kind = life, life.pid, life.kind
        self._give_up.clear()
        if not self._first_outcome.done():
            self._first_outcome.set_result(None)
        self.calls.open(life.live())

    def _lost(self, error: Exception) -> None:
        why = str(error)
        self.calls.lose()
        self._life, self.pid = None, None
        self.last_error = why
        if not self._first_outcome.done():
            self._first_outcome.set_exception(error)
            self._first_outcome.exception()  # it may be that nobody waits for it
        if not self._stopping.is_set():
            self._event(Event.LOST, why)

    # -- between lives --

    def _too_many(self, _: tenacity.RetryCallState) -> bool:
        self.restarts += 1
        return not self._stopping.is_set() and self._restarts.too_many()

    async def _rest(self, seconds: float) -> None:
        ends = self._succession.or_else(self._stopping)
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()

    async def _quarantine(self) -> None:
        self._event(Event.GIVE_UP, self.last_error or "")
        self.calls.close(f"quarantined after too many restarts; last: {self.last_error}")
        self._reset.clear()
        if not self._succession.pending.is_set():
            await self._reset.wait()
        if not self._stopping.is_set():
            self._restarts.clear()
            self._event(Event.RESET)
            self.calls.reopen()

    # -- state --

    def _event(self, event: Event, why: str = "") -> None:
        before, self.state = self.state, step(self.state, event)
        self.transitions[before, event] = self.transitions.get((before, event), 0) + 1
        if self.state is not before:
            level = logging.WARNING if event in _BAD else logging.INFO
            suffix = f": {why}" if why else ""
            _log.log(level, "plugin %s: %s%s", self.binding.id, self.state.value, suffix)

    def _heard(self, answered: bool) -> None:
        """From any thread, after every answer and every timeout."""
        if answered and self.state is not State.SUSPECT:
            return  # nothing changes: spare the loop a wake-up per call
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody supervises
            self._loop.call_soon_threadsafe(self._note, answered)

    def _note(self, answered: bool) -> None:
        event = Event.ANSWERED if answered else Event.MISSED
        if event in NEXT[self.state] and self.state is not State.STARTING:
            self._event(event)
        if self.calls.timeouts_in_a_row >= self._settings.circuit_timeouts:
            self._give_up.set()

    def _new_life(self, binding: Binding) -> Life:
        # Numbers, not the name: the socket's path must stay short.
        self._launches += 1
        home = self._launcher.base / f"{self._number}.{self._launches}"
        return Life(binding, self._settings, self._launcher, home, self.log)


_BAD = (Event.LOST, Event.GIVE_UP, Event.MISSED)
LIFE_ERRORS = (LostError, LaunchError, HandshakeError, PeerError)
"""What a launch may fail with."""


def _unexpected(error: Exception) -> LostError:
    _log.error("supervising failed unexpectedly", exc_info=error)
    return LostError(f"supervising it failed: {type(error).__name__}")
