"""Plugins as programs: launched by hand, as a host would (PROTOCOL: Launch, Services)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from agent_hooks.core.context import Bounds, check_context
from agent_hooks.core.profile import EnforcementMode
from agent_hooks.plugin.testing import JudgeError, contexts, judging_process
from agent_hooks.v1 import plugin_pb2
from agent_hooks.wire.context import encode_request

CANARY = "canary-51c9"
TEN_LINES = """
    from agent_hooks.plugin import Verdict, serve

    class NoShell:
        points = ["pre_tool_call"]

        def intercept(self, context):
            if context["tool_call"]["name"] == "shell":
                return Verdict.deny(reason="no_shell")
            return Verdict.allow()

    serve(NoShell())
"""
SLOW = """
    import os, time
    from agent_hooks.plugin import ALLOW, serve

    class Slow:
        max_concurrency = 1

        def intercept(self, context):
            args = context["tool_call"]["args"]
            open(args["started"], "w").close()
            while not os.path.exists(args["gate"]):
                time.sleep(0.01)
            return ALLOW

    serve(Slow())
"""


def command(program: str) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(program)]


def _noting(program: str, file: Path) -> str:
    """The program, writing down its pid first."""
    return (
        f"import os; open({str(file)!r}, 'w').write(str(os.getpid()))\n{textwrap.dedent(program)}"
    )


def call(name: str = "t", **args: Any) -> dict[str, Any]:
    arguments = {key: str(value) for key, value in args.items()}
    return contexts().pre_tool_call(call_id="1", name=name, args=arguments)


def until(condition: Callable[[], Any], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.01)


class Launched:
    """A program with an address; what a host would do, step by step."""

    def __init__(self, program: str, folder: str, first_line: bytes) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            command(program),
            env={"PATH": os.defpath, "AGENT_HOOKS_PLUGIN_ADDRESS": f"unix://{folder}/s"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(first_line)
        self.process.stdin.flush()
        until(self._listens)  # or the channel's first back-off is waited for
        self.channel = grpc.insecure_channel(f"unix:{folder}/s")

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(f"{self.folder}/s") == 0

    def ask(self, method: str, request: bytes = b"", *metadata: tuple[str, str]) -> Any:
        """The status of a call, OK included."""
        called: Any = self.channel.unary_unary(method)
        try:
            called(request, timeout=10, metadata=metadata, wait_for_ready=True)
        except grpc.RpcError as error:
            failed: Any = error
            return failed.code()
        return grpc.StatusCode.OK

    def end(self, seconds: float = 10) -> tuple[int, str, str]:
        """Wait for its end: status, stdout, stderr. Its standard input stays open."""
        self.process.wait(seconds)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        out, err = self.process.stdout.read(), self.process.stderr.read()
        return self.process.returncode, out.decode(), err.decode()


@contextmanager
def launched(program: str, first_line: bytes = b'{"token": "secret"}\n') -> Iterator[Launched]:
    with tempfile.TemporaryDirectory(prefix="ah-") as folder:
        one = Launched(program, folder, first_line)
        try:
            yield one
        finally:
            one.channel.close()
            one.process.kill()
            one.process.wait()
            for pipe in (one.process.stdin, one.process.stdout, one.process.stderr):
                assert pipe is not None
                pipe.close()


# -- the command line --


def test_program_outside_a_host_says_what_to_do() -> None:
    """Exit status 2, one helpful line, nothing on standard output."""
    done = subprocess.run(command(TEN_LINES), capture_output=True, text=True, env={}, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    for part in ("NoShell is a plugin", "AGENT_HOOKS_PLUGIN_ADDRESS", "plugin.toml"):
        assert part in done.stderr


@pytest.mark.parametrize("address", ["unix:///nowhere/at/all.sock", "nonsense://x"])
def test_address_that_cannot_be_bound_is_one_line(address: str) -> None:
    """Exit status 1, without a traceback."""
    done = subprocess.run(
        command(TEN_LINES),
        capture_output=True,
        text=True,
        env={"AGENT_HOOKS_PLUGIN_ADDRESS": address},
        input="{}\n",
        timeout=60,
    )
    assert done.returncode == 1
    assert "cannot listen" in done.stderr
    assert "Traceback" not in done.stderr


def test_ten_lines_are_a_plugin() -> None:
    """What an author writes is all it takes."""
    with judging_process(command(TEN_LINES)) as judge:
        assert judge(call("shell")).reason == "no_shell"
        assert judge(call()).decision == "allow"
        assert [judge.described.name, list(judge.described.points)] == ["NoShell", [5]]


# -- the token --

_METHODS = [
    "/agent_hooks.v1.PluginService/Describe",
    "/agent_hooks.v1.PluginService/Configure",
    "/agent_hooks.v1.InterceptorService/Intercept",
    "/agent_hooks.v1.PluginService/Shutdown",
    "/grpc.health.v1.Health/Check",
]


def test_callers_without_the_token_are_refused() -> None:
    """PROTOCOL Launch 1: a fresh secret, sent with every call."""
    refused = grpc.StatusCode.UNAUTHENTICATED
    with launched(TEN_LINES) as program:
        for method in _METHODS:
            assert program.ask(method) is refused
            assert program.ask(method, b"", ("agent-hooks-token", "secre")) is refused
            assert program.ask(method, b"", ("agent-hooks-token", "")) is refused
        shown = ("agent-hooks-token", "secret")
        assert program.ask(_METHODS[4], b"", shown) is grpc.StatusCode.OK
        assert program.ask(_METHODS[1], b"", shown) is grpc.StatusCode.OK
        assert program.process.poll() is None  # nobody without the token could stop it


@pytest.mark.parametrize("line", [b"\n", b"not json\n", b'{"token": 5}\n'], ids=repr)
def test_author_who_does_not_care_for_a_token_needs_none(line: bytes) -> None:
    """PROTOCOL Launch 1: a plugin may refuse callers that lack it; without a token it cannot."""
    with launched(TEN_LINES, line) as program:
        assert program.ask(_METHODS[4]) is grpc.StatusCode.OK


# -- the end --


def _asking(judge: Any, raw: dict[str, Any], answers: list[Any]) -> threading.Thread:
    def ask() -> None:
        try:
            answers.append(judge(raw).decision.value)
        except JudgeError as error:
            answers.append(error.code)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def test_sigterm_lets_the_call_in_flight_finish(tmp_path: Path) -> None:
    """PROTOCOL Lifecycle, stop: SIGTERM is graceful."""
    gate, started = tmp_path / "gate", tmp_path / "started"
    noted = tmp_path / "pid"
    with judging_process(command(_noting(SLOW, noted))) as judge:
        pid = int(noted.read_text())
        answers: list[Any] = []
        thread = _asking(judge, call(gate=gate, started=started), answers)
        until(started.exists)
        os.kill(pid, signal.SIGTERM)
        gate.touch()
        thread.join()
        assert answers == ["allow"]
        until(lambda: _is_over(pid))


def _is_over(pid: int) -> bool:
    try:
        return b") Z" in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True


@pytest.mark.parametrize("way", ["sigterm", "shutdown"])
def test_idle_program_ends_when_told(way: str) -> None:
    """PROTOCOL Services, Shutdown; status 0, nothing printed."""
    with launched(TEN_LINES) as program:
        assert program.ask(_METHODS[4], b"", ("agent-hooks-token", "secret")) is grpc.StatusCode.OK
        if way == "sigterm":
            program.process.terminate()
        else:
            grace = plugin_pb2.ShutdownRequest(grace_ms=1000).SerializeToString()
            assert (
                program.ask(_METHODS[3], grace, ("agent-hooks-token", "secret"))
                is grpc.StatusCode.OK
            )
        assert program.end() == (0, "", "")


@pytest.mark.parametrize("way", ["sigterm", "shutdown"])
def test_program_with_a_hung_call_ends_after_the_grace(way: str, tmp_path: Path) -> None:
    """PROTOCOL Services, Shutdown: finish what is in flight, then exit; not for a hung call."""
    with launched(SLOW) as program:
        shown = ("agent-hooks-token", "secret")
        assert program.ask(_METHODS[1], b"", shown) is grpc.StatusCode.OK
        started = tmp_path / "started"
        raw = call(gate=tmp_path / "never", started=started)
        hung: Any = program.channel.unary_unary(_METHODS[2])
        pending = hung.future(_request(raw), metadata=(shown,))
        until(started.exists)
        if way == "sigterm":
            program.process.terminate()
        else:
            grace = plugin_pb2.ShutdownRequest(grace_ms=200).SerializeToString()
            assert program.ask(_METHODS[3], grace, shown) is grpc.StatusCode.OK
        program.end(2 + 6)
        until(pending.done)


def _request(raw: dict[str, Any]) -> bytes:
    return encode_request(
        check_context(raw, Bounds(), raw["spec"]),
        emission_id="e",
        mode=EnforcementMode.ENFORCE,
        approval_available=False,
        timeout_ms=1000,
    )


def test_end_of_standard_input_ends_a_busy_program(tmp_path: Path) -> None:
    """PROTOCOL Launch 4: the host is gone, so nobody waits for the call."""
    with launched(SLOW) as program:
        shown = ("agent-hooks-token", "secret")
        assert program.ask(_METHODS[1], b"", shown) is grpc.StatusCode.OK
        started = tmp_path / "started"
        hung: Any = program.channel.unary_unary(_METHODS[2])
        pending = hung.future(
            _request(call(gate=tmp_path / "never", started=started)), metadata=(shown,)
        )
        until(started.exists)
        assert program.process.stdin is not None
        program.process.stdin.close()
        program.process.wait(5)
        until(pending.done)


def test_interrupt_of_the_terminal_is_the_hosts() -> None:
    """A ^C in the host's terminal does not end its plugins before the host has."""
    shown = ("agent-hooks-token", "secret")
    with launched(TEN_LINES) as program:
        assert program.ask(_METHODS[4], b"", shown) is grpc.StatusCode.OK
        program.process.send_signal(signal.SIGINT)
        assert program.ask(_METHODS[4], b"", shown) is grpc.StatusCode.OK
        assert program.process.poll() is None


def test_health_is_answered_under_full_load(tmp_path: Path) -> None:
    """PROTOCOL Lifecycle, liveness: a busy plugin is not a sick one."""
    shown = ("agent-hooks-token", "secret")
    with launched(SLOW) as program:
        assert program.ask(_METHODS[1], b"", shown) is grpc.StatusCode.OK
        gate, started = tmp_path / "gate", tmp_path / "started"
        slow: Any = program.channel.unary_unary(_METHODS[2])
        pending = slow.future(_request(call(gate=gate, started=started)), metadata=(shown,))
        until(started.exists)
        assert program.ask(_METHODS[4], b"", shown) is grpc.StatusCode.OK
        gate.touch()
        assert pending.result(10)


# -- what a plugin must not do --

_RAISING = """
    import asyncio, sys
    from agent_hooks.plugin import serve, Verdict

    class Bad:
        config_schema = {"type": "object"}

        def configure(self, config):
            if config.get("raise"):
                raise ValueError("CANARY")

        DEF intercept(self, context):
            text = context["tool_call"]["args"]["text"]
            match context["tool_call"]["name"]:
                case "raise":
                    raise RuntimeError(text)
                case "chain":
                    try:
                        raise KeyError(text)
                    except KeyError as exc:
                        raise RuntimeError(text) from exc
                case "exit":
                    sys.exit(text)
                case "interrupt":
                    raise KeyboardInterrupt(text)
                case "decision":
                    return {"decision": text}
                case "member":
                    return {"decision": "allow", text: 1}
                case "path":
                    return Verdict.rewrite("$target." + text + chr(0xD800), 1)
                case "text":
                    return text
            return Verdict.allow()

    serve(Bad())
""".replace("CANARY", CANARY)


@pytest.mark.parametrize("colour", ["def", "async def"], ids=["sync", "async"])
def test_nothing_of_a_target_or_an_exceptions_text_reaches_log_or_status(colour: str) -> None:
    """STYLE 6: whatever the author's code does with it; each call fails, and promptly."""
    with judging_process(command(_RAISING.replace("DEF", colour)), {"a": CANARY}) as judge:
        for name in ("raise", "chain", "decision", "member", "path", "text"):
            with pytest.raises((JudgeError, ValueError)) as raised:
                judge(call(name, text=CANARY))
            assert CANARY not in str(raised.value)
        assert judge(call(text=CANARY)).decision == "allow"
        lines = judge.logs()
    assert CANARY not in lines
    assert "RuntimeError" in lines


@pytest.mark.parametrize("colour", ["def", "async def"], ids=["sync", "async"])
@pytest.mark.parametrize("name", ["exit", "interrupt"])
def test_exit_of_the_authors_code_is_a_failed_call(name: str, colour: str) -> None:
    """§6.3: a failure at once, not a silence; and the next call is answered."""
    with judging_process(command(_RAISING.replace("DEF", colour))) as judge:
        with pytest.raises(JudgeError) as raised:
            judge(call(name, text=CANARY))
        assert raised.value.code is not grpc.StatusCode.DEADLINE_EXCEEDED
        assert judge(call(text="x")).decision == "allow"
        assert CANARY not in judge.logs()


def test_text_of_a_configuration_stays_out_of_the_log() -> None:
    """PROTOCOL Services, Configure: a configuration may hold secrets."""
    with pytest.raises(JudgeError) as raised:
        with judging_process(command(_RAISING.replace("DEF", "def")), {"raise": CANARY}):
            pass
    assert raised.value.details == "configure raised ValueError"


_IMPORTS = """
    import sys
    from agent_hooks.plugin import Verdict, serve

    class Says:
        def intercept(self, context):
            roots = ("agent_hooks.host", "agent_hooks.supervisor", "agent_hooks.telemetry",
                     "opentelemetry", "tenacity", "jsonschema", "asyncio.windows_events")
            return Verdict.deny(reason=" ".join(m for m in sys.modules if m.startswith(roots)))

    serve(Says())
"""


def test_program_carries_nothing_of_the_hosts_machinery() -> None:
    """HOUSE: plugin never imports host or supervisor; and no OpenTelemetry."""
    with judging_process(command(_IMPORTS)) as judge:
        assert judge(call()).reason == ""


def test_program_is_small(tmp_path: Path) -> None:
    """MEASURED: 35 MB resident; 50 at most, after the first verdict."""
    pid = tmp_path / "pid"
    with judging_process(command(_noting(TEN_LINES, pid))) as judge:
        judge(call("shell"))
        status = Path(f"/proc/{pid.read_text()}/status").read_text()
    resident = int(status.partition("VmRSS:")[2].split()[0]) / 1024
    assert resident <= 50, f"{resident:.0f} MB"


def test_configuration_is_one_json_object() -> None:
    """PROTOCOL Services, Configure."""
    shown = ("agent-hooks-token", "secret")
    with launched(TEN_LINES) as program:
        for text in ("[]", '{"a":1,"a":2}', "NaN", "{", '{"a": NaN}', json.dumps({"a": 1})):
            request = plugin_pb2.ConfigureRequest(config_json=text).SerializeToString()
            assert program.ask(_METHODS[1], request, shown) is grpc.StatusCode.INVALID_ARGUMENT
        assert program.ask(_METHODS[1], b"", shown) is grpc.StatusCode.OK
