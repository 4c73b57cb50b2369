"""The context on the wire: lossless, canonical, and one text for identity and plugin."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_hooks.core.canonical import canonical_bytes
from agent_hooks.core.identity import canonical_projection
from agent_hooks.core.points import POINTS
from agent_hooks.core.profile import EnforcementMode
from agent_hooks.v1 import context_pb2, interceptor_pb2
from agent_hooks.wire.context import (
    decode_context,
    encode_context,
    encode_request,
    point_name,
    point_number,
)
from agent_hooks.wire.fields import WireError
from tests.core.support import context
from tests.wire.strategies import JSON, WIDE_FLOATS, contexts, nested, same, snapshot


def there_and_back(raw: dict[str, Any]) -> dict[str, Any]:
    """Through bytes."""
    data = encode_context(snapshot(raw)).SerializeToString()
    return decode_context(context_pb2.AgentContext.FromString(data))


@pytest.mark.parametrize("point", POINTS)
@settings(max_examples=40)
@given(data=st.data())
def test_context_is_carried_without_loss(point: str, data: Any) -> None:
    """PROTOCOL Messages: decode(encode(context)) == context, mistyped members included."""
    raw = data.draw(contexts(point))
    kept = copy.deepcopy(raw)
    assert same(there_and_back(raw), kept)
    assert same(raw, kept)


@pytest.mark.parametrize("point", POINTS)
def test_everything_at_once_is_carried_without_loss(point: str) -> None:
    """§4.2, §4.5, §4.6: every well-known member, and one that nobody knows."""
    raw = context(
        point,
        request_id="r",
        tools=[{"name": "t", "schema": {"a": 1}}],
        usage={"prompt_tokens": 2**53 - 1, "completion_tokens": 0, "x": None},
        trace={"trace_id": "0" * 31 + "1", "span_id": "1" * 16},
        tenant={"id": "t", "name": "😀", "plan": {"a": []}},
        actor={"id": "a", "kind": "human"},
        budgets={"cost_usd": 0.1, "token_count": 12, "elapsed_seconds": 1.5e-7},
        extensions={"ns": {"id": str(2**63), "deep": nested(100)}, "": None},
        unheard_of=[{"": [True, 1, 1.5, "1"]}],
    )
    assert same(there_and_back(raw), raw)


@pytest.mark.parametrize(
    "extensions", [{}, {"a": 1}, {"a": {}}, [], None, "x", 0, {"extensions": {}}], ids=repr
)
def test_extensions_of_any_shape_are_carried(extensions: Any) -> None:
    """§4.6: an empty object is not an absent one."""
    assert same(there_and_back(context(extensions=extensions))["extensions"], extensions)
    assert "extensions" not in there_and_back(context())


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("usage", {"prompt_tokens": True}),
        ("usage", {"prompt_tokens": 1.5}),
        ("usage", {"prompt_tokens": "1"}),
        ("usage", {"prompt_tokens": None}),
        ("usage", []),
        ("trace", {"trace_id": 7}),
        ("trace", "x"),
        ("budgets", {"cost_usd": False}),
        ("budgets", {"cost_usd": "0.1"}),
        ("request_id", 5),
        ("request_id", None),
        ("model", {"id": "m", "params": None}),
        ("response", {"content": None}),
        ("response", {"content": 1, "tool_calls": [{"name": "t"}], "finish_reason": "x"}),
        ("response", {"content": 1, "tool_calls": [1], "finish_reason": "x"}),
        ("messages", "x"),
        ("tool_result", {"value": 1, "is_error": 0}),
        ("summary", {"reason": "completed", "errors": False}),
        ("agent_init", {"tools_registered": ["a", 1]}),
    ],
    ids=lambda value: repr(value),
)
def test_mistyped_member_keeps_its_type(member: str, value: Any) -> None:
    """PROTOCOL Messages: nothing is coerced; true is not 1, and "1" neither."""
    raw = context("pre_tool_call", **{member: value})
    assert same(there_and_back(raw)[member], value)


@given(WIDE_FLOATS)
def test_float_beyond_2_53_keeps_its_value(number: float) -> None:
    """SEMANTICS (090, 091): such a float is a float; the plugin judges the same number."""
    raw = context(tool_call={"id": "c", "name": "t", "args": {"x": number}})
    assert there_and_back(raw)["target"] == {"x": number}


def test_float_beyond_2_53_is_a_float_to_the_plugin() -> None:
    """The same with a number at hand: an integer of that size would be refused on its way back."""
    raw = context(tool_call={"id": "c", "name": "t", "args": {"x": 1234567890123456789.0}})
    number = there_and_back(raw)["tool_call"]["args"]["x"]
    assert (number, type(number)) == (1234567890123456789.0, float)


def test_nesting_to_the_bound_is_carried() -> None:
    """§12.3: 128 containers, the context and its members among them."""
    raw = context(tool_call={"id": "c", "name": "t", "args": {"x": nested(125)}})
    assert there_and_back(raw) == raw


def test_nesting_to_a_raised_bound_is_carried() -> None:
    """§12.3: the bound is adjustable, so what the host admits its plugins can read."""
    raw = context(tool_call={"id": "c", "name": "t", "args": {"x": nested(200)}})
    message = encode_context(snapshot(raw, max_depth=240))
    assert decode_context(message) == raw


@pytest.mark.parametrize("point", POINTS)
@given(value=JSON)
def test_target_that_differs_is_carried_and_one_that_does_not_is_not(
    point: str, value: Any
) -> None:
    """PROTOCOL Messages: target_json only where the target is not its member."""
    raw = context(point)
    assert not encode_context(snapshot(raw)).HasField("target_json")
    raw["target"] = value
    assert same(there_and_back(raw)["target"], value)


@pytest.mark.parametrize(
    ("target", "sent"), [({"n": 1}, False), ({"n": True}, True), ({"n": 1, "m": None}, True)]
)
def test_target_of_another_type_differs(target: Any, sent: bool) -> None:
    """PROTOCOL Messages: typed equality decides, since true is not 1."""
    raw = context(tool_call={"id": "c", "name": "t", "args": {"n": 1}}) | {"target": target}
    assert encode_context(snapshot(raw)).HasField("target_json") == sent
    assert same(there_and_back(raw)["target"], target)


@pytest.mark.parametrize("place", ["args", "extension", "unknown", "agent"])
def test_integer_outside_the_safe_range_is_refused_with_a_remedy(place: str) -> None:
    """§4.4, PROTOCOL 64-bit integers: the wire refuses what it cannot carry exactly."""
    raw = context()
    big = {"x": 2**53}
    match place:
        case "args":
            raw = context(tool_call={"id": "c", "name": "t", "args": big})
        case "extension":
            raw["extensions"] = {"a": big}
        case "unknown":
            raw["other"] = big
        case "agent":
            raw["agent"]["x"] = 2**64
    with pytest.raises(WireError, match="decimal strings"):
        encode_context(snapshot(raw))


def _at(context: dict[str, Any], point: str) -> Any:
    value: Any = context
    for step in POINTS[point].target:
        value = value[step]
    return value


@pytest.mark.parametrize("point", POINTS)
@settings(max_examples=20)
@given(data=st.data())
def test_text_on_the_wire_is_canonical_and_the_identity_binds_it(point: str, data: Any) -> None:
    """PROTOCOL Messages: the text that a plugin judges is the text that the identity binds."""
    raw = data.draw(contexts(point))
    checked = snapshot(raw)
    message = encode_context(checked)
    for field in ("target", "messages", "tools"):
        if message.HasField(f"{field}_json"):
            assert getattr(message, f"{field}_json").encode() == canonical_bytes(raw[field])
    for name, text in message.other_json.items():
        assert text.encode() == canonical_bytes(raw[name])
    for namespace, text in message.extensions_json.items():
        assert text.encode() == canonical_bytes(raw["extensions"][namespace])
    judged = message.target_json.encode() or canonical_bytes(_at(raw, point))
    assert judged in canonical_projection(checked)


def test_context_is_encoded_once_per_emission() -> None:
    """PROTOCOL Messages: one canonicalisation, for the identity, the wire and every plugin."""
    checked = snapshot(context())
    canonical_projection(checked)
    args = checked.text(("tool_call", "args"))
    one = encode_request(
        checked,
        emission_id="e",
        mode=EnforcementMode.ENFORCE,
        approval_available=True,
        timeout_ms=5000,
    )
    wire = checked.wire
    two = encode_request(
        checked,
        emission_id="e",
        mode=EnforcementMode.EVALUATE_ONLY,
        approval_available=False,
        timeout_ms=7,
    )
    assert checked.wire is wire
    assert wire is not None
    assert one.startswith(wire)
    assert two.startswith(wire)
    assert args in wire
    assert checked.text(("tool_call", "args")) is args


@pytest.mark.parametrize("mode", EnforcementMode)
@pytest.mark.parametrize("point", POINTS)
def test_request_says_what_can_be_honoured(point: str, mode: EnforcementMode) -> None:
    """PROTOCOL Services: mode, transform, resolver and timeout go with the context."""
    raw = context(point)
    data = encode_request(
        snapshot(raw), emission_id="e-1", mode=mode, approval_available=True, timeout_ms=250
    )
    request = interceptor_pb2.InterceptRequest.FromString(data)
    assert decode_context(request.context) == raw
    assert request.transform_permitted == (point not in ("agent_startup", "agent_shutdown"))
    assert interceptor_pb2.EnforcementMode.Name(request.mode).endswith(mode.name)
    assert (request.emission_id, request.approval_available, request.timeout_ms) == (
        "e-1",
        True,
        250,
    )


@pytest.mark.parametrize("point", POINTS)
def test_point_and_its_number_are_one_to_one(point: str) -> None:
    """§3: the set is closed; 0 and the rest are refused."""
    assert point_name(point_number(point)) == point
    assert sorted(map(point_number, POINTS)) == list(range(1, 9))
    for number in (0, 9, -1):
        with pytest.raises(WireError):
            point_name(number)
