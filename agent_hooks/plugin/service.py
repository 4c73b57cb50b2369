"""The gRPC services over an author's object."""

from __future__ import annotations

import asyncio
import hmac
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import grpc

from agent_hooks.core import canonical
from agent_hooks.core.approval import ApprovalResolution
from agent_hooks.core.context import SPEC_VERSION
from agent_hooks.core.values import MAX_DEPTH, ValueDomainError
from agent_hooks.core.verdict import VerdictError, check_verdict
from agent_hooks.plugin.author import Author, ConfigError, check_config
from agent_hooks.v1 import approval_pb2, interceptor_pb2, plugin_pb2, verdict_pb2
from agent_hooks.wire.approval import decode_resolve, encode_resolution
from agent_hooks.wire.context import decode_context
from agent_hooks.wire.fields import WireError
from agent_hooks.wire.plugin import (
    APPROVAL_RESOLVER,
    INTERCEPTOR,
    Description,
    encode_description,
)
from agent_hooks.wire.verdict import encode_response, encode_verdict

PROTOCOL_VERSION = 1
TOKEN_METADATA = "agent-hooks-token"  # noqa: S105 - the name, not a secret

_MAX_DETAILS = 4096
_SERVING = b"\x08\x01"  # grpc.health.v1.HealthCheckResponse{status: SERVING}


def log(line: str) -> None:
    """One line to standard error, which the host hands on with the plugin's name."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


class PluginServer:
    """Answers every RPC of the protocol for one author's object.

    Args:
        author: what is served.
        token: what callers must show; None where the host gave none.
        on_shutdown: called with the grace in seconds, once.

    Attributes:
        busy: calls that the author's code has not returned from.
    """

    def __init__(
        self, author: Author, token: str | None, on_shutdown: Callable[[float], None]
    ) -> None:
        self._author = author
        self._token = token
        self._on_shutdown = on_shutdown
        self._configured = False
        self.busy = 0
        self._loop = _start_loop() if author.is_async else None

    def handlers(self) -> list[grpc.GenericRpcHandler]:
        """For `grpc.Server.add_generic_rpc_handlers`."""
        judged = (
            ("ApprovalResolverService", "Resolve", self._resolve, approval_pb2.ResolveRequest)
            if self._author.is_resolver
            else (
                "InterceptorService",
                "Intercept",
                self._intercept,
                interceptor_pb2.InterceptRequest,
            )
        )
        plugin = (
            ("Describe", self._describe, plugin_pb2.DescribeRequest),
            ("Configure", self._configure, plugin_pb2.ConfigureRequest),
            ("Shutdown", self._shutdown, plugin_pb2.ShutdownRequest),
        )
        return [
            self._service(f"agent_hooks.v1.{judged[0]}", judged[1:]),
            self._service("agent_hooks.v1.PluginService", *plugin),
            self._service("grpc.health.v1.Health", ("Check", lambda *_: _SERVING, None)),
        ]

    def _service(self, name: str, *methods: Any) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            name,
            {
                method: grpc.unary_unary_rpc_method_handler(
                    self._guarded(behaviour), kind.FromString if kind else None, None
                )
                for method, behaviour, kind in methods
            },
        )

    def _guarded(self, behaviour: Callable[[Any, grpc.ServicerContext], bytes]) -> Any:
        def guarded(request: Any, call: grpc.ServicerContext) -> bytes:
            if self._token is not None and not self._knows(call):
                call.abort(grpc.StatusCode.UNAUTHENTICATED, f"{TOKEN_METADATA} is missing or wrong")
            return behaviour(request, call)

        return guarded

    def _knows(self, call: grpc.ServicerContext) -> bool:
        shown = next((v for k, v in call.invocation_metadata() if k == TOKEN_METADATA), "")
        return hmac.compare_digest(str(shown).encode(), str(self._token).encode())

    def _describe(self, request: plugin_pb2.DescribeRequest, call: grpc.ServicerContext) -> bytes:
        author = self._author
        if PROTOCOL_VERSION not in request.protocol_versions:
            call.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"the plugin speaks protocol version {PROTOCOL_VERSION}, "
                f"the host {list(request.protocol_versions)}",
            )
        return encode_description(
            Description(
                author.name,
                author.version,
                PROTOCOL_VERSION,
                (SPEC_VERSION,),
                APPROVAL_RESOLVER if author.is_resolver else INTERCEPTOR,
                author.points,
                canonical.canonical_json(author.config_schema) if author.config_schema else None,
                author.max_concurrency,
            )
        )

    def _configure(self, request: plugin_pb2.ConfigureRequest, call: grpc.ServicerContext) -> bytes:
        try:
            config = canonical.parse(request.config_json or "{}", MAX_DEPTH)
            check_config(self._author, config)
        except ValueDomainError as refusal:
            call.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"{refusal.pointer or '(root)'}: {refusal.problem}",
            )
        except ConfigError as refusal:
            call.abort(grpc.StatusCode.INVALID_ARGUMENT, _short(str(refusal)))
        except Exception as exc:  # noqa: BLE001 - an author's bug must reach the operator
            _abort_raised("configure", exc, call)
        self._configured = True
        return b""

    def _shutdown(self, request: plugin_pb2.ShutdownRequest, _: grpc.ServicerContext) -> bytes:
        self._on_shutdown(request.grace_ms / 1000)
        return b""

    def _intercept(
        self, request: interceptor_pb2.InterceptRequest, call: grpc.ServicerContext
    ) -> bytes:
        try:
            context = decode_context(request.context)
        except WireError as refusal:
            call.abort(grpc.StatusCode.INVALID_ARGUMENT, str(refusal))
        returned = self._judge("intercept", context, call)
        try:
            return encode_response(check_verdict(returned))
        except VerdictError as refusal:
            log(f"intercept returned no valid verdict: {refusal}")
            return encode_response(None)

    def _resolve(self, request: approval_pb2.ResolveRequest, call: grpc.ServicerContext) -> bytes:
        try:
            asked = decode_resolve(request)
        except WireError as refusal:
            call.abort(grpc.StatusCode.INVALID_ARGUMENT, str(refusal))
        answer = self._judge("resolve", asked, call)
        if not isinstance(answer, ApprovalResolution):
            log("resolve returned no ApprovalResolution")
            return b""
        try:
            return _encode_answer(answer)
        except (ValueError, TypeError) as exc:  # an outcome or identity of another type
            log(f"resolve returned no valid ApprovalResolution ({type(exc).__name__})")
            return b""

    def _judge(self, what: str, argument: Any, call: grpc.ServicerContext) -> Any:
        if not self._configured:
            call.abort(grpc.StatusCode.FAILED_PRECONDITION, "Configure comes first")
        self.busy += 1
        try:
            if self._loop is None:
                return self._author.judge(argument)
            work = _contained(self._author.judge(argument))
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except BaseException as exc:  # noqa: BLE001 - an author's bug, an exit too, is a failed call
            _abort_raised(what, exc, call)
        finally:
            self.busy -= 1


def _encode_answer(answer: ApprovalResolution) -> bytes:
    outcome, identity = answer.outcome, answer.context_identity
    if answer.verdict is None:
        return encode_resolution(outcome, identity, None)
    try:
        verdict = encode_verdict(check_verdict(answer.verdict))
    except VerdictError as refusal:
        log(f"resolve returned no valid verdict: {refusal}")
        verdict = verdict_pb2.Verdict()  # the host reports it as one that §5 refuses
    return encode_resolution(outcome, identity, verdict)


class _ExitError(Exception):
    """The author's coroutine tried to end the process; asyncio would end its loop."""


async def _contained(work: Any) -> Any:
    try:
        return await work
    except (SystemExit, KeyboardInterrupt) as exc:
        raise _ExitError(type(exc).__name__) from None


def _abort_raised(what: str, exc: BaseException, call: grpc.ServicerContext) -> NoReturn:
    """Say where it raised; never the exception's text, which may hold a target (§14)."""
    frames = traceback.extract_tb(exc.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    log(f"{what} raised {type(exc).__name__}{place}")
    call.abort(grpc.StatusCode.INTERNAL, f"{what} raised {type(exc).__name__}")
    raise AssertionError("abort always raises")


def _short(findings: str) -> str:
    """As much as a gRPC status carries; more would change the status."""
    lines, kept = findings.splitlines(), ""
    for index, line in enumerate(lines):
        if len((kept + line).encode()) > _MAX_DETAILS:
            return f"{kept}… and {len(lines) - index} more"
        kept += line + "\n"
    return kept.rstrip("\n")


def _start_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="agent-hooks-async", daemon=True).start()
    return loop
