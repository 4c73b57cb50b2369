"""What a host author implements, and the data that passes between harness and runner."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from agent_hooks.core.approval import ApprovalResolver
from agent_hooks.core.context import AgentContext
from agent_hooks.core.identity import JCS_SHA256, IdentityProvider
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from agent_hooks.ctk.paths import json_equal


class Capability(str, Enum):
    """What a host can do (§3.2, §13.1). A vector that needs more is skipped."""

    MODEL_CALLS = "model_calls"
    TOOL_CALLS = "tool_calls"
    PARALLEL_TOOL_CALLS = "parallel_tool_calls"
    STREAMING = "streaming"
    MULTI_TURN = "multi_turn"
    INT64_JSON = "int64_json"
    BIGINT_JSON = "bigint_json"
    INCREMENTAL_OUTPUT = "incremental_output"
    HOST_DECLARATION = "host_declaration"


class RunOutcome(str, Enum):
    """How a run ended."""

    COMPLETED = "completed"
    BLOCKED = "blocked"
    SUSPENDED = "suspended"
    ERROR = "error"


@dataclass(slots=True)
class ToolBehavior:
    """One answer of a mock tool.

    Attributes:
        when_args: the arguments it answers to; None answers to any.
    """

    when_args: dict[str, Any] | None
    return_: Any
    is_error: bool = False


@dataclass(slots=True)
class ToolSpec:
    """A mock tool."""

    name: str
    behavior: list[ToolBehavior]
    schema: dict[str, Any] = field(default_factory=dict)

    def invoke(self, args: dict[str, Any]) -> tuple[Any, bool]:
        """The value and `is_error` of the first behaviour for these arguments.

        Raises:
            LookupError: none fits, so the host passed what it should not have.
        """
        for behavior in self.behavior:
            if behavior.when_args is None or json_equal(behavior.when_args, args):
                return copy.deepcopy(behavior.return_), behavior.is_error
        raise LookupError(f"tool {self.name}: no behavior for these arguments")


@dataclass(slots=True)
class ModelResponse:
    """One answer of the mock model.

    Attributes:
        content: any JSON value; None where the model only calls tools.
        tool_calls: `{id, name, args}` each.
        stream: the content in chunks, for a host with `incremental_output`.
        stream_truncated: the stream dies after the chunks; the last is a rest.
    """

    content: Any
    tool_calls: list[dict[str, Any]]
    finish_reason: str
    stream: list[str] | None = None
    stream_truncated: bool = False


@dataclass(slots=True)
class Scenario:
    """What the mocked world says in one run.

    Attributes:
        input: `{content, role}`.
        tools: by name.
        model_script: the n-th model call gets the n-th response.
    """

    input: dict[str, Any]
    tools: dict[str, ToolSpec] = field(default_factory=dict)
    model_script: list[ModelResponse] = field(default_factory=list)

    @classmethod
    def from_wire(cls, obj: dict[str, Any]) -> Scenario:
        """Parse a vector's `scenario`; what is returned shares nothing with it."""
        obj = copy.deepcopy(obj)
        tools = [
            ToolSpec(
                tool["name"],
                [
                    ToolBehavior(item.get("when_args"), item["return"], item.get("is_error", False))
                    for item in tool["behavior"]
                ],
                tool.get("schema", {}),
            )
            for tool in obj.get("tools", ())
        ]
        return cls(
            obj["input"],
            {tool.name: tool for tool in tools},
            [ModelResponse(**step["respond"]) for step in obj.get("model_script", ())],
        )


@dataclass(slots=True)
class LoadRecord:
    """What became of a host declaration at load: "accepted" or "refused"."""

    outcome: str
    error_class: str | None = None
    paths_equivalent: bool | None = None
    detail: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """The JSON form, without null members."""
        members = {
            "outcome": self.outcome,
            "class": self.error_class,
            "paths_equivalent": self.paths_equivalent,
            "detail": self.detail,
        }
        return {name: value for name, value in members.items() if value is not None}


@dataclass(slots=True)
class RunRecord:
    """What a harness reports of one run.

    Attributes:
        final_output: what the caller got; None where the run was blocked.
        tool_invocations: `{name, args}` for each call that reached a tool, as
            the tool received it.
        error: why the outcome is `error`.
        identities: (input, enforced) of each emission, in order.
        records: the wire form of each emission's record, in order (§10.3).
        released_output: with `incremental_output`, the text that left, in order.
        persisted: everything the host keeps for the session beyond the run.
    """

    outcome: RunOutcome
    final_output: Any | None
    tool_invocations: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    identities: list[tuple[str | None, str | None]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    load: LoadRecord | None = None
    released_output: Any | None = None
    persisted: Any | None = None


class Harness(Protocol):
    """Drives one host through one vector. A fresh one is made for each.

    Attributes:
        name: for reports.
        capabilities: what the host can do.

    The optional attribute `tool_seam_host_error` ("continue" where it is
    absent) says what the host does with a run after a `host_error:*` deny at a
    tool's points (§6.2): "continue" or "terminate".
    """

    name: str
    capabilities: Collection[Capability]

    def setup(
        self,
        scenario: Scenario,
        interceptors: list[Any],
        resolver: ApprovalResolver | None,
        mode: EnforcementMode,
        composition: CompositionConfig,
        identity_provider: str | None,
        redact_for_approval: list[str] | None = None,
    ) -> None:
        """Build the host with mocked model and tools.

        Args:
            interceptors: to register at every point, in this order.
            identity_provider: "jcs-sha256", None, or the name of a provider
                that `named_provider` knows.
            redact_for_approval: §5.2 paths to redact with `redact_paths`
                before a resolver sees the context; register no redactor for None.
        """

    def run(self) -> Awaitable[RunRecord] | RunRecord:
        """Run one session and report; `async def` or not."""
        ...

    def teardown(self) -> None:
        """Release what `setup` took."""


def named_provider(name: str | None) -> str | IdentityProvider | None:
    """The identity provider that a vector names (§10.1).

    Raises:
        ValueError: no vector names that one.
    """
    if name is None or name == JCS_SHA256:
        return name
    if name == "ctk-fault":
        return IdentityProvider(name, _fail)
    raise ValueError(f"identity provider {name!r}: not one of jcs-sha256, ctk-fault, null")


def _fail(_: AgentContext) -> str:
    raise RuntimeError("the scripted identity provider fails on every call")
