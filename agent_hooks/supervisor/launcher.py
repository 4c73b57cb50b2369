"""The host's end of the warden: launch, signal, hear of exits."""

from __future__ import annotations

import array
import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_hooks.supervisor.isolation import Confinement

_WARDEN = Path(__file__).parent / "warden" / "warden.py"
MAX_MESSAGE = 1 << 20
_WARDEN_PATIENCE = 5.0
"""Seconds in which a warden answers, or ends."""


class LaunchError(RuntimeError):
    """A program that could not be started; the text says why."""


@dataclass(slots=True)
class Launched:
    """One launch, seen from the host.

    Attributes:
        exited: done with a text that says how the process ended.
    """

    id: int
    exited: asyncio.Future[str]
    pid: asyncio.Future[int]


@dataclass(slots=True)
class Launcher:
    """Owned by the supervisor's thread; every method runs on its loop.

    One warden serves all launches; it is started with the first, and anew if
    it was lost.
    """

    base: Path
    _loop: asyncio.AbstractEventLoop
    _control: socket.socket | None = None
    _warden: subprocess.Popen[bytes] | None = None
    _launches: dict[int, Launched] = field(default_factory=dict)
    _count: int = 0
    _folders: set[Path] = field(default_factory=set)

    async def launch(
        self,
        confinement: Confinement,
        cwd: Path,
        limits: Mapping[str, int],
        stdin: int,
        log: int,
    ) -> tuple[Launched, int]:
        """Start a program; the two descriptors become its standard input and its outputs.

        Args:
            confinement: the program, and what its isolation level needs.
            cwd: its working directory, in the launch's own folder.
            limits: address_space and disk in bytes; open_files.

        Raises:
            LaunchError: not found, not executable, or no warden.
        """
        control = self._connected()
        self._count += 1
        launched = Launched(self._count, self._loop.create_future(), self._loop.create_future())
        self._launches[launched.id] = launched
        command = {
            "op": "spawn",
            "id": launched.id,
            "argv": list(confinement.command),
            "env": dict(confinement.environment),
            "cwd": str(cwd),
            "limits": dict(limits),
            "level": confinement.level,
        }
        fds = array.array("i", [stdin, log, *confinement.descriptors])
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds.tobytes())]
        try:
            control.sendmsg([json.dumps(command).encode()], ancillary)
        except OSError as exc:
            self.abandon()
            raise LaunchError(f"the warden cannot be reached ({exc.strerror})") from None
        try:
            return launched, await asyncio.wait_for(asyncio.shield(launched.pid), _WARDEN_PATIENCE)
        except TimeoutError:
            self.abandon()
            raise LaunchError("the warden does not answer") from None

    def signal(self, launched: Launched, number: int) -> None:
        """Send a signal to the launch's process group; nothing if it has ended."""
        if self._control is not None and not launched.exited.done():
            message = {"op": "signal", "id": launched.id, "signal": number}
            with contextlib.suppress(OSError):
                self._control.send(json.dumps(message).encode())

    def remove(self, folder: Path) -> None:
        """Remove a launch's folder; with a later one, where no descriptor is left to do it."""
        self._folders.add(folder)
        for one in tuple(self._folders):
            shutil.rmtree(one, ignore_errors=True)
            if not one.exists():
                self._folders.discard(one)

    def close(self) -> None:
        """End the warden, and with it whatever is still running."""
        if self._control is not None:
            self._loop.remove_reader(self._control)
            self._control.close()
            self._control = None
        if self._warden is not None:
            try:
                self._warden.wait(_WARDEN_PATIENCE)
            except subprocess.TimeoutExpired:
                self._warden.kill()  # the kernel kills its plugins
                self._warden.wait()
            self._warden = None

    def _connected(self) -> socket.socket:
        if self._control is not None:
            return self._control
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [sys.executable, "-I", "-S", str(_WARDEN)]
        argv += [str(theirs.fileno()), str(os.getpid()), str(self.base)]
        self._warden = subprocess.Popen(
            argv,
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": os.defpath},
            start_new_session=True,  # the terminal's ^C is not for it
        )
        theirs.close()
        ours.setblocking(False)
        self._loop.add_reader(ours, self._heard)
        self._control = ours
        return ours

    def _heard(self) -> None:
        assert self._control is not None
        try:
            data = self._control.recv(MAX_MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.abandon()
            return
        message = json.loads(data)
        if "spawned" in message:
            self._launches[message["spawned"]].pid.set_result(message["pid"])
        elif "failed" in message:
            launched = self._launches.pop(message["failed"])
            reason = os.strerror(message["errno"])
            launched.exited.set_result("never started")
            launched.pid.set_exception(LaunchError(f"cannot execute its command: {reason}"))
        else:
            self._exited(self._launches.pop(message["exited"]), _how(message))

    def _exited(self, launched: Launched, how: str) -> None:
        if not launched.exited.done():
            launched.exited.set_result(how)

    def abandon(self) -> None:
        """Kill a warden that is dead or deaf; the kernel kills its plugins."""
        if self._control is not None:
            self._loop.remove_reader(self._control)
            self._control.close()
            self._control = None
        if self._warden is not None:
            self._warden.kill()
            self._warden.wait()
            self._warden = None
        for launched in list(self._launches.values()):
            if not launched.pid.done():
                launched.pid.set_exception(LaunchError("the warden died"))
            self._exited(launched, "killed with the warden")
        self._launches.clear()


def _how(message: dict[str, Any]) -> str:
    if "why" in message:
        return f"was killed: {message['why']}"
    if message["code"] == os.CLD_EXITED:
        return f"exited with status {message['status']}"
    return f"was killed by signal {message['status']}"
