"""Allows even numbers and denies odd ones, called on streams; an allow is labelled with both."""

import sys
import time

from deeds import DEEDS, note

from agent_hooks.plugin import Decision, Verdict, serve

NAME = sys.argv[1]


def _raise():
    raise RuntimeError("a bug of the author")


class Even:
    def intercept(self, context):
        args = context["tool_call"]["args"]
        note(args["n"])
        fault = args.get("fault")
        if fault == "nonsense":
            return 42
        if fault == "own_reserved_reason":
            return {"decision": "deny", "reason": "host_error:no_interceptor"}
        if fault is not None:
            (DEEDS | {"raise": _raise, "exit": sys.exit})[fault]()
        time.sleep(args.get("sleep", 0))
        if args["n"] % 2:
            return Verdict.deny(reason="odd")
        return Verdict(Decision.ALLOW, result_labels=(f"{NAME}:{args['n']}",))


if __name__ == "__main__":
    serve(Even())
