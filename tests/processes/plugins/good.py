"""The ten-line plugin of the README: what an author writes."""

from agent_hooks.plugin import Verdict, serve


class NoShell:
    points = ("pre_tool_call",)

    def intercept(self, context):
        if context["tool_call"]["name"] == "shell":
            return Verdict.deny(reason="no_shell")
        return Verdict.allow()


if __name__ == "__main__":
    serve(NoShell())
