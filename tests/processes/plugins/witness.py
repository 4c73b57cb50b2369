"""Writes down what it is told and what it sees, and answers as it is told.

    witness.py [unary]

Its configuration names a folder. There it writes `told.json`, its
configuration, and `seen.json`, the last context and what the host honours, and
reads `answer.json`, the verdict to return. With `refuse` or `shout` in its
configuration it repeats all of it: in a refusal, or on its standard error.
"""

import json
import sys
from pathlib import Path

from agent_hooks.plugin import ALLOW, ConfigError, honoured, serve, service

if "unary" in sys.argv:
    service.INTERCEPT_STREAM = "no_such_capability"


class Witness:
    def configure(self, config):
        self.folder = Path(config["folder"])
        (self.folder / "told.json").write_text(json.dumps(config))
        if "shout" in config:
            print(config, json.dumps(config), *config.values(), sep="\n", file=sys.stderr)
        if "refuse" in config:
            raise ConfigError("/refuse", f"{config} {json.dumps(config)} {config['refuse']}")

    async def intercept(self, context):
        asked = honoured()
        seen = {
            "context": context,
            "may_return": sorted(asked.may_return),
            "transform_paths": asked.transform_paths,
            "transform_permitted": asked.transform_permitted,
            "approval_available": asked.approval_available,
            "enforced": asked.enforced,
        }
        (self.folder / "seen.json").write_text(json.dumps(seen))
        answer = self.folder / "answer.json"
        return json.loads(answer.read_text()) if answer.exists() else ALLOW


if __name__ == "__main__":
    serve(Witness())
