"""The gRPC services over an author's object."""

from __future__ import annotations

import asyncio
import hmac
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import grpc

from agent_hooks.core import canonical
from agent_hooks.core.approval import ApprovalResolution
from agent_hooks.core.context import SPEC_VERSION
from agent_hooks.core.values import MAX_DEPTH, ValueDomainError
from agent_hooks.core.verdict import Verdict, VerdictError, check_verdict
from agent_hooks.plugin.author import Author, ConfigError, check_config
from agent_hooks.plugin.honoured import honouring
from agent_hooks.v1 import approval_pb2, interceptor_pb2, plugin_pb2, verdict_pb2
from agent_hooks.wire.approval import decode_resolve, encode_resolution
from agent_hooks.wire.context import decode_context
from agent_hooks.wire.fields import WireError
from agent_hooks.wire.plugin import (
    APPROVAL_RESOLVER,
    INTERCEPT_STREAM,
    INTERCEPTOR,
    Description,
    encode_description,
)
from agent_hooks.wire.verdict import encode_response, encode_stream_response, encode_verdict

PROTOCOL_VERSION = 1
TOKEN_METADATA = "agent-hooks-token"  # noqa: S105 - the name, not a secret

_MAX_DETAILS = 4096
_INTERCEPT = interceptor_pb2.InterceptRequest.FromString
_INTERCEPT_STREAM = interceptor_pb2.InterceptStreamRequest.FromString
_RESOLVE = approval_pb2.ResolveRequest.FromString
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
        self._draining = False
        self._idle_streams: set[grpc.ServicerContext] = set()
        self.busy = 0
        self._loop = _start_loop() if author.is_async else None

    def handlers(self) -> list[grpc.GenericRpcHandler]:
        """For `grpc.Server.add_generic_rpc_handlers`."""
        judged = (
            ("ApprovalResolverService", {"Resolve": self._unary(self._resolve, _RESOLVE)})
            if self._author.is_resolver
            else (
                "InterceptorService",
                {
                    "Intercept": self._unary(self._intercept, _INTERCEPT),
                    "InterceptStream": grpc.stream_stream_rpc_method_handler(
                        self._guarded(self._intercept_stream), _INTERCEPT_STREAM, None
                    ),
                },
            )
        )
        plugin = {
            "Describe": self._unary(self._describe, plugin_pb2.DescribeRequest.FromString),
            "Configure": self._unary(self._configure, plugin_pb2.ConfigureRequest.FromString),
            "Shutdown": self._unary(self._shutdown, plugin_pb2.ShutdownRequest.FromString),
        }
        health = {"Check": self._unary(lambda *_: _SERVING, None)}
        return [
            grpc.method_handlers_generic_handler(f"agent_hooks.v1.{judged[0]}", judged[1]),
            grpc.method_handlers_generic_handler("agent_hooks.v1.PluginService", plugin),
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", health),
        ]

    def _unary(self, behaviour: Any, parse: Callable[[bytes], Any] | None) -> Any:
        return grpc.unary_unary_rpc_method_handler(self._guarded(behaviour), parse, None)

    def _guarded(self, behaviour: Callable[[Any, grpc.ServicerContext], Any]) -> Any:
        def guarded(request: Any, call: grpc.ServicerContext) -> Any:
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
                () if author.is_resolver else (INTERCEPT_STREAM,),
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
        return encode_response(self._verdict(request, call))

    def _intercept_stream(
        self,
        requests: Iterator[interceptor_pb2.InterceptStreamRequest],
        call: grpc.ServicerContext,
    ) -> Iterator[bytes]:
        """One call at a time; a failed one ends the stream with its status."""
        try:
            while True:
                self._idle_streams.add(call)
                received = None if self._draining else next(requests, None)
                self._idle_streams.discard(call)
                if received is None:
                    return
                verdict = self._verdict(received.request, call)
                yield encode_stream_response(verdict, received.request.emission_id)
        finally:
            self._idle_streams.discard(call)

    def drain(self) -> None:
        """End the streams that carry nothing, now or soon: a server would wait for them."""
        self._draining = True
        for call in tuple(self._idle_streams):
            call.cancel()

    def _verdict(
        self, request: interceptor_pb2.InterceptRequest, call: grpc.ServicerContext
    ) -> Verdict | None:
        try:
            context = decode_context(request.context)
        except WireError as refusal:
            call.abort(grpc.StatusCode.INVALID_ARGUMENT, str(refusal))
        with honouring(request):
            returned = self._judge("intercept", context, call)
        try:
            return check_verdict(returned)
        except VerdictError as refusal:
            log(f"intercept returned no valid verdict: {refusal}")
            return None

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
