"""Keeps credentials out of what an agent sends, reads and says."""

from __future__ import annotations

from typing import Any

from detect import Finder
from detectors import DEFAULT, DETECTORS
from redact import NameTaken, Strings, rewrite, summary

from agent_hooks.core.points import POINTS
from agent_hooks.plugin import ConfigError, Decision, Transform, Verdict, Warning

FOUND = "secrets:found"
MAX_FINDINGS = 8
"""A refusal travels in gRPC's metadata, which holds 8 KiB."""

_TRANSFORMABLE = [name for name, point in POINTS.items() if point.transform_permitted]
CONFIG_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["action"],
    "properties": {
        "action": {"enum": ["redact", "deny", "escalate"]},
        "at": {"type": "array", "minItems": 1, "items": {"enum": list(POINTS)}},
        "detectors": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "allow": {"type": "array", "items": {"type": "string", "pattern": "^[0-9a-f]{64}$"}},
    },
}


class Secrets:
    """The interceptor.

    Where something is found: a deny, an escalation, or a transform that puts
    `[redacted:<type>]` in its place; a deny too where a transform is not
    permitted or cannot do it. Verdicts hold counts and types, nothing else.
    """

    name = "secrets"
    version = "0.1.0"
    points = tuple(POINTS)
    config_schema = CONFIG_SCHEMA
    max_concurrency = 4  # searching holds the interpreter's lock: more threads only take memory

    def __init__(self) -> None:
        self._action = "deny"
        self._points: frozenset[str] = frozenset()
        self._finder = Finder()

    def configure(self, config: dict[str, Any]) -> None:
        """Prepare the detectors. Raises ConfigError."""
        detectors = config.get("detectors", DEFAULT)
        findings = [
            (f"/detectors/{index}", f"is no detector; known are: {', '.join(DETECTORS)}")
            for index, name in enumerate(detectors)
            if name not in DETECTORS
        ]
        if findings:
            raise ConfigError(*findings[0], *findings[1:MAX_FINDINGS])
        self._action = config["action"]
        self._points = frozenset(config.get("at", _TRANSFORMABLE))
        self._finder = Finder(tuple(detectors), frozenset(config.get("allow", ())))

    def intercept(self, context: dict[str, Any]) -> Verdict:
        """Judge one context."""
        point, target = context["interception_point"], context["target"]
        if point not in self._points:
            return Verdict.allow()
        strings = Strings(target)
        found = strings.locate(self._finder.find(strings.text))
        if not found:
            return Verdict.allow()
        message = summary(found)
        match self._action:
            case "deny":
                return Verdict.deny(reason=FOUND, message=message)
            case "escalate":
                return Verdict.escalate(reason=FOUND, message=message)
            case "redact" if not POINTS[point].transform_permitted:
                return Verdict.deny(reason=FOUND, message=message)
            case "redact":
                return _redaction(target, found, message)
            case unknown:
                raise AssertionError(unknown)


def _redaction(target: Any, found: dict[Any, Any], message: str) -> Verdict:
    try:
        path, value = rewrite(target, found)
    except NameTaken:
        return Verdict.deny(reason=FOUND, message=message)
    return Verdict(
        Decision.TRANSFORM,
        FOUND,
        message,
        (Warning(FOUND, message),),
        transform=Transform(path, value),
    )
