"""What holds at every isolation level, and what a plugin may use up (PROTOCOL Isolation)."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.supervisor import Binding, Manifest, Supervisor, load_manifest
from agent_hooks.supervisor.isolation import LEVELS
from agent_hooks.supervisor.manifest import Limits
from tests.processes.cells import STRICT, cell, needed, plugin_of
from tests.processes.support import (
    EMITTERS,
    HERE,
    HOSTILE,
    QUICK,
    context,
    folders,
    good,
    judge,
    processes,
    ready,
    status,
    until,
)

PROMISE, SLOW = 2.0, 3.0
GO = HERE.parent.parent / "examples" / "plugins" / "go"


@pytest.mark.parametrize("level", LEVELS)
def test_environment_is_what_is_listed(
    tidy: Path, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL Launch 1: a small, allow-listed environment."""
    canary = secrets.token_hex(8)
    monkeypatch.setenv("CANARY", canary)
    listed = {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "HOME", "TMPDIR", "MALLOC_ARENA_MAX"}
    listed |= {"AGENT_HOOKS_PLUGIN_ADDRESS", "AGENT_HOOKS_PROTOCOL_VERSIONS", "PWD"}
    with cell(level) as made:
        environ = Path(f"/proc/{plugin_of(made.supervisor, tidy)}/environ").read_bytes()
        assert canary.encode() not in environ
        assert {e.split(b"=")[0].decode() for e in environ.split(b"\0") if e} <= listed


@pytest.mark.parametrize("level", LEVELS)
def test_killed_plugin_is_replaced_and_its_next_call_waits(tidy: Path, level: str) -> None:
    """PROTOCOL Deadlines: a crash that fits the deadline denies nothing, at each level."""
    with cell(level) as made:
        for _ in range(5):
            launched = ready(made.supervisor)["pid"]
            os.kill(plugin_of(made.supervisor, tidy), signal.SIGKILL)
            assert made.attempt("environment").startswith("did")
            assert ready(made.supervisor)["pid"] != launched


# -- limits --

SMALL = Limits(address_space_mb=800, open_files=64, disk_mb=32)


@pytest.mark.parametrize("level", LEVELS)
def test_memory_descriptors_and_file_size_are_bounded(tidy: Path, level: str) -> None:
    """PROTOCOL `process`: rlimits, at each level."""
    with cell(level, limits=SMALL) as made:
        assert 0 < int(made.attempt("fill_memory").removeprefix("did: ")) < 800
        assert 0 < int(made.attempt("fill_descriptors").removeprefix("did: ")) < 64
        assert made.attempt("fill_file", name="one") == "did: 32 File too large"
        assert made.answers()
        assert status(made.supervisor)["restarts"] == 0


@pytest.mark.parametrize(
    ("level", "where", "outcome"),
    [
        ("process", "$TMPDIR", "killed"),
        ("process", "$HOME/..", "killed"),
        ("confined", "$TMPDIR", "killed"),
        ("confined", "$HOME/..", "refused"),
        ("isolated", "$TMPDIR", "refused"),
        ("isolated", "$HOME", "refused"),
        ("isolated", "/tmp", "refused"),
        ("isolated", "$HOME/..", "killed"),
    ],
)
def test_its_folder_holds_no_more_than_it_may(
    tidy: Path, level: str, where: str, outcome: str
) -> None:
    """[limits] disk_mb: refused by the kernel, or the warden ends the plugin and says why."""
    with cell(level, limits=SMALL) as made:
        word = made.attempt("fill_disk", folder=where)
        if outcome == "refused":
            assert word.startswith("refused"), word
            assert status(made.supervisor)["restarts"] == 0
        else:
            assert word == "host_error:interceptor_failed"
            why = until(lambda: status(made.supervisor)["last_error"])
            assert "[limits] disk_mb" in why
        assert made.answers()


@pytest.mark.parametrize("level", STRICT)
def test_fork_bomb_does_not_go_off(tidy: Path, level: str) -> None:
    """A strict plugin is one process: nothing is left behind, and nothing helps it."""
    mark = str(tidy / "bomb")
    with cell(level) as made:
        assert made.attempt("bomb", mark=mark, count=50).startswith("refused: PermissionError")
        assert made.attempt("linger", mark=mark).startswith("refused: PermissionError")
        assert not processes(mark)
        assert made.answers()


@pytest.mark.parametrize("end", ["plugin", "keeper", "warden"])
def test_whatever_is_killed_its_descendants_end(tidy: Path, end: str) -> None:
    """PROTOCOL Launch 4: with everything it started, sessions and emptied environments too."""
    mark = str(tidy / "family")
    with cell("process") as made:
        plugin = ready(made.supervisor)["pid"]
        assert made.attempt("bomb", mark=mark, count=40) == "did: 40"
        assert made.attempt("linger", mark=mark) == "did: None"
        until(lambda: len(processes(mark)) == 41, what="they never ran")
        keeper = parent_of(plugin)
        pid = {"plugin": plugin, "keeper": keeper, "warden": parent_of(keeper)}[end]
        os.kill(pid, signal.SIGKILL)
        until(lambda: not processes(mark), PROMISE * SLOW, "a descendant is left")
        until(lambda: ready(made.supervisor)["pid"] != plugin)
        assert made.answers()


def test_helper_without_an_environment_is_no_orphan(tidy: Path) -> None:
    """What a living plugin started stays, whoever else dies."""
    mark = str(tidy / "helper")
    with cell("process") as made:
        assert made.attempt("linger", mark=mark) == "did: None"
        until(lambda: processes(mark))
        helper = set(processes(mark))
        for turn in range(2):
            os.kill(ready(made.supervisor, "q")["pid"], signal.SIGKILL)
            until(lambda turn=turn: status(made.supervisor, "q")["restarts"] > turn)
            ready(made.supervisor, "q")
        assert set(processes(mark)) == helper


def parent_of(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return int(stat[stat.rindex(")") + 2 :].split()[1])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("busy", ["hold", "linger"])
def test_nothing_outlives_a_killed_host(
    tidy: Path, level: str, busy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL Lifecycle, host death: within 2 s, at each level, the folder too."""
    needed(level)
    monkeypatch.setenv("TMPDIR", str(tidy))
    monkeypatch.setenv("PYTHONPATH", str(HERE.parent.parent))
    argument = "seconds=600" if busy == "hold" else f"mark={tidy / 'mark'}"
    argv = [sys.executable, str(HERE / "hosts" / "levels.py"), level, busy, argument]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        plugin = int(host.stdout.readline())
        assert plugin in processes(str(tidy))
        host.kill()
        host.wait()
        begun = time.monotonic()
        until(lambda: not processes(str(tidy)), PROMISE * SLOW, f"left: {processes(str(tidy))}")
        until(lambda: not folders(tidy), PROMISE * SLOW, "its folder is left")
        assert time.monotonic() - begun < PROMISE * SLOW


# -- what has to work all the same --


@pytest.fixture(scope="module")
def egress() -> Manifest:
    """The example in Go, built."""
    if shutil.which("go") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("Go is not installed")
    subprocess.run(["make", "--silent", "build"], cwd=GO, check=True)
    return load_manifest(GO / "plugin.toml")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", EMITTERS)
def test_plugins_in_go_and_python_judge(
    tidy: Path, egress: Manifest, level: str, kind: Any
) -> None:
    """The listener of an isolated plugin is a descendant of what was launched (Launch 3)."""
    go = replace(egress, isolation=needed(level))
    python = good(isolation=level, folder=HERE / "plugins")
    bindings = [Binding("go", go, {"allow_hosts": ["good.example"]}), Binding("python", python)]
    with Supervisor(bindings, QUICK) as supervisor:
        plugins = [supervisor.interceptor(name) for name in ("go", "python")]
        calls = {"https://good.example/": "allow", "https://evil.example/": "deny"}
        for url, decision in calls.items():
            assert judge(kind, context(url=url), *plugins).decision == decision


@pytest.mark.parametrize("level", STRICT)
def test_it_reads_what_its_manifest_names(tidy: Path, level: str, tmp_path: Path) -> None:
    """[plugin] reads: beside its folder and its runtime, and nothing beside that."""
    data, secret = tmp_path / "data", tmp_path / "secret"
    data.write_text("a model")
    secret.write_text("a secret")
    with cell(level, reads=(data,)) as made:
        assert made.attempt("read", path=data) == "did: a model"
        assert made.attempt("read", path=secret).startswith("refused")
        assert made.attempt("write", path=data).startswith("refused")
        assert made.attempt("write", path=HERE / "plugins" / "good.py").startswith("refused")


@pytest.mark.parametrize("level", LEVELS)
def test_pinned_files_run_at_each_level(tidy: Path, level: str, tmp_path: Path) -> None:
    """[files] are run as copies: at the strict levels the folder itself is not even seen."""
    program = tmp_path / "main.py"
    program.write_bytes(HOSTILE.read_bytes())
    pins = {"main.py": f"sha256:{hashlib.sha256(HOSTILE.read_bytes()).hexdigest()}"}
    changed = {"folder": tmp_path, "files": pins, "command": (sys.executable, str(program))}
    with cell(level, **changed) as made:
        sees = made.attempt("read", path=program).startswith("did")
        assert sees is (level == "process")
        copy = next(tidy.glob("agent-hooks-*/0.1")) / "program" / "main.py"
        assert made.attempt("read", path=copy).startswith("did")
        if level != "process" or os.geteuid() != 0:  # root writes what is read-only
            assert made.attempt("open_to_write", path=copy).startswith("refused")
