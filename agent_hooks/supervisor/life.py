"""One launch of one plugin: its process, and everything that belongs to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import time
from pathlib import Path

from agent_hooks.supervisor.binding import Binding, check_fit
from agent_hooks.supervisor.channel import (
    METHODS,
    PROTOCOL_VERSION,
    HandshakeError,
    PluginChannel,
)
from agent_hooks.supervisor.config import config_text
from agent_hooks.supervisor.integrity import IntegrityError, prepare
from agent_hooks.supervisor.isolation import Confinement, IsolationError, confinement
from agent_hooks.supervisor.launcher import Launched, Launcher, LaunchError
from agent_hooks.supervisor.logs import LogPipe, PluginLog
from agent_hooks.supervisor.manifest import Limits
from agent_hooks.supervisor.peer import Pulse, check_peer, listening
from agent_hooks.supervisor.settings import Settings
from agent_hooks.supervisor.streams import Live, Streams
from agent_hooks.wire.plugin import INTERCEPT_STREAM, INTERCEPTOR, Description

_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""All that a plugin inherits of the host's environment."""

MAX_SOCKET_PATH = 100
"""Bytes; the kernel takes 107."""
_MAX_CONCURRENCY = 1024
_KILL_PATIENCE = 5.0
_DESCRIPTORS = 32
"""More than a launch needs: pipes, channel, what its level takes."""
_POLL = 0.005


class Life:
    """The resources of one launch: process, socket, channel, log, folder."""

    def __init__(
        self,
        binding: Binding,
        settings: Settings,
        launcher: Launcher,
        home: Path,
        log: PluginLog,
    ) -> None:
        self._binding = binding
        self._plugin_log = log
        self._settings = settings
        self._launcher = launcher
        self._home = home
        self._socket = home / "plugin.sock"
        self._token = secrets.token_urlsafe(32)
        self._stdin = -1
        self._pulse: Pulse | None = None
        self._launched: Launched | None = None
        self._log: LogPipe | None = None
        self._described: Description | None = None
        self._live: Live | None = None
        self._channel: PluginChannel | None = None
        self.pid = 0

    @property
    def channel(self) -> PluginChannel:
        """To the plugin, once it is launched."""
        assert self._channel is not None
        return self._channel

    @property
    def kind(self) -> str:
        """What it judges; "" before it is ready."""
        return self._described.kind if self._described is not None else ""

    @property
    def exited(self) -> asyncio.Future[str]:
        """Done with how it ended, once it has."""
        assert self._launched is not None
        return self._launched.exited

    async def launch(self) -> None:
        """Start the program in a private folder of its own.

        Raises:
            LaunchError: it cannot be started.
        """
        if len(str(self._socket)) > MAX_SOCKET_PATH:
            raise LaunchError(
                f"the socket's path would be longer than {MAX_SOCKET_PATH} bytes: "
                "set TMPDIR to a shorter folder"
            )
        with contextlib.ExitStack() as opened:
            try:
                await self._launch(opened)
            except OSError as exc:  # of the host's own: no descriptors, no disk
                raise LaunchError(f"the host cannot prepare its launch ({exc.strerror})") from None
        self._pulse = Pulse(self.pid)

    async def _launch(self, opened: contextlib.ExitStack) -> None:
        # Descriptors first: where there are none left, nothing has to be removed again,
        # and gRPC is not asked for a channel, which would abort the process.
        _require_descriptors(_DESCRIPTORS)
        self._channel = PluginChannel(self._socket, self._token)
        self._log = LogPipe(self._plugin_log, asyncio.get_running_loop())
        opened.callback(os.close, self._log.write_end)
        stdin, self._stdin = os.pipe2(os.O_CLOEXEC)
        opened.callback(os.close, stdin)
        os.write(self._stdin, json.dumps({"token": self._token}).encode() + b"\n")
        for folder in (self._home, self._home / "work", self._home / "tmp"):
            folder.mkdir(mode=0o700)
        command = await self._program()
        self._launched, self.pid = await self._launcher.launch(
            await asyncio.to_thread(self._confine, command, opened),
            self._home / "work",
            _limits(self._binding.manifest.limits),
            stdin,
            self._log.write_end,
        )

    def _confine(self, command: tuple[str, ...], opened: contextlib.ExitStack) -> Confinement:
        """What the manifest's isolation level needs, open until the launch is made."""
        manifest = self._binding.manifest
        folders = [self._home / "program"] if manifest.files else [manifest.folder]
        made = confinement(
            manifest.isolation,
            command,
            self._environment(),
            self._home,
            [*filter(None, folders), *manifest.reads],
            manifest.limits.disk_mb << 20,
        )
        try:
            return opened.enter_context(made)
        except IsolationError as exc:
            raise LaunchError(str(exc)) from None

    async def _program(self) -> tuple[str, ...]:
        """The command, its files checked; on a thread, since the loop has others to serve."""
        manifest = self._binding.manifest
        if manifest.folder is None:
            return manifest.command
        copy = self._home / "program"
        try:
            return await asyncio.to_thread(
                prepare, manifest.command, manifest.folder, manifest.files, copy
            )
        except IntegrityError as exc:
            raise LaunchError(str(exc)) from None

    def _environment(self) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        return {
            # glibc reserves 64 MiB of address space a thread unless told not to,
            # and a limit on that space would then fell a busy plugin.
            "MALLOC_ARENA_MAX": "2",
            **inherited,
            **self._binding.manifest.env,
            "HOME": str(self._home / "work"),
            "TMPDIR": str(self._home / "tmp"),
            "AGENT_HOOKS_PLUGIN_ADDRESS": f"unix://{self._socket}",
            "AGENT_HOOKS_PROTOCOL_VERSIONS": str(PROTOCOL_VERSION),
        }

    async def become_ready(self) -> None:
        """Wait for the listener, check who it is, Describe, Configure.

        Raises:
            HandshakeError, PeerError: it does not become ready; the text says why.
        """
        settings, binding = self._settings, self._binding
        deadline = time.monotonic() + settings.start_timeout
        while (listener := listening(self._socket)) is None:
            if time.monotonic() > deadline:
                raise HandshakeError(
                    "does not listen at the address in AGENT_HOOKS_PLUGIN_ADDRESS "
                    f"after {settings.start_timeout:g} s"
                )
            await asyncio.sleep(_POLL)
        check_peer(listener, self.pid)
        if binding.manifest.isolation == "isolated":  # what was launched is bubblewrap
            assert self._pulse is not None
            self._pulse.close()
            self._pulse = Pulse(listener)
        self._described = await self.channel.describe(max(deadline - time.monotonic(), 0.1))
        check_fit(binding, self._described)
        text, known = await asyncio.to_thread(config_text, binding.config)
        assert self._log is not None
        self._log.secrets = self.channel.secrets = known
        await self.channel.configure(binding.id, text, settings.configure_timeout)

    def live(self) -> Live:
        """What calls need to know of a ready plugin."""
        assert self._pulse is not None
        assert self._described is not None
        described = self._described
        method = self.channel.method(METHODS[described.kind])
        streaming = described.kind == INTERCEPTOR and INTERCEPT_STREAM in described.capabilities
        self._live = Live(
            method.future,
            method,
            described.kind,
            self.channel.metadata,
            self._pulse,
            _limit(described.max_concurrency, self._settings),
            Streams(self.channel.open_stream) if streaming else None,
        )
        return self._live

    async def quiet(self, seconds: float, hurry: asyncio.Event) -> None:
        """Wait until nothing is in flight, the time is over, or there is none."""
        end = time.monotonic() + seconds
        while (  # noqa: ASYNC110 - other threads empty it
            self._live is not None
            and self._live.in_flight
            and time.monotonic() < end
            and not hurry.is_set()
        ):
            await asyncio.sleep(_POLL)

    async def end(self, graceful: bool) -> None:
        """End the process, reap it, remove its folder. Does nothing twice.

        Args:
            graceful: Shutdown and SIGTERM first; SIGKILL at once otherwise.
        """
        if self._launched is not None and not self.exited.done():
            if graceful:
                await self._end_gracefully(self._launched)
            self._launcher.signal(self._launched, signal.SIGKILL)
            await self._gone_within(_KILL_PATIENCE)
            if not self.exited.done():
                self._launcher.abandon()
        if self._channel is not None:
            self._channel.close()
        if self._pulse is not None:
            self._pulse.close()
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1
        if self._log is not None:
            self._log.close()
        self._launcher.remove(self._home)

    async def _end_gracefully(self, launched: Launched) -> None:
        if self._described is not None:  # one that was never ready has nothing to finish
            grace = self._settings.shutdown_grace
            asking = asyncio.create_task(self.channel.shutdown(grace))
            await self._gone_within(grace)
            asking.cancel()
        self._launcher.signal(launched, signal.SIGTERM)
        await self._gone_within(self._settings.term_grace)

    async def _gone_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self.exited), seconds)


def _require_descriptors(count: int) -> None:
    """Raises OSError where so many cannot be opened."""
    with contextlib.ExitStack() as opened:
        for _ in range(count):
            opened.callback(os.close, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))


def _limits(limits: Limits) -> dict[str, int]:
    return {
        "address_space": limits.address_space_mb << 20,
        "open_files": limits.open_files,
        "disk": limits.disk_mb << 20,
    }


def _limit(described: int, settings: Settings) -> int:
    return min(described, _MAX_CONCURRENCY) if described > 0 else settings.concurrency
