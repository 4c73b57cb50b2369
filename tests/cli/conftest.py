from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

GUARD = """
from agent_hooks.plugin import Verdict, serve


class Guard:
    points = ["pre_tool_call", "output", "input"]
    config_schema = {
        "type": "object",
        "properties": {"deny": {"type": "string"}, "escalate": {"type": "string"}},
        "additionalProperties": False,
    }

    def configure(self, config):
        self.config = config

    def intercept(self, context):
        name = context.get("tool_call", {}).get("name")
        if name == self.config.get("deny"):
            return Verdict.deny(reason="guard:deny")
        if name is not None and name == self.config.get("escalate"):
            return Verdict.escalate(reason="guard:escalate")
        if context["interception_point"] == "input" and "forbidden" in context["target"]["content"]:
            return Verdict.deny(reason="guard:input")
        return Verdict.allow()


serve(Guard())
"""
MANIFEST = """
[plugin]
name = "guard"
kind = "test.guard"
command = ["{python}", "./main.py"]
points = ["pre_tool_call", "output", "input"]
"""
HOST = """
plugins = "plugins"
[approval]
resolver = "reject"
[[bindings]]
id = "guard"
kind = "test.guard"
config = { deny = "drop", escalate = "pay" }
[[bindings]]
id = "rest"
kind = "agent_hooks.allow_all"
at = ["agent_startup", "pre_model_call", "post_model_call", "post_tool_call", "agent_shutdown"]
"""
RUNS = [
    {"id": "r1", "kind": "benign", "prompt": "look", "output": "seen",
     "steps": [{"tool": "look", "args": {"at": "x"}, "result": "y", "is_error": False}]},
    {"id": "r2", "kind": "attack", "prompt": "look", "output": "done",
     "steps": [{"tool": "look", "args": {}, "result": "y"},
               {"tool": "drop", "args": {"table": "t"}, "result": "gone", "injected": True},
               {"tool": "pay", "args": {"amount": 1}, "result": "paid", "injected": True},
               {"tool": "peek", "args": {}, "result": "z", "injected": True}]},
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A plugins folder, a host file and two recorded runs."""
    plugin = tmp_path / "plugins" / "guard"
    plugin.mkdir(parents=True)
    (plugin / "main.py").write_text(GUARD)
    (plugin / "plugin.toml").write_text(MANIFEST)
    (tmp_path / "host.toml").write_text(HOST)
    (tmp_path / "runs.ndjson").write_text("\n".join(map(json.dumps, RUNS)) + "\n")
    return tmp_path


def agent_hooks(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The real command, as an operator runs it."""
    return subprocess.run(
        [sys.executable, "-m", "agent_hooks.cli.main", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
        check=False,
    )
