"""A deliberate passthrough (§7): without one, a point that nobody judges denies."""

from __future__ import annotations

from agent_hooks.core.call import Call, Cancel, Done
from agent_hooks.core.context import AgentContext
from agent_hooks.core.verdict import ALLOW, Verdict


class AllowAll:
    """Allows everything, at no cost. Register it at the points that need no guard."""

    def intercept(self, context: AgentContext) -> Verdict:
        """Allow."""
        return ALLOW

    def start(self, call: Call, done: Done) -> Cancel:
        """Allow at once."""
        done(ALLOW)
        return _nothing

    def ask(self, call: Call) -> object:
        """Allow at once."""
        return ALLOW


def _nothing(_: bool) -> None:
    pass
