"""What an emitter raises at its host. The names are those of the SDK it replaces."""

from __future__ import annotations

from agent_hooks.core.points import InterceptionPoint
from agent_hooks.core.record import InterceptionRecord


class InterceptionBlocked(RuntimeError):  # noqa: N818 - the contract's name
    """The combined verdict is a deny: the action must not proceed (§6).

    Attributes:
        result: the emission's record.
    """

    def __init__(self, result: InterceptionRecord) -> None:
        self.result = result
        verdict = result.verdict
        reason = f" ({verdict.reason})" if verdict.reason else ""
        super().__init__(
            f"{result.interception_point.value} blocked: {verdict.decision.value}{reason}"
        )

    @property
    def interception_point(self) -> InterceptionPoint:
        """Where."""
        return self.result.interception_point


class InterceptionSuspended(RuntimeError):  # noqa: N818 - the contract's name
    """Reserved for hosts that park an emission while a person decides; never raised here."""

    def __init__(self, result: InterceptionRecord) -> None:
        self.result = result
        super().__init__(f"{result.interception_point.value} suspended")


class EmitterSealed(RuntimeError):  # noqa: N818 - the contract's name
    """An emitter that was built from a declaration cannot be reconfigured."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the emitter is sealed by its declaration: {what} is refused")
