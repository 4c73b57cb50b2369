"""A binding's configuration, as it is handed over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_hooks.core.canonical import json_text
from agent_hooks.core.values import ValueDomainError, admit
from agent_hooks.supervisor.channel import ConfigRefusedError
from agent_hooks.supervisor.secrets import SecretError, Secrets, resolve


def config_text(config: Mapping[str, Any]) -> tuple[str, Secrets]:
    """Its JSON text, references resolved (PROTOCOL Services), and what in it is secret.

    Raises:
        ConfigRefusedError: no JSON object, or a reference that cannot be resolved.
    """
    try:
        plain, flags = admit(dict(config))
        resolved, known = resolve(plain)
        return json_text(resolved, flags), known
    except ValueDomainError as refusal:
        problem = f"{refusal.pointer or '(root)'}: {refusal.problem}"
    except SecretError as refusal:
        problem = str(refusal)
    raise ConfigRefusedError(f"its configuration is refused:\n{problem}")
