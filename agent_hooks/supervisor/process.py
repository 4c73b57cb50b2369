"""One plugin's life: launch, ready, watch, restart, stop. Runs on the supervisor's loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import tenacity

from agent_hooks.supervisor.calls import Calls
from agent_hooks.supervisor.channel import HandshakeError
from agent_hooks.supervisor.launcher import Launcher, LaunchError
from agent_hooks.supervisor.life import Binding, Life
from agent_hooks.supervisor.lifecycle import NEXT, Event, Restarts, State, backoff, step
from agent_hooks.supervisor.peer import PeerError
from agent_hooks.supervisor.settings import Settings

_log = logging.getLogger("agent_hooks.supervisor")


class LostError(Exception):
    """A life that ended without anybody asking; the text says why."""


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

    # -- one life --

    async def _live_once(self) -> None:
        """Launch and serve; returns when stopped, or when a long life has ended."""
        if self._stopping.is_set():
            return
        if self.state is State.BACKOFF:
            self._event(Event.RETRY)
        ready_at = None
        life = Life(self.binding, self._settings, self._launcher, self._make_home())
        try:
            await life.launch()
            await self._until_lost(life, life.become_ready())
            ready_at = time.monotonic()
            self._became_ready(life)
            await self._until_lost(life, self._watch(life))
        except Exception as error:  # noqa: BLE001 - a life that ends badly is a life that ended
            self._lost(error if isinstance(error, _EXPECTED) else _unexpected(error))
            if ready_at is None or time.monotonic() - ready_at < self._settings.reset_after:
                raise LostError from None
        finally:
            self.calls.lose()
            await life.end(graceful=self.state is State.DRAINING)

    async def _until_lost(self, life: Life, work: Coroutine[Any, Any, None]) -> None:
        """Do something with the process while it lives and nobody stops it."""
        task = asyncio.create_task(work)
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            futures: set[asyncio.Future[Any]] = {task, stopping, life.exited}
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if self._stopping.is_set():
                return
            if life.exited.done():
                raise LostError(f"the process {life.exited.result()}")
            await task
        finally:
            task.cancel()
            stopping.cancel()

    async def _watch(self, life: Life) -> None:
        """Health checks while idle; ends only by giving the process up."""
        while True:
            suspect = self.state is State.SUSPECT
            pause = self._settings.suspect_interval if suspect else self._settings.health_interval
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._give_up.wait(), pause)
            if self._give_up.is_set():
                self._give_up.clear()
                raise LostError(f"{self._settings.circuit_timeouts} calls in a row timed out")
            if self.calls.in_flight == 0:
                healthy = await life.channel.healthy(self._settings.health_timeout)
                self._event(Event.ANSWERED if healthy else Event.MISSED)
                self.calls.pump()

    def _became_ready(self, life: Life) -> None:
        if self._stopping.is_set():
            return
        self._event(Event.ANSWERED)
        self.pid = life.pid
        self._give_up.clear()
        if not self._first_outcome.done():
            self._first_outcome.set_result(None)
        self.calls.open(life.live())

    def _lost(self, error: Exception) -> None:
        why = str(error)
        self.calls.lose()
        self.pid = None
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
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _quarantine(self) -> None:
        self._event(Event.GIVE_UP, self.last_error or "")
        self.calls.close(f"quarantined after too many restarts; last: {self.last_error}")
        self._reset.clear()
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
            level = (
                logging.WARNING
                if event in (Event.LOST, Event.GIVE_UP, Event.MISSED)
                else logging.INFO
            )
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

    def _make_home(self) -> Path:
        # Numbers, not the name: the socket's path must stay short.
        self._launches += 1
        return self._launcher.base / f"{self._number}.{self._launches}"


_EXPECTED = (LostError, LaunchError, HandshakeError, PeerError)


def _unexpected(error: Exception) -> LostError:
    _log.error("supervising failed unexpectedly", exc_info=error)
    return LostError(f"supervising it failed: {type(error).__name__}")
