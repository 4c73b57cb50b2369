"""Contexts, a driver without I/O, and the shared schemas, for the tests of the core."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from agent_hooks.core.approval import ApprovalRequest
from agent_hooks.core.context import Snapshot
from agent_hooks.core.effects import Consult, Invoke, InvokeAll, Rules
from agent_hooks.core.emission import Emitted, emission
from agent_hooks.core.session import Sessions
from tests.shared import shared, shared_json

SPEC = "agent-hooks/0.1"

_CALL = {"id": "call-1", "name": "book", "args": {"n": 0, "to": {"list": ["a", "b"]}}}

# Point → (the members it requires beside the core, where the target's value stands).
MEMBERS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "agent_startup": ({"agent_init": {"tools_registered": ["book"], "n": 0}}, ("agent_init",)),
    "input": ({"input": {"content": "a flight", "role": "user", "n": 0}}, ("input",)),
    "pre_model_call": (
        {"model": {"id": "m-1"}, "messages": [{"role": "user", "content": "a flight", "n": 0}]},
        ("messages",),
    ),
    "post_model_call": (
        {
            "model": {"id": "m-1"},
            "response": {"content": None, "tool_calls": [_CALL], "finish_reason": "stop", "n": 0},
        },
        ("response",),
    ),
    "pre_tool_call": ({"tool_call": _CALL}, ("tool_call", "args")),
    "post_tool_call": (
        {"tool_call": _CALL, "tool_result": {"value": {"n": 0}, "is_error": False}},
        ("tool_result", "value"),
    ),
    "output": ({"output": {"content": {"text": "booked"}, "n": 0}}, ("output",)),
    "agent_shutdown": ({"summary": {"reason": "completed", "n": 0}}, ("summary",)),
}
POINTS = tuple(MEMBERS)
FORBIDDING = ("agent_startup", "agent_shutdown")
REWRITABLE = tuple(point for point in POINTS if point not in FORBIDDING)


def context(point: str = "pre_tool_call", *, session: str = "s-1", **changed: Any) -> Any:
    """A valid context of one point; `changed` replaces or adds top-level members."""
    members, place = MEMBERS[point]
    members = copy.deepcopy({**members, **{k: v for k, v in changed.items() if k in members}})
    target: Any = members
    for step in place:
        target = target[step]
    return {
        "spec": SPEC,
        "interception_point": point,
        "timestamp": "2026-03-04T05:06:07.890Z",
        "sequence": 0,
        "agent": {"id": "agent-1", "framework": "hand-made"},
        "session": {"id": session},
        "target": copy.deepcopy(target),
        **members,
        **{name: value for name, value in changed.items() if name not in members},
    }


def aliased(point: str = "pre_tool_call") -> Any:
    """A valid context whose target is its member's very object, as a builder makes it."""
    raw = context(point)
    target = raw
    for step in MEMBERS[point][1]:
        target = target[step]
    return {**raw, "target": target}


def call(args: dict[str, Any], **changed: Any) -> Any:
    """A `pre_tool_call` context with these arguments."""
    return context(tool_call={"id": "call-1", "name": "book", "args": args}, **changed)


@dataclass
class Run:
    """What a driver saw of one emission."""

    invoked: list[tuple[int, Snapshot]] = field(default_factory=list)
    asked: list[ApprovalRequest] = field(default_factory=list)
    emitted: Emitted = None  # type: ignore[assignment]

    @property
    def wire(self) -> dict[str, Any]:
        """The record as JSON."""
        return self.emitted.record.to_wire()

    @property
    def reason(self) -> str | None:
        """Why, as the record says."""
        return self.emitted.verdict.reason


def drive(
    raw: object,
    rules: Rules,
    reply: Callable[[int, Snapshot], object],
    answer: Callable[[ApprovalRequest], object] | None = None,
    sessions: Sessions | None = None,
) -> Run:
    """Run one emission to its end; `reply` and `answer` stand in for the world."""
    run = Run()
    steps = emission(raw, rules, sessions or Sessions())
    send: object = None
    try:
        while True:
            send = _perform(steps.send(send), run, reply, answer)
    except StopIteration as stop:
        run.emitted = stop.value
    assert isinstance(run.emitted, Emitted)
    return run


def _perform(effect: object, run: Run, reply: Any, answer: Any) -> object:
    match effect:
        case Invoke(index, snapshot):
            run.invoked.append((index, snapshot))
            return reply(index, snapshot)
        case InvokeAll(snapshot, count):
            run.invoked.extend((index, snapshot) for index in range(count))
            return [reply(index, snapshot) for index in range(count)]
        case Consult(request):
            run.asked.append(request)
            return answer(request)
    raise AssertionError(f"not an effect: {effect!r}")


def run(
    raw: object,
    *replies: object,
    answer: object = None,
    sessions: Sessions | None = None,
    **rules: Any,
) -> Run:
    """Drive one emission over fixed replies; a callable `answer` gets the request."""
    rules.setdefault("names", (None,) * len(replies))
    rules.setdefault("resolver", answer is not None)
    respond = answer if callable(answer) else lambda _: answer
    return drive(raw, Rules(**rules), lambda index, _: replies[index], respond, sessions)


def approve(verdict: object) -> Callable[[ApprovalRequest], dict[str, Any]]:
    """An answer that lifts the deny with `verdict`."""
    return lambda request: {
        "outcome": "approve",
        "context_identity": request.context_identity,
        "verdict": verdict,
    }


def every_path(once: Callable[[Callable[[int], int]], Any]) -> Iterator[Any]:
    """Run `once` down each branch of what it chooses; `choose(n)` gives 0 … n-1."""
    script: list[list[int]] = []
    while True:
        at = 0

        def choose(count: int) -> int:
            nonlocal at
            if at == len(script):
                script.append([0, count])
            at += 1
            return script[at - 1][0]

        yield once(choose)
        while script and script[-1][0] + 1 == script[-1][1]:
            script.pop()
        if not script:
            return
        script[-1][0] += 1


@cache
def validator(name: str) -> Draft202012Validator:
    """A validator for one of the shared schemas, by file name."""
    registry: Registry[Any] = Registry()
    for path in sorted(shared("schema").rglob("*.schema.json")):
        resource = Resource.from_contents(shared_json(*path.relative_to(shared()).parts))
        registry = resource @ registry
    return Draft202012Validator(shared_json("schema", name), registry=registry)
