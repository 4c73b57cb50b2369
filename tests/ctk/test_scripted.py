from __future__ import annotations

import copy
from typing import Any

import pytest

from agent_hooks import ApprovalOutcome, ApprovalRequest, InterceptionPoint, Verdict
from agent_hooks.core.builder import AgentContextBuilder
from agent_hooks.core.identity import context_identity
from agent_hooks.ctk import (
    RecordingInterceptor,
    Scenario,
    ScriptedInterceptor,
    ScriptedResolver,
    redact_paths,
)
from agent_hooks.ctk.harness import named_provider

ALLOW = {"decision": "allow"}
NO = {"decision": "deny", "reason": "no"}


def tool_context() -> dict[str, Any]:
    build = AgentContextBuilder(agent_id="a", framework="f", session_id="s")
    return build.pre_tool_call(call_id="c", name="pay", args={"to": ["x", "y"], "cents": 5})


def shutdown_context() -> dict[str, Any]:
    build = AgentContextBuilder(agent_id="a", framework="f", session_id="s")
    return build.agent_shutdown(reason="completed")


def request(context: dict[str, Any], identity: str | None = "sha256:x") -> ApprovalRequest:
    deny = Verdict.escalate(reason="ask")
    return ApprovalRequest(identity, InterceptionPoint.PRE_TOOL_CALL, deny, context)


def test_first_rule_that_fits_wins_and_none_means_allow() -> None:
    scripted = ScriptedInterceptor([
        {"at": "output", "return": {"decision": "deny", "reason": "elsewhere"}},
        {"at": "pre_tool_call", "match": {"target.cents": 5.0}, "return": {"decision": "deny"}},
        {"at": "pre_tool_call", "match": {"target.cents": 5}, "return": NO},
        {"at": "pre_tool_call", "return": {"decision": "deny", "reason": "late"}},
    ])  # fmt: skip
    assert scripted.intercept(tool_context()) == NO
    assert scripted.intercept(shutdown_context()) == ALLOW


def test_a_returned_verdict_is_a_copy() -> None:
    scripted = ScriptedInterceptor([{"at": "pre_tool_call", "return": NO}])
    scripted.intercept(tool_context())["reason"] = "changed by the host"
    assert scripted.intercept(tool_context()) == NO


def test_faults() -> None:
    def judge(fault: str, context: dict[str, Any]) -> Any:
        rule = {"at": context["interception_point"], "fault": fault}
        return ScriptedInterceptor([rule]).intercept(context)

    with pytest.raises(RuntimeError):
        judge("raise", tool_context())
    assert judge("malformed_verdict", tool_context()) == {"decision": "transform"}
    context = tool_context()
    assert judge("mutate", context) == {"decision": "allow", "reason": "ctk:mutated"}
    assert context["target"] == "TAMPERED"
    assert context["tool_call"]["args"] == {"tampered": True}
    assert judge("mutate", shutdown_context())["reason"] == "ctk:mutated"
    with pytest.raises(ValueError, match="explode"):
        judge("explode", tool_context())


def test_a_bad_path_in_a_match_is_found_at_once() -> None:
    rules = [{"at": "output", "match": {"a..b": 1}, "return": ALLOW}]
    with pytest.raises(ValueError, match="bad syntax"):
        ScriptedInterceptor(rules)
    with pytest.raises(ValueError, match="bad syntax"):
        ScriptedResolver([{"match": {"a..b": 1}, "resolve": {"outcome": "unresolved"}}])


def test_contexts_are_recorded_as_they_were_received() -> None:
    recorder = RecordingInterceptor(
        ScriptedInterceptor([{"at": "pre_tool_call", "fault": "mutate"}])
    )
    context = tool_context()
    before = copy.deepcopy(context)
    recorder.intercept(context)
    assert recorder.recorded == [before] != [context]


def test_resolver_echoes_and_answers_by_the_first_rule_that_fits() -> None:
    resolver = ScriptedResolver([
        {"match": {"target.cents": 6}, "resolve": {"outcome": "reject", "verdict": NO}},
        {"match": {"target.cents": 5}, "resolve": {"outcome": "approve", "verdict": ALLOW}},
    ])  # fmt: skip
    answer = resolver.resolve(request(tool_context()))
    assert (answer.outcome, answer.context_identity) == (ApprovalOutcome.APPROVE, "sha256:x")
    assert answer.verdict == Verdict.allow()
    none = resolver.resolve(request({**tool_context(), "target": {"cents": 7}}, None))
    assert (none.outcome, none.context_identity) == (ApprovalOutcome.UNRESOLVED, None)
    assert none.verdict is None


def test_resolver_identity_is_overridden_or_recomputed_and_recomputed_wins() -> None:
    def identity(**more: Any) -> str | None:
        rule = {"resolve": {"outcome": "unresolved", **more}}
        return ScriptedResolver([rule]).resolve(request(context)).context_identity

    context = tool_context()
    assert identity(identity_override="other") == "other"
    assert identity(echo_recomputed=True) == context_identity(context)
    assert identity(identity_override="o", echo_recomputed=True) == context_identity(context)


def test_resolver_hands_on_what_no_type_can_hold() -> None:
    script = {"outcome": "perhaps", "verdict": {"decision": "maybe"}}
    answer = ScriptedResolver([{"resolve": script}]).resolve(request(tool_context()))
    assert answer.outcome == "perhaps"
    assert answer.verdict == {"decision": "maybe"}  # type: ignore[comparison-overlap]


def test_resolver_raises_where_the_rule_says_so() -> None:
    with pytest.raises(RuntimeError):
        ScriptedResolver([{"resolve": {"fault": "raise"}}]).resolve(request(tool_context()))


def test_redaction_reaches_target_and_member_and_leaves_the_original() -> None:
    context = tool_context()
    before = copy.deepcopy(context)
    redacted = redact_paths(context, ["$target.to[0]", "$target.nothing", "bad", "$target.cents"])
    expected = {"to": ["[redacted]", "y"], "cents": "[redacted]"}
    assert redacted["target"] == redacted["tool_call"]["args"] == expected
    assert context == before
    whole = redact_paths(context, ["$target", "$target.to"])
    assert whole["target"] == whole["tool_call"]["args"] == "[redacted]"


def test_tools_answer_by_the_arguments_they_really_got() -> None:
    scenario = Scenario.from_wire({
        "input": {"content": "hi", "role": "user"},
        "tools": [{"name": "t", "behavior": [
            {"when_args": {"n": 1}, "return": ["one"]},
            {"when_args": {"n": 2}, "return": "two", "is_error": True},
        ]}],
    })  # fmt: skip
    tool = scenario.tools["t"]
    value, is_error = tool.invoke({"n": 1})
    value.append("kept by the host")
    assert tool.invoke({"n": 1}) == (["one"], False)
    assert is_error is False
    assert tool.invoke({"n": 2}) == ("two", True)
    with pytest.raises(LookupError):
        tool.invoke({"n": 1.0})


def test_named_providers() -> None:
    assert named_provider(None) is None
    assert named_provider("jcs-sha256") == "jcs-sha256"
    with pytest.raises(ValueError, match="hmac"):
        named_provider("hmac")
