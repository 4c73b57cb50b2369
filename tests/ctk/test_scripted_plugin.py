"""The scripted interceptor as a process."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from agent_hooks.ctk import in_processes
from agent_hooks.ctk.runner import observe
from agent_hooks.supervisor import PluginStartError
from tests.ctk.support import fixed_harness, own

LIGHT = """
import sys
import agent_hooks.ctk.scripted_plugin, agent_hooks.ctk.plugin
heavy = [name for name in sys.modules if name.startswith((
    "agent_hooks.host", "agent_hooks.supervisor", "agent_hooks.telemetry", "agent_hooks.ctk.runner",
    "agent_hooks.ctk.reference", "opentelemetry", "jsonschema",
))]
assert not heavy, heavy
"""


def test_the_plugin_carries_no_host() -> None:
    subprocess.run([sys.executable, "-c", LIGHT], check=True, timeout=60)


def test_a_bad_script_is_refused_when_the_plugin_starts() -> None:
    vector = {
        **own()["AH-CTK-509"],
        "interceptor_script": [{"at": "output", "match": {"a..b": 1}, "return": {}}],
    }
    with pytest.raises(PluginStartError, match="/rules"):
        asyncio.run(observe(fixed_harness(), vector, in_processes))


def test_nobody_registered_starts_nothing() -> None:
    vector = own()["AH-CTK-593-no-interceptor-run-all"]
    observed = asyncio.run(observe(fixed_harness(), vector, in_processes))
    assert observed.recorded == []
    assert observed.run.records[0]["interceptors_registered"] == 0
