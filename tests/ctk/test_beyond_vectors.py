"""What the vectors' schema cannot express: verdicts and resolutions that break §5 and §9.

The same engine runs them, in one process and in many.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agent_hooks.ctk import in_processes
from agent_hooks.ctk.assertions import judge
from agent_hooks.ctk.runner import observe
from tests.ctk.support import Vector, fixed_harness

FORBIDDEN = "host_error:transform_target_forbidden"
INVALID = "host_error:verdict_invalid"
FAILED = "host_error:approval_resolver_failed"

SCENARIO = {
    "input": {"content": "Water the ficus.", "role": "user"},
    "tools": [{"name": "water", "behavior": [{"return": "done"}]}],
    "model_script": [
        {
            "respond": {
                "content": None,
                "tool_calls": [{"id": "c1", "name": "water", "args": {"plant": "ficus"}}],
                "finish_reason": "tool_calls",
            }
        },
        {"respond": {"content": "Done.", "tool_calls": [], "finish_reason": "stop"}},
    ],
}
ASK = {"decision": "deny", "reason": "garden:ask", "approval": {}}


def vector(name: str, returned: Any, expected: dict[str, Any], **more: Any) -> Vector:
    """A sound interceptor beside one that returns something odd, under run_all."""
    return {
        "id": name,
        "title": name,
        "spec_clause": "5",
        "scenario": SCENARIO,
        "composition": {"profile": "sequential/run_all"},
        "interceptor_scripts": [
            [{"at": "pre_tool_call", "return": {"decision": "allow", "reason": "garden:fine"}}],
            [{"at": "pre_tool_call", "return": returned}],
        ],
        "expect": {
            "interceptions": [{"interception_point": "pre_tool_call"}],
            "sequence_strict": False,
            "tool_not_invoked": ["water"],
            "records": [{"interception_point": "pre_tool_call", "assert": expected}],
            "run_outcome": "completed",
        },
        **more,
    }


def in_its_slot(reason: str) -> dict[str, Any]:
    return {
        "verdict.decision": "deny",
        "verdict.reason": reason,
        "decided_by": 1,
        "verdicts[0].reason": "garden:fine",
        "verdicts[1].decision": "deny",
        "verdicts[1].reason": reason,
        "fold_truncated": False,
    }


def rewrite(path: Any) -> dict[str, Any]:
    return {"decision": "transform", "transform": {"path": path, "value": "x"}}


def allow(**members: Any) -> dict[str, Any]:
    return {"decision": "allow", **members}


FOREIGN = ["$input.content", "$", "$targets.plant", "target.plant", "", "$TARGET", "$target plant"]
ODD: dict[str, Any] = {
    "transform null": allow(transform=None),
    "transform null on a transform": {"decision": "transform", "transform": None},
    "transform on an allow": allow(transform={"path": "$target", "value": {}}),
    "transform without a path": {"decision": "transform", "transform": {"value": 1}},
    "transform with more": {"decision": "transform", "transform": {"path": "$target", "at": 1}},
    "path that is no text": rewrite(["$target"]),
    "approval null": {"decision": "deny", "approval": None},
    "approval on an allow": allow(approval={}),
    "approval that is no object": {"decision": "deny", "approval": True},
    "evidence null": allow(evidence=None),
    "evidence that is no object": allow(evidence="sha256:00"),
    "evidence with more": allow(evidence={"proof": "x"}),
    "pointer that is no text": allow(evidence={"verification_pointers": {"log": 1}}),
    "reserved reason": {"decision": "deny", "reason": "host_error:context_invalid"},
    "reserved reason of a warning": allow(warnings=[{"reason": "host_error:no"}]),
    "reason that is no text": allow(reason=7),
    "message that is no text": allow(message=["hello"]),
    "warnings that are no array": allow(warnings={"reason": "w"}),
    "warning that is no object": allow(warnings=["w"]),
    "labels that are no array": allow(result_labels="l"),
    "label that is no text": allow(result_labels=["l", None]),
    "unknown member": allow(severity="low"),
    "unknown decision": {"decision": "warn"},
    "decision in capitals": {"decision": "ALLOW"},
    "no decision": {"reason": "garden:fine"},
    "nothing": {},
    "an array": ["allow"],
    "a text": "allow",
    "null": None,
}
RESOLUTIONS: dict[str, tuple[dict[str, Any], str, str]] = {
    "unknown outcome": ({"outcome": "perhaps", "verdict": allow()}, FAILED, "rejection"),
    "carried verdict is none": (
        {"outcome": "approve", "verdict": {"decision": "maybe"}}, INVALID, "rejection",
    ),
    "carried reserved reason": (
        {"outcome": "reject", "verdict": {"decision": "deny", "reason": "host_error:x"}},
        INVALID, "rejection",
    ),
    "carried foreign root": (
        {"outcome": "approve", "verdict": rewrite("$input.content")}, FORBIDDEN, "approval",
    ),
    "wrong echo of an unknown outcome": (
        {"outcome": "perhaps", "identity_override": "other"},
        "host_error:approval_identity_mismatch", "rejection",
    ),
}  # fmt: skip

CASES = [
    *(vector(f"foreign root {path!r}", rewrite(path), in_its_slot(FORBIDDEN)) for path in FOREIGN),
    *(vector(name, returned, in_its_slot(INVALID)) for name, returned in ODD.items()),
    *(
        vector(
            name,
            ASK,
            {"verdict.reason": reason, "resolved_by": resolved_by},
            approval_script=[{"resolve": script}],
        )
        for name, (script, reason, resolved_by) in RESOLUTIONS.items()
    ),
]
REMOTE = {
    "foreign root '$targets.plant'", "transform null", "approval null", "evidence null",
    "reserved reason", "unknown decision", "an array", "null", "carried foreign root",
}  # fmt: skip
"""The cases that a process of its own is spent on: one of each way through the wire."""


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_odd_answers_deny_in_their_slot(case: Vector) -> None:
    observed = asyncio.run(observe(fixed_harness(), case))
    assert judge(case["expect"], observed.recorded, observed.run, "continue") == []


@pytest.mark.parametrize(
    "vector", [pytest.param(case, id=case["id"]) for case in CASES if case["id"] in REMOTE]
)
def test_odd_answers_of_a_plugin_make_the_same_records(
    vector: Vector, in_processes_observed: dict[str, Any]
) -> None:
    remote = in_processes_observed[vector["id"]]
    if isinstance(remote, Exception):
        raise remote
    local = asyncio.run(observe(fixed_harness(), vector))
    assert json.dumps(remote.run.records) == json.dumps(local.run.records)


def test_only_a_plugin_refuses_wide_integers_where_no_identity_does() -> None:
    """§4.4: without jcs-sha256 the core lets them pass, and the wire carries none."""
    wide = {
        **vector("wide integer", allow(), {}),
        "identity_provider": None,
        "scenario": {
            "input": {"content": {"account": 2**53}, "role": "external"},
            "model_script": [
                {"respond": {"content": "ok", "tool_calls": [], "finish_reason": "stop"}}
            ],
        },
    }
    local = asyncio.run(observe(fixed_harness(), wide))
    remote = asyncio.run(observe(fixed_harness(), wide, in_processes))
    assert local.run.final_output == "ok"
    denied = next(r for r in remote.run.records if r["interception_point"] == "input")
    assert denied["verdict"]["reason"] == "host_error:interceptor_failed"
    assert remote.run.outcome.value == "blocked"


def test_a_plugins_whole_floats_reach_the_tool_as_integers() -> None:
    """RFC 8785 has one form for 3.0 and 3, so identities and records cannot differ."""
    whole = vector(
        "whole float",
        {"decision": "transform", "transform": {"path": "$target.plant", "value": 3.0}},
        {},
    )
    local = asyncio.run(observe(fixed_harness(), whole))
    remote = asyncio.run(observe(fixed_harness(), whole, in_processes))
    assert [repr(run.run.tool_invocations[0]["args"]["plant"]) for run in (local, remote)] == [
        "3.0",
        "3",
    ]
    assert json.dumps(remote.run.records) == json.dumps(local.run.records)
