"""`agent-hooks replay`: the table, the data, the exit codes."""

from __future__ import annotations

import json

import pytest

from .conftest import agent_hooks


def replay(folder, *options):
    return agent_hooks("replay", folder / "runs.ndjson", "--config", folder / "host.toml", *options)


def test_the_last_line_of_text_is_the_summary(folder):
    done = replay(folder)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["runs"] == 2
    assert summary["plugins"]["guard"] == {"allow": 7, "transform": 0, "deny": 1, "escalate": 1}
    assert (summary["injected_calls"], summary["injected_stopped"]) == (3, 2)
    assert (summary["benign_runs"], summary["benign_denied"], summary["benign_escalated"]) == (
        1,
        0,
        0,
    )
    assert 0 < summary["latency_ms"]["p50"] <= summary["latency_ms"]["p99"]
    assert "guard" in done.stdout
    assert summary["host_errors"] == {}


def test_counting_can_be_limited_to_tools_that_matter(folder):
    summary = json.loads(replay(folder, "--tool", "drop", "--tool", "pay", "-o", "json").stdout)
    assert (summary["injected_calls"], summary["injected_stopped"]) == (2, 2)


def test_records_go_to_the_file_one_a_line(folder):
    target = folder / "records.ndjson"
    summary = json.loads(replay(folder, "--records", target, "-o", "json").stdout)
    records = [json.loads(line) for line in target.read_text().splitlines()]
    # Of each run: startup, input, two for the answer, output, shutdown; of each
    # of the five calls: two for the model, one before it, one after the three made.
    assert len(records) == summary["emissions"] == 2 * 6 + 5 * 3 + 3
    assert {record["session_id"] for record in records} == {"r1", "r2"}


def test_spans_go_to_standard_error_on_request(folder):
    done = replay(folder, "--spans", "console", "-o", "json")
    spans = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert {"agent_hooks.emission pre_tool_call", "agent_hooks.intercept guard"} <= {
        span["name"] for span in spans
    }


def test_evaluate_only_denies_nothing(folder):
    summary = json.loads(replay(folder, "--mode", "evaluate_only", "-o", "json").stdout)
    assert summary["blocked_runs"] == 0
    assert summary["plugins"]["guard"]["deny"] == 1


def test_the_profile_on_the_command_line_stands_in_for_the_files(folder):
    target = folder / "records.ndjson"
    replay(folder, "--profile", "parallel/strictest", "--records", target)
    record = json.loads(target.read_text().splitlines()[0])
    assert record["composition"]["profile"] == "parallel/strictest"


def test_a_blocked_run_is_a_finding_on_request(folder):
    (folder / "runs.ndjson").write_text(
        json.dumps({"prompt": "forbidden", "steps": [], "output": "x"}) + "\n"
    )
    assert replay(folder).returncode == 0
    assert replay(folder, "--fail-on-deny").returncode == 1


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (("kind = ", "kynd = "), "bindings[0].kynd: unknown; known are id, kind"),
        (("test.guard", "test.gard"), "there are: test.guard, agent_hooks.allow_all"),
        (('resolver = "reject"', 'resolver = "maybe"'), "expected one of none, approve"),
        (('plugins = "plugins"', 'plugins = "nowhere"'), "no such folder of plugins"),
        (
            ('id = "guard"', 'id = "guard"\nat = ["agent_startup"]'),
            "bindings[0].at: expected points among pre_tool_call",
        ),
        (('id = "guard"', 'id = "guard"\ntimeout_ms = 0'), "bindings[0].timeout_ms"),
        (("[approval]", "[approval"), "is not TOML"),
        (('deny = "drop"', 'denny = "drop"'), "known are: deny, escalate"),
        (('deny = "drop"', "deny = 5"), "/deny: does not satisfy type"),
    ],
)
def test_a_bad_host_file_exits_with_2_and_says_where(folder, edit, says):
    host = folder / "host.toml"
    text = host.read_text()
    assert edit[0] in text
    host.write_text(text.replace(edit[0], edit[1], 1))
    done = replay(folder)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"prompt": "x"}', '{"prompt":"x","steps":[{}],"output":1}']
)
def test_a_bad_line_of_runs_exits_with_2_and_names_the_line(folder, line):
    runs = folder / "runs.ndjson"
    runs.write_text(runs.read_text() + line + "\n")
    done = replay(folder)
    assert done.returncode == 2
    assert "runs.ndjson:3:" in done.stderr


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ('["./missing"]', "cannot execute its command: No such file or directory"),
        ('["{python}", "-c", "raise SystemExit(7)"]', "the process exited with status 7"),
    ],
)
def test_a_plugin_that_cannot_be_started_exits_with_3_and_says_why(folder, command, says):
    manifest = folder / "plugins" / "guard" / "plugin.toml"
    manifest.write_text(manifest.read_text().replace('["{python}", "./main.py"]', command))
    done = replay(folder)
    assert done.returncode == 3, done.stderr
    assert "plugin guard (test.guard)" in done.stderr
    assert says in done.stderr


def test_no_command_shows_the_help_and_a_wrong_one_exits_with_2():
    assert "replay" in agent_hooks("--help").stdout
    assert agent_hooks("replai").returncode == 2
