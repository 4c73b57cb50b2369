"""The author's object, read once: what it serves, how it is configured."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from agent_hooks.core.canonical import canonical_json
from agent_hooks.core.context import AgentContext
from agent_hooks.core.points import POINTS
from agent_hooks.core.values import ValueDomainError


class Interceptor(Protocol):
    """A judge. `intercept` may be `async def`; it may return a Verdict or its JSON form.

    Optional attributes: `points` (names of the points it serves; all eight by
    default), `config_schema` (JSON Schema of its configuration),
    `configure(config)` (called once, before the first context; raises
    ConfigError), `name`, `version`, `max_concurrency`. Calls are concurrent.
    """

    def intercept(self, context: AgentContext) -> Any:
        """Judge one context."""
        ...


class ConfigError(ValueError):
    """A configuration that is refused.

    Args:
        pointer: JSON pointer of the place, e.g. "/rules/0/when".
        problem: what is wrong and what to do; not the value, it may be a secret.
        more: further (pointer, problem) pairs.
    """

    def __init__(self, pointer: str, problem: str, *more: tuple[str, str]) -> None:
        self.findings = [(pointer, problem), *more]
        super().__init__("\n".join(f"{place or '(root)'}: {what}" for place, what in self.findings))


@dataclass(frozen=True, slots=True)
class Author:
    """What an author's object says of itself."""

    judge: Callable[..., Any]
    is_resolver: bool
    is_async: bool
    name: str
    version: str
    points: tuple[str, ...]
    config_schema: dict[str, Any] | None
    configure: Callable[[dict[str, Any]], Any] | None
    max_concurrency: int


def read_author(plugin: object) -> Author:
    """Read an author's object.

    Raises:
        TypeError: it has neither `intercept` nor `resolve`, or bad attributes;
            the text says which.
    """
    if isinstance(plugin, type):
        raise TypeError(f"{plugin.__name__} is a class: serve an instance of it")
    judge = getattr(plugin, "intercept", None) or getattr(plugin, "resolve", None)
    if not callable(judge):
        raise TypeError(
            f"{type(plugin).__name__} is no plugin: define intercept(context) or resolve(request)"
        )
    return Author(
        judge=judge,
        is_resolver=not hasattr(plugin, "intercept"),
        is_async=inspect.iscoroutinefunction(judge),
        name=str(getattr(plugin, "name", type(plugin).__name__)),
        version=str(getattr(plugin, "version", "0")),
        points=_points(getattr(plugin, "points", tuple(POINTS))),
        config_schema=_schema(getattr(plugin, "config_schema", None)),
        configure=getattr(plugin, "configure", None),
        max_concurrency=_concurrency(getattr(plugin, "max_concurrency", 16)),
    )


def _points(points: Any) -> tuple[str, ...]:
    if isinstance(points, str) or not isinstance(points, Iterable):
        raise TypeError(f"points: expected a list of {', '.join(POINTS)}")
    names = tuple(str(getattr(point, "value", point)) for point in points)
    for name in names:
        if name not in POINTS:
            raise TypeError(f"points: {name!r} is not one of {', '.join(POINTS)}")
    return names


def _schema(schema: Any) -> dict[str, Any] | None:
    if schema is None:
        return None
    try:
        canonical_json(schema)
    except ValueDomainError as refusal:
        raise TypeError(f"config_schema{refusal.pointer}: {refusal.problem}") from None
    if not isinstance(schema, dict):
        raise TypeError("config_schema: expected a JSON Schema object")
    return schema


def _concurrency(count: Any) -> int:
    if type(count) is not int or count < 1:
        raise TypeError("max_concurrency: expected a whole number > 0")
    return count


def check_config(author: Author, config: Any) -> None:
    """Check a configuration against the schema and hand it to the author.

    Raises:
        ConfigError: refused, by the schema or by the author.
    """
    if not isinstance(config, dict):
        raise ConfigError("", "expected an object")
    if author.config_schema is None and author.configure is None and config:
        raise ConfigError("", "this plugin takes no configuration")
    if author.config_schema is not None:
        _check_schema(author.config_schema, config)
    if author.configure is not None:
        author.configure(config)


def _check_schema(schema: dict[str, Any], config: dict[str, Any]) -> None:
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        raise ConfigError(
            "", "cannot check it: install agent-hooks-grpc[plugins] for the plugin"
        ) from None
    errors = sorted(Draft202012Validator(schema).iter_errors(config), key=lambda e: list(e.path))
    if errors:
        # jsonschema reports a missing member once each; they are named together here.
        first, *more = dict.fromkeys((_pointer(error), _problem(error)) for error in errors)
        raise ConfigError(*first, *more)


def _pointer(error: Any) -> str:
    return "".join(
        "/" + str(step).replace("~", "~0").replace("/", "~1") for step in error.absolute_path
    )


def _problem(error: Any) -> str:
    """What the schema wants; jsonschema's own message would repeat the value."""
    wanted = error.validator_value
    match error.validator:
        case "additionalProperties":
            known = ", ".join(error.schema.get("properties", ())) or "none"
            return f"has a member that is not known; known are: {known}"
        case "required":
            missing = [name for name in wanted if name not in error.instance]
            return f"misses {', '.join(missing)}"
        case _:
            return f"does not satisfy {error.validator}: {json.dumps(wanted, default=str)[:200]}"
