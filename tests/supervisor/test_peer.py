"""Who listens at a plugin's socket, and whether a process is about to die."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_hooks.supervisor.peer import PeerError, Pulse, check_peer, listening


def until(condition: Callable[[], object], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@contextmanager
def child(program: str = "import time; time.sleep(600)") -> Iterator[subprocess.Popen[str]]:
    """A Python program that has begun to run."""
    argv = [sys.executable, "-c", f"print('runs', flush=True); {program}"]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


# -- peers --


def test_nobody_listens_at_a_path_that_is_no_socket(tmp_path: Path) -> None:
    """PROTOCOL Launch 3: the host waits for the listener."""
    assert listening(tmp_path / "nothing") is None
    (tmp_path / "file").touch()
    assert listening(tmp_path / "file") is None
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s"))
        assert listening(tmp_path / "s") is None  # bound, but not listening
        bound.listen()
        assert listening(tmp_path / "s") == os.getpid()
    assert listening(tmp_path / "s") is None


def test_full_backlog_blocks_nobody(tmp_path: Path) -> None:
    """The supervisor's one loop asks; it must not wait for a listener that accepts nobody."""
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(0)
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        for one in crowd:
            one.setblocking(False)
            one.connect_ex(path)
        begun = time.monotonic()
        listening(tmp_path / "s")
        assert time.monotonic() - begun < 1
        for one in crowd:
            one.close()


def test_listener_must_be_the_launched_process_or_a_descendant() -> None:
    """PROTOCOL Launch 3: SO_PEERCRED."""
    with child() as mine, child() as other:
        check_peer(mine.pid, mine.pid)
        check_peer(mine.pid, os.getpid())  # a child of what was launched
        for pid, launched in [(other.pid, mine.pid), (os.getpid(), mine.pid), (1, mine.pid)]:
            with pytest.raises(PeerError) as raised:
                check_peer(pid, launched)
            assert f"process {pid}" in str(raised.value)
            assert f"process {launched} was launched" in str(raised.value)


def test_grandchild_is_a_descendant() -> None:
    """PROTOCOL Launch 3: a launcher's child's child, too."""
    program = (
        "import subprocess, sys, time;"
        "one = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        "print(one.pid, flush=True); time.sleep(600)"
    )
    with child(program) as process:
        assert process.stdout is not None
        grandchild = int(process.stdout.readline())
        try:
            check_peer(grandchild, os.getpid())
            check_peer(grandchild, process.pid)
        finally:
            os.kill(grandchild, signal.SIGKILL)


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 7], ids=["none", "negative", "no_such_process"])
def test_process_that_does_not_exist_is_no_descendant(pid: int) -> None:
    """A listener in another PID namespace has pid 0."""
    with pytest.raises(PeerError):
        check_peer(pid, os.getpid())


def test_process_with_parentheses_in_its_name_is_read_rightly() -> None:
    """proc(5): the name may hold anything, spaces and parentheses included."""
    program = (
        "import ctypes, time; ctypes.CDLL(None).prctl(15, b') S 1 1 (', 0, 0, 0);"
        "print('named', flush=True); time.sleep(600)"
    )
    with child(program) as process:
        assert process.stdout is not None
        process.stdout.readline()
        check_peer(process.pid, os.getpid())
        pulse = Pulse(process.pid)
        assert pulse.beats()
        pulse.close()


# -- pulse --


@pytest.mark.parametrize(
    "ending",
    [lambda process: process.kill(), lambda process: process.terminate()],
    ids=["sigkill", "sigterm"],
)
def test_pulse_stops_the_moment_a_fatal_signal_is_sent(
    ending: Callable[[subprocess.Popen[str]], None],
) -> None:
    """PROTOCOL Deadlines: what is not sent to it then was surely never read."""
    with child() as process:
        pulse = Pulse(process.pid)
        assert pulse.beats()
        ending(process)
        assert not pulse.beats()
        process.wait()
        assert not pulse.beats()
        pulse.close()


def test_pulse_stops_for_a_signal_that_dumps_core() -> None:
    """The kernel tells that one a little later."""
    with child() as process:
        pulse = Pulse(process.pid)
        os.kill(process.pid, signal.SIGSEGV)
        until(lambda: not pulse.beats())
        pulse.close()


def test_pulse_stops_when_the_process_exits_by_itself() -> None:
    """With status 0, too, and while it is a zombie."""
    with child("input()") as process:
        pulse = Pulse(process.pid)
        assert pulse.beats()
        assert process.stdin is not None
        process.stdin.write("go on\n")
        process.stdin.flush()
        until(lambda: not pulse.beats())
        pulse.close()
    with child("import os; os._exit(0)") as process:
        until(lambda: b") Z" in Path(f"/proc/{process.pid}/stat").read_bytes())
        zombie = Pulse(process.pid)
        assert not zombie.beats()
        zombie.close()


def test_stopped_process_is_alive() -> None:
    """PROTOCOL Lifecycle: it is seen by deadlines only, and used again when it continues."""
    with child() as process:
        pulse = Pulse(process.pid)
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: b") T" in Path(f"/proc/{process.pid}/stat").read_bytes())
        assert pulse.beats()
        os.kill(process.pid, signal.SIGCONT)
        until(lambda: b") T" not in Path(f"/proc/{process.pid}/stat").read_bytes())
        assert pulse.beats()
        pulse.close()


def test_killed_while_stopped_is_dead() -> None:
    """SIGKILL reaches a stopped process as well."""
    with child() as process:
        pulse = Pulse(process.pid)
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: b") T" in Path(f"/proc/{process.pid}/stat").read_bytes())
        process.kill()
        until(lambda: not pulse.beats())
        pulse.close()


def test_signal_that_is_caught_or_ignored_is_not_fatal() -> None:
    """SIGTERM to a plugin that finishes gracefully does not mean that it is dead yet."""
    program = (
        "import signal, time; signal.signal(signal.SIGTERM, lambda *_: print('heard', flush=True));"
        "print('ready', flush=True)\nwhile True: time.sleep(1)"
    )
    with child(program) as process:
        assert process.stdout is not None
        process.stdout.readline()
        pulse = Pulse(process.pid)
        process.terminate()
        assert process.stdout.readline() == "heard\n"
        assert pulse.beats()
        pulse.close()


def test_pulse_of_a_process_with_many_threads_stops_for_a_kill() -> None:
    """The signal is the process's, whichever thread takes it."""
    program = (
        "import threading, time\n"
        "for _ in range(20): threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "print('ready', flush=True)"
    )
    with child(program) as process:
        assert process.stdout is not None
        process.stdout.readline()
        pulse = Pulse(process.pid)
        assert pulse.beats()
        process.kill()
        assert not pulse.beats()
        pulse.close()


def test_closed_pulse_does_not_beat_and_closes_once() -> None:
    """Its descriptor may be another's by then."""
    pulse = Pulse(os.getpid())
    assert pulse.beats()
    pulse.close()
    assert not pulse.beats()
    pulse.close()
