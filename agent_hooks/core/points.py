"""The eight interception points (§3) as one table."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

Path = tuple[str, ...]


class InterceptionPoint(str, Enum):
    """Where an agent's loop stops (§3). The set is closed."""

    AGENT_STARTUP = "agent_startup"
    INPUT = "input"
    PRE_MODEL_CALL = "pre_model_call"
    POST_MODEL_CALL = "post_model_call"
    PRE_TOOL_CALL = "pre_tool_call"
    POST_TOOL_CALL = "post_tool_call"
    OUTPUT = "output"
    AGENT_SHUTDOWN = "agent_shutdown"


@dataclass(frozen=True, slots=True)
class Point:
    """One row of the tables of §3 and §4.2.

    Attributes:
        name: the wire value.
        target: the member that `target` mirrors (§4.3).
        transform_permitted: whether a transform may rewrite it (§3).
        projection: the point's required members and, for those that are
            objects, the whitelist of their members (§10.2). `None` takes the
            member whole.
    """

    name: InterceptionPoint
    target: Path
    transform_permitted: bool
    projection: dict[str, tuple[str, ...] | None]


_TOOL_CALL = ("id", "name", "args")

POINTS: dict[str, Point] = {
    point.name.value: point
    for point in (
        Point(
            InterceptionPoint.AGENT_STARTUP,
            ("agent_init",),
            False,
            {"agent_init": ("tools_registered",)},
        ),
        Point(
            InterceptionPoint.INPUT,
            ("input",),
            True,
            {"input": ("content", "role")},
        ),
        Point(
            InterceptionPoint.PRE_MODEL_CALL,
            ("messages",),
            True,
            {"model": ("id",), "messages": None},
        ),
        Point(
            InterceptionPoint.POST_MODEL_CALL,
            ("response",),
            True,
            {"model": ("id",), "response": ("content", "tool_calls", "finish_reason")},
        ),
        Point(
            InterceptionPoint.PRE_TOOL_CALL,
            ("tool_call", "args"),
            True,
            {"tool_call": _TOOL_CALL},
        ),
        Point(
            InterceptionPoint.POST_TOOL_CALL,
            ("tool_result", "value"),
            True,
            {"tool_call": _TOOL_CALL, "tool_result": ("value", "is_error")},
        ),
        Point(
            InterceptionPoint.OUTPUT,
            ("output",),
            True,
            {"output": ("content",)},
        ),
        Point(
            InterceptionPoint.AGENT_SHUTDOWN,
            ("summary",),
            False,
            {"summary": ("reason",)},
        ),
    )
}
