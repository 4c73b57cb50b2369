"""Emissions from several threads and an event loop, all profiles, until told to pause."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from agent_hooks.host import InterceptionEmitter, SyncInterceptionEmitter
from agent_hooks.host.base import BaseEmitter
from tests.chaos.ledger import Emission, Ledger, Violation
from tests.processes.support import PROFILES

THREADS, TASKS = 2, 3
PAUSE = 0.05
"""Seconds between two emissions of one caller: load, not overload."""
TIMEOUT = 5.0
"""Seconds for one call; a restart fits in it."""
_HANG = 30.0


class Load:
    """The callers of a host.

    Args:
        interceptors: by plugin, in the order of registration.
    """

    def __init__(self, interceptors: Mapping[str, Any], ledger: Ledger) -> None:
        self._asked = tuple(interceptors)
        self._ledger = ledger
        self._sync = self._emitters(SyncInterceptionEmitter, interceptors)
        self._async = self._emitters(InterceptionEmitter, interceptors)
        self._turn = threading.Condition()
        self._going = False
        self._over = False
        self._busy = 0
        self._callers = [
            threading.Thread(target=self._call, name=f"chaos-caller-{n}") for n in range(THREADS)
        ]
        self._callers.append(threading.Thread(target=self._loop, name="chaos-loop"))
        for caller in self._callers:
            caller.start()

    def _emitters(self, kind: Any, interceptors: Mapping[str, Any]) -> Iterator[Any]:
        emitters: list[BaseEmitter] = []
        for composition in PROFILES.values():
            emitter = kind(composition=composition)
            emitter.set_record_sink(self._ledger.keep).set_max_records(10)
            for name, interceptor in interceptors.items():
                emitter.register(interceptor, name, timeout=TIMEOUT)
            emitters.append(emitter)
        return itertools.cycle(emitters)

    def resume(self) -> None:
        """Begin to emit."""
        with self._turn:
            self._going = True
            self._turn.notify_all()

    def pause(self) -> None:
        """Begin no more, and wait until all under way has ended.

        Raises:
            Violation: an emission hangs.
        """
        with self._turn:
            self._going = False
            if not self._turn.wait_for(lambda: self._busy == 0, _HANG):
                raise Violation(f"{self._busy} emissions hang for {_HANG:g} s")

    def close(self) -> None:
        """End the callers."""
        with self._turn:
            self._going, self._over = False, True
            self._turn.notify_all()
        for caller in self._callers:
            caller.join(_HANG)

    def _may_begin(self) -> bool:
        with self._turn:
            self._busy += self._going
            return self._going

    def _end(self, context: dict[str, Any], record: Any, began: float) -> None:
        if record is not None:
            seconds = time.monotonic() - began
            limit = TIMEOUT * len(self._asked)
            self._ledger.ended(Emission(context["sequence"], self._asked, record, seconds, limit))
        with self._turn:
            self._busy -= 1
            self._turn.notify_all()

    def _call(self) -> None:
        while not self._over:
            with self._turn:
                self._turn.wait_for(lambda: self._going or self._over)
            if not self._may_begin():
                continue
            context, record, began = self._ledger.context(), None, time.monotonic()
            try:
                record = next(self._sync).emit_unchecked(context)
            except Exception as exc:
                self._ledger.complain(f"emit_unchecked raised {type(exc).__name__}")
            self._end(context, record, began)
            time.sleep(PAUSE)

    def _loop(self) -> None:
        async def tasks() -> None:
            await asyncio.gather(*(self._acall() for _ in range(TASKS)))

        asyncio.run(tasks())

    async def _acall(self) -> None:
        while not self._over:
            await asyncio.sleep(PAUSE)
            if not self._may_begin():
                continue
            context, record, began = self._ledger.context(), None, time.monotonic()
            try:
                record = await next(self._async).emit_unchecked(context)
            except Exception as exc:
                self._ledger.complain(f"emit_unchecked raised {type(exc).__name__}")
            self._end(context, record, began)
