"""Judges as even.py does, in raw bytes, and misbehaves in every way that the process tests know.

    raw.py unary|stream BAD

BAD is the process tests' misbehaving plugin: its answers are this one's, where a
context names a fault. `unary` stands behind a pump that can spoil a connection.
"""

import contextlib
import importlib.util
import os
import socket
import sys
import threading
import time

import grpc
from deeds import DEEDS, note

MODE = sys.argv[1]


def definitions(path):
    """What that program defines: in the mode `exit` it ends before it listens."""
    spec = importlib.util.spec_from_file_location("bad", path)
    module = importlib.util.module_from_spec(spec)
    sys.argv = [path, "exit"]
    try:
        spec.loader.exec_module(module)
    except SystemExit:
        module.MODE, module.grpc = MODE, grpc
    return module


BAD = definitions(sys.argv[2])
FAULTY = BAD.intercept
WELL = (None, "answers_twice", "ends_after")
"""Faults that the answer itself has no part in."""


def verdict(number: int) -> bytes:
    if number % 2:
        return BAD.answer(BAD.DENY, BAD.field(2, "odd"))
    return BAD.answer(BAD.ALLOW, BAD.field(8, f"{MODE}:{number}"))


def intercept(request: bytes, call) -> bytes:
    number = int(BAD.argument(request, b"n"))
    note(number)
    fault = BAD.argument(request, b"fault")
    if fault in DEEDS:
        DEEDS[fault]()
    elif fault in PUMP.spoiling:
        PUMP.spoil(fault)
    elif fault not in WELL:
        return FAULTY(request, call)
    time.sleep(float(BAD.argument(request, b"sleep") or 0))
    return verdict(number)


class Pump:
    """Hands the bytes of connections on, both ways; a fault spoils what the host receives."""

    spoiling = ("drip", "drip_late", "corrupt", "reset")
    piece = 4  # bytes

    def __init__(self, address: str, inner: str) -> None:
        self._inner = inner
        self._fault, self._until = "", 0.0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen()

    def run(self) -> None:
        while True:
            outer, _ = self._listener.accept()
            inner = socket.socket(socket.AF_UNIX)
            try:
                inner.connect(self._inner)
            except OSError:
                inner.close()
                outer.close()
                continue
            for way in ((outer, inner, inner.sendall), (inner, outer, self._spoiled(outer))):
                threading.Thread(target=self._copy, args=way, daemon=True).start()

    def spoil(self, fault: str) -> None:
        """From now on: once, or for a moment."""
        self._fault, self._until = fault, time.monotonic() + 0.25

    def _copy(self, source, target, send) -> None:
        try:
            while data := source.recv(65536):
                send(data)
        except OSError:
            pass
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _spoiled(self, outer):
        def send(data: bytes) -> None:
            fault = self._fault
            if fault in ("corrupt", "reset"):
                self._fault = ""
                if fault == "reset":
                    raise OSError
                outer.sendall(b"\xff" * 32)  # no frame of HTTP/2 begins so
            while fault and data and time.monotonic() < self._until:
                outer.sendall(data[: self.piece])
                data = data[self.piece :]
                time.sleep(0.05 if fault == "drip_late" else 0.002)
            outer.sendall(data)

        return send


class NoPump:
    spoiling = ()


BAD.intercept = intercept
BAD.ENDING = threading.Event()
if MODE == "unary":
    OUTER = os.environ["AGENT_HOOKS_PLUGIN_ADDRESS"].removeprefix("unix://")
    os.environ["AGENT_HOOKS_PLUGIN_ADDRESS"] = "unix:inner.sock"
    BAD.SERVER = BAD.listen()
    PUMP = Pump(OUTER, "inner.sock")
    threading.Thread(target=PUMP.run, daemon=True).start()
else:
    PUMP = NoPump()
    BAD.SERVER = BAD.listen()
BAD.ENDING.wait()
BAD.SERVER.stop(None)
os._exit(0)
