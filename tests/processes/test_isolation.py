"""Escapes: what each isolation level promises, each case against a real hostile process.

Where a level promises nothing, the same attack has to work: so that no test of
a promise passes because the attack is a bad one.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.supervisor.isolation import LEVELS
from tests.processes.cells import STRICT, Cell, cell, plugin_of
from tests.processes.support import HERE, folders, ready, status

VICTIM = """
import ctypes, os, sys, time
secret = ctypes.create_string_buffer(os.environ["CANARY"].encode())
print(ctypes.addressof(secret), flush=True)
time.sleep(600)
"""
"""What the host is to a plugin: another process of the same user."""


@dataclass
class World:
    """What there is to steal or to break."""

    folder: Path
    base: Path
    canary: str = field(default_factory=lambda: secrets.token_hex(8))

    def __enter__(self) -> World:
        self.secret = self.folder / "secret"
        self.secret.write_text(self.canary)
        self.secret.chmod(0o600)
        os.utime(self.secret, (1000, 1000))
        self.other = self.folder / "another"
        self.other.mkdir()
        (self.other / "rules").write_text(self.canary)
        self.victim = subprocess.Popen(
            [sys.executable, "-c", VICTIM],
            stdout=subprocess.PIPE,
            text=True,
            env={"CANARY": self.canary},
        )
        assert self.victim.stdout is not None
        self.address = self.victim.stdout.readline().strip()
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.stream, self.abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        self.stream.bind(str(self.folder / "stream"))
        self.abstract.bind(f"\0{self.canary}")
        self.datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.datagram.bind(str(self.folder / "datagram"))
        for listener in (self.stream, self.abstract):
            listener.listen()
        return self

    def __exit__(self, *_: object) -> None:
        self.victim.kill()
        self.victim.communicate()
        for opened in (self.tcp, self.udp, self.stream, self.abstract, self.datagram):
            opened.close()

    def names(self) -> dict[str, Any]:
        """What an attack's arguments may name."""
        return {
            "secret": self.secret,
            "other": self.other,
            "base": self.base,
            "stream": self.folder / "stream",
            "datagram": self.folder / "datagram",
            "plugin": next(self.base.glob("1.*")) / "plugin.sock",
            "victim": self.victim.pid,
            "address": self.address,
            "tcp": self.tcp.getsockname()[1],
            "udp": self.udp.getsockname()[1],
            "canary": self.canary,
        }

    def heard(self, listener: socket.socket) -> bool:
        """Whether the canary came out of the plugin by a socket."""
        listener.settimeout(0.2)
        try:
            if listener.type == socket.SOCK_STREAM:
                with listener.accept()[0] as connection:
                    connection.settimeout(1)
                    return self.canary.encode() in connection.recv(64)
            return self.canary.encode() in listener.recv(64)
        except TimeoutError:
            return False

    def killed(self) -> bool:
        """Whether the victim is dead."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.victim.wait(0.2)
        return self.victim.poll() is not None


@dataclass
class Attack:
    """One attempt.

    Attributes:
        arguments: of the act; `{name}` is one of World.names.
        harm: whether it did it, by the world and by the plugin's word.
        control: whether it has to work at the level `process`.
    """

    act: str
    arguments: dict[str, str]
    harm: Callable[[World, str], bool]
    control: bool = True


def told(world: World, word: str) -> bool:
    return world.canary in word


def done(_: World, word: str) -> bool:
    return word.startswith("did")


def allowed(_: World, word: str) -> bool:
    """A call that the kernel looked at, whatever it said of the arguments."""
    return "Errno 1]" not in word and "(1," not in word and "(38," not in word


def attacks() -> Iterator[tuple[str, Attack]]:
    at = {"path": "{secret}"}
    yield "read_a_file_of_the_user", Attack("read", at, told)
    yield "read_shadow", Attack("read", {"path": "/etc/shadow"}, done, os.geteuid() == 0)
    yield "read_another_plugins_folder", Attack("read", {"path": "{other}/rules"}, told)
    yield "read_the_hosts_environment", Attack("read", {"path": "/proc/{victim}/environ"}, told)
    yield "see_other_plugins", Attack("listing", {"path": "{base}"}, lambda _, word: "1.1" in word)
    for name in ("sys/kernel/core_pattern", "sysrq-trigger", "irq/default_smp_affinity"):
        at_kernel = {"path": f"/proc/{name}"}
        control = os.geteuid() == 0 and Path(at_kernel["path"]).exists()
        yield f"set_{name.split('/')[-1]}", Attack("open_to_write", at_kernel, done, control)
    yield "see_devices", Attack("listing", {"path": "/dev"}, lambda _, word: "tty" in word)
    yield "write_outside", Attack("write", at, lambda w, _: w.secret.read_text() != w.canary)
    yield "truncate_outside", Attack("truncate", at, lambda w, _: not w.secret.read_text())
    yield "rename_outside", Attack("rename", at, lambda w, _: not w.secret.exists())
    yield "link_outside", Attack("link", at, lambda w, _: w.secret.stat().st_nlink > 1)
    yield "change_a_mode_outside", Attack("chmod", at, lambda w, _: w.secret.stat().st_mode & 1)
    yield "change_a_time_outside", Attack("touch", at, lambda w, _: w.secret.stat().st_mtime == 1)
    yield "watch_outside", Attack("watch", {"path": "{base}"}, done)
    leak = {"canary": "{canary}"}
    yield "tcp", Attack("tcp", {"port": "{tcp}", **leak}, lambda w, _: w.heard(w.tcp))
    yield "udp", Attack("udp", {"port": "{udp}", **leak}, lambda w, _: w.heard(w.udp))
    yield "unix", Attack("unix", {"path": "{stream}", **leak}, lambda w, _: w.heard(w.stream))
    yield "another_plugins_socket", Attack("unix", {"path": "{plugin}", **leak}, done)
    at = {"path": "@{canary}", **leak}
    yield "abstract_socket", Attack("unix", at, lambda w, _: w.heard(w.abstract))
    at = {"path": "{datagram}", **leak}
    yield "datagram", Attack("datagram", at, lambda w, _: w.heard(w.datagram))
    yield "datagram_of_a_pair", Attack("datagram_of_a_pair", at, lambda w, _: w.heard(w.datagram))
    of = {"pid": "{victim}"}
    yield "kill", Attack("kill", of, lambda w, _: w.killed())
    yield "kill_by_pidfd", Attack("pidfd_kill", of, lambda w, _: w.killed())
    yield "ptrace", Attack("ptrace", of, done)
    yield "read_memory", Attack("memory_of", {**of, "address": "{address}"}, told)
    yield "limit_another_process", Attack("limit", of, lambda w, _: descriptors_of(w) == 0)
    yield "weaken_another_process", Attack("weaken", of, lambda w, _: nice_of(w) == 19)
    yield "capabilities", Attack("capabilities", {}, lambda _, word: word != "did: 0", False)
    yield "terminal_input", Attack("push_input", {}, done)
    for name in ("mount", "unshare", "bpf", "keyctl", "io_uring_setup"):
        yield name, Attack("call", {"name": name}, allowed, False)


def descriptors_of(world: World) -> int:
    return resource.prlimit(world.victim.pid, resource.RLIMIT_NOFILE)[0]


def nice_of(world: World) -> int:
    return os.getpriority(os.PRIO_PROCESS, world.victim.pid)


ATTACKS = dict(attacks())


@pytest.fixture(scope="module", params=LEVELS)
def shared_cell(request: pytest.FixtureRequest, temporary: Path) -> Iterator[Cell]:
    with cell(request.param) as made:
        yield made


@pytest.fixture
def world(shared_cell: Cell, temporary: Path, tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, next(iter(folders(temporary)))) as made:
        yield made


@pytest.mark.parametrize("name", ATTACKS)
def test_attack_fails_at_the_levels_that_promise_it_and_works_below(
    shared_cell: Cell, world: World, name: str
) -> None:
    """PROTOCOL Isolation levels; the canary does not leave, the host goes on."""
    attack, names = ATTACKS[name], world.names()
    arguments = {key: value.format(**names) for key, value in attack.arguments.items()}
    word = shared_cell.attempt(attack.act, **arguments)
    assert word.startswith(("did", "refused")), word
    harmed = bool(attack.harm(world, word))
    if shared_cell.level in STRICT:
        assert not harmed, word
    elif attack.control:
        assert harmed, f"the attack is none: {word}"
    assert shared_cell.answers()
    assert status(shared_cell.supervisor)["restarts"] == 0


# -- the process itself --


def test_every_level_gives_a_process_of_its_own(
    shared_cell: Cell, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL `process`: session, no_new_privs, umask, rlimits; no inherited descriptor."""
    listener = plugin_of(shared_cell.supervisor, temporary)
    said = dict(
        line.split(":\t", 1)
        for line in Path(f"/proc/{listener}/status").read_text().splitlines()
        if ":\t" in line
    )
    assert os.getsid(listener) == ready(shared_cell.supervisor)["pid"] != os.getsid(0)
    assert said["NoNewPrivs"] == "1"
    assert said["Umask"] == "0077"
    assert said["Seccomp"] == ("2" if shared_cell.level in STRICT else "0")
    if shared_cell.level in STRICT:
        assert int(said["CapPrm"], 16) == int(said["CapEff"], 16) == int(said["CapInh"], 16) == 0
    limits = {
        getattr(resource, f"RLIMIT_{kind}"): value
        for kind, value in {"AS": 1 << 30, "NOFILE": 256, "CORE": 0, "FSIZE": 256 << 20}.items()
    }
    for kind, value in limits.items():
        assert resource.prlimit(listener, kind) == (value, value)
    assert shared_cell.attempt("descriptors") == "did: "


def test_table_of_promises_names_tests_that_are() -> None:
    """docs/isolation.md: each promise has a test."""
    there = [*ATTACKS, Path(__file__).read_text(), (HERE / "test_levels.py").read_text()]
    page = (HERE.parent.parent / "docs" / "isolation.md").read_text()
    rows = re.findall(r"\| (?:yes|–|each process) \| (?:yes|–) \| (?:yes|–) \| (.+) \|", page)
    assert len(rows) > 15
    for name in re.findall(r"`(\w[\w-]*)…?`", "".join(rows)):
        assert any(name in text for text in there), name
