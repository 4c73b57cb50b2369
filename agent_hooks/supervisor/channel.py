"""The gRPC channel of one launch."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc

from agent_hooks.core.context import SPEC_VERSION
from agent_hooks.supervisor.logs import printable
from agent_hooks.supervisor.secrets import NO_SECRETS, Secrets
from agent_hooks.wire.fields import WireError
from agent_hooks.wire.plugin import (
    APPROVAL_RESOLVER,
    INTERCEPTOR,
    Description,
    decode_description,
    encode_configure,
    encode_describe,
    encode_shutdown,
)
from agent_hooks.wire.status import MAX_MESSAGE_BYTES

PROTOCOL_VERSION = 1
TOKEN_METADATA = "agent-hooks-token"  # noqa: S105 - the name, not a secret

_OPTIONS = (
    ("grpc.default_authority", "localhost"),  # some servers refuse the socket's path there
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)
_MAX_DETAILS = 4096
_PLUGIN = "/agent_hooks.v1.PluginService/"
_INTERCEPT_STREAM = "/agent_hooks.v1.InterceptorService/InterceptStream"
_HEALTH = "/grpc.health.v1.Health/Check"
_SERVING = b"\x08\x01"  # grpc.health.v1.HealthCheckResponse{status: SERVING}

METHODS = {
    INTERCEPTOR: "/agent_hooks.v1.InterceptorService/Intercept",
    APPROVAL_RESOLVER: "/agent_hooks.v1.ApprovalResolverService/Resolve",
}


class HandshakeError(RuntimeError):
    """A plugin that answered, but not as the protocol says. Names both sides."""


class ConfigRefusedError(HandshakeError):
    """A plugin that refused its configuration; the text is the plugin's."""


class PluginChannel:
    """A fresh channel per launch: an old one's back-off cannot delay a new process.

    What the plugin says to Describe or Configure is quoted without `secrets`.

    Built on the synchronous stack, whose futures serve every thread and every
    event loop alike.
    """

    def __init__(self, socket_path: Path, token: str) -> None:
        self._channel = grpc.insecure_channel(f"unix:{socket_path}", options=_OPTIONS)
        self.metadata = ((TOKEN_METADATA, token),)
        self.secrets = NO_SECRETS

    def method(self, path: str) -> Any:
        """A unary call of raw bytes: called, it blocks; its `future` does not."""
        return self._channel.unary_unary(path)

    def open_stream(self, requests: Any) -> Any:
        """An InterceptStream of raw bytes over an iterator of them."""
        return self._channel.stream_stream(_INTERCEPT_STREAM)(requests, metadata=self.metadata)

    async def describe(self, timeout: float) -> Description:
        """Ask who it is, and check that it fits.

        Raises:
            HandshakeError: no answer in time, or one that does not fit.
        """
        data = await self._ask(
            "Describe", encode_describe([PROTOCOL_VERSION], [SPEC_VERSION]), timeout
        )
        try:
            answer = decode_description(data)
        except WireError as refusal:
            raise HandshakeError(f"Describe: {refusal}") from None
        if answer.protocol_version != PROTOCOL_VERSION:
            raise HandshakeError(
                f"Describe: the plugin chose protocol version {answer.protocol_version}, "
                f"the host speaks {PROTOCOL_VERSION}"
            )
        if SPEC_VERSION not in answer.specs:
            specs = printable(", ".join(answer.specs)) or "nothing"
            raise HandshakeError(
                f"Describe: the plugin understands {specs}, the host emits {SPEC_VERSION}"
            )
        if answer.kind not in METHODS:
            raise HandshakeError("Describe: kind is neither interceptor nor approval resolver")
        return answer

    async def configure(self, binding_id: str, config_json: str, timeout: float) -> None:
        """Hand over the configuration.

        Raises:
            ConfigRefusedError: the plugin says that it is wrong.
            HandshakeError: no answer in time.
        """
        await self._ask("Configure", encode_configure(binding_id, config_json), timeout)

    async def healthy(self, timeout: float) -> bool:
        """Whether it answers its health check in time. One without the service passes."""
        try:
            return await self._call(_HEALTH, b"", timeout) == _SERVING
        except grpc.RpcError as error:
            return _code(error) is grpc.StatusCode.UNIMPLEMENTED

    async def shutdown(self, grace: float) -> None:
        """Ask it to finish and exit; its silence is dealt with by the caller."""
        try:
            await self._call(_PLUGIN + "Shutdown", encode_shutdown(grace), grace)
        except grpc.RpcError:
            return

    def close(self) -> None:
        """Close; calls in flight fail."""
        self._channel.close()

    async def _ask(self, name: str, request: bytes, timeout: float) -> bytes:
        try:
            return await self._call(_PLUGIN + name, request, timeout)
        except grpc.RpcError as error:
            code, details = _code(error), _details(error, self.secrets)
        if name == "Configure" and code is grpc.StatusCode.INVALID_ARGUMENT:
            raise ConfigRefusedError(f"its configuration is refused:\n{details}")
        raise HandshakeError(f"{name}: {code.name}: {details}")

    async def _call(self, path: str, request: bytes, timeout: float) -> bytes:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        call = self.method(path).future(
            request, timeout=timeout, metadata=self.metadata, wait_for_ready=True
        )
        call.add_done_callback(lambda _: loop.call_soon_threadsafe(_settle, done))
        try:
            await done
        finally:
            call.cancel()
        answer: bytes = call.result()
        return answer


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)


def _code(error: grpc.RpcError) -> grpc.StatusCode:
    code = error.code() if isinstance(error, grpc.Call) else None
    return code or grpc.StatusCode.UNKNOWN


def _details(error: grpc.RpcError, secrets: Secrets) -> str:
    """The plugin's own text, fit for a terminal, and for anybody's eyes."""
    details = (error.details() if isinstance(error, grpc.Call) else "") or ""
    details = secrets.hide_text(details)  # before it is cut: half a secret is one, too
    return "\n".join(printable(line) for line in details[:_MAX_DETAILS].splitlines())
