"""The author's test kit: the same assertions in process and through the real program.

@pytest.fixture(params=["in process", "as a process"])
def judge(request):
    in_process, program = request.param == "in process", [sys.executable, "main.py"]
    with judging(NoShell(), CONFIG) if in_process else judging_process(program, CONFIG) as judge:
        yield judge

def test_shell_is_denied(judge):
    call = contexts().pre_tool_call(call_id="1", name="shell", args={})
    assert judge(call).decision == "deny"
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc

from agent_hooks.core import path
from agent_hooks.core.builder import AgentContextBuilder
from agent_hooks.core.context import SPEC_VERSION, AgentContext, Bounds, check_context
from agent_hooks.core.profile import EnforcementMode
from agent_hooks.core.verdict import Verdict, check_verdict
from agent_hooks.plugin.author import read_author
from agent_hooks.plugin.server import ADDRESS
from agent_hooks.plugin.service import PROTOCOL_VERSION, TOKEN_METADATA, PluginServer
from agent_hooks.v1 import plugin_pb2
from agent_hooks.wire.context import encode_request
from agent_hooks.wire.status import MAX_MESSAGE_BYTES
from agent_hooks.wire.verdict import decode_response

__all__ = ["AgentContextBuilder", "Judge", "JudgeError", "contexts", "judging", "judging_process"]

Ask = Callable[[str, bytes], bytes]
_TIMEOUT = 10.0
_HONOURED: Any = {"mode": EnforcementMode.ENFORCE, "approval_available": False, "timeout_ms": 10000}
_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
)


class JudgeError(RuntimeError):
    """The plugin refused its configuration, raised, or did not answer; a host would deny."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        self.code, self.details = code, details
        super().__init__(f"{code.name}: {details}")


class Judge:
    """A configured plugin. `described` is what it says of itself, `logs()` what it has printed."""

    def __init__(self, ask: Ask, config: Mapping[str, Any], logs: Callable[[], str]) -> None:
        self._ask, self.logs = ask, logs
        hello = plugin_pb2.DescribeRequest(protocol_versions=[PROTOCOL_VERSION])
        answer = ask("PluginService/Describe", hello.SerializeToString())
        self.described = plugin_pb2.DescribeResponse.FromString(answer)
        setup = plugin_pb2.ConfigureRequest(binding_id="test", config_json=json.dumps(dict(config)))
        ask("PluginService/Configure", setup.SerializeToString())

    def __call__(self, context: AgentContext) -> Verdict:
        """The verdict as a host sees it. Raises what a host denies for (§5, §5.2)."""
        snapshot = check_context(context, Bounds(), SPEC_VERSION)
        request = encode_request(snapshot, emission_id=secrets.token_hex(16), **_HONOURED)
        verdict = check_verdict(decode_response(self._ask("InterceptorService/Intercept", request)))
        if verdict.transform is not None:
            path.apply(context["target"], verdict.transform.path, verdict.transform.value)
        return verdict


def contexts(session_id: str = "session-1") -> AgentContextBuilder:
    """A builder of a test session's contexts."""
    return AgentContextBuilder(agent_id="agent-1", framework="test", session_id=session_id)


def _refuse(code: grpc.StatusCode, details: str) -> Any:
    raise JudgeError(code, details)


@contextmanager
def judging(plugin: object, config: Mapping[str, Any] | None = None) -> Iterator[Judge]:
    """An author's object in this process, through its services, the codec and the gate."""
    handlers = PluginServer(read_author(plugin), None, lambda _: None).handlers()

    def ask(method: str, request: bytes) -> bytes:
        called: Any = SimpleNamespace(method=f"/agent_hooks.v1.{method}")
        found: Any = next(filter(None, (item.service(called) for item in handlers)), None)
        handler = found or _refuse(grpc.StatusCode.UNIMPLEMENTED, method)
        call = SimpleNamespace(abort=_refuse, invocation_metadata=tuple)
        return bytes(handler.unary_unary(handler.request_deserializer(request), call))

    yield Judge(ask, config or {}, str)


@contextmanager
def judging_process(
    command: Sequence[str], config: Mapping[str, Any] | None = None, cwd: Path | str | None = None
) -> Iterator[Judge]:
    """A program in any language, launched as a host would, and ended with its process group."""
    with tempfile.TemporaryDirectory(prefix="ah-") as folder, open(f"{folder}/log", "w+b") as log:
        environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        environment |= {ADDRESS: f"unix://{folder}/s", "AGENT_HOOKS_PROTOCOL_VERSIONS": "1"}
        launch: Any = {"stdin": subprocess.PIPE, "stdout": log, "stderr": log, "cwd": cwd}
        program = subprocess.Popen(command, env=environment, start_new_session=True, **launch)
        printed = partial(Path(log.name).read_text, "utf-8", "replace")
        token = secrets.token_urlsafe(32)
        with program, grpc.insecure_channel(f"unix:{folder}/s", _OPTIONS) as channel:

            def ask(method: str, request: bytes) -> bytes:
                call: Any = channel.unary_unary(f"/agent_hooks.v1.{method}")
                first = method.endswith("Describe")  # the socket may not listen yet
                try:
                    answer = call(request, _TIMEOUT, ((TOKEN_METADATA, token),), None, first)
                except grpc.RpcError as error:
                    failed: Any = error
                    raise JudgeError(failed.code(), failed.details()) from None
                return bytes(answer)

            try:
                assert program.stdin is not None
                with suppress(BrokenPipeError):
                    os.write(program.stdin.fileno(), json.dumps({"token": token}).encode() + b"\n")
                deadline = time.monotonic() + _TIMEOUT
                while not os.path.exists(f"{folder}/s"):
                    if program.poll() is not None or time.monotonic() > deadline:
                        _refuse(grpc.StatusCode.UNAVAILABLE, f"does not listen:\n{printed()}")
                    time.sleep(0.01)
                yield Judge(ask, config or {}, printed)
            finally:
                with suppress(JudgeError):
                    grace = plugin_pb2.ShutdownRequest(grace_ms=2000)
                    ask("PluginService/Shutdown", grace.SerializeToString())
                with suppress(subprocess.TimeoutExpired):
                    program.wait(3)
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)
