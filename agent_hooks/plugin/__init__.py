"""What a plugin author imports.

from agent_hooks.plugin import Verdict, serve

class NoShell:
    points = ["pre_tool_call"]

    def intercept(self, context):
        if context["tool_call"]["name"] == "shell":
            return Verdict.deny(reason="no_shell")
        return Verdict.allow()

if __name__ == "__main__":
    serve(NoShell())
"""

from agent_hooks.core.approval import ApprovalOutcome, ApprovalRequest, ApprovalResolution
from agent_hooks.core.context import AgentContext
from agent_hooks.core.grants import Right
from agent_hooks.core.points import InterceptionPoint
from agent_hooks.core.verdict import ALLOW, Decision, Evidence, Transform, Verdict, Warning
from agent_hooks.plugin.author import ConfigError, Interceptor
from agent_hooks.plugin.honoured import Honoured, honoured
from agent_hooks.plugin.server import serve

__all__ = [
    "ALLOW",
    "AgentContext",
    "ApprovalOutcome",
    "ApprovalRequest",
    "ApprovalResolution",
    "ConfigError",
    "Decision",
    "Evidence",
    "Honoured",
    "InterceptionPoint",
    "Interceptor",
    "Right",
    "Transform",
    "Verdict",
    "Warning",
    "honoured",
    "serve",
]
