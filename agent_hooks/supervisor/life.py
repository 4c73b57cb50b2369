"""One launch of one plugin: its process, and everything that belongs to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_hooks.core.canonical import json_text
from agent_hooks.core.values import ValueDomainError, admit
from agent_hooks.supervisor.channel import (
    METHODS,
    PROTOCOL_VERSION,
    ConfigRefusedError,
    HandshakeError,
    PluginChannel,
)
from agent_hooks.supervisor.launcher import Launched, Launcher, LaunchError
from agent_hooks.supervisor.logs import LogPipe
from agent_hooks.supervisor.manifest import Limits, Manifest
from agent_hooks.supervisor.peer import Pulse, check_peer, listening
from agent_hooks.supervisor.settings import Settings
from agent_hooks.supervisor.streams import Live, Streams
from agent_hooks.wire.plugin import INTERCEPT_STREAM, INTERCEPTOR, Description

_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""All that a plugin inherits of the host's environment."""

_MAX_SOCKET_PATH = 100
_MAX_CONCURRENCY = 1024
_KILL_PATIENCE = 5.0
_POLL = 0.005


@dataclass(frozen=True, slots=True)
class Binding:
    """One use of a plugin: its own configuration, its own process.

    Attributes:
        id: the host's name for it, in records and logs.
        config: JSON object handed over by Configure.
        timeout: seconds for one call; None takes the manifest's.
        points: where it is bound; None takes the manifest's.
    """

    id: str
    manifest: Manifest
    config: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    points: tuple[str, ...] | None = None


class Life:
    """The resources of one launch: process, socket, channel, log, folder."""

    def __init__(
        self, binding: Binding, settings: Settings, launcher: Launcher, home: Path
    ) -> None:
        self._binding = binding
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
        self.pid = 0
        self.channel = PluginChannel(self._socket, self._token)

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
        if len(str(self._socket)) > _MAX_SOCKET_PATH:
            raise LaunchError(
                f"the socket's path would be longer than {_MAX_SOCKET_PATH} bytes: "
                "set TMPDIR to a shorter folder"
            )
        for folder in (self._home, self._home / "work", self._home / "tmp"):
            folder.mkdir(mode=0o700)
        loop = asyncio.get_running_loop()
        self._log = LogPipe(self._binding.id, self._settings.max_log_line, loop)
        stdin, self._stdin = os.pipe2(os.O_CLOEXEC)
        try:
            os.write(self._stdin, json.dumps({"token": self._token}).encode() + b"\n")
            self._launched, self.pid = await self._launcher.launch(
                self._binding.manifest.command,
                self._environment(),
                self._home / "work",
                _limits(self._binding.manifest.limits),
                stdin,
                self._log.write_end,
            )
        finally:
            os.close(stdin)
            os.close(self._log.write_end)
        self._pulse = Pulse(self.pid)

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
        self._described = await self.channel.describe(max(deadline - time.monotonic(), 0.1))
        _check_points(binding, self._described)
        await self.channel.configure(
            binding.id, _config_text(binding.config), settings.configure_timeout
        )

    def live(self) -> Live:
        """What calls need to know of a ready plugin."""
        assert self._pulse is not None
        assert self._described is not None
        described = self._described
        method = self.channel.method(METHODS[described.kind])
        streaming = described.kind == INTERCEPTOR and INTERCEPT_STREAM in described.capabilities
        return Live(
            method.future,
            method,
            described.kind,
            self.channel.metadata,
            self._pulse,
            _limit(described.max_concurrency, self._settings),
            Streams(self.channel.open_stream) if streaming else None,
        )

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
        self.channel.close()
        if self._pulse is not None:
            self._pulse.close()
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1
        if self._log is not None:
            self._log.close()
        shutil.rmtree(self._home, ignore_errors=True)

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


def _limits(limits: Limits) -> dict[str, int]:
    return {"address_space": limits.address_space_mb << 20, "open_files": limits.open_files}


def _config_text(config: Mapping[str, Any]) -> str:
    try:
        plain, flags = admit(dict(config))
        return json_text(plain, flags)
    except ValueDomainError as refusal:
        raise ConfigRefusedError(
            f"its configuration is refused:\n{refusal.pointer or '(root)'}: {refusal.problem}"
        ) from None


def _limit(described: int, settings: Settings) -> int:
    return min(described, _MAX_CONCURRENCY) if described > 0 else settings.concurrency


def _check_points(binding: Binding, described: Description) -> None:
    wanted = set(binding.points or binding.manifest.points)
    if described.kind == INTERCEPTOR and not wanted <= set(described.points):
        raise HandshakeError(
            f"it is bound at {', '.join(sorted(wanted.difference(described.points)))}, "
            f"but says that it serves only {', '.join(described.points) or 'no point'}"
        )
