"""Secrets by reference: resolved late, refused by place, shown to nobody (PROTOCOL Services)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.supervisor.channel import ConfigRefusedError
from agent_hooks.supervisor.config import config_text
from agent_hooks.supervisor.logs import LogPipe, PluginLog
from agent_hooks.supervisor.secrets import MAX_BYTES, NO_SECRETS, SecretError, Secrets, resolve
from agent_hooks.supervisor.settings import Settings

VALUE = 's3cret "ä\\b'


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AH_TEST_SECRET", VALUE)
    monkeypatch.setenv("AH_TEST_EMPTY", "")
    monkeypatch.delenv("AH_TEST_UNSET", raising=False)
    monkeypatch.setitem(os.environb, b"AH_TEST_BYTES", b"s3cret\xff")  # type: ignore[misc]


def reference(text: Any) -> dict[str, Any]:
    return {"$secret": text}


@pytest.mark.usefixtures("environment")
def test_references_anywhere_become_their_texts(tmp_path: Path) -> None:
    """In objects and arrays at any depth; the rest stays, and so does what was given."""
    file = tmp_path / "key"
    file.write_text("from a file\n")
    config = {
        "a": reference("env:AH_TEST_SECRET"),
        "b": [1.5, {"c": [reference(f"file:{file}")]}, None],
        "d": {"secret": "env:AH_TEST_SECRET", "e": "$secret"},
    }
    kept = json.dumps(config)
    text, secrets = config_text(config)
    assert json.loads(text) == {
        "a": VALUE,
        "b": [1.5, {"c": ["from a file"]}, None],
        "d": {"secret": "env:AH_TEST_SECRET", "e": "$secret"},
    }
    assert json.dumps(config) == kept
    assert secrets.hide_text(f"{VALUE} from a file") == "(secret) (secret)"


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"key", "key"),
        (b"key\n", "key"),
        (b"key\r\n", "key"),
        (b"key\n\n", "key\n"),
        (b" key ", " key "),
        ("schlüssel".encode(), "schlüssel"),
        (b"one\ntwo\n", "one\ntwo"),
        (b"k" * MAX_BYTES, "k" * MAX_BYTES),
    ],
    ids=["plain", "newline", "crlf", "two", "spaces", "unicode", "lines", "largest"],
)
def test_file_is_its_text_without_the_last_lines_end(
    tmp_path: Path, data: bytes, value: str
) -> None:
    """What an editor adds is no part of a secret; nothing else is taken away."""
    file = tmp_path / "key"
    file.write_bytes(data)
    assert resolve({"k": reference(f"file:{file}")})[0] == {"k": value}


def test_file_may_be_named_by_a_link(tmp_path: Path) -> None:
    """As mounted secrets are."""
    (tmp_path / "data").write_text("key")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    assert resolve({"k": reference(f"file:{tmp_path}/link")})[0] == {"k": "key"}


# What cannot be read, and what is said of it beside the reference.
ABSENT = {
    "env:AH_TEST_UNSET": "is not set in the host's environment",
    "env:AH_TEST_EMPTY": "is empty",
    "env:AH_TEST_BYTES": "is not text in UTF-8",
    "file:{}/none": "cannot be read (No such file or directory)",
    "file:{}": "cannot be read (Is a directory)",
    "file:{}/fifo": "is not a regular file",
    "file:{}/empty": "is empty",
    "file:{}/newline": "is empty",
    "file:{}/binary": "is not text in UTF-8",
    "file:{}/large": f"is larger than {MAX_BYTES} bytes",
    "file:/dev/zero": "is not a regular file",
}


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("written", ABSENT)
def test_what_cannot_be_read_is_named_by_pointer_and_reference(
    tmp_path: Path, written: str
) -> None:
    """A start error that an operator can act on, at once: a FIFO is not waited for."""
    os.mkfifo(tmp_path / "fifo")
    for name, data in {
        "empty": b"", "newline": b"\n", "binary": b"s3cret\xff", "large": b"s" * (MAX_BYTES + 1),
    }.items():  # fmt: skip
        (tmp_path / name).write_bytes(data)
    text = written.format(tmp_path)
    with pytest.raises(ConfigRefusedError) as raised:
        config_text({"rules": [{"a/b": reference(text)}]})
    assert str(raised.value) == (
        f"its configuration is refused:\n/rules/0/a~1b: {text}: {ABSENT[written]}"
    )
    assert "s3cret" not in repr(raised.value)
    assert raised.value.__context__ is None


MALFORMED: dict[str, Any] = {
    "value": reference("s3cret"),
    "value_with_colon": reference("s3cret:s3cret"),
    "scheme": reference("vault:s3cret"),
    "case": reference("ENV:S3CRET"),
    "no_name": reference("env:"),
    "bad_name": reference("env:s3cret-name"),
    "relative": reference("file:s3cret"),
    "no_path": reference("file:"),
    "nul": reference("file:/s3cret\0"),
    "number": reference(5),
    "null": reference(None),
    "object": reference({"s3cret": 1}),
    "more": {"$secret": "env:AH_TEST_SECRET", "s3cret": 1},
}


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("fault", MALFORMED)
def test_malformed_reference_is_refused_without_repeating_it(fault: str) -> None:
    """Somebody may have written the secret itself there."""
    with pytest.raises(SecretError, match=r"^/k: expected .*env:NAME.*file:/PATH") as raised:
        resolve({"k": MALFORMED[fault]})
    assert "s3cret" not in str(raised.value).lower()


@pytest.mark.usefixtures("environment")
def test_all_that_is_wrong_is_said_at_once() -> None:
    """One line each."""
    config = {
        "a": reference("env:AH_TEST_UNSET"),
        "b": [reference("x")],
        "c": reference("env:HOME"),
    }
    with pytest.raises(SecretError) as raised:
        resolve(config)
    assert [line.split(":")[0] for line in str(raised.value).splitlines()] == ["/a", "/b/0"]


@pytest.mark.usefixtures("environment")
def test_whole_configuration_is_no_secret() -> None:
    """It is an object."""
    with pytest.raises(SecretError, match=r"^\(root\): "):
        resolve(reference("env:AH_TEST_SECRET"))


# -- hiding --


def test_secret_is_hidden_as_it_is_and_as_it_is_quoted() -> None:
    """Whoever repeats a configuration quotes it."""
    secrets = Secrets([VALUE])
    for text in (VALUE, json.dumps(VALUE), json.dumps(VALUE, ensure_ascii=False), repr(VALUE)):
        hidden = secrets.hide_text(f"<{text}>")
        assert re.fullmatch(r"""<["']?\(secret\)["']?>""", hidden), hidden
    assert secrets.reach >= len(VALUE.encode())


def test_each_line_of_a_secret_is_hidden() -> None:
    """Logs are lines."""
    secrets = Secrets(["-----BEGIN-----\nabcd1234\nxy\n"])
    assert secrets.hide(b"key: abcd1234, abcd") == b"key: (secret), abcd"


def test_longer_secret_is_hidden_before_one_that_is_in_it() -> None:
    """Else its rest would be shown."""
    assert Secrets(["abc", "abcdef"]).hide(b"abcdef abc") == b"(secret) (secret)"


def test_no_secret_changes_nothing() -> None:
    """Not even bytes that are no text."""
    data = b"\xff any bytes"
    assert NO_SECRETS.hide(data) is data
    assert NO_SECRETS.reach == 0
    assert "s3cret" not in repr(Secrets(["s3cret"]))


SECRET = b"0123456789"
LIMIT = 24


@pytest.mark.parametrize("split", range(1, 60, 7))
@pytest.mark.parametrize("before", range(LIMIT + 4))
def test_no_part_of_a_secret_is_in_a_line_that_is_cut(
    caplog: pytest.LogCaptureFixture, before: int, split: int
) -> None:
    """Wherever the line is cut, and wherever what was read of it ends."""
    data = b"-" * before + SECRET + b"=" * 30 + b"\n" + SECRET + b"\nlast\n"

    async def write() -> None:
        log = PluginLog("p", Settings(max_log_line=LIMIT))
        pipe = LogPipe(log, asyncio.get_running_loop())
        pipe.secrets = Secrets([SECRET.decode()])
        for chunk in (data[:split], data[split:]):
            os.write(pipe.write_end, chunk)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        os.close(pipe.write_end)
        pipe.close()

    with caplog.at_level(logging.INFO, "agent_hooks.plugin"):
        asyncio.run(write())
    lines = [record.getMessage() for record in caplog.records]
    assert not re.search("[0-9]", "".join(lines))
    assert lines[-2:] == ["(secret)", "last"]
