"""Building contexts (§4): what an adapter calls at each point."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from agent_hooks.core.context import SPEC_VERSION, AgentContext
from agent_hooks.core.points import InterceptionPoint


def _now() -> datetime:
    return datetime.now(UTC)


class AgentContextBuilder:
    """Builds the contexts of one session, numbered in order.

    Safe to share between threads and tasks: `sequence` is drawn atomically
    (§12.2). Values are taken as they are; the emitter checks them.
    """

    def __init__(
        self,
        *,
        agent_id: str,
        framework: str,
        session_id: str,
        agent_name: str | None = None,
        agent_version: str | None = None,
        session_started_at: str | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self._agent = _present(
            id=agent_id, framework=framework, name=agent_name, version=agent_version
        )
        self._session = _present(id=session_id, started_at=session_started_at)
        self._well_known: dict[str, Any] = {}
        self._sequence = itertools.count()  # next() is atomic
        self._clock = clock

    def with_l2(self, **fields: Any) -> AgentContextBuilder:
        """Add top-level optional members (§4.5) to every later context; returns itself."""
        self._well_known.update(fields)
        return self

    def agent_startup(self, *, tools_registered: list[str], **extra: Any) -> AgentContext:
        """Once, before the first input. `extra` joins `agent_init`."""
        member = {"tools_registered": tools_registered, **extra}
        return self._context(InterceptionPoint.AGENT_STARTUP, member, agent_init=member)

    def input(self, *, content: Any, role: str = "user", **extra: Any) -> AgentContext:
        """For each external request. `extra` joins `input`."""
        member = {"content": content, "role": role, **extra}
        return self._context(InterceptionPoint.INPUT, member, input=member)

    def pre_model_call(
        self,
        *,
        model_id: str,
        messages: list[dict[str, Any]],
        tools: list[dict[str, Any]] | None = None,
        request_id: str | None = None,
        **model_extra: Any,
    ) -> AgentContext:
        """Before each model request. `model_extra` joins `model`."""
        return self._context(
            InterceptionPoint.PRE_MODEL_CALL,
            messages,
            model={"id": model_id, **model_extra},
            messages=messages,
            **_present(tools=tools, request_id=request_id),
        )

    def post_model_call(
        self,
        *,
        model_id: str,
        content: Any,
        tool_calls: list[dict[str, Any]],
        finish_reason: str,
        usage: dict[str, int] | None = None,
        request_id: str | None = None,
    ) -> AgentContext:
        """After each model response; `tool_calls` is [] where there are none."""
        member = {"content": content, "tool_calls": tool_calls, "finish_reason": finish_reason}
        return self._context(
            InterceptionPoint.POST_MODEL_CALL,
            member,
            model={"id": model_id},
            response=member,
            **_present(usage=usage, request_id=request_id),
        )

    def pre_tool_call(
        self, *, call_id: str, name: str, args: dict[str, Any], **extra: Any
    ) -> AgentContext:
        """Before each tool invocation. `extra` joins `tool_call`."""
        return self._context(
            InterceptionPoint.PRE_TOOL_CALL,
            args,
            tool_call={"id": call_id, "name": name, "args": args, **extra},
        )

    def post_tool_call(
        self,
        *,
        call_id: str,
        name: str,
        args: dict[str, Any],
        value: Any,
        is_error: bool = False,
        duration_ms: float | None = None,
    ) -> AgentContext:
        """After each tool invocation; `args` as they were really passed (§4.2)."""
        return self._context(
            InterceptionPoint.POST_TOOL_CALL,
            value,
            tool_call={"id": call_id, "name": name, "args": args},
            tool_result={
                "value": value,
                "is_error": is_error,
                **_present(duration_ms=duration_ms),
            },
        )

    def output(self, *, content: Any, **extra: Any) -> AgentContext:
        """Before the final response leaves. `extra` joins `output`."""
        member = {"content": content, **extra}
        return self._context(InterceptionPoint.OUTPUT, member, output=member)

    def agent_shutdown(self, *, reason: str, **summary_extra: Any) -> AgentContext:
        """Once, at the end: `completed`, `error` or `cancelled`."""
        member = {"reason": reason, **summary_extra}
        return self._context(InterceptionPoint.AGENT_SHUTDOWN, member, summary=member)

    def _context(self, point: InterceptionPoint, target: Any, **members: Any) -> AgentContext:
        timestamp = self._clock().isoformat(timespec="microseconds").replace("+00:00", "Z")
        return {
            "spec": SPEC_VERSION,
            "interception_point": point.value,
            "timestamp": timestamp,
            "sequence": next(self._sequence),
            "agent": dict(self._agent),
            "session": dict(self._session),
            "target": target,
            **self._well_known,
            **members,
        }


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
