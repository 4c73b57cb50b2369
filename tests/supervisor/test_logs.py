"""Plugins' output in the host's log: one line each, and nothing that forges or drives."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable

import pytest

from agent_hooks.supervisor.logs import LogPipe, PluginLog
from agent_hooks.supervisor.settings import Settings

LIMIT = 20
SETTINGS = Settings(max_log_line=LIMIT, log_lines_per_second=10_000)


def log() -> PluginLog:
    return PluginLog("p", SETTINGS)


def logged(caplog: pytest.LogCaptureFixture, chunks: Iterable[bytes]) -> list[str]:
    """What reaches the log of what is written in these chunks, each read by itself."""
    caplog.clear()

    async def write() -> None:
        pipe = LogPipe(log(), asyncio.get_running_loop())
        for chunk in chunks:
            os.write(pipe.write_end, chunk)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        os.close(pipe.write_end)
        pipe.close()
        pipe.close()  # and not twice

    with caplog.at_level(logging.INFO, "agent_hooks.plugin"):
        asyncio.run(write())
    assert {record.name for record in caplog.records} <= {"agent_hooks.plugin.p"}
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"one\ntwo\n"], ["one", "two"]),
        ([b"on", b"e\ntw", b"o\n"], ["one", "two"]),
        ([b"one\r\n\r\ntwo"], ["one", "", "two"]),
        ([b"no newline at the end"[:LIMIT]], ["no newline at the en"]),
        ([], []),
        ([b"tab\tstays\n"], ["tab\tstays"]),
        (["Grüße 😀\n".encode()], ["Grüße 😀"]),
        ([b"\xc3", b"\xa4\n"], ["ä"]),
        ([b"\xff\xfe\n"], ["��"]),
    ],
    ids=["two", "chunks", "crlf", "last", "none", "tab", "unicode", "split_character", "bad_utf8"],
)
def test_line_is_handed_on(
    caplog: pytest.LogCaptureFixture, chunks: list[bytes], lines: list[str]
) -> None:
    """PROTOCOL Launch 2: stdout and stderr are logs."""
    assert logged(caplog, chunks) == lines


@pytest.mark.parametrize(
    "code",
    [*range(9), *range(11, 32), *range(0x7F, 0xA0), 0x2028, 0x2029],
    ids=lambda code: f"U+{code:04X}",
)
def test_control_character_cannot_forge_a_line_or_drive_a_terminal(
    caplog: pytest.LogCaptureFixture, code: int
) -> None:
    """A plugin's text is data to whoever reads the log."""
    [line] = logged(caplog, [f"a{chr(code)}b\n".encode()])
    assert line == "a�b"


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"x" * 20 + b"\n"], ["x" * 20]),
        ([b"x" * 21 + b"\nnext\n"], ["x" * 20 + " …", "next"]),
        ([b"x" * 15, b"y" * 15, b"z" * 500, b"\nnext\n"], ["x" * 15 + "y" * 5 + " …", "next"]),
        ([b"x" * 500, b"\n", b"next\n"], ["x" * 20 + " …", "next"]),
        ([b"x" * 500, b"y" * 500], ["x" * 20 + " …"]),
        (["ä".encode() * 20 + b"\n"], ["ä" * 10 + " …"]),
        (["x😀".encode() * 5 + b"\n"], ["x😀" * 4 + " …"]),
        ([("x" * 18 + "😀\n").encode()], ["x" * 18 + "� …"]),
    ],
    ids=["just", "over", "in_chunks", "long", "endless", "two_bytes", "four_bytes", "cut_in_two"],
)
def test_long_line_is_cut_once_and_the_next_is_whole(
    caplog: pytest.LogCaptureFixture, chunks: list[bytes], lines: list[str]
) -> None:
    """A line without end costs no memory and one line of log."""
    assert logged(caplog, chunks) == lines


def test_last_words_of_a_dead_plugin_are_handed_on(caplog: pytest.LogCaptureFixture) -> None:
    """Closing reads what is still in the pipe: all of it."""
    words = [b"line %d\n" % number for number in range(5000)]  # they fit into the pipe

    async def write() -> None:
        pipe = LogPipe(log(), asyncio.get_running_loop())
        os.write(pipe.write_end, b"".join(words))
        os.close(pipe.write_end)
        pipe.close()

    with caplog.at_level(logging.INFO, "agent_hooks.plugin"):
        asyncio.run(write())
    assert len(caplog.records) == len(words)


def test_pipe_whose_other_end_lives_on_is_closed_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A descendant may hold the write end; it does not hold up the supervisor."""

    async def write() -> int:
        pipe = LogPipe(log(), asyncio.get_running_loop())
        os.write(pipe.write_end, b"half")
        pipe.close()
        return pipe.write_end

    with caplog.at_level(logging.INFO, "agent_hooks.plugin"):
        os.close(asyncio.run(write()))
    assert [record.getMessage() for record in caplog.records] == ["half"]


@pytest.mark.parametrize(
    ("line", "level", "text"),
    [
        (b"<0>out of order", "CRITICAL", "out of order"),
        (b"<3>broken", "ERROR", "broken"),
        (b"<4>odd", "WARNING", "odd"),
        (b"<6>news", "INFO", "news"),
        (b"<7>detail", "DEBUG", "detail"),
        (b"<8>no severity", "INFO", "<8>no severity"),
        (b" <3>not at the start", "INFO", " <3>not at the start"),
        (b"<3>", "ERROR", ""),
    ],
)
def test_line_says_its_severity(
    caplog: pytest.LogCaptureFixture, line: bytes, level: str, text: str
) -> None:
    """sd-daemon(3): what every language can write, and nothing where it does not."""
    with caplog.at_level(logging.DEBUG, "agent_hooks.plugin"):
        one = log()
        one.write(line, False)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [(level, text)]
    assert one.recent() == [f"{level} {text}"]


def test_flood_of_lines_is_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """A plugin can fill neither the host's log nor its memory."""
    now = 100.0
    one = PluginLog("p", Settings(log_lines_per_second=3, log_lines_kept=4), lambda: now)
    with caplog.at_level(logging.INFO, "agent_hooks.plugin"):
        for number in range(10):
            one.write(b"%d" % number, False)
        assert one.dropped == 7
        now += 1
        one.write(b"later", False)
        one.tell()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["0", "1", "2", "(7 lines dropped: more than a host takes)", "later"]
    assert one.recent() == ["INFO 1", "INFO 2", f"WARNING {said[3]}", "INFO later"]
