"""A host with three plugins under load, and the ways to get at each of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agent_hooks.host import InterceptionEmitter, SyncInterceptionEmitter
from agent_hooks.supervisor import Binding, Manifest, Settings, Supervisor
from agent_hooks.supervisor.manifest import Limits
from tests.chaos.ledger import Complaints, Emission, Ledger, Violation
from tests.chaos.load import Load
from tests.chaos.plan import EVEN, PLUGINS, UNARY, Slot
from tests.processes.support import BAD, processes, status, until
from tests.shared import ROOT

HERE = Path(__file__).parent
SETTINGS = Settings(
    health_interval=0.5,
    suspect_interval=0.05,
    health_timeout=0.3,
    circuit_timeouts=3,
    backoff_first=0,  # what is measured is a restart outside back-off
    quarantine_restarts=1_000_000,
    shutdown_grace=2,
    term_grace=0.3,
)
DISK_MB = 64
LOGGERS = ("agent_hooks", "asyncio")


def manifest(plugin: str, seen: Path) -> Manifest:
    """Of one of the PLUGINS, which writes what it was sent to a file in `seen`."""
    program = ("even.py", plugin) if plugin == EVEN else ("raw.py", plugin, str(BAD))
    command = (sys.executable, str(HERE / "plugins" / program[0]), *program[1:])
    env = {
        "CHAOS_SEEN": str(seen / plugin),
        "PYTHONPATH": str(ROOT),
        "GRPC_VERBOSITY": "NONE",
    }
    return Manifest(plugin, plugin, command, env=env, limits=Limits(disk_mb=DISK_MB))


class Arena:
    """Where faults happen. A context manager; everything in it is made anew.

    Attributes:
        left: the processes that its end has left.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ah-"))
        self.home = self.folder / "t"
        self.seen = self.folder / "seen"
        for folder in (self.home, self.seen):
            folder.mkdir()
        self.ledger = Ledger(self.seen)
        self.manifests = {name: manifest(name, self.seen) for name in PLUGINS}
        bindings = [Binding(name, made) for name, made in self.manifests.items()]
        self.supervisor = Supervisor(bindings, SETTINGS)
        self.left: dict[int, str] = {}

    def __enter__(self) -> Arena:
        with contextlib.ExitStack() as undo:
            undo.callback(shutil.rmtree, self.folder, ignore_errors=True)
            undo.callback(self._look_back)
            undo.enter_context(_temporary(self.home))
            undo.enter_context(_listening(self.ledger))
            undo.enter_context(self.supervisor)
            self.interceptors = {name: self.supervisor.interceptor(name) for name in PLUGINS}
            self.load = Load(self.interceptors, self.ledger)
            undo.callback(self.load.close)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def _look_back(self) -> None:
        """Once everything is closed."""
        with contextlib.suppress(AssertionError):
            until(lambda: not self.family(), 5)
        self.left = self.family()

    # -- the plugins --

    def status(self, plugin: str) -> dict[str, Any]:
        """Of its binding."""
        return status(self.supervisor, plugin)

    def pid(self, plugin: str) -> int:
        """Of its ready process; waits until it is."""

        def ready() -> Any:
            now = self.status(plugin)
            return now["state"] in ("ready", "suspect") and now["pid"]

        return int(until(ready, what=f"{plugin} is not ready within 20 s"))

    def kill(self, plugin: str, number: int = signal.SIGKILL) -> int:
        """Signal its process; the pid."""
        pid = self.pid(plugin)
        os.kill(pid, number)
        return pid

    def keeper(self, plugin: str) -> int:
        """The process between the warden and it."""
        return _parent(self.pid(plugin))

    def warden(self) -> int:
        """The process above all keepers."""
        return _parent(self.keeper(UNARY))

    def family(self) -> dict[int, str]:
        """All processes of this host, by pid."""
        return processes(str(self.home))

    def socket(self, plugin: str) -> Path:
        """Where its ready process listens."""
        number = PLUGINS.index(plugin)
        found = self.home.glob(f"agent-hooks-*/{number}.*/plugin.sock")
        return max(found, key=lambda path: int(path.parent.name.split(".")[1]))

    # -- one emission --

    def poke(
        self, plugin: str, slot: Slot, timeout: float = 5.0, is_async: bool = False, **args: Any
    ) -> str:
        """One emission through that plugin alone; its reason, or its decision.

        Args:
            slot: what it must hold.
            args: of the tool call: `fault`, `sleep`.
        """
        return self._poke(plugin, slot, timeout, is_async, self.ledger.context(**args))

    @contextlib.contextmanager
    def poking(self, plugin: str, slot: Slot, **args: Any) -> Iterator[None]:
        """Have such an emission with the plugin inside the `with` block, and ended after it."""
        context = self.ledger.context(**args)
        has_come = self.coming(plugin, context["sequence"])

        def work() -> None:
            try:
                self._poke(plugin, slot, 5.0, False, context)
            except Exception as exc:
                self.ledger.complain(f"emit_unchecked raised {type(exc).__name__}")

        caller = threading.Thread(target=work)
        caller.start()
        until(has_come, what=f"{plugin} was not sent emission {context['sequence']}")
        try:
            yield
        finally:
            caller.join(30)
            if caller.is_alive():
                raise Violation("an emission hangs for 30 s")

    def coming(self, plugin: str, number: int) -> Callable[[], bool]:
        """Tells whether that emission, not yet begun, has come to the plugin."""
        path, noted = self.seen / plugin, b"\n%d\n" % number
        size = path.stat().st_size

        def has_come() -> bool:
            with path.open("rb") as file:
                file.seek(max(size - 1, 0))
                return noted in file.read()

        return has_come

    def _poke(
        self, plugin: str, slot: Slot, timeout: float, is_async: bool, context: dict[str, Any]
    ) -> str:
        kind = InterceptionEmitter if is_async else SyncInterceptionEmitter
        emitter: Any = kind().set_record_sink(self.ledger.keep)
        emitter.register(self.interceptors[plugin], plugin, timeout=timeout)
        began = time.monotonic()
        record = emitter.emit_unchecked(context)
        if is_async:
            record = asyncio.run(record)
        seconds = time.monotonic() - began
        self.ledger.ended(Emission(context["sequence"], (plugin,), record, seconds, timeout, slot))
        return str(record.verdict.reason or record.verdict.decision.value)


def _parent(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_bytes()
    return int(stat[stat.rindex(b")") + 2 :].split()[1])


@contextlib.contextmanager
def _temporary(folder: Path) -> Iterator[None]:
    kept, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = kept


@contextlib.contextmanager
def _listening(ledger: Ledger) -> Iterator[None]:
    """Errors that are logged and threads that break become the ledger's complaints."""
    handler, hook = Complaints(ledger), threading.excepthook
    levels = {name: logging.getLogger(name).level for name in LOGGERS}
    propagates = {name: logging.getLogger(name).propagate for name in LOGGERS}
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False  # warnings are what this is about
    threading.excepthook = lambda args: ledger.complain(
        f"{args.thread and args.thread.name} raised {args.exc_type.__name__}"
    )
    try:
        yield
    finally:
        threading.excepthook = hook
        for name in LOGGERS:
            logger = logging.getLogger(name)
            logger.removeHandler(handler)
            logger.propagate = propagates[name]
            logger.setLevel(levels[name])
