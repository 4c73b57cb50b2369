"""Denies with the reason that it was configured with, after the seconds it was told."""

import time

from agent_hooks.plugin import Verdict, serve


class Configured:
    def __init__(self):
        self.config_schema = {"type": "object"}
        self.seconds, self.reason = 0.0, "unconfigured"

    def configure(self, config):
        self.reason = config.get("reason", self.reason)
        self.seconds = config.get("seconds", 0.0)

    def intercept(self, context):
        time.sleep(self.seconds)
        return Verdict.deny(reason=self.reason)


if __name__ == "__main__":
    serve(Configured())
