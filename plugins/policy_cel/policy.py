"""Rules over agent contexts: the first that matches decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from expression import CompileError, EvaluationError, Expression, Scope
from prompts import Prompts

from agent_hooks.core import canonical, path, values
from agent_hooks.core.points import POINTS
from agent_hooks.plugin import ConfigError, Decision, Transform, Verdict, Warning

EXPRESSION_ERROR = "policy_cel:expression_error"
MAX_FINDINGS = 20
"""A refusal travels in gRPC's metadata, which holds 8 KiB."""

_REASON = {"type": "string", "pattern": "^(?!host_(error|warning):).", "maxLength": 256}
CONFIG_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["rules"],
    "properties": {
        "rules": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["when", "then", "reason"],
                "properties": {
                    "at": {"type": "array", "minItems": 1, "items": {"enum": list(POINTS)}},
                    "when": {"type": "string", "maxLength": 16384},
                    "then": {"enum": ["deny", "escalate", "warn", "transform"]},
                    "reason": _REASON,
                    "message": {"type": "string"},
                    "path": {"type": "string"},
                    "value": {},
                    "value_from": {"type": "string", "maxLength": 16384},
                },
            },
        },
        "on_error": {"enum": ["deny", "escalate"]},
    },
}

# Each name that an expression may use, from the context and what the user last wrote.
_VARIABLES: dict[str, Callable[[dict[str, Any], str | None], Any]] = {
    "context": lambda context, _: context,
    "point": lambda context, _: context["interception_point"],
    "target": lambda context, _: context["target"],
    "tool": lambda context, _: context.get("tool_call", {}),
    "args": lambda context, _: context.get("tool_call", {}).get("args", {}),
    "messages": lambda context, _: context.get("messages", []),
    "session": lambda context, _: context["session"],
    "prompt": lambda _, prompt: prompt,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the configuration, compiled."""

    index: int
    points: frozenset[str]
    when: Expression
    then: str
    reason: str
    message: str | None
    path: str
    value: Any
    value_from: Expression | None

    @property
    def names(self) -> frozenset[str]:
        """The variables that it uses."""
        return self.when.names | (self.value_from.names if self.value_from else frozenset())


class Policy:
    """The interceptor.

    A rule whose expression has no answer on a context (a missing member, say)
    ends the evaluation with `on_error`, a plain deny unless configured
    otherwise. No rule matches: allow, with the warnings of the rules that did.
    """

    name = "policy_cel"
    version = "0.1.0"
    points = tuple(POINTS)
    config_schema = CONFIG_SCHEMA
    max_concurrency = 4  # evaluation holds the interpreter's lock: more threads only take memory

    def __init__(self) -> None:
        self._prompts = Prompts()
        self._rules: dict[str, list[Rule]] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._error_approval: dict[str, Any] | None = None

    def configure(self, config: dict[str, Any]) -> None:
        """Compile the rules. Raises ConfigError with the findings."""
        findings: list[tuple[str, str]] = []
        rules = [_read_rule(index, rule, findings) for index, rule in enumerate(config["rules"])]
        if findings:
            raise ConfigError(*findings[0], *findings[1:MAX_FINDINGS])
        for point in POINTS:
            here = [rule for rule in rules if rule is not None and point in rule.points]
            self._rules[point] = here
            self._names[point] = frozenset().union(*(rule.names for rule in here))
        self._error_approval = {} if config.get("on_error") == "escalate" else None

    def intercept(self, context: dict[str, Any]) -> Verdict:
        """Judge one context."""
        point = context["interception_point"]
        prompt = self._prompts.follow(context)
        warnings: list[Warning] = []
        index = 0
        try:
            # Only what the rules read is converted: a message chain may be megabytes.
            scope = Scope({name: _VARIABLES[name](context, prompt) for name in self._names[point]})
            for rule in self._rules[point]:
                index = rule.index
                if not _matches(rule, scope):
                    continue
                if rule.then != "warn":
                    return _verdict(rule, scope, tuple(warnings))
                warnings.append(Warning(rule.reason, rule.message))
        except EvaluationError as error:
            return Verdict(
                Decision.DENY,
                EXPRESSION_ERROR,
                f"rule {index}: {error}",
                tuple(warnings),
                self._error_approval,
            )
        return Verdict(Decision.ALLOW, warnings=tuple(warnings))


def _matches(rule: Rule, scope: Scope) -> bool:
    answer = rule.when.evaluate(scope)
    if not isinstance(answer, bool):
        raise EvaluationError("when is neither true nor false")
    return answer


def _verdict(rule: Rule, scope: Scope, warnings: tuple[Warning, ...]) -> Verdict:
    match rule.then:
        case "deny":
            return Verdict(Decision.DENY, rule.reason, rule.message, warnings)
        case "escalate":
            return Verdict(Decision.DENY, rule.reason, rule.message, warnings, approval={})
        case "transform":
            value = rule.value if rule.value_from is None else _json_value(rule.value_from, scope)
            transform = Transform(rule.path, value)
            return Verdict(
                Decision.TRANSFORM, rule.reason, rule.message, warnings, transform=transform
            )
        case unknown:
            raise AssertionError(unknown)


def _json_value(expression: Expression, scope: Scope) -> Any:
    value = expression.evaluate(scope)
    try:
        canonical.canonical_bytes(value)
    except values.ValueDomainError:
        raise EvaluationError("value_from is no JSON value") from None  # a timestamp, bytes, …
    return value


# --- reading a rule ---


def _read_rule(index: int, rule: dict[str, Any], findings: list[tuple[str, str]]) -> Rule | None:
    """The rule, or None and what is wrong with it in `findings`."""
    at = f"/rules/{index}"
    before = len(findings)
    findings.extend((at + place, problem) for place, problem in _transform_problems(rule))
    compiled: dict[str, Expression] = {}
    for member in ("when", "value_from"):
        try:
            if member in rule:
                compiled[member] = Expression(rule[member], _VARIABLES)
        except CompileError as refusal:
            findings.append((f"{at}/{member}", str(refusal)))
    if len(findings) > before:
        return None
    return Rule(
        index,
        frozenset(rule.get("at", POINTS)),
        compiled["when"],
        rule["then"],
        rule["reason"],
        rule.get("message"),
        rule.get("path", ""),
        rule.get("value"),
        compiled.get("value_from"),
    )


def _transform_problems(rule: dict[str, Any]) -> list[tuple[str, str]]:
    """What the schema cannot say: which members go with which `then`."""
    given = [member for member in ("path", "value", "value_from") if member in rule]
    if rule["then"] != "transform":
        return [(f"/{member}", "only goes with then: transform") for member in given]
    problems = []
    if "value" in rule and "value_from" in rule:
        problems.append(("/value_from", "give either value or value_from"))
    if "value" not in rule and "value_from" not in rule:
        problems.append(("", "misses value or value_from"))
    if not all(POINTS[point].transform_permitted for point in rule.get("at", POINTS)):
        problems.append(("/at", "name the points; agent_startup and agent_shutdown permit none"))
    try:
        path.parse(rule.get("path", ""))
    except path.PathError as refusal:
        problems.append(("/path", refusal.detail))
    return problems
