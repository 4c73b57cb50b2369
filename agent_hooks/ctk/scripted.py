"""The parts that a vector scripts: interceptors, the resolver, the redactor."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, cast

from agent_hooks.core import path
from agent_hooks.core.approval import ApprovalOutcome, ApprovalRequest, ApprovalResolution
from agent_hooks.core.context import AgentContext
from agent_hooks.core.identity import context_identity
from agent_hooks.core.points import POINTS
from agent_hooks.core.verdict import Verdict, VerdictError
from agent_hooks.ctk import paths

REDACTED = "[redacted]"


@dataclass(slots=True)
class ScriptedInterceptor:
    """Judges by rules `{at, match?, return | fault}`; the first that fits wins.

    No rule that fits means allow.

    Raises:
        ValueError: a rule whose `match` holds a bad path.
    """

    rules: list[dict[str, Any]]

    def __post_init__(self) -> None:
        _check_paths(self.rules)

    def intercept(self, context: AgentContext) -> dict[str, Any]:
        """The verdict in its JSON form, a fresh copy each time.

        Raises:
            RuntimeError: where the rule says so (`"fault": "raise"`).
        """
        for rule in self.rules:
            if rule["at"] == context["interception_point"] and paths.matches(rule, context):
                if "fault" in rule:
                    return _fault(rule["fault"], context)
                verdict: dict[str, Any] = copy.deepcopy(rule["return"])
                return verdict
        return {"decision": "allow"}


@dataclass(slots=True)
class RecordingInterceptor:
    """Keeps a copy of every context as it was received, then lets `inner` judge."""

    inner: ScriptedInterceptor
    recorded: list[AgentContext] = field(default_factory=list)

    def intercept(self, context: AgentContext) -> dict[str, Any]:
        """What `inner` says."""
        self.recorded.append(copy.deepcopy(context))
        return self.inner.intercept(context)


@dataclass(slots=True)
class ScriptedResolver:
    """Answers by rules `{match?, resolve}`; no rule that fits means unresolved (§9).

    Raises:
        ValueError: a rule whose `match` holds a bad path.
    """

    rules: list[dict[str, Any]]

    def __post_init__(self) -> None:
        _check_paths(self.rules)

    def resolve(self, request: ApprovalRequest) -> ApprovalResolution:
        """The first fitting rule's answer.

        Raises:
            RuntimeError: where the rule says so (`"fault": "raise"`).
        """
        for rule in self.rules:
            if paths.matches(rule, request.context):
                return _resolution(rule["resolve"], request)
        return ApprovalResolution(ApprovalOutcome.UNRESOLVED, request.context_identity)


def redact_paths(ctx: AgentContext, paths: list[str]) -> AgentContext:
    """A copy of a context with "[redacted]" at each §5.2 path of its target.

    The member that the target mirrors changes with it (§4.3); a path that does
    not resolve is passed over.
    """
    redacted = copy.deepcopy(ctx)
    target = redacted["target"]
    for place in paths:
        try:
            target = path.apply(target, place, REDACTED)
        except path.PathError:
            continue
    holder: Any = redacted
    *way, last = POINTS[redacted["interception_point"]].target
    for step in way:
        holder = holder[step]
    holder[last] = redacted["target"] = target
    return redacted


def _check_paths(rules: list[dict[str, Any]]) -> None:
    for rule in rules:
        for place in rule.get("match", ()):
            paths.parse(place)


def _fault(fault: str, context: AgentContext) -> dict[str, Any]:
    match fault:
        case "raise":
            raise RuntimeError("the script says: raise")
        case "malformed_verdict":
            return {"decision": "transform"}
        case "mutate":
            context["target"] = "TAMPERED"
            if type(context.get("tool_call")) is dict:
                context["tool_call"]["args"] = {"tampered": True}
            return {"decision": "allow", "reason": "ctk:mutated"}
        case _:
            raise ValueError(f"fault {fault!r}: not one of raise, malformed_verdict, mutate")


def _resolution(script: dict[str, Any], request: ApprovalRequest) -> ApprovalResolution:
    if script.get("fault") == "raise":
        raise RuntimeError("the script says: raise")
    identity = script.get("identity_override", request.context_identity)
    if script.get("echo_recomputed"):
        identity = context_identity(request.context)
    return ApprovalResolution(
        _outcome(script["outcome"]), identity, _verdict(copy.deepcopy(script.get("verdict")))
    )


# A host's checks are what a vector is about: what no type of ours can hold is
# handed to the host as it stands.


def _outcome(name: str) -> ApprovalOutcome:
    try:
        return ApprovalOutcome(name)
    except ValueError:
        return cast(ApprovalOutcome, name)


def _verdict(wire: Any) -> Verdict | None:
    if wire is None:
        return None
    try:
        return Verdict.from_wire(wire)
    except VerdictError:
        return cast(Verdict, wire)
