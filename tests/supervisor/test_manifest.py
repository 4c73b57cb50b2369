"""Manifests: read, or refused with the file, the key and the remedy."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent_hooks.core.grants import EVERYTHING, parse_grants
from agent_hooks.core.points import POINTS
from agent_hooks.supervisor import Manifest, ManifestError, load_manifest, load_manifests
from agent_hooks.supervisor.manifest import Limits

GOOD = '[plugin]\nname = "n"\nkind = "k"\ncommand = ["c"]\n'


def written(folder: Path, text: str | bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "plugin.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_least_manifest_has_the_defaults(tmp_path: Path) -> None:
    """PROTOCOL: 5000 ms, the process level, 1 GiB, 256 files, every point."""
    read = load_manifest(written(tmp_path, GOOD))
    assert read == Manifest("n", "k", ("c",), tuple(POINTS), 5.0, "process", Limits(1024, 256), {})


def test_whole_manifest_is_read(tmp_path: Path) -> None:
    """Every key there is."""
    text = """
        [plugin]
        name = "No shell"
        kind = "no_shell"
        command = ["{python}", "./main.py", "python", "{python}x", "./", "a./b"]
        points = ["pre_tool_call", "output"]
        timeout_ms = 250
        isolation = "process"
        [limits]
        address_space_mb = 512
        open_files = 64
        [env]
        LEVEL = "2"
        [grants]
        sees = ["tool_call"]
        may = ["deny"]
    """
    read = load_manifest(written(tmp_path, text))
    assert read.grants == parse_grants({"sees": ["tool_call"], "may": ["deny"]})
    assert read.command == (
        sys.executable,
        str(tmp_path / "main.py"),
        "python",
        "{python}x",
        f"{tmp_path}",
        "a./b",
    )
    assert replace(read, command=(), grants=EVERYTHING) == Manifest(
        "No shell",
        "no_shell",
        (),
        ("pre_tool_call", "output"),
        0.25,
        "process",
        Limits(512, 64),
        {"LEVEL": "2"},
    )


def plugin(**changed: str) -> str:
    """A manifest with some keys of [plugin] replaced by TOML text."""
    keys = {"name": '"n"', "kind": '"k"', "command": '["c"]', **changed}
    return "[plugin]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items() if value)


# What is wrong, and the parts that the refusal has to name beside the file.
FAULTS: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "empty": ("", ("[plugin] name", "missing")),
    "not_toml": ("[plugin\n", ("is not TOML", "line 1")),
    "twice": ("[plugin]\nname='a'\nname='b'\n", ("is not TOML",)),
    "not_utf8": (b"[plugin]\nname='\xff'\n", ("is not TOML in UTF-8",)),
    "nested_too_deeply": ("a = " + "[" * 5000 + "]" * 5000, ("is not TOML",)),
    "unknown_table": (GOOD + "[plugins]\n", ("plugins: unknown", "known are plugin, limits, env")),
    "unknown_key": (plugin(timeout="5"), ("[plugin] timeout: unknown", "timeout_ms")),
    "unknown_limit": (GOOD + "[limits]\ncpu = 1\n", ("[limits] cpu: unknown", "open_files")),
    "plugin_no_table": ("plugin = 5\n", ("[plugin]", "expected a table")),
    "limits_no_table": ("limits = 5\n" + GOOD, ("[limits]", "expected a table")),
    "env_no_table": ("env = []\n" + GOOD, ("[env]", "expected a table")),
    "no_name": (plugin(name=""), ("[plugin] name: missing", "at most 64 characters")),
    "no_kind": (plugin(kind=""), ("[plugin] kind: missing", "at most 64 characters")),
    "no_command": (plugin(command=""), ("[plugin] command: missing", "array of strings")),
    "name_empty": (plugin(name='""'), ("[plugin] name: expected a name",)),
    "name_long": (plugin(name='"' + "x" * 65 + '"'), ("[plugin] name: expected a name",)),
    "name_control": (plugin(name='"a\\u001b[2J"'), ("[plugin] name: expected a name",)),
    "name_number": (plugin(name="5"), ("[plugin] name: expected a name",)),
    "kind_newline": (plugin(kind='"a\\nb"'), ("[plugin] kind: expected a kind",)),
    "command_text": (plugin(command='"c"'), ("[plugin] command: expected an array",)),
    "command_empty": (plugin(command="[]"), ("[plugin] command: expected an array",)),
    "command_empty_word": (plugin(command='["c", ""]'), ("[plugin] command: expected",)),
    "command_number": (plugin(command='["c", 5]'), ("[plugin] command: expected an array",)),
    "points_unknown": (plugin(points='["pre_tool"]'), ("[plugin] points:", "pre_tool_call")),
    "points_empty": (plugin(points="[]"), ("[plugin] points: expected an array",)),
    "points_text": (plugin(points='"input"'), ("[plugin] points: expected an array",)),
    "points_nested": (plugin(points='[["input"]]'), ("[plugin] points: expected an array",)),
    "timeout_zero": (plugin(timeout_ms="0"), ("[plugin] timeout_ms:", "milliseconds > 0")),
    "timeout_negative": (plugin(timeout_ms="-1"), ("[plugin] timeout_ms:",)),
    "timeout_float": (plugin(timeout_ms="1.5"), ("[plugin] timeout_ms:", "whole number")),
    "timeout_true": (plugin(timeout_ms="true"), ("[plugin] timeout_ms:",)),
    "timeout_text": (plugin(timeout_ms='"5"'), ("[plugin] timeout_ms:",)),
    "timeout_beyond_a_double": (plugin(timeout_ms="1" + "0" * 400), ("[plugin] timeout_ms:",)),
    "isolation_unknown": (
        plugin(isolation='"sealed"'),
        (
            "[plugin] isolation:",
            "process, confined, isolated",
            "a weaker level is never put in its place",
        ),
    ),
    "reads_relative": (plugin(reads='["data"]'), ("[plugin] reads:", "absolute paths")),
    "disk_zero": (GOOD + "[limits]\ndisk_mb = 0\n", ("[limits] disk_mb:", "MiB > 0")),
    "isolation_list": (plugin(isolation='["process"]'), ("[plugin] isolation:",)),
    "memory_zero": (GOOD + "[limits]\naddress_space_mb = 0\n", ("[limits] address_space_mb:",)),
    "files_text": (GOOD + '[limits]\nopen_files = "9"\n', ("[limits] open_files:", "> 0")),
    "grants_no_table": ("grants = []\n" + GOOD, ("[grants]", "expected a table")),
    "grants_unknown": (GOOD + "[grants]\nsee = []\n", ("[grants] see: unknown", "known are sees")),
    "grants_place": (GOOD + '[grants]\nsees = ["$x"]\n', ("[grants] sees[0]:", "$target.to")),
    "grants_right": (GOOD + '[grants]\nmay = ["x"]\n', ("[grants] may[0]:", "deny, transform")),
    "env_number": (GOOD + "[env]\nLEVEL = 5\n", ("[env] LEVEL: expected a string",)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_refusal_names_the_file_the_key_and_the_remedy(tmp_path: Path, fault: str) -> None:
    """PROTOCOL: a manifest is read as it stands or not at all."""
    text, named = FAULTS[fault]
    path = written(tmp_path, text)
    with pytest.raises(ManifestError) as raised:
        load_manifest(path)
    assert str(raised.value).startswith(f"{path}: ")
    assert [part for part in named if part not in str(raised.value)] == []


def test_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Missing, or a folder."""
    with pytest.raises(ManifestError, match="cannot be read"):
        load_manifest(tmp_path / "plugin.toml")
    (tmp_path / "plugin.toml").mkdir()
    with pytest.raises(ManifestError, match="cannot be read"):
        load_manifest(tmp_path / "plugin.toml")


def test_folder_of_plugins_is_read_by_kind(tmp_path: Path) -> None:
    """Each in a folder of its own; what is no plugin is passed over."""
    written(tmp_path / "a", plugin(kind='"one"'))
    written(tmp_path / "b", plugin(kind='"two"'))
    (tmp_path / "c").mkdir()
    (tmp_path / "plugin.toml").write_text("not read")
    assert sorted(load_manifests(tmp_path)) == ["one", "two"]
    assert load_manifests(tmp_path / "c") == {}


def test_kind_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    """A binding names a kind, so that there must be one of it."""
    written(tmp_path / "a", GOOD)
    second = written(tmp_path / "b", GOOD)
    with pytest.raises(ManifestError, match="another plugin") as raised:
        load_manifests(tmp_path)
    assert str(second) in str(raised.value)


def test_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    """Not an empty set of plugins."""
    with pytest.raises(ManifestError, match="no such folder"):
        load_manifests(tmp_path / "nowhere")


def test_file_of_the_folder_is_named_absolutely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PROTOCOL, isolation: a plugin's working directory is not its folder."""
    written(tmp_path, plugin(command='["./run"]'))
    monkeypatch.chdir(tmp_path)
    [program] = load_manifest(Path("plugin.toml")).command
    assert os.path.isabs(program)
    assert program == str(tmp_path.resolve() / "run")
