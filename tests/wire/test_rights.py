"""What a plugin may return, and what it is not shown, on the wire (PROTOCOL Services)."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_hooks.core.grants import EVERYTHING, Grants, Right, parse_grants
from agent_hooks.core.points import POINTS
from agent_hooks.core.profile import EnforcementMode
from agent_hooks.v1 import context_pb2, interceptor_pb2
from agent_hooks.wire.context import decode_context, encode_context, encode_request
from agent_hooks.wire.rights import decode_rights, encode_rights
from tests.core.support import REWRITABLE, call, context
from tests.wire.strategies import contexts, same, snapshot

SETS = [set(some) for count in range(4) for some in combinations(Right, count)]


def asked(grants: Grants, raw: Any, resolver: bool = True) -> interceptor_pb2.InterceptRequest:
    data = encode_request(
        grants.view(snapshot(raw)),
        emission_id="e",
        mode=EnforcementMode.ENFORCE,
        approval_available=resolver,
        timeout_ms=1,
        grants=grants,
    )
    return interceptor_pb2.InterceptRequest.FromString(data)


@pytest.mark.parametrize("may", SETS, ids=repr)
@pytest.mark.parametrize("point", POINTS)
def test_request_says_what_may_be_returned(point: str, may: set[Right]) -> None:
    """And permits no more than the point, the resolver and the manifest all do."""
    request = asked(Grants(may=frozenset(may)), context(point))
    assert decode_rights(request) == may
    assert request.transform_paths == (["$target"] if Right.TRANSFORM in may else [])
    assert request.transform_permitted == (Right.TRANSFORM in may and point in REWRITABLE)
    assert request.approval_available == (Right.APPROVAL in may)
    assert not asked(Grants(may=frozenset(may)), context(point), resolver=False).approval_available


def test_request_of_a_manifest_without_grants_permits_everything() -> None:
    """By default, too, for whoever encodes without a manifest."""
    data = encode_rights(EVERYTHING)
    request = interceptor_pb2.InterceptRequest.FromString(data)
    assert decode_rights(request) == set(Right)
    plain = encode_request(
        snapshot(context()),
        emission_id="e",
        mode=EnforcementMode.ENFORCE,
        approval_available=True,
        timeout_ms=1,
    )
    assert plain == asked(EVERYTHING, context()).SerializeToString()


def test_right_of_a_later_version_is_none_here() -> None:
    """Fail closed: what is not understood is not permitted."""
    request = interceptor_pb2.InterceptRequest(may_return=[1, 0, 9])  # type: ignore[list-item]
    assert decode_rights(request) == {Right.DENY}


def test_withheld_value_is_nowhere_in_the_bytes() -> None:
    """PROTOCOL Least privilege: also not in a field that a plugin of ours does not read."""
    raw = call({"to": "alice", "card": "canary", "n": 2**60}, tenant={"id": "canary"})
    raw["agent"]["name"] = raw["unheard_of"] = "canary"
    raw["extensions"] = {"own": "canary"}
    raw["messages"] = [{"role": "user", "content": "canary"}]
    data = asked(parse_grants({"sees": ["$target.to"]}), raw).SerializeToString()
    assert b"canary" not in data
    assert b"alice" in data


PLACES = ["target", "messages", "$target.content", "$response.tool_calls", "extensions", "tenant"]


@pytest.mark.parametrize("point", POINTS)
@settings(max_examples=40)
@given(data=st.data())
def test_view_of_any_context_is_carried_without_loss(point: str, data: Any) -> None:
    """PROTOCOL Messages: what stands in a typed place fits it, or goes to `other_json`."""
    sees = data.draw(st.lists(st.sampled_from(PLACES), max_size=3))
    view = parse_grants({"sees": sees}).view(snapshot(data.draw(contexts(point))))
    wire = encode_context(view).SerializeToString()
    assert same(decode_context(context_pb2.AgentContext.FromString(wire)), view.context)
