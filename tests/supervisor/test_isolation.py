"""Isolation levels: what the machine lacks is said, and nothing weaker is launched."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.supervisor import Binding, Manifest, PluginStartError, Supervisor
from agent_hooks.supervisor.isolation import (
    LEVELS,
    IsolationError,
    available,
    bubblewrap,
    confinement,
    landlock,
    seccomp,
)
from agent_hooks.supervisor.isolation.view import View, ViewError, view
from agent_hooks.supervisor.launcher import Launched, Launcher

LIMITS = {"address_space": 1 << 30, "open_files": 256, "disk": 1 << 20}


@pytest.fixture
def unlearned() -> Iterator[None]:
    """Have what is found out once be found out again, before and after."""

    def forget() -> None:
        bubblewrap.usable.cache_clear()
        seccomp.program.cache_clear()

    forget()
    yield
    forget()


def no_bubblewrap(patch: pytest.MonkeyPatch, folder: Path) -> None:
    patch.setenv("PATH", str(folder))


def bubblewrap_without_namespaces(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """As it is where the kernel does not let users make them."""
    stub = folder / "bwrap"
    stub.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    stub.chmod(0o755)
    patch.setenv("PATH", str(folder))


def no_libseccomp(patch: pytest.MonkeyPatch, _: Path) -> None:
    def missing(name: str) -> ctypes.CDLL:
        raise OSError(name)

    patch.setattr(seccomp.ctypes, "CDLL", missing)


def old_libseccomp(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setitem(seccomp._NUMBERS, "fchmodat2", -1)
    patch.setattr(seccomp, "_DENIED", ["no_such_call_at_all"])


def old_kernel(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setattr(landlock, "abi", lambda: 4)


def kernel_without_landlock(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setattr(landlock, "abi", lambda: 0)


Lack = Callable[[pytest.MonkeyPatch, Path], None]
LACKS: dict[Lack, tuple[tuple[str, ...], tuple[str, ...]]] = {
    no_bubblewrap: (("isolated",), ("bubblewrap is missing", "apt-get install bubblewrap")),
    bubblewrap_without_namespaces: (
        ("isolated",),
        ("No permissions to create new namespace", "allow user namespaces", "sysctl"),
    ),
    no_libseccomp: (
        ("confined", "isolated"),
        ("libseccomp is missing", "apt-get install libseccomp2"),
    ),
    old_libseccomp: (
        ("confined", "isolated"),
        ("does not know the call no_such_call_at_all", "newer libseccomp2"),
    ),
    old_kernel: (("confined",), ("Landlock ABI 6 is needed", "Linux 6.12", "this kernel gives 4")),
    kernel_without_landlock: (("confined",), ("this kernel gives none", "lsm=")),
}


@pytest.mark.parametrize("lack", LACKS, ids=lambda lack: lack.__name__)
def test_level_that_cannot_be_given_is_refused_and_nothing_weaker_runs(
    lack: Lack, unlearned: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL Isolation: refused at start, with what is missing and how to get it."""
    lack(monkeypatch, tmp_path)
    refused, told = LACKS[lack]
    ran = tmp_path / "ran"
    for level in refused:
        program = ("/usr/bin/touch", str(ran))
        manifest = Manifest("p", "p", program, isolation=level, reads=(tmp_path,))
        with pytest.raises(PluginStartError) as raised:
            Supervisor([Binding("p", manifest)]).start()
        text = str(raised.value)
        assert f"isolation level {level} cannot be given" in text
        assert "A weaker one is not put in its place" in text
        assert [part for part in told if part not in text] == []
    assert not ran.exists()
    assert {level for level, missing in available().items() if missing} >= set(refused)
    assert available()["process"] is None


def test_what_is_no_level_is_refused(tmp_path: Path) -> None:
    """An unknown word never means the weakest."""
    with pytest.raises(IsolationError, match="process, confined, isolated"):
        with confinement("none", ["/bin/true"], {}, tmp_path / "home", (), 1):
            pass


@pytest.mark.parametrize("level", ["confined", "isolated"])
@pytest.mark.parametrize("folder", [".", "..", "/"])
def test_folder_that_holds_the_supervisors_own_is_refused(
    tmp_path: Path, level: str, folder: str
) -> None:
    """Other plugins' sockets are there."""
    home = tmp_path / "base" / "0.1"
    home.mkdir(parents=True)
    with pytest.raises(IsolationError, match="give the plugin a folder of its own"):
        with confinement(level, ["/bin/true"], {}, home, [home.parent / folder], 1):
            pass


@pytest.mark.parametrize("level", ["confined", "isolated"])
def test_path_that_is_not_there_is_refused(tmp_path: Path, level: str) -> None:
    """[plugin] reads: a misspelt path is said at start, not found out in a call."""
    with pytest.raises(IsolationError, match=r"absent: no such file or folder: .*\[plugin\] reads"):
        with confinement(level, ["/bin/true"], {}, tmp_path / "home", [tmp_path / "absent"], 1):
            pass


def test_view_is_the_program_its_interpreter_and_what_is_given(tmp_path: Path) -> None:
    """Of paths below each other, the outer; of links, both ends; nothing of the system's twice."""
    real, inner = tmp_path / "real", tmp_path / "real" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "link").symlink_to(real)
    home = tmp_path / "base" / "0.1"
    seen = view(["/bin/true"], "", home, [tmp_path / "link", inner, Path("/usr/share")])
    assert seen == View(home, (tmp_path / "link", real))
    python = view([sys.executable], "", home, [])
    for needed in (Path(sys.executable).resolve(), Path(bubblewrap.__file__)):
        assert any(needed.is_relative_to(path) for path in (*python.run, Path("/usr").resolve())), (
            needed
        )


def test_view_refuses_by_its_own_error(tmp_path: Path) -> None:
    with pytest.raises(ViewError):
        view(["/bin/true"], "", tmp_path / "base" / "0.1", [tmp_path])


def test_filter_is_whole_instructions_and_denies_by_architecture() -> None:
    """struct sock_filter is eight bytes; the kernel takes at most 4096 of them."""
    program = seccomp.program()
    assert len(program) % 8 == 0
    assert 100 < len(program) // 8 <= 4096


# -- at the launcher --


def launched(
    tmp_path: Path,
    level: str,
    program: str,
    act: Callable[[Launcher, Launched, int, int], Awaitable[Any]],
) -> Any:
    """Launch a Python program at a level and do something with it; what `act` returns."""
    if (missing := available()[level]) is not None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)

    async def work() -> Any:
        launcher = Launcher(tmp_path, asyncio.get_running_loop())
        home = tmp_path / "0.1"
        for folder in (home, home / "work", home / "tmp"):
            folder.mkdir(mode=0o700)
        log, log_end = os.pipe()
        stdin, lifeline = os.pipe()
        environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": "/nowhere/evil.so"}
        command = [sys.executable, "-Sc", program]
        try:
            with confinement(level, command, environment, home, (), 1 << 20) as made:
                launch, pid = await launcher.launch(made, home / "work", LIMITS, stdin, log_end)
            return await act(launcher, launch, pid, log)
        finally:
            launcher.close()
            for fd in (log, log_end, stdin, lifeline):
                os.close(fd)

    return asyncio.run(work())


async def heard(log: int, word: bytes) -> None:
    seen = b""
    while word not in seen:
        seen += await asyncio.to_thread(os.read, log, 4096)


@pytest.mark.parametrize("level", LEVELS)
def test_sigterm_reaches_the_plugin_and_its_status_the_host(tmp_path: Path, level: str) -> None:
    """PROTOCOL Lifecycle, stop: SIGTERM has its grace; bubblewrap does not stand before it."""
    program = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("stands", flush=True)
time.sleep(60)
"""

    async def act(launcher: Launcher, launch: Launched, _: int, log: int) -> str:
        await heard(log, b"stands")
        launcher.signal(launch, signal.SIGTERM)
        return await asyncio.wait_for(launch.exited, 20)

    assert launched(tmp_path, level, program, act) == "exited with status 7"


def test_what_a_manifest_sets_does_not_act_on_bubblewrap(tmp_path: Path) -> None:
    """[env] LD_PRELOAD would run a plugin's code before it is isolated."""

    async def act(_: Launcher, __: Launched, pid: int, log: int) -> tuple[bytes, bytes]:
        await heard(log, b"evil.so")  # the program that is isolated complains of it
        await heard(log, b"stands")
        return Path(f"/proc/{pid}/environ").read_bytes(), Path(f"/proc/{pid}/cmdline").read_bytes()

    program = "import time; print('stands', flush=True); time.sleep(60)"
    environ, argv = launched(tmp_path, "isolated", program, act)
    assert b"LD_PRELOAD" not in environ
    assert b"LD_PRELOAD" not in argv


def test_socket_folder_of_a_launch_is_the_users_alone(tmp_path: Path) -> None:
    """PROTOCOL Launch 1: a private directory, mode 0700; umask 077 inside."""

    async def act(_: Launcher, __: Launched, ___: int, log: int) -> int:
        await heard(log, b"made")
        return stat.S_IMODE((tmp_path / "0.1" / "work" / "file").stat().st_mode)

    program = "import time; open('file', 'w').close(); print('made', flush=True); time.sleep(60)"
    assert launched(tmp_path, "confined", program, act) == 0o600
