"""What one emission asks of its driver, and what a driver may answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from agent_hooks.core.approval import ApprovalRequest
from agent_hooks.core.context import SPEC_VERSION, AgentContext, Bounds, Snapshot
from agent_hooks.core.identity import JCS_SHA256, Provider
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from agent_hooks.core.reasons import HostError


@dataclass(frozen=True, slots=True)
class Rules:
    """Host configuration in effect for one emission (§7.1), fixed before dispatch.

    Attributes:
        names: one entry per interceptor registered at the point, in order; None
            where the host gave it no name.
        resolver: whether an approval resolver is registered (§9).
        redactor: makes the context that a resolver sees (§9).
    """

    names: tuple[str | None, ...] = ()
    composition: CompositionConfig = field(default_factory=CompositionConfig)
    mode: EnforcementMode = EnforcementMode.ENFORCE
    provider: Provider = JCS_SHA256
    resolver: bool = False
    redactor: Callable[[AgentContext], AgentContext] | None = None
    bounds: Bounds = field(default_factory=Bounds)
    spec: str = SPEC_VERSION
    declaration: str | None = None

    def __post_init__(self) -> None:
        # §10.3: a record carries resolved knobs; resolve them once, not per emission.
        object.__setattr__(self, "composition", self.composition.resolved())


@dataclass(frozen=True, slots=True)
class Invoke:
    """Ask interceptor `index`; answer with what it returned, or `Failed`."""

    index: int
    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class InvokeAll:
    """Ask every interceptor at once; answer with a list in registration order."""

    snapshot: Snapshot
    count: int


@dataclass(frozen=True, slots=True)
class Consult:
    """Ask the approval resolver; answer with what it returned, or `Failed`."""

    request: ApprovalRequest


@dataclass(frozen=True, slots=True)
class Failed:
    """An answer that never came (§6.3, §9). A value, never an exception.

    Attributes:
        reason: the reserved reason that takes the slot.
        detail: for logs; payload-free.
    """

    reason: HostError
    detail: str = ""


Effect = Invoke | InvokeAll | Consult
