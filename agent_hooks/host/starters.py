"""Interceptors and resolvers of every sort behind one shape: start, then a callback."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from agent_hooks.core.approval import ApprovalRequest
from agent_hooks.core.call import Call, Cancel, Done, Startable
from agent_hooks.core.context import Snapshot
from agent_hooks.core.effects import Failed
from agent_hooks.core.reasons import HostError
from agent_hooks.host.workers import WORKERS

_log = logging.getLogger("agent_hooks.host")


@runtime_checkable
class RemoteResolving(Protocol):
    """A resolver that answers through a callback."""

    def start_resolve(self, request: ApprovalRequest, timeout: float, done: Done) -> Cancel:
        """Begin to resolve."""
        ...


class Asking(Protocol):
    """One interceptor about to be asked."""

    @property
    def snapshot(self) -> Snapshot:
        """The context."""

    def call(self) -> Call:
        """All there is to know, for an interceptor that is no plain function."""


Start = Callable[[Asking, Done], Cancel]
StartResolve = Callable[[ApprovalRequest, float, Done], Cancel]


def _no_cancel(_: bool) -> None:
    pass


def starter(interceptor: object, name: str | None, *, tasks: bool) -> Start:
    """How to ask an interceptor.

    Args:
        tasks: run a coroutine function on the running loop; otherwise on one of
            our own, since a synchronous caller blocks whatever loop it is on.

    Raises:
        TypeError: it has no `intercept`.
    """
    if isinstance(interceptor, type):
        raise TypeError(f"{interceptor.__name__} is a class: register an instance of it")
    if isinstance(interceptor, Startable):
        return lambda asking, done: interceptor.start(asking.call(), done)
    judge = getattr(interceptor, "intercept", None)
    if not callable(judge):
        raise TypeError(
            f"{type(interceptor).__name__} is no interceptor: it has no intercept(context)"
        )
    run = _runner(judge, HostError.INTERCEPTOR_FAILED, name, tasks)
    return lambda asking, done: run(asking.snapshot.copy, done)


def resolve_starter(resolver: object, *, tasks: bool) -> StartResolve:
    """How to ask an approval resolver.

    Raises:
        TypeError: it has no `resolve`.
    """
    if isinstance(resolver, RemoteResolving):
        return resolver.start_resolve
    resolve = getattr(resolver, "resolve", None)
    if not callable(resolve):
        raise TypeError(f"{type(resolver).__name__} is no resolver: it has no resolve(request)")
    run = _runner(resolve, HostError.APPROVAL_RESOLVER_FAILED, "approval resolver", tasks)
    return lambda request, _, done: run(lambda: request, done)


def _runner(
    function: Callable[[Any], Any], reason: HostError, name: str | None, tasks: bool
) -> Callable[[Callable[[], Any], Done], Cancel]:
    """How to run a function of one argument so that it can block nobody."""
    job = _Job(function, reason, name)
    if not inspect.iscoroutinefunction(function):
        return job.on_thread
    return job.as_task if tasks else job.on_our_loop


@dataclass(frozen=True, slots=True)
class _Job:
    function: Callable[[Any], Any]
    reason: HostError
    name: str | None

    def on_thread(self, argument: Callable[[], Any], done: Done) -> Cancel:
        """A synchronous function, on a worker; it cannot be stopped, only given up."""

        def work() -> None:
            try:
                returned = self.function(argument())
                if inspect.isawaitable(returned):
                    self._on_loop(returned, done)
                    return
            except BaseException as exc:  # noqa: BLE001 - §6.3: a failure is a value in its slot
                returned = self._failed(exc)
            done(returned)

        WORKERS.submit(work)
        return _no_cancel

    def as_task(self, argument: Callable[[], Any], done: Done) -> Cancel:
        """A coroutine function, on the running loop."""
        task = asyncio.get_running_loop().create_task(self._answer(argument, done))
        return lambda _: (task.cancel(), None)[1]

    def on_our_loop(self, argument: Callable[[], Any], done: Done) -> Cancel:
        """A coroutine function, on a loop that no caller blocks."""
        return self._on_loop(self.function(argument()), done)

    async def _answer(self, argument: Callable[[], Any], done: Done) -> None:
        """Within the task itself: a callback would cost another turn of the loop."""
        try:
            reply = await self.function(argument())
        except asyncio.CancelledError:
            reply = Failed(self.reason, "cancelled")
        except BaseException as exc:  # noqa: BLE001 - §6.3: a failure is a value in its slot
            reply = self._failed(exc)
        done(reply)

    def _on_loop(self, work: Any, done: Done) -> Cancel:
        future = asyncio.run_coroutine_threadsafe(self._contained(work), WORKERS.loop())
        future.add_done_callback(lambda finished: done(self._outcome(finished)))
        return lambda _: (future.cancel(), None)[1]

    async def _contained(self, work: Awaitable[Any]) -> object:
        """An exit raised in there must not end the loop that others share."""
        try:
            return await work
        except asyncio.CancelledError:
            raise
        except BaseException as exc:  # noqa: BLE001 - §6.3: a failure is a value in its slot
            return self._failed(exc)

    def _outcome(self, finished: Any) -> object:
        return Failed(self.reason, "cancelled") if finished.cancelled() else finished.result()

    def _failed(self, exc: BaseException) -> Failed:
        detail = f"raised {type(exc).__name__}"
        _log.warning("%s: %s", self.name or "interceptor", detail)
        return Failed(self.reason, detail)
