"""An operator's way into a running host: a socket in the supervisor's private folder.

One JSON object a line: a request with `op`, and an answer, which has `error`
where the request could not be done. The folder is the user's alone, and so is
who may connect.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_hooks.supervisor.peer import credentials
from agent_hooks.supervisor.process import LIFE_ERRORS, PluginProcess
from agent_hooks.supervisor.usage import usage

SOCKET = "control.sock"
PREFIX = "agent-hooks-"
_MAX_LINE = 1 << 20
_PATIENCE = 5.0
"""Seconds for an operator's request to arrive, and for its answer to be read."""


class ControlError(RuntimeError):
    """A request that a host could not do; the text says why."""


def status_of(name: str, plugin: PluginProcess) -> dict[str, Any]:
    """One binding for an operator, payload-free: id, kind, state, pid, calls, use, last_error."""
    calls, used = plugin.calls, usage(plugin.pid)
    return {
        "id": name,
        "kind": plugin.binding.manifest.kind,
        "state": plugin.state.value,
        "pid": plugin.pid,
        "restarts": plugin.restarts,
        "in_flight": calls.in_flight,
        "waiting": calls.waiting,
        "answered": calls.counters.answered,
        "failed": calls.counters.failed,
        "timed_out": calls.counters.timed_out,
        "refused": calls.counters.refused,
        "processes": used.processes,
        "resident_bytes": used.resident_bytes,
        "cpu_seconds": used.cpu_seconds,
        "log_lines_dropped": plugin.log.dropped,
        "last_error": plugin.last_error,
    }


class Control:
    """Answers operators on the supervisor's loop.

    Args:
        upgrade: launches a binding anew, beside itself.
    """

    def __init__(
        self, plugins: Mapping[str, PluginProcess], upgrade: Callable[[PluginProcess], Any]
    ) -> None:
        self._plugins = plugins
        self._upgrade = upgrade
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._operations: dict[str, Callable[[PluginProcess, dict[str, Any]], Any]] = {
            "reset": self._reset,
            "reload": self._reload,
            "ping": self._ping,
            "logs": self._logs,
        }

    async def open(self, folder: Path) -> None:
        """Listen in the supervisor's folder."""
        self._server = await asyncio.start_unix_server(
            self._serve, folder / SOCKET, limit=_MAX_LINE
        )

    def close(self) -> None:
        """Listen no more, and wait for nobody who says nothing or reads nothing."""
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            if credentials(writer.get_extra_info("socket"))[1] not in (0, os.geteuid()):
                return
            async with asyncio.timeout(_PATIENCE):
                request = json.loads(await reader.readline())
            answer = await self._answer(request)
            async with asyncio.timeout(_PATIENCE):
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except asyncio.CancelledError:
            pass  # by `close`; the stream's own callback would report it as an error
        except (OSError, ValueError, RecursionError):
            pass  # it hung up, spoke no JSON, or let us wait (TimeoutError)
        finally:
            self._serving.discard(task)
            writer.transport.abort()

    async def _answer(self, request: Any) -> dict[str, Any]:
        asked = request if isinstance(request, dict) else {}
        operation = asked.get("op")
        if operation == "status":
            plugins = [status_of(name, plugin) for name, plugin in self._plugins.items()]
            return {"pid": os.getpid(), "plugins": plugins}
        work = self._operations.get(operation) if isinstance(operation, str) else None
        if work is None:
            return {"error": f"op: expected status, {', '.join(self._operations)}"}
        name = asked.get("id")
        plugin = self._plugins.get(name) if isinstance(name, str) else None
        if plugin is None:
            return {"error": f"no such plugin; this host has {', '.join(self._plugins)}"}
        answer: dict[str, Any] = await work(plugin, asked)
        return answer

    async def _reset(self, plugin: PluginProcess, _: dict[str, Any]) -> dict[str, Any]:
        plugin.reset()
        return {"state": plugin.state.value}

    async def _reload(self, plugin: PluginProcess, _: dict[str, Any]) -> dict[str, Any]:
        before = plugin.pid
        try:
            await self._upgrade(plugin)
        except LIFE_ERRORS as error:
            return {"error": f"the new process did not become ready, the present stays: {error}"}
        return {"before": before, "pid": plugin.pid}

    async def _ping(self, plugin: PluginProcess, _: dict[str, Any]) -> dict[str, Any]:
        began = time.perf_counter()
        if not await plugin.healthy():
            return {"error": f"no answer; it is {plugin.state.value}: {plugin.last_error}"}
        return {"pid": plugin.pid, "seconds": time.perf_counter() - began}

    async def _logs(self, plugin: PluginProcess, _: dict[str, Any]) -> dict[str, Any]:
        return {"lines": plugin.log.recent(), "dropped": plugin.log.dropped}


def hosts(folder: Path | None = None) -> dict[int, Path]:
    """The running hosts of this user, by pid, each with its socket.

    Args:
        folder: where supervisors make theirs; None takes the temporary folder.
    """
    found: dict[int, Path] = {}
    for path in (folder or Path(tempfile.gettempdir())).glob(f"{PREFIX}*/{SOCKET}"):
        with contextlib.suppress(ControlError, OSError):
            if path.stat().st_uid == os.geteuid():
                found[ask(path, {"op": "status"}, 5)["pid"]] = path
    return found


def ask(path: Path, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """One request to a host.

    Args:
        timeout: seconds.

    Raises:
        ControlError: no host answers there, or it could not do it.
    """
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout)
            connection.connect(str(path))
            connection.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(connection.makefile("rb").readline() or b"null")
    except (OSError, ValueError) as error:
        raise ControlError(f"no host answers at {path} ({type(error).__name__})") from None
    if not isinstance(answer, dict):
        raise ControlError(f"no host answers at {path}")
    if "error" in answer:
        raise ControlError(str(answer["error"]))
    return answer
