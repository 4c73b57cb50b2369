"""The place where a launch that is ready waits to succeed the present one."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_hooks.supervisor.life import Life


class Succession:
    """At most one successor; whoever offers it waits until it is taken.

    Attributes:
        pending: set while there is one.
        turn: held by whoever prepares one.
    """

    def __init__(self) -> None:
        self.pending = asyncio.Event()
        self.turn = asyncio.Lock()
        self._life: Life | None = None
        self._taken = asyncio.Event()

    async def offer(self, life: Life) -> None:
        """Wait until `life` has taken over, or is ended since nobody wants it any more."""
        self._life = life
        self._taken.clear()
        self.pending.set()
        await self._taken.wait()

    def or_else(self, stopping: asyncio.Event) -> list[asyncio.Task[Any]]:
        """What ends a life, or a wait, before its time: a successor, or a stop."""
        return [asyncio.create_task(event.wait()) for event in (self.pending, stopping)]

    def take(self) -> Life | None:
        """The successor, if there is one."""
        life, self._life = self._life, None
        self.pending.clear()
        self._taken.set()
        return life
