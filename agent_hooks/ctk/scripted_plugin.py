"""A scripted interceptor as a plugin: `python -m agent_hooks.ctk.scripted_plugin`.

Its configuration is `{"rules": [...], "record_to": "<path>"}`. With `record_to`
every context is appended to that file as a line of JSON, as it came from the
wire and before it is judged.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final

from agent_hooks.ctk.scripted import ScriptedInterceptor
from agent_hooks.plugin import AgentContext, ConfigError, serve


class ScriptedPlugin:
    """Serves one `ScriptedInterceptor`."""

    name = "ctk-scripted"
    config_schema: Final = {
        "type": "object",
        "required": ["rules"],
        "additionalProperties": False,
        "properties": {
            "rules": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["at"],
                    "properties": {"match": {"type": "object"}},
                    "oneOf": [{"required": ["return"]}, {"required": ["fault"]}],
                },
            },
            "record_to": {"type": "string"},
        },
    }

    def __init__(self) -> None:
        self._scripted = ScriptedInterceptor([])
        self._record: int | None = None

    def configure(self, config: dict[str, Any]) -> None:
        """Take the rules, and open the file of received contexts."""
        try:
            self._scripted = ScriptedInterceptor(config["rules"])
        except ValueError as exc:
            raise ConfigError("/rules", str(exc)) from None
        if "record_to" in config:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            try:
                self._record = os.open(config["record_to"], flags, 0o600)
            except OSError as exc:
                raise ConfigError("/record_to", f"cannot be opened ({exc.strerror})") from None

    def intercept(self, context: AgentContext) -> dict[str, Any]:
        """Record, then judge."""
        if self._record is not None:
            os.write(self._record, json.dumps(context).encode() + b"\n")
        return self._scripted.intercept(context)


if __name__ == "__main__":
    serve(ScriptedPlugin())
