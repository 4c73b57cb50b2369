"""agent-hooks plugins, against a host that runs: what an operator does at 3 a.m."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import time
print("<4>hello from the plugin", flush=True)
{}
from agent_hooks.plugin import Verdict, serve
class Allow:
    def intercept(self, context):
        return Verdict.allow()
serve(Allow())
"""
HOST = """
import sys
from agent_hooks.supervisor import Binding, Manifest, Settings, Supervisor
manifest = Manifest("one", "test.one", (sys.executable, sys.argv[1]))
settings = Settings(quarantine_restarts=2, backoff_first=0.05, backoff_max=0.1)
with Supervisor([Binding("guard", manifest)], settings):
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A short one, since sockets are made in it."""
    folder = Path(tempfile.mkdtemp(prefix="ah-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def program(temporary: Path) -> Path:
    path = temporary / "program.py"
    path.write_text(PROGRAM.format(""))
    return path


Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def cli(temporary: Path) -> Cli:
    """The real command, where the hosts of the test are."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "agent_hooks.cli.main", "plugins", *words]
        environment = {**os.environ, "TMPDIR": str(temporary)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    return run


def start(temporary: Path, program: Path) -> subprocess.Popen[str]:
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(program)],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert host.stdout is not None
    assert host.stdout.readline() == "ready\n"
    return host


@pytest.fixture
def host(temporary: Path, program: Path) -> Iterator[subprocess.Popen[str]]:
    """A host of one plugin, as a process of its own."""
    process = start(temporary, program)
    yield process
    if process.returncode is None:
        process.communicate(timeout=30)


def state(cli: Cli) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(cli("status", "-o", "json").stdout)
    return answer["plugins"][0]


def until(cli: Cli, wanted: str) -> dict[str, Any]:
    deadline = time.monotonic() + 30
    while (now := state(cli))["state"] != wanted:
        assert time.monotonic() < deadline, now
    return now


def test_status_says_what_a_plugin_does_and_uses(cli: Cli, host: subprocess.Popen[str]) -> None:
    """As a table, and as data; exit code 0 while all are ready."""
    done = cli("status")
    assert done.returncode == 0, done.stderr
    assert f"host {host.pid}" in done.stdout
    assert "guard" in done.stdout
    assert "ready" in done.stdout
    plugin = state(cli)
    assert (plugin["id"], plugin["kind"], plugin["state"]) == ("guard", "test.one", "ready")
    assert plugin["processes"] == 1
    assert 10 * 2**20 < plugin["resident_bytes"] < 200 * 2**20
    assert plugin["cpu_seconds"] > 0


def test_ping_and_logs(cli: Cli, host: subprocess.Popen[str]) -> None:
    """Lines with their severity, the last ones first to be asked for."""
    done = cli("ping", "guard")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"pid {state(cli)['pid']}" in done.stdout
    assert cli("logs", "guard").stdout == "WARNING hello from the plugin\n"


def test_stopped_plugin_does_not_answer_a_ping(cli: Cli, host: subprocess.Popen[str]) -> None:
    """Exit code 1, in time, and what state it is in."""
    pid = state(cli)["pid"]
    os.kill(pid, signal.SIGSTOP)
    done = cli("ping", "guard")
    os.kill(pid, signal.SIGCONT)
    assert done.returncode == 1
    assert "no answer" in done.stderr


def test_reload_switches_to_a_new_process(cli: Cli, host: subprocess.Popen[str]) -> None:
    """The new program as it is on disk now."""
    before = state(cli)["pid"]
    done = cli("reload", "guard")
    assert (done.returncode, done.stderr) == (0, "")
    after = state(cli)["pid"]
    assert f"{before} was succeeded by {after}" in done.stdout
    assert before != after


def test_reload_of_a_broken_program_leaves_the_present_one(
    cli: Cli, host: subprocess.Popen[str], program: Path
) -> None:
    """Exit code 1, and why."""
    before = state(cli)["pid"]
    program.write_text("raise SystemExit(7)")
    done = cli("reload", "guard")
    assert done.returncode == 1
    assert "the present stays: the process exited with status 7" in done.stderr
    assert state(cli)["pid"] == before


def test_quarantine_is_seen_and_ended(cli: Cli, host: subprocess.Popen[str], program: Path) -> None:
    """A crash-loop, from the first look to the mended plugin."""
    program.write_text(PROGRAM.format("raise SystemExit('no disk')"))
    os.kill(state(cli)["pid"], signal.SIGKILL)
    until(cli, "quarantined")
    done = cli("status")
    assert done.returncode == 1
    assert "guard: last error: the process exited with status 1" in done.stdout
    assert "INFO no disk" in cli("logs", "guard").stdout
    program.write_text(PROGRAM.format(""))
    assert cli("reset", "guard").returncode == 0
    until(cli, "ready")


def test_callers_who_say_nothing_or_read_nothing_hold_up_no_end(
    cli: Cli, host: subprocess.Popen[str], temporary: Path
) -> None:
    """Any process of the user may connect; the host ends all the same."""
    [path] = temporary.glob("agent-hooks-*/control.sock")
    with socket.socket(socket.AF_UNIX) as mute, socket.socket(socket.AF_UNIX) as half:
        mute.connect(str(path))
        half.connect(str(path))
        half.sendall(b'{"op": "stat')
        assert state(cli)["state"] == "ready"
        _, errors = host.communicate(timeout=4)  # less than a request may take to arrive
    assert host.returncode == 0
    assert "Traceback" not in errors


def test_wrong_names_are_answered_with_the_right_ones(
    cli: Cli, host: subprocess.Popen[str]
) -> None:
    """Usage errors say what there is."""
    done = cli("ping", "nobody")
    assert done.returncode == 1
    assert "this host has guard" in done.stderr
    done = cli("status", "--host", "1")
    assert done.returncode == 2
    assert f"there are {host.pid}" in done.stderr


def test_several_hosts_are_told_apart(
    cli: Cli, host: subprocess.Popen[str], temporary: Path, program: Path
) -> None:
    """None is chosen for the operator."""
    other = start(temporary, program)
    done = cli("status")
    assert done.returncode == 2
    assert f"{min(host.pid, other.pid)}, {max(host.pid, other.pid)}" in done.stderr
    assert f"host {other.pid}" in cli("status", "--host", str(other.pid)).stdout
    other.communicate(timeout=30)


def test_no_host_is_said_so(cli: Cli) -> None:
    """Nothing runs; a dead host's socket is none."""
    done = cli("status")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no host of this user runs here" in done.stderr


def test_plugins_of_a_folder(cli: Cli) -> None:
    """Without a host."""
    folder = str(ROOT / "plugins")
    done = cli("list", folder)
    assert done.returncode == 0
    assert "agent_hooks.secrets" in done.stdout
    listed = json.loads(cli("list", folder, "-o", "json").stdout)
    assert {item["kind"] for item in listed} == {"agent_hooks.policy_cel", "agent_hooks.secrets"}
    done = cli("info", "agent_hooks.secrets", folder, "-o", "json")
    assert json.loads(done.stdout)["timeout_ms"] == 5000
    assert cli("info", "no.such", folder).returncode == 2
