"""serve(): from a launched process to a plugin."""

from __future__ import annotations

import json
import os
import signal
import threading
from concurrent import futures

import grpc

from agent_hooks.plugin.author import Interceptor, read_author
from agent_hooks.plugin.service import PluginServer, log
from agent_hooks.wire.plugin import MAX_STREAMS
from agent_hooks.wire.status import MAX_MESSAGE_BYTES

ADDRESS = "AGENT_HOOKS_PLUGIN_ADDRESS"

_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)
_MAX_TOKEN_LINE = 65536
_SPARE_WORKERS = 2
"""Beside the judging ones, so that health and shutdown are answered under full load."""


def serve(plugin: Interceptor | object) -> None:
    """Serve an interceptor or an approval resolver; return when the host is done with it.

    Listens where the host says, takes the token from the first line of
    standard input, and ends on Shutdown, SIGTERM, or when the host is gone.

    Raises:
        TypeError: `plugin` has neither `intercept` nor `resolve`.
        SystemExit: not launched by a host (2), or the address cannot be bound (1).
    """
    author = read_author(plugin)
    address = os.environ.get(ADDRESS)
    if not address:
        log(
            f"{author.name} is a plugin: a host launches it with {ADDRESS} set. "
            "Put its command into a plugin.toml and name that folder to the host."
        )
        raise SystemExit(2)
    stop = _Stop()
    signal.signal(signal.SIGTERM, lambda *_: stop(2.0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's ^C is for the host
    token = _read_token()
    # A stream has a worker as long as it is open, used or not.
    workers = author.max_concurrency + min(author.max_concurrency, MAX_STREAMS) + _SPARE_WORKERS
    server = grpc.server(_workers(workers), options=_OPTIONS)
    service = PluginServer(author, token, stop)
    server.add_generic_rpc_handlers(service.handlers())
    try:
        server.add_insecure_port(address.replace("unix://", "unix:", 1))
    except RuntimeError:
        log(f"{author.name} cannot listen at the address in {ADDRESS}")
        raise SystemExit(1) from None
    server.start()
    threading.Thread(target=_watch_host, daemon=True).start()
    stopped = server.stop(stop.wait())
    service.drain()
    stopped.wait()
    if service.busy:
        log(f"{author.name}: {service.busy} calls have not returned after the grace")
        os._exit(0)  # their threads would be waited for


def _workers(count: int) -> futures.ThreadPoolExecutor:
    """A pool whose threads all run already: too tight a limit fails now, not under load."""
    pool = futures.ThreadPoolExecutor(count)
    all_run = threading.Barrier(count + 1)
    for _ in range(count):
        pool.submit(all_run.wait)
    all_run.wait()
    return pool


class _Stop:
    """Called once with a grace; `wait` returns it."""

    def __init__(self) -> None:
        self._grace = 0.0
        self._called = threading.Event()

    def __call__(self, grace: float) -> None:
        if not self._called.is_set():
            self._grace = grace
            self._called.set()

    def wait(self) -> float:
        self._called.wait()
        return self._grace


def _read_token() -> str | None:
    """From the first line; unbuffered, so that nothing holds a lock at the end."""
    line = b""
    while not line.endswith(b"\n") and len(line) < _MAX_TOKEN_LINE:
        byte = os.read(0, 1)
        if not byte:
            break
        line += byte
    try:
        first = json.loads(line)
    except ValueError:
        return None
    token = first.get("token") if isinstance(first, dict) else None
    return token if isinstance(token, str) else None


def _watch_host() -> None:
    """Standard input is the lifeline: its end means that the host is gone."""
    while os.read(0, 4096):
        pass
    os._exit(0)
