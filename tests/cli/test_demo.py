"""`agent-hooks demo`: each kind of verdict, seen; nothing left behind."""

from __future__ import annotations

import json
import re

from .conftest import agent_hooks


def test_the_demo_shows_each_kind_of_verdict_and_leaves_nothing(tmp_path):
    done = agent_hooks("demo", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert re.search(r"allowed +get_forecast\(", done.stdout)
    assert re.search(r"rewritten +post_tool_call .*secrets", done.stdout)
    assert re.search(r"denied +delete_database\(.*demo:never_delete", done.stdout, re.S)
    assert re.search(r"approved +send_money\(.*demo:large_payment", done.stdout, re.S)
    assert "plugin processes left behind: 0" in done.stdout
    pids = [int(pid) for pid in re.search(r"pids \[(.*?)\]", done.stdout)[1].split(",")]
    assert len(pids) == 2


def test_the_demo_writes_records_and_spans_without_the_secret(tmp_path):
    agent_hooks("demo", "--out", tmp_path)
    records = (tmp_path / "records.ndjson").read_text()
    spans = (tmp_path / "spans.ndjson").read_text()
    assert "AKIAQ3EGRL5ZXN7WKBTM" not in records + spans
    decisions = [json.loads(line)["verdict"]["decision"] for line in records.splitlines()]
    assert {"allow", "deny", "transform"} <= set(decisions)
    emissions = [s for s in map(json.loads, spans.splitlines()) if "emission" in s["name"]]
    assert len(emissions) == len(decisions)
