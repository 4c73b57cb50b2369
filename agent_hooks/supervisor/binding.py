"""One use of a plugin, and whether what it says of itself fits that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_hooks.core.grants import EVERYTHING
from agent_hooks.supervisor.channel import HandshakeError
from agent_hooks.supervisor.manifest import Manifest
from agent_hooks.wire.plugin import INTERCEPTOR, Description


@dataclass(frozen=True, slots=True)
class Binding:
    """One use of a plugin: its own configuration, its own process.

    Attributes:
        id: the host's name for it, in records and logs.
        config: JSON object handed over by Configure.
        timeout: seconds for one call; None takes the manifest's.
        points: where it is bound; None takes the manifest's.
    """

    id: str
    manifest: Manifest
    config: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    points: tuple[str, ...] | None = None


def check_fit(binding: Binding, described: Description) -> None:
    """Require the plugin to be able to do what it is bound for.

    Raises:
        HandshakeError: it is not; the text says what does not fit.
    """
    _check_points(binding, described)
    _check_grants(binding, described)


def _check_points(binding: Binding, described: Description) -> None:
    wanted = set(binding.points or binding.manifest.points)
    if described.kind == INTERCEPTOR and not wanted <= set(described.points):
        raise HandshakeError(
            f"it is bound at {', '.join(sorted(wanted.difference(described.points)))}, "
            f"but says that it serves only {', '.join(described.points) or 'no point'}"
        )


def _check_grants(binding: Binding, described: Description) -> None:
    """§9: an approver answers for the identity of what it was shown, which nobody narrows here."""
    if described.kind != INTERCEPTOR and binding.manifest.grants != EVERYTHING:
        raise HandshakeError(
            "its manifest's [grants] cannot hold: it is an approval resolver; "
            "register a redactor with the emitter instead (§9)"
        )
