"""The envelope check (§4), the emission's own copy, and the builder."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from agent_hooks.core.builder import AgentContextBuilder
from agent_hooks.core.context import Bounds, ContextError, Snapshot, check_context
from tests.core.support import MEMBERS, POINTS, SPEC, aliased, context, validator
from tests.core.test_values import CYCLE, nested, typed
from tests.shared import shared_json

JUNK: tuple[Any, ...] = (
    None, True, False, 5, -1, 0, 1.5, "", "x", "Not-Lower", [], ["x"], [5], [{}], {}, {"id": 5},
    {"role": "user"}, [{"role": 1, "content": 2}], [{"name": "x", "args": []}],
)  # fmt: skip


def check(raw: object, **bounds: int) -> Snapshot:
    return check_context(raw, Bounds(**bounds), SPEC)


def refusal(raw: object, **bounds: int) -> str:
    with pytest.raises(ContextError) as caught:
        check(raw, **bounds)
    return str(caught.value)


def full(point: str) -> Any:
    """A valid context with every optional member of §4.5."""
    raw = context(point)
    raw["agent"] |= {"name": "Agent", "version": "1"}
    raw["session"] |= {"started_at": "2026-03-04T05:06:07Z", "turn": 2}
    raw |= {
        "trace": {"trace_id": "ab", "span_id": "cd"},
        "tenant": {"id": "t", "name": "T"},
        "actor": {"id": "u", "kind": "human"},
        "budgets": {"token_count": 5, "cost_usd": 0.5},
        "extensions": {"ours": {"anything": [1, None]}},
        "request_id": "r-1",
    }
    if "model" in raw:
        raw["model"] |= {"vendor": "v", "params": {"temperature": 0.5}}
        raw["tools"] = [{"name": "book", "description": "Books.", "schema": {}}]
        raw["usage"] = {"prompt_tokens": 3, "completion_tokens": 4}
    if "tool_call" in raw:
        raw["tool_call"]["content_hash"] = "sha256:" + "0" * 64
    if "tool_result" in raw:
        raw["tool_result"]["duration_ms"] = 1.5
    return raw


def required_part(schema: Any, value: Any, root: Any, also: list[str] | None = None) -> Any:
    """The value without the members that a schema leaves optional, at any depth."""
    if schema is True:
        return value
    while "$ref" in schema and schema["$ref"].startswith("#"):
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if isinstance(value, dict) and "properties" in schema:
        names = schema.get("required", []) + (also or [])
        return {
            name: required_part(schema["properties"][name], value[name], root)
            for name in names
            if name in value
        }
    if isinstance(value, list) and "items" in schema:
        return [required_part(schema["items"], item, root) for item in value]
    return value


def sound(raw: Any) -> bool:
    """Whether the shared schema finds the required and conditional members right."""
    schema = shared_json("schema", "agent-context.schema.json")
    also = [
        name
        for rule in schema["allOf"]
        if rule["if"]["properties"]["interception_point"]["const"] == raw.get("interception_point")
        for name in rule["then"]["required"]
    ]
    part = required_part(schema, raw, schema, also)
    return validator("agent-context.schema.json").is_valid(part) and part["spec"] == SPEC


def holders(value: Any, depth: int = 4) -> Iterator[Any]:
    """Every container in a context, down to a depth."""
    if isinstance(value, (dict, list)) and depth:
        yield value
        for item in value.values() if isinstance(value, dict) else value:
            yield from holders(item, depth - 1)


def mutate(raw: Any, random: Random) -> None:
    """Remove, replace or add one thing somewhere."""
    holder = random.choice(list(holders(raw)))
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not keys or random.random() < 0.1:
        if isinstance(holder, dict):
            holder["unheard_of"] = copy.deepcopy(random.choice(JUNK))
        else:
            holder.append(copy.deepcopy(random.choice(JUNK)))
    elif random.random() < 0.35:
        del holder[random.choice(keys)]
    else:
        holder[random.choice(keys)] = copy.deepcopy(random.choice(JUNK))


@pytest.mark.parametrize("point", POINTS)
def test_what_the_schema_requires_is_what_the_check_requires(point: str) -> None:
    """§4.1, §4.2: random breaches of valid contexts, judged by the shared schema."""
    random = Random(f"breach-{point}")
    verdicts = {True: 0, False: 0}
    for _ in range(300):
        raw = full(point)
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            mutate(raw, random)
        if random.random() < 0.3:
            raw["target"] = raw.get(MEMBERS[point][1][0])
        valid = sound(raw)
        verdicts[valid] += 1
        try:
            check(raw)
            accepted = True
        except ContextError:
            accepted = False
        assert accepted == valid, json.dumps(raw)
    assert min(verdicts.values()) > 30, "the breaches should be neither all fatal nor all harmless"


@pytest.mark.parametrize("make", [context, full, aliased], ids=["required", "full", "aliased"])
@pytest.mark.parametrize("point", POINTS)
def test_a_valid_context_passes_unchanged(point: str, make: Any) -> None:
    """§4.4: nothing is rewritten."""
    raw = make(point)
    assert validator("agent-context.schema.json").is_valid(raw)
    snapshot = check(raw)
    assert snapshot.context.keys() == raw.keys()
    assert all(typed(snapshot.context[name]) == typed(raw[name]) for name in raw)
    assert snapshot.target_is_member
    assert snapshot.point.name.value == point


@pytest.mark.parametrize("point", POINTS)
def test_the_projection_is_what_the_closed_schemas_require(point: str) -> None:
    """§10.2"""
    schema = shared_json("schema", "agent-context", f"{point}.schema.json")
    core = {"spec", "interception_point", "timestamp", "sequence", "agent", "session", "target"}
    expected = {}
    for name in set(schema["required"]) - core:
        definition = schema["$defs"][name]
        expected[name] = set(definition["required"]) if "required" in definition else None
    table = check(context(point)).point.projection
    assert {name: keys and set(keys) for name, keys in table.items()} == expected


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"spec": 5}, "/spec: expected agent-hooks/<major>.<minor> (§4)"),
        ({"spec": "agent-hooks/0.1 "}, "/spec: expected agent-hooks/<major>.<minor> (§4)"),
        ({"spec": "agent-hooks/0.2"}, "/spec: not the specification version"),
        ({"spec": "agent-hooks/1.0"}, "/spec: not the specification version"),
        ({"interception_point": "pre_tool"}, "/interception_point: expected one of §3 (§4)"),
        ({"interception_point": ["input"]}, "/interception_point: expected one of §3 (§4)"),
        ({"timestamp": 0}, "/timestamp: expected an RFC 3339 string (§4)"),
        ({"sequence": -1}, "/sequence: expected an integer >= 0 of 64 bits (§4)"),
        ({"sequence": True}, "/sequence: expected an integer >= 0 of 64 bits (§4)"),
        ({"sequence": 1.0}, "/sequence: expected an integer >= 0 of 64 bits (§4)"),
        ({"agent": {"id": "a"}}, "/agent/framework: missing; expected a string that matches"),
        ({"agent": {"id": "", "framework": "f"}}, "/agent/id: expected a string that is not empty"),
        ({"agent": {"id": "a", "framework": "f\n"}}, "/agent/framework: expected a string that"),
        ({"session": []}, "/session: expected an object (§4)"),
        ({"session": {"id": 5}}, "/session/id: expected a string that is not empty (§4)"),
        ({"tool_call": {"id": "c", "name": "n"}}, "/tool_call/args: missing; expected an object"),
        (
            {"tool_call": {"id": "c", "name": "n", "args": [1]}},
            "/tool_call/args: expected an object",
        ),
    ],
)
def test_a_refusal_names_the_member_and_what_is_expected(changed: Any, text: str) -> None:
    """§4.1; a whole float is no sequence, though JSON Schema would take it."""
    assert refusal({**context(), **changed}).startswith(text)


@pytest.mark.parametrize("raw", [None, [], "{}", 5, b"{}", [context()]], ids=repr)
def test_only_an_object_is_a_context(raw: object) -> None:
    """§4"""
    assert refusal(raw) == "(root): not a JSON object (§4)"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(float("nan"), "not a finite number", id="nan"),
        pytest.param("\ud800", "lone surrogate", id="surrogate"),
        pytest.param({"\udfff": 1}, "lone surrogate", id="surrogate-in-a-key"),
        pytest.param([2**60, "\ud800"], "lone surrogate", id="surrogate-beside-a-large-integer"),
        pytest.param({1: 1}, "not a string", id="integer-key"),
        pytest.param({1, 2}, "not a JSON value", id="set"),
        pytest.param(nested(128), "nested too deeply", id="depth"),
        pytest.param(nested(10_000), "nested too deeply", id="depth-10000"),
        pytest.param(CYCLE, "nested too deeply", id="cycle"),
    ],
)
def test_a_value_outside_the_domain_is_refused_wherever_it_stands(value: Any, text: str) -> None:
    """§4.4, §12.3"""
    for changed in ({"target": value}, {"extensions": {"ours": value}}, {"unheard_of": value}):
        assert text in refusal({**context(), **changed})


def test_bounds_can_be_set() -> None:
    """§12.3"""
    raw = context()
    size = len(json.dumps(raw, separators=(",", ":")))
    check(raw, max_bytes=size)
    assert "larger than the bound" in refusal(raw, max_bytes=size - 1)
    assert "nested too deeply" in refusal(raw, max_depth=3)
    deep = {**raw, "target": nested(200)}
    assert "nested too deeply" in refusal(deep)
    assert check(deep, max_depth=250).context["target"] == nested(200)


@pytest.mark.parametrize("extra", [1, 0.5, 1.0, 2**60, "ü\n"], ids=str)
@pytest.mark.parametrize("make", [context, aliased])
@pytest.mark.parametrize("point", POINTS)
def test_the_bound_on_bytes_counts_the_whole_context(point: str, make: Any, extra: Any) -> None:
    """§12.3: to the byte, the target and its member both, whoever made them one."""
    raw = {**make(point), "extensions": {"ours": extra}}
    size = len(json.dumps(raw, separators=(",", ":"), ensure_ascii=False).encode())
    check(raw, max_bytes=size)
    assert "larger than the bound" in refusal(raw, max_bytes=size - 1)


@pytest.mark.parametrize("bound", [260, 400, 1_000, 100_000])
def test_a_high_bound_on_depth_never_crashes_or_names_a_wrong_cause(bound: int) -> None:
    """§12.3: refused when it is set, or its breach is a refusal that says so."""
    raw = {**context(), "target": nested(min(bound, 20_000) - 10)}
    try:
        bounds = Bounds(max_depth=bound)
    except ValueError:
        return
    with suppress(ContextError):
        check_context(raw, bounds, SPEC)
        return
    assert "nested too deeply" in refusal(raw, max_depth=bound)


def test_subclasses_and_tuples_are_taken_as_what_they_serialise_to() -> None:
    raw = context(extensions={"ours": ((1, 2), True)})
    assert check(raw).context["extensions"] == {"ours": [[1, 2], True]}


@pytest.mark.parametrize("make", [context, aliased])
def test_a_snapshot_shares_nothing_with_the_host(make: Any) -> None:
    """§7"""
    raw = make()
    snapshot = check(raw)
    raw["target"]["n"] = raw["tool_call"]["args"]["n"] = "changed"
    assert snapshot.context["target"]["n"] == 0


@pytest.mark.parametrize("make", [context, aliased])
def test_each_copy_of_a_snapshot_is_private(make: Any) -> None:
    """§7: what one interceptor does to its context, nobody else sees."""
    snapshot = check(make())
    one, other = snapshot.copy(), snapshot.copy()
    one["target"]["to"]["list"].append("c")
    assert one["tool_call"]["args"] == context()["target"]
    one["tool_call"]["args"].clear()
    assert other == snapshot.context == context()


def test_texts_are_canonical_and_made_once() -> None:
    snapshot = check(context(target={"b": 1.0, "a": 2}))
    assert snapshot.target_text() == b'{"a":2,"b":1}'
    assert snapshot.target_text() is snapshot.text(("target",))
    assert snapshot.text(("tool_call", "args")) == b'{"n":0,"to":{"list":["a","b"]}}'
    assert not snapshot.target_is_member


@pytest.mark.parametrize("order", [("n", "m"), ("m", "n")])
@pytest.mark.parametrize("zero", [0, 0.0, -0.0, False])
def test_a_target_counts_as_its_member_only_where_they_are_the_same(order: Any, zero: Any) -> None:
    """§4.3"""
    args = {"n": 0, "m": 1}
    target = {name: {"n": zero, "m": 1}[name] for name in order}
    raw = context(tool_call={"id": "c", "name": "n", "args": args}, target=target)
    assert check(raw).target_is_member == (typed(target) == typed(args))


VALID_TARGET = {
    "agent_startup": {"tools_registered": []},
    "input": {"content": {}, "role": "external"},
    "pre_model_call": [],
    "post_model_call": {"content": 1, "tool_calls": [], "finish_reason": ""},
    "pre_tool_call": {},
    "post_tool_call": None,
    "output": {"content": []},
    "agent_shutdown": {"reason": "error"},
}


def sorted_members(raw: Any) -> Any:
    """The order of the context's own members means nothing; that of a value's does."""
    return dict(sorted(raw.items()))


@pytest.mark.parametrize("point", POINTS)
def test_a_new_target_is_written_back_to_its_member_and_nowhere_else(point: str) -> None:
    """§4.3"""
    raw = full(point)
    snapshot = check(raw)
    fresh = snapshot.with_target(VALID_TARGET[point], Bounds())
    expected = copy.deepcopy(raw)
    expected["target"] = VALID_TARGET[point]
    place = MEMBERS[point][1]
    holder = expected
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = VALID_TARGET[point]
    assert typed(sorted_members(fresh.context)) == typed(sorted_members(expected))
    assert typed(sorted_members(snapshot.context)) == typed(sorted_members(raw))
    assert fresh.target_is_member


@pytest.mark.parametrize("point", [point for point in POINTS if point != "post_tool_call"])
def test_a_new_target_must_fit_the_envelope(point: str) -> None:
    """§4.2"""
    with pytest.raises(ContextError, match="expected"):
        check(context(point)).with_target("no object", Bounds())


@pytest.mark.parametrize(
    ("bounds", "words"), [(Bounds(max_bytes=10), "larger"), (Bounds(max_depth=2), "deeply")]
)
def test_a_new_target_keeps_the_bounds(bounds: Bounds, words: str) -> None:
    """§12.3"""
    with pytest.raises(ValueError, match=words):
        check(context()).with_target({"a": [1]}, bounds)


# --- the builder ---


def builder(**more: Any) -> AgentContextBuilder:
    return AgentContextBuilder(
        agent_id="agent-1",
        framework="hand-made",
        session_id="s-1",
        clock=lambda: datetime(2026, 3, 4, 5, 6, 7, 890000, UTC),
        **more,
    )


def built(build: AgentContextBuilder) -> list[Any]:
    """One context of each point, in the order of a session."""
    return [
        build.agent_startup(tools_registered=["book"], policy="p"),
        build.input(content="a flight", language="en"),
        build.pre_model_call(model_id="m", messages=[{"role": "user", "content": "x"}], tools=[]),
        build.post_model_call(
            model_id="m", content=None, tool_calls=[], finish_reason="stop", usage={"x": 1}
        ),
        build.pre_tool_call(call_id="c", name="book", args={"n": 1}, content_hash="sha256:0"),
        build.post_tool_call(call_id="c", name="book", args={"n": 1}, value=None, duration_ms=1.5),
        build.output(content={"text": "booked"}, language="en"),
        build.agent_shutdown(reason="completed", tool_calls=1),
    ]


def test_the_builder_numbers_a_session_of_valid_contexts() -> None:
    """§4.1, §4.2"""
    contexts = built(builder())
    assert [raw["interception_point"] for raw in contexts] == list(POINTS)
    assert [raw["sequence"] for raw in contexts] == list(range(8))
    assert {raw["timestamp"] for raw in contexts} == {"2026-03-04T05:06:07.890000Z"}
    for raw in contexts:
        assert check(raw).target_is_member
        assert sound(raw)


def test_the_builder_leaves_out_what_was_not_given() -> None:
    """§4.5"""
    plain = builder().post_tool_call(call_id="c", name="n", args={}, value=1)
    assert plain["agent"] == {"id": "agent-1", "framework": "hand-made"}
    assert plain["session"] == {"id": "s-1"}
    assert plain["tool_result"] == {"value": 1, "is_error": False}
    assert not {"usage", "tools", "request_id"} & plain.keys()


def test_the_builder_carries_what_was_given() -> None:
    """§4.5"""
    build = builder(agent_name="A", agent_version="1", session_started_at="2026-03-04T05:06:07Z")
    assert build.with_l2(tenant={"id": "t"}) is build
    raw = build.pre_model_call(model_id="m", messages=[], request_id="r", vendor="v")
    assert raw["agent"]["name"] == "A"
    assert raw["agent"]["version"] == "1"
    assert raw["session"]["started_at"] == "2026-03-04T05:06:07Z"
    assert raw["tenant"] == {"id": "t"}
    assert raw["request_id"] == "r"
    assert raw["model"] == {"id": "m", "vendor": "v"}


def test_the_builder_uses_utc_by_default() -> None:
    build = AgentContextBuilder(agent_id="a", framework="f", session_id="s")
    moment = build.output(content="x")["timestamp"]
    assert moment.endswith("Z")
    assert datetime.fromisoformat(moment).tzinfo is UTC
