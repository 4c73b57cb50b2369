"""A scripted agent: replays a recorded run through an emitter, at all eight points."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_hooks.core.builder import AgentContextBuilder
from agent_hooks.core.context import AgentContext
from agent_hooks.core.record import InterceptionRecord
from agent_hooks.host import SyncInterceptionEmitter

MODEL = "recorded"


class RunsError(ValueError):
    """A file of runs that is refused; the text names the line."""


@dataclass(slots=True)
class Step:
    """One tool call of a recorded run, and what became of it."""

    tool: str
    args: dict[str, Any]
    result: Any
    is_error: bool = False
    injected: bool = False
    record: InterceptionRecord | None = None
    sent: dict[str, Any] | None = None


@dataclass(slots=True)
class Run:
    """One recorded run: what the user asked, the calls the agent made, its answer."""

    id: str
    prompt: str
    steps: list[Step]
    output: Any
    kind: str = ""
    records: list[InterceptionRecord] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    blocked: bool = False


def load_runs(path: Path) -> list[Run]:
    """Read NDJSON: `{prompt, steps: [{tool, args, result, is_error?, injected?}], output}`.

    Raises:
        RunsError: unreadable, or a line that is no run.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise RunsError(f"{path}: cannot be read as UTF-8 text") from None
    return [_run(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _run(path: Path, number: int, line: str) -> Run:
    try:
        members = json.loads(line)
        steps = [
            Step(
                step["tool"],
                dict(step["args"]),
                step["result"],
                bool(step.get("is_error")),
                bool(step.get("injected")),
            )
            for step in members["steps"]
        ]
        run_id = str(members.get("id", f"run-{number}"))
        return Run(
            run_id, members["prompt"], steps, members["output"], str(members.get("kind", ""))
        )
    except (ValueError, TypeError, KeyError) as exc:
        raise RunsError(
            f"{path}:{number}: expected an object with prompt, steps and output "
            f"({type(exc).__name__})"
        ) from None


class ScriptedAgent:
    """Drives one run: the loop of a host, with recorded model and tools.

    Args:
        watch: told of every record as it is made, with the step it belongs to.
    """

    def __init__(
        self,
        emitter: SyncInterceptionEmitter,
        run: Run,
        watch: Callable[[InterceptionRecord, Step | None], None] = lambda *_: None,
    ) -> None:
        self._emitter = emitter
        self._run = run
        self._watch = watch
        self._contexts = AgentContextBuilder(
            agent_id="scripted-agent", framework="replay", session_id=run.id
        )
        self._messages: list[dict[str, Any]] = []

    def go(self) -> None:
        """Play the run to its end, or to the first block that ends it (§6)."""
        completed = self._play()
        self._run.blocked = not completed
        reason = "completed" if completed else "error"
        self._emit(self._contexts.agent_shutdown(reason=reason))

    def _play(self) -> bool:
        run, contexts = self._run, self._contexts
        tools = sorted({step.tool for step in run.steps})
        if not self._emit(contexts.agent_startup(tools_registered=tools)):
            return False
        asked = contexts.input(content=run.prompt)
        if not self._emit(asked):
            return False
        self._messages.append({"role": "user", "content": asked["input"]["content"]})
        for index, step in enumerate(run.steps):
            if not self._step(step, f"call-{index}"):
                return False
        answer = self._model(run.output, [], "stop")
        if answer is None:
            return False
        final = contexts.output(content=answer["content"])
        return self._emit(final)

    def _step(self, step: Step, call_id: str) -> bool:
        wanted = [{"id": call_id, "name": step.tool, "args": step.args}]
        response = self._model(None, wanted, "tool_calls")
        if response is None:
            return False
        for call in response["tool_calls"]:
            self._tool(step, call["id"], call["name"], call["args"])
        return True

    def _model(
        self, content: Any, tool_calls: list[dict[str, Any]], finish_reason: str
    ) -> dict[str, Any] | None:
        request = self._contexts.pre_model_call(model_id=MODEL, messages=list(self._messages))
        if not self._emit(request):
            return None
        self._messages = list(request["messages"])
        answered = self._contexts.post_model_call(
            model_id=MODEL, content=content, tool_calls=tool_calls, finish_reason=finish_reason
        )
        if not self._emit(answered):
            return None
        response: dict[str, Any] = answered["response"]
        self._messages.append({"role": "assistant", "content": response["content"]})
        return response

    def _tool(self, step: Step, call_id: str, name: str, args: dict[str, Any]) -> None:
        before = self._contexts.pre_tool_call(call_id=call_id, name=name, args=args)
        before["messages"] = list(self._messages)
        if not self._emit(before, step):
            return self._say(f"blocked: {step.record and step.record.verdict.reason}")
        step.sent = before["tool_call"]["args"]
        after = self._contexts.post_tool_call(
            call_id=call_id, name=name, args=step.sent, value=step.result, is_error=step.is_error
        )
        if not self._emit(after):
            return self._say("blocked: the result was withheld")  # §6.1
        return self._say(after["tool_result"]["value"])

    def _say(self, content: Any) -> None:
        self._messages.append({"role": "tool", "content": content})

    def _emit(self, context: AgentContext, step: Step | None = None) -> bool:
        began = time.perf_counter()
        record = self._emitter.emit_unchecked(context)
        self._run.seconds.append(time.perf_counter() - began)
        self._run.records.append(record)
        if step is not None:
            step.record = record
        self._watch(record, step)
        return record.proceeds


def replay(emitter: SyncInterceptionEmitter, runs: list[Run]) -> Iterator[Run]:
    """Play runs one after another; yields each when it is over."""
    for run in runs:
        ScriptedAgent(emitter, run).go()
        yield run
