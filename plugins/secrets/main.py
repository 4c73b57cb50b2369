"""Serves the detector to the host that launched this program."""

from guard import Secrets

from agent_hooks.plugin import serve

if __name__ == "__main__":
    serve(Secrets())
