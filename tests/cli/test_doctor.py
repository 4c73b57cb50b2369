"""agent-hooks doctor: real runs, in the environment as it is and in doctored ones."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.cli import doctor, machine
from agent_hooks.supervisor.isolation import LEVELS, available


def run(*words: str, files: int | None = None, **environment: str | None) -> Any:
    """The real command; variables that are None are taken out."""
    merged = {**os.environ, **environment}

    def limit() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    return subprocess.run(
        [sys.executable, "-m", "agent_hooks.cli.main", "doctor", *words],
        capture_output=True,
        text=True,
        env={name: value for name, value in merged.items() if value is not None},
        timeout=120,
        check=False,
        preexec_fn=limit,
    )


def checks(*, code: int = 0, **how: Any) -> dict[str, dict[str, Any]]:
    """What it says, by name."""
    done = run("-o", "json", **how)
    assert done.returncode == code, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert said["ok"] is (code == 0)
    return {check["name"]: check for check in said["checks"]}


def distribution(folder: Path, name: str, version: str) -> str:
    """A folder for PYTHONPATH in which a distribution seems to be installed."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return str(folder)


def test_machine_that_runs_these_tests_is_fit() -> None:
    """Every line has a state and a meaning, and a remedy where something is wrong."""
    found = checks()
    assert found.keys() >= {
        "Python", "grpcio", "protobuf", "orjson", "agent-hooks-sdk", "kernel", "Landlock",
        "seccomp", "libseccomp", "bubblewrap", "user namespaces", "cgroup v2", "socket path",
        "open files", "OTLP exporter", "proxies", "gRPC engine", "forks",
    }  # fmt: skip
    for check in found.values():
        assert check["state"] in (machine.OK, machine.WARNING, machine.MISSING)
        assert check["says"]
        assert bool(check["remedy"]) == (check["state"] != machine.OK), check


def test_levels_are_those_that_a_launch_would_get() -> None:
    """Asked of the same function, so that the two cannot differ."""
    found = checks()
    for level, lacking in available().items():
        assert (found[f"isolation {level}"]["state"] == machine.OK) is (lacking is None)
    assert found[f"isolation {LEVELS[0]}"]["state"] == machine.OK


def test_text_has_a_line_for_each_check_and_one_for_each_remedy() -> None:
    """The same as the JSON, for people; the password of a proxy is in neither."""
    done = run(https_proxy="http://user:hunter2@proxy")
    assert "hunter2" not in done.stdout + done.stderr
    said, found = done.stdout, checks(https_proxy="http://user:hunter2@proxy")
    assert sum(" → " in line for line in said.splitlines()) == sum(
        check["state"] != machine.OK for check in found.values()
    )
    for check in found.values():
        [line] = [one for one in said.splitlines() if check["says"] in one and check["name"] in one]
        assert line.startswith(check["state"])


def test_machine_without_bubblewrap_cannot_isolate_and_is_fit_all_the_same(tmp_path: Path) -> None:
    """A level that nobody may ask for is not required."""
    found = checks(PATH=str(tmp_path))
    assert found["bubblewrap"]["state"] == machine.MISSING
    assert "install it" in found["bubblewrap"]["remedy"]
    assert found["isolation isolated"]["state"] == machine.MISSING


def test_bubblewrap_that_makes_no_namespace_does_not_count(tmp_path: Path) -> None:
    """It is tried, not looked for."""
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho no permission >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    found = checks(PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert found["bubblewrap"]["state"] == machine.MISSING
    assert "no permission" in found["bubblewrap"]["remedy"]


def test_tmpdir_that_is_too_long_for_a_socket_is_missing(tmp_path: Path) -> None:
    """No plugin starts: exit code 1, and the remedy."""
    long = tmp_path / ("x" * 90)
    long.mkdir()
    found = checks(code=1, TMPDIR=str(long))
    assert found["socket path"]["state"] == machine.MISSING
    assert found["socket path"]["required"]
    assert "shorter" in found["socket path"]["remedy"]


@pytest.mark.parametrize("name", ["https_proxy", "ALL_PROXY"])
def test_proxy_is_named_and_its_password_is_not(name: str) -> None:
    """It would disturb the export of spans; plugins' calls take none."""
    found = checks(**{name: "http://user:hunter2@proxy:3128"})
    assert found["proxies"]["state"] == machine.WARNING
    assert name in found["proxies"]["says"]
    assert "hunter2" not in json.dumps(found)


def test_few_open_files_are_a_warning() -> None:
    """Or missing, where a plugin's own limit could not be set."""
    raises = machine._may_raise()
    found = checks(code=0 if raises else 1, files=64)
    assert found["open files"]["state"] == (machine.WARNING if raises else machine.MISSING)
    assert "64" in found["open files"]["says"]


def test_hard_limit_below_a_plugins_own_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """setrlimit refuses to raise it."""
    monkeypatch.setattr(machine, "_may_raise", lambda: False)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    check = machine._open_files()
    assert (check.state, check.required) == (machine.MISSING, True)


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [
        ("GRPC_ENABLE_FORK_SUPPORT", "1", "forks"),
        ("GRPC_POLL_STRATEGY", "epoll1", "gRPC engine"),
    ],
)
def test_variable_that_changes_grpc_is_a_warning(name: str, value: str, check: str) -> None:
    """Timeouts and restarts are measured with gRPC as it comes."""
    found = checks(**{name: value})
    assert found[check]["state"] == machine.WARNING
    assert name in found[check]["says"]


def test_sdk_beside_this_package_is_a_warning(tmp_path: Path) -> None:
    """They share the import name."""
    found = checks(PYTHONPATH=distribution(tmp_path, "agent-hooks-sdk", "0.1.0b3"))
    assert found["agent-hooks-sdk"]["state"] == machine.WARNING
    assert "pip uninstall agent-hooks-sdk" in found["agent-hooks-sdk"]["remedy"]


@pytest.mark.parametrize(
    ("name", "version"), [("grpcio", "1.73.9"), ("protobuf", "8.0.0"), ("orjson", "3.11.9")]
)
def test_version_outside_the_range_is_missing(tmp_path: Path, name: str, version: str) -> None:
    """The range is the one that this distribution declares."""
    found = checks(code=1, PYTHONPATH=distribution(tmp_path, name, version))
    assert (found[name]["state"], found[name]["required"]) == (machine.MISSING, True)
    assert version in found[name]["says"]


@pytest.mark.parametrize(
    ("found", "wanted", "fits"),
    [("1.74", ">=1.74", True), ("1.74.0", ">=1.74", True), ("1.9", ">=1.74", False),
     ("6.31.1", "<8,>=6.31.1", True), ("8", "<8,>=6", False), ("7.99rc1", "<8", True),
     ("1", "", True)],
)  # fmt: skip
def test_versions_are_compared_by_their_numbers(found: str, wanted: str, fits: bool) -> None:
    """1.9 is older than 1.74."""
    assert (doctor._version("x", found, wanted).state == machine.OK) is fits
