"""The author's test kit: the same assertions in process and through the real program.

@pytest.fixture(params=["in process", "as a process"])
def judge(request):
    config = {"names": ["shell"]}
    with (
        judging(NoShell(), config)
        if request.param == "in process"
        else judging_process([sys.executable, "main.py"], config, cwd=HERE)
    ) as judge:
        yield judge

def test_shell_is_denied(judge):
    call = contexts().pre_tool_call(call_id="1", name="shell", args={})
    assert judge(call).decision == "deny"
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc

from agent_hooks.core import path
from agent_hooks.core.builder import AgentContextBuilder
from agent_hooks.core.context import SPEC_VERSION, AgentContext, Bounds, check_context
from agent_hooks.core.profile import EnforcementMode
from agent_hooks.core.verdict import Verdict, check_verdict
from agent_hooks.plugin.author import ConfigError, read_author
from agent_hooks.plugin.server import ADDRESS
from agent_hooks.plugin.service import PROTOCOL_VERSION, TOKEN_METADATA, PluginServer
from agent_hooks.v1 import plugin_pb2
from agent_hooks.wire.context import encode_request
from agent_hooks.wire.status import MAX_MESSAGE_BYTES
from agent_hooks.wire.verdict import decode_response

__all__ = ["AgentContextBuilder", "Judge", "JudgeError", "contexts", "judging", "judging_process"]

_TIMEOUT = 10.0
_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
)
Ask = Callable[[str, bytes], bytes]


class JudgeError(RuntimeError):
    """The plugin did not answer, or not as the protocol says; a host would deny."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        self.code, self.details = code, details
        super().__init__(f"{code.name}: {details}")


class Judge:
    """A configured plugin; call it with a context for its verdict. `described` is its Describe."""

    def __init__(self, ask: Ask, config: Mapping[str, Any], log: Path | None = None) -> None:
        self._ask, self._log = ask, log
        hello = plugin_pb2.DescribeRequest(protocol_versions=[PROTOCOL_VERSION])
        answer = ask("PluginService/Describe", hello.SerializeToString())
        self.described = plugin_pb2.DescribeResponse.FromString(answer)
        setup = plugin_pb2.ConfigureRequest(binding_id="test", config_json=json.dumps(dict(config)))
        try:
            ask("PluginService/Configure", setup.SerializeToString())
        except JudgeError as error:
            if error.code is not grpc.StatusCode.INVALID_ARGUMENT:
                raise
            findings = [line.partition(": ") for line in error.details.splitlines()]
            raise ConfigError(*[(at.removesuffix("/"), what) for at, _, what in findings]) from None

    @property
    def logs(self) -> list[str]:
        """Lines that the program has printed; none in process."""
        return self._log.read_text("utf-8", "replace").splitlines() if self._log else []

    def __call__(self, context: AgentContext) -> Verdict:
        """Judge one context.

        Raises:
            ContextError: no valid context (§4).
            JudgeError: the plugin raised or did not answer.
            WireError, VerdictError, PathError: no valid verdict (§5), or a
                transform that does not apply (§5.2).
        """
        request = encode_request(
            check_context(context, Bounds(), SPEC_VERSION),
            emission_id=secrets.token_hex(16),
            mode=EnforcementMode.ENFORCE,
            approval_available=False,
            timeout_ms=int(_TIMEOUT * 1000),
        )
        verdict = check_verdict(decode_response(self._ask("InterceptorService/Intercept", request)))
        if verdict.transform is not None:
            path.apply(context["target"], verdict.transform.path, verdict.transform.value)
        return verdict


def contexts(session_id: str = "session-1") -> AgentContextBuilder:
    """A builder of a test session's contexts."""
    return AgentContextBuilder(agent_id="agent-1", framework="test", session_id=session_id)


@contextmanager
def judging(plugin: object, config: Mapping[str, Any] | None = None) -> Iterator[Judge]:
    """An author's object in this process, through its services, the codec and the gate.

    Raises TypeError: it is no plugin; ConfigError: it refuses the configuration.
    """
    handlers = PluginServer(read_author(plugin), None, lambda _: None).handlers()

    def ask(method: str, request: bytes) -> bytes:
        called: Any = SimpleNamespace(method=f"/agent_hooks.v1.{method}")
        handler: Any = next(filter(None, (item.service(called) for item in handlers)))
        answer: bytes = handler.unary_unary(handler.request_deserializer(request), _Call)
        return answer

    yield Judge(ask, config or {})


class _Call:
    """What the services need of a gRPC call."""

    invocation_metadata = staticmethod(tuple)

    @staticmethod
    def abort(code: grpc.StatusCode, details: str) -> None:
        raise JudgeError(code, details)


@contextmanager
def judging_process(
    command: Sequence[str],
    config: Mapping[str, Any] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> Iterator[Judge]:
    """A program in any language, launched as a host launches it, and ended with all it started.

    Raises OSError: it cannot be started; ConfigError: it refuses the configuration.
    """
    folder = Path(tempfile.mkdtemp(prefix="ah-"))
    log, token = folder / "log", secrets.token_urlsafe(32)
    inherited = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
    address = f"unix://{folder}/plugin.sock"
    environment = {**inherited, ADDRESS: address, "AGENT_HOOKS_PROTOCOL_VERSIONS": "1"}
    channel = grpc.insecure_channel(address.replace("unix://", "unix:"), options=_OPTIONS)

    def ask(method: str, request: bytes) -> bytes:
        call: Callable[..., bytes] = channel.unary_unary(f"/agent_hooks.v1.{method}")
        try:
            return call(request, timeout=_TIMEOUT, metadata=((TOKEN_METADATA, token),))
        except grpc.RpcError as error:
            failed: Any = error
            raise JudgeError(failed.code(), f"{failed.details()}\n{log.read_text()}") from None

    try:
        with log.open("wb") as output, subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=subprocess.PIPE, stdout=output,
            stderr=output, start_new_session=True,
        ) as program:
            pass
    finally:
        channel.close()
        shutil.rmtree(folder, ignore_errors=True)
