"""Serves the policy to the host that launched this program."""

from policy import Policy

from agent_hooks.plugin import serve

if __name__ == "__main__":
    serve(Policy())
