"""The supervisor: one thread that owns every plugin of a host."""

from __future__ import annotations

import asyncio
import atexit
import dataclasses
import os
import shutil
import tempfile
import threading
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from agent_hooks.supervisor.binding import Binding
from agent_hooks.supervisor.channel import ConfigRefusedError
from agent_hooks.supervisor.control import PREFIX, Control, status_of
from agent_hooks.supervisor.launcher import Launcher
from agent_hooks.supervisor.manifest import Manifest
from agent_hooks.supervisor.process import LIFE_ERRORS, PluginProcess
from agent_hooks.supervisor.remote import RemoteInterceptor, RemoteResolver
from agent_hooks.supervisor.settings import Settings

__all__ = ["Binding", "PluginStartError", "Supervisor"]

T = TypeVar("T")


class PluginStartError(RuntimeError):
    """Plugins that could not be started; the text has a line for each.

    Attributes:
        is_configuration: whether all that is wrong is a configuration that its
            plugin refused.
    """

    def __init__(self, failures: Mapping[str, BaseException]) -> None:
        self.is_configuration = all(
            isinstance(error, ConfigRefusedError) for error in failures.values()
        )
        super().__init__("\n".join(f"{plugin}: {error}" for plugin, error in failures.items()))


class Supervisor:
    """Launches and keeps plugins; a context manager, synchronous or asynchronous.

        with Supervisor([Binding("policy", manifest, config)]) as supervisor:
            emitter.register(supervisor.interceptor("policy"), name="policy")

    Everything may be called from any thread and with any event loop running,
    but not in a forked child: there, calls are refused at once.
    """

    def __init__(self, bindings: Iterable[Binding] = (), settings: Settings | None = None) -> None:
        self._bindings: dict[str, Binding] = {}
        for binding in bindings:
            if binding.id in self._bindings:
                raise ValueError(f"binding {binding.id!r} occurs twice")
            self._bindings[binding.id] = binding
        self._settings = settings or Settings()
        self._plugins: dict[str, PluginProcess] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._launcher: Launcher | None = None
        self._control: Control | None = None
        self._base: Path | None = None
        self._pid = os.getpid()

    def start(self, wait: bool = True) -> Supervisor:
        """Launch every binding's plugin.

        Args:
            wait: until all are ready. Otherwise they start in the background,
                and calls wait for them within their own timeouts.

        Raises:
            PluginStartError: a first launch failed (with `wait` only);
                everything is stopped again.
        """
        if self._loop is not None:
            raise RuntimeError("the supervisor is started already")
        self._plugins, self._tasks = {}, []
        self._base = Path(tempfile.mkdtemp(prefix=PREFIX))
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=loop.run_forever, name="agent-hooks-supervisor", daemon=True
        )
        self._thread.start()
        atexit.register(self.close)
        self._on_loop(self._launch_all(self._base))
        if wait:
            try:
                self._on_loop(self._all_started())
            except BaseException:
                self.close()
                raise
        return self

    def interceptor(self, binding_id: str) -> RemoteInterceptor:
        """The binding's interceptor, to register with an emitter.

        Raises:
            KeyError: no such binding.
        """
        plugin = self._plugins[binding_id]
        binding, manifest = plugin.binding, plugin.binding.manifest
        return RemoteInterceptor(
            plugin.calls,
            binding.timeout or manifest.timeout,
            binding.points or manifest.points,
            lambda: plugin.binding.manifest.grants,  # as they are after an upgrade, too
        )

    def resolver(self, binding_id: str) -> RemoteResolver:
        """The binding's approval resolver. Raises KeyError."""
        return RemoteResolver(self._plugins[binding_id].calls)

    def status(self) -> list[dict[str, Any]]:
        """One object per binding; see `control.status_of`."""
        return [status_of(name, plugin) for name, plugin in self._plugins.items()]

    def reset(self, binding_id: str) -> None:
        """Let a quarantined plugin start again. Raises KeyError."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._plugins[binding_id].reset)

    def upgrade(
        self,
        binding_id: str,
        manifest: Manifest | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Launch the plugin anew beside itself, and switch to it once it is ready.

        No emission fails: calls go to the present process until then, and what
        it has in flight it finishes. Points and timeout stay as they are bound.

        Args:
            manifest: of the program to run from now on; None keeps it.
            config: from now on; None keeps it.

        Raises:
            KeyError: no such binding.
            PluginStartError: it did not become ready; the present one stays.
        """
        plugin = self._plugins[binding_id]
        try:
            self._on_loop(_upgrade(plugin, manifest, config))
        except LIFE_ERRORS as error:
            raise PluginStartError({_named(plugin.binding): error}) from None

    def close(self) -> None:
        """Stop every plugin, gracefully and then not, and wait until all are gone."""
        if self._loop is None or os.getpid() != self._pid:
            return
        loop, self._loop = self._loop, None
        atexit.unregister(self.close)
        asyncio.run_coroutine_threadsafe(self._end_all(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        assert self._thread is not None
        self._thread.join()
        loop.close()
        if self._base is not None:
            shutil.rmtree(self._base, ignore_errors=True)

    def __enter__(self) -> Supervisor:
        return self.start() if self._loop is None else self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Supervisor:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)

    def _on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise RuntimeError("the supervisor was closed while it started")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _launch_all(self, base: Path) -> None:
        loop = asyncio.get_running_loop()
        self._launcher = Launcher(base, loop)
        self._control = Control(self._plugins, _upgrade)
        for number, (name, binding) in enumerate(self._bindings.items()):
            plugin = PluginProcess(binding, number, self._settings, self._launcher)
            self._plugins[name] = plugin
            self._tasks.append(loop.create_task(plugin.run()))
        await self._control.open(base)

    async def _all_started(self) -> None:
        plugins = self._plugins.values()
        outcomes = await asyncio.gather(
            *(plugin.started() for plugin in plugins), return_exceptions=True
        )
        failures = {
            _named(plugin.binding): outcome
            for plugin, outcome in zip(plugins, outcomes, strict=True)
            if outcome is not None
        }
        if failures:
            raise PluginStartError(failures)

    async def _end_all(self) -> None:
        if self._control is not None:
            self._control.close()
        for plugin in self._plugins.values():
            plugin.stop()
        # Whoever waits for a start hears of its end before the loop does.
        waiting = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*self._tasks, *waiting, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_default_executor()
        if self._launcher is not None:
            self._launcher.close()


def _named(binding: Binding) -> str:
    return f"plugin {binding.id} ({binding.manifest.kind})"


async def _upgrade(
    plugin: PluginProcess,
    manifest: Manifest | None = None,
    config: Mapping[str, Any] | None = None,
) -> None:
    before = plugin.binding
    await plugin.upgrade(
        dataclasses.replace(
            before,
            manifest=before.manifest if manifest is None else manifest,
            config=before.config if config is None else config,
            points=before.points or before.manifest.points,
            timeout=before.timeout or before.manifest.timeout,
        )
    )
