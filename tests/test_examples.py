"""The examples, run as a reader would run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agent_hooks import (
    AgentContextBuilder,
    AllowAll,
    Binding,
    CompositionConfig,
    Supervisor,
    SyncInterceptionEmitter,
    load_manifest,
)
from agent_hooks.supervisor import PluginStartError

GO = Path(__file__).parent.parent / "examples" / "plugins" / "go"


@pytest.fixture(scope="module")
def egress():
    """The manifest of the Go plugin, built."""
    if shutil.which("go") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("Go is not installed")
        pytest.skip("Go is not installed")
    subprocess.run(["make", "--silent", "build"], cwd=GO, check=True)
    return load_manifest(GO / "plugin.toml")


def tool_call(**args):
    builder = AgentContextBuilder(agent_id="a", framework="f", session_id="s")
    return builder.pre_tool_call(call_id="c", name="http_get", args=args)


@pytest.mark.parametrize(
    ("args", "decision"),
    [
        ({"url": "https://api.good.example/v1"}, "allow"),
        ({"url": "https://API.GOOD.example.:8443/v1"}, "allow"),
        ({"note": "no address in here", "id": "9007199254740993"}, "allow"),
        ({"url": "https://good.example@evil.example/"}, "deny"),
        ({"url": "https://evil.example/?next=https://api.good.example"}, "deny"),
        ({"deep": [{"text": "see http://[::1]:8080/ first"}]}, "deny"),
    ],
)
def test_a_plugin_in_go_judges_egress(egress, args, decision):
    config = {"allow_hosts": ["*.good.example"]}
    with Supervisor([Binding("egress", egress, config)]) as supervisor:
        emitter = SyncInterceptionEmitter()
        emitter.register(supervisor.interceptor("egress"), name="egress")
        record = emitter.emit_unchecked(tool_call(**args))
    assert record.verdict.decision.value == decision, record.verdict
    assert record.verdicts[0].name == "egress"


def test_plugins_in_go_and_in_process_compose(egress):
    with Supervisor([Binding("egress", egress, {"allow_hosts": []})]) as supervisor:
        emitter = SyncInterceptionEmitter(composition=CompositionConfig.strictest())
        emitter.register(AllowAll(), name="all")
        emitter.register(supervisor.interceptor("egress"), name="egress")
        record = emitter.emit_unchecked(tool_call(url="https://x.example"))
    assert [item.decision.value for item in record.verdicts] == ["allow", "deny"]
    assert record.decided_by == 1


def test_the_go_plugins_configuration_errors_reach_the_operator(egress):
    with pytest.raises(PluginStartError, match="/allow_hosts") as refused:
        Supervisor([Binding("egress", egress, {"allow_hosts": "secret.example"})]).start()
    assert refused.value.is_configuration
    assert "secret.example" not in str(refused.value)
