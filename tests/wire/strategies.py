"""Contexts, verdicts and messages of every sort, and typed equality of JSON values."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from agent_hooks.core.approval import ApprovalOutcome
from agent_hooks.core.context import Bounds, Snapshot, check_context
from agent_hooks.core.points import POINTS
from agent_hooks.core.verdict import Decision, Evidence, Transform, Verdict, Warning

SAFE = 2**53 - 1
TEXT = st.text(max_size=8) | st.sampled_from(["", "😀", "𐀀\ue000", "\u2028\x00\x7f", "true", "1"])
NAMES = TEXT | st.sampled_from(["id", "name", "args", "content", "other_json", "target", "spec"])
INTEGERS = st.integers(-SAFE, SAFE)


def _exact(number: float) -> bool:
    # RFC 8785 prints these as integers beyond 2^53: a claim of its own.
    return not (SAFE < abs(number) < 1e21)


FLOATS = st.floats(allow_nan=False, allow_infinity=False).filter(_exact)
WIDE_FLOATS = st.floats(min_value=2.0**53, max_value=1e21, exclude_max=True).flatmap(
    lambda number: st.sampled_from([number, -number])
)
SCALARS = st.none() | st.booleans() | INTEGERS | FLOATS | TEXT | st.sampled_from([str(2**63), "-1"])


def trees(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
        max_leaves=5,
    )


JSON = trees(SCALARS)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=2)


def nested(depth: int) -> Any:
    """An empty array within arrays; `depth` containers in all."""
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def members(
    required: dict[str, st.SearchStrategy[Any]], *optional: str
) -> st.SearchStrategy[dict[str, Any]]:
    """An object with its required members, perhaps the optional ones of any type, and more."""
    known = st.fixed_dictionaries(required, optional=dict.fromkeys(optional, JSON | INTEGERS))
    return st.builds(lambda extra, fixed: {**extra, **fixed}, OBJECTS, known)


FILLED = TEXT.filter(bool)
CALL = members({"id": FILLED, "name": FILLED, "args": OBJECTS}, "content_hash")
MODEL = members({"id": TEXT}, "vendor", "params")
MODEL_CALLS = st.lists(members({"name": TEXT, "args": OBJECTS}, "id"), max_size=3)
MESSAGES = st.lists(members({"role": TEXT, "content": JSON}), max_size=3)

CONDITIONAL: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "agent_startup": {"agent_init": members({"tools_registered": st.lists(TEXT, max_size=3)})},
    "input": {
        "input": members({"content": JSON, "role": st.sampled_from(["user", "system", "external"])})
    },
    "pre_model_call": {"model": MODEL, "messages": MESSAGES},
    "post_model_call": {
        "model": MODEL,
        "response": members({"content": JSON, "tool_calls": MODEL_CALLS, "finish_reason": TEXT}),
    },
    "pre_tool_call": {"tool_call": CALL},
    "post_tool_call": {
        "tool_call": CALL,
        "tool_result": members({"value": JSON, "is_error": st.booleans()}, "duration_ms"),
    },
    "output": {"output": members({"content": JSON})},
    "agent_shutdown": {
        "summary": members(
            {"reason": st.sampled_from(["completed", "error", "cancelled"])},
            "tool_calls",
            "errors",
            "duration_seconds",
        )
    },
}

# Members that any context may carry: well-typed here, of any type below.
OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "agent_init": CONDITIONAL["agent_startup"]["agent_init"],
    "input": CONDITIONAL["input"]["input"],
    "model": MODEL,
    "messages": MESSAGES,
    "response": CONDITIONAL["post_model_call"]["response"],
    "tool_call": CALL,
    "tool_result": CONDITIONAL["post_tool_call"]["tool_result"],
    "output": CONDITIONAL["output"]["output"],
    "summary": CONDITIONAL["agent_shutdown"]["summary"],
    "request_id": TEXT,
    "tools": st.lists(members({"name": TEXT, "description": TEXT}, "schema"), max_size=2),
    "usage": members({}, "prompt_tokens", "completion_tokens"),
    "trace": members({"trace_id": TEXT, "span_id": TEXT}),
    "tenant": members({}, "id", "name"),
    "actor": members({}, "id", "kind"),
    "budgets": members({}, "tool_call_count", "token_count", "elapsed_seconds", "cost_usd"),
    "extensions": st.dictionaries(NAMES, JSON, max_size=3),
}


@st.composite
def contexts(draw: Any, point: str) -> dict[str, Any]:
    """A valid context of one point, well-known members mistyped as often as not."""
    conditional = {name: draw(kind) for name, kind in CONDITIONAL[point].items()}
    context = draw(st.dictionaries(NAMES, JSON, max_size=2))
    for name in draw(st.lists(st.sampled_from(sorted(OPTIONAL)), max_size=4, unique=True)):
        context[name] = draw(st.one_of(OPTIONAL[name], JSON))
    context.update(
        spec="agent-hooks/0.1",
        interception_point=point,
        timestamp=draw(TEXT),
        sequence=draw(st.integers(0, SAFE)),
        agent=draw(members({"id": FILLED, "framework": st.just("f")}, "name", "version")),
        session=draw(members({"id": FILLED}, "started_at", "turn")),
        **conditional,
    )
    target: Any = context
    for step in POINTS[point].target:
        target = target[step]
    context["target"] = draw(st.sampled_from([target, target]) | JSON)
    return context


def snapshot(context: dict[str, Any], **bounds: int) -> Snapshot:
    return check_context(context, Bounds(**bounds), context["spec"])


VERDICTS = st.builds(
    Verdict,
    st.just(Decision.ALLOW),
    st.none() | TEXT.filter(lambda text: not text.startswith("host_error:")),
    st.none() | TEXT,
    st.lists(st.builds(Warning, st.none() | TEXT, st.none() | TEXT), max_size=3).map(tuple),
    evidence=st.none()
    | st.builds(Evidence, st.none() | TEXT, st.dictionaries(TEXT, TEXT, max_size=3)),
    result_labels=st.lists(TEXT, max_size=3).map(tuple),
)
BIG = st.integers(-(2**200), 2**200)
VALUES = trees(st.none() | st.booleans() | BIG | FLOATS | TEXT)


@st.composite
def verdicts(draw: Any) -> Verdict:
    """A valid verdict of any decision."""
    base: Verdict = draw(VERDICTS)
    decision = draw(st.sampled_from(Decision))
    approval = transform = None
    if decision is Decision.DENY:
        approval = draw(st.none() | st.dictionaries(TEXT, VALUES, max_size=2))
    if decision is Decision.TRANSFORM:
        transform = Transform(draw(TEXT), draw(VALUES))
    return Verdict(
        decision,
        base.reason,
        base.message,
        base.warnings,
        approval,
        transform,
        base.evidence,
        base.result_labels,
    )


RESOLUTIONS = st.tuples(st.sampled_from(ApprovalOutcome), st.none() | TEXT, st.none() | verdicts())


@st.composite
def mutations(draw: Any, of: bytes, other: bytes = b"") -> bytes:
    """Bytes cut, changed, doubled, or spliced with others, up to four times."""
    mutated = bytearray(of)
    ways = ["set", "cut", "insert", "drop", "repeat", *(["splice"] if other else [])]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(mutated)))
        match draw(st.sampled_from(ways)):
            case "set" if at < len(mutated):
                mutated[at] = draw(st.integers(0, 255))
            case "cut":
                del mutated[at:]
            case "insert":
                mutated[at:at] = draw(st.binary(max_size=6))
            case "drop":
                del mutated[at : at + draw(st.integers(1, 5))]
            case "repeat":
                mutated[at:at] = mutated[at : at + 12]
            case "splice":
                mutated[at:] = other[draw(st.integers(0, len(other))) :]
    return bytes(mutated)


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values: true is not 1, and a number is its value, however written."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return (type(one) in _NUMBERS and type(other) in _NUMBERS and one == other) or (
        type(one) is type(other) and one == other
    )


_NUMBERS = (int, float)
