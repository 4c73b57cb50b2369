"""The author's test kit: one set of assertions, in process and through the program."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import grpc
import pytest

from agent_hooks.core.context import ContextError
from agent_hooks.core.path import PathError
from agent_hooks.core.verdict import VerdictError
from agent_hooks.plugin import Verdict
from agent_hooks.plugin.testing import (
    AgentContextBuilder,
    Judge,
    JudgeError,
    contexts,
    judging,
    judging_process,
)
from agent_hooks.wire.fields import WireError

NAMES = {
    "type": "object",
    "properties": {"names": {"type": "array"}},
    "additionalProperties": False,
}
SOURCE = f'''
import os
from agent_hooks.plugin import Verdict, serve

class Names:
    """Denies tools by name; does as it is told by the others."""

    config_schema = {NAMES!r}
    names = ()

    def configure(self, config):
        self.names = config.get("names", ())

    def intercept(self, context):
        name = context.get("tool_call", {{}}).get("name")
        if name in self.names:
            return Verdict.deny(reason="named")
        match name:
            case "raise":
                raise RuntimeError("never shown")
            case "invalid":
                return {{"decision": "maybe"}}
            case "rewrite":
                return Verdict.rewrite("$target.n", 5)
            case "misplaced":
                return Verdict.rewrite("$target.no.such", 5)
            case "foreign":
                return Verdict.rewrite("$tool_call.name", 5)
            case "integer":
                return Verdict.allow() if context["target"]["n"] is True else None
            case "die":
                os._exit(3)
            case "print":
                print("said so", flush=True)
        return Verdict.allow()
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin's folder: the class, and the program that serves it."""
    path = tmp_path_factory.mktemp("names")
    (path / "names.py").write_text(SOURCE)
    (path / "main.py").write_text("from names import Names, serve\nserve(Names())\n")
    return path


def _kit(way: str, folder: Path, config: dict[str, Any]) -> AbstractContextManager[Judge]:
    if way == "as_a_process":
        return judging_process([sys.executable, "main.py"], config, cwd=folder)
    namespace: dict[str, Any] = {}
    exec(SOURCE, namespace)
    return judging(namespace["Names"](), config)


WAYS = ["in_process", "as_a_process"]


@pytest.fixture(params=WAYS, scope="module")
def judge(request: pytest.FixtureRequest, folder: Path) -> Iterator[Judge]:
    """The pattern of the kit's docstring."""
    with _kit(request.param, folder, {"names": ["shell"]}) as judge:
        yield judge


def call(name: str, **args: Any) -> dict[str, Any]:
    return contexts().pre_tool_call(call_id="1", name=name, args={"n": 0, **args})


def test_verdict_is_the_plugins(judge: Judge) -> None:
    """§5."""
    assert judge(call("shell")) == Verdict.deny(reason="named")
    assert judge(call("other")).decision == "allow"
    rewritten = judge(call("rewrite")).transform
    assert rewritten is not None
    assert (rewritten.path, rewritten.value) == ("$target.n", 5)


def test_context_goes_through_the_codec(judge: Judge) -> None:
    """PROTOCOL Messages: types arrive as they are, whichever way."""
    assert judge(call("integer", n=True)).decision == "allow"
    with pytest.raises(WireError):
        judge(call("integer", n=1))


@pytest.mark.parametrize("point", ["agent_startup", "input", "output", "agent_shutdown"])
def test_any_point_can_be_judged(judge: Judge, point: str) -> None:
    """§3: the builder has a method for each."""
    members: dict[str, dict[str, Any]] = {
        "agent_startup": {"tools_registered": []},
        "input": {"content": "x"},
        "output": {"content": "x"},
        "agent_shutdown": {"reason": "completed"},
    }
    build = getattr(contexts(session_id="other"), point)
    assert judge(build(**members[point])).decision == "allow"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("raise", JudgeError),
        ("invalid", (WireError, VerdictError)),
        ("misplaced", PathError),
        ("foreign", PathError),
    ],
)
def test_what_a_host_denies_for_is_raised(judge: Judge, name: str, error: Any) -> None:
    """§6.3, §5, §5.2: the same error both ways."""
    with pytest.raises(error) as raised:
        judge(call(name))
    assert "never shown" not in str(raised.value)


def test_context_that_is_none_is_refused_before_anything_is_asked(judge: Judge) -> None:
    """§4: the test's own mistake."""
    with pytest.raises(ContextError):
        judge({})


@pytest.mark.parametrize("way", WAYS)
def test_configuration_that_is_refused_says_where(way: str, folder: Path) -> None:
    """PROTOCOL Services, Configure."""
    with pytest.raises(JudgeError) as raised:
        with _kit(way, folder, {"names": 5}):
            pass
    assert raised.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert raised.value.details == '/names: does not satisfy type: "array"'


def test_object_that_is_no_plugin_is_refused() -> None:
    """As serve() would."""
    with pytest.raises(TypeError, match="is no plugin"):
        with judging(object()):
            pass


def test_resolver_judges_no_context() -> None:
    """PROTOCOL Services: it serves another service."""

    class Resolver:
        def resolve(self, _: Any) -> None:
            return None

    with judging(Resolver()) as judge, pytest.raises(JudgeError, match="UNIMPLEMENTED"):
        judge(call("x"))


def test_output_of_the_program_is_kept(folder: Path) -> None:
    """PROTOCOL Launch 2: stdout is only a log."""
    with _kit("as_a_process", folder, {}) as judge:
        judge(call("print"))
        assert "said so" in judge.logs()


def test_program_that_dies_in_a_call_is_an_error_at_once(folder: Path) -> None:
    """§6.3."""
    begun = time.monotonic()
    with pytest.raises(JudgeError) as raised:
        with _kit("as_a_process", folder, {}) as judge:
            judge(call("die"))
    assert raised.value.code is grpc.StatusCode.UNAVAILABLE
    assert time.monotonic() - begun < 9


def test_program_that_dies_at_its_start_is_an_error_with_what_it_printed() -> None:
    """An author's first mistake is an import."""
    with pytest.raises(JudgeError, match="No module named 'no_such_module'"):
        with judging_process([sys.executable, "-c", "import no_such_module"]):
            pass


def test_program_that_is_missing_is_an_error() -> None:
    """No host is needed to see that."""
    with pytest.raises(OSError, match="No such file"):
        with judging_process(["/nowhere/at-all"]):
            pass


def test_program_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """PROTOCOL Launch 4, for a test: its process group is gone when the block is left."""
    child = tmp_path / "child"
    program = (
        "import subprocess, sys; from agent_hooks.plugin import ALLOW, serve\n"
        "one = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(child)!r}, 'w').write(str(one.pid))\n"
        "class Allow:\n"
        "    def intercept(self, _): return ALLOW\n"
        "serve(Allow())\n"
    )
    with judging_process([sys.executable, "-c", program]) as judge:
        assert judge(call("x")).decision == "allow"
        pid = int(child.read_text())
        os.kill(pid, 0)
    deadline = time.monotonic() + 10
    while _runs(pid):
        assert time.monotonic() < deadline, "the child is left"
        time.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def test_builder_is_the_kits_too() -> None:
    """One import for a test file."""
    built = contexts()
    assert isinstance(built, AgentContextBuilder)
    assert [built.output(content="x")["sequence"] for _ in range(2)] == [0, 1]


def test_kit_carries_nothing_of_the_hosts_machinery() -> None:
    """HOUSE: plugin never imports host or supervisor."""
    program = (
        "import sys, agent_hooks.plugin.testing\n"
        "roots = ('agent_hooks.host', 'agent_hooks.supervisor', 'opentelemetry', 'tenacity')\n"
        "print([name for name in sys.modules if name.startswith(roots)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
