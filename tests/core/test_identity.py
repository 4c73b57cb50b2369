"""Context identity (§10.1, §10.2)."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_hooks.core.context import Bounds, ContextError, Snapshot, check_context
from agent_hooks.core.identity import (
    IdentityProvider,
    canonical_projection,
    check_provider,
    context_identity,
    identify,
    provider_name,
)
from tests.core.support import MEMBERS, POINTS, REWRITABLE, SPEC, aliased, call, context
from tests.core.test_values import json_values
from tests.shared import ROOT, shared_json

GOLDEN = json.loads((ROOT / "conformance/golden/identity.json").read_text(encoding="utf-8"))
FIXTURES = {fixture["id"]: fixture for fixture in GOLDEN["fixtures"]}


def snapshot_of(raw: Any) -> Snapshot:
    return check_context(raw, Bounds(), SPEC)


def projected(raw: Any) -> Any:
    """§10.2's closed projection, from the closed schemas."""
    point = raw["interception_point"]
    schema = shared_json("schema", "agent-context", f"{point}.schema.json")
    part = {name: raw[name] for name in schema["required"]}
    for name, value in part.items():
        rule = schema["properties"][name]
        if rule is not True and "$ref" in rule:
            rule = schema["$defs"][name]
        if rule is not True and "required" in rule:
            part[name] = {key: value[key] for key in rule["required"]}
    return part


def test_the_golden_file_covers_every_point_and_enough() -> None:
    assert GOLDEN["spec"] == SPEC
    accepted = [f for f in FIXTURES.values() if "context_identity" in f["expect"]]
    assert len(FIXTURES) == len(GOLDEN["fixtures"])
    assert len(accepted) >= 12
    assert {f["ctx"]["interception_point"] for f in accepted} == set(POINTS)
    assert '"correct":9.999999999999997e+22' in FIXTURES["numbers"]["expect"]["projection"]


@pytest.mark.parametrize("name", FIXTURES)
def test_our_golden_identities(name: str) -> None:
    """§10.2"""
    raw, expect = FIXTURES[name]["ctx"], FIXTURES[name]["expect"]
    if "error" in expect:
        with pytest.raises(ContextError) as caught:
            context_identity(raw)
        assert str(caught.value).partition(":")[0] in expect["names"]
        return
    text = expect["projection"].encode()
    assert expect["context_identity"] == "sha256:" + hashlib.sha256(text).hexdigest()
    assert canonical_projection(snapshot_of(raw)) == text
    assert context_identity(raw) == expect["context_identity"]


@pytest.mark.parametrize("text", ["\0", "\0\0", "a\0b", "\\u0000", "x" * 100_000])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("make", [context, aliased])
def test_no_text_is_taken_for_the_place_of_the_target(make: Any, point: str, text: str) -> None:
    """§10.2: whatever stands in the target and beside it."""
    raw = make(point)
    raw["agent"]["id"] = raw["timestamp"] = text
    if isinstance(raw["target"], dict) and "reason" not in raw["target"]:
        raw["target"][text] = text
    expected = rfc8785.dumps(projected(raw))
    assert canonical_projection(snapshot_of(raw)) == expected
    assert context_identity(raw) == "sha256:" + hashlib.sha256(expected).hexdigest()


@pytest.mark.parametrize("name", [n for n, f in FIXTURES.items() if "error" not in f["expect"]])
def test_our_golden_projections_are_those_of_the_closed_schemas(name: str) -> None:
    """§10.2"""
    fixture = FIXTURES[name]
    assert rfc8785.dumps(projected(fixture["ctx"])).decode() == fixture["expect"]["projection"]


def test_optional_members_leave_the_golden_identity_alone() -> None:
    """§10.2"""
    one, other = FIXTURES["tool-call"], FIXTURES["tool-call-with-options"]
    assert one["ctx"] != other["ctx"]
    assert one["expect"] == other["expect"]


def test_exactly_one_shared_golden_fixture_differs_and_there_rfc_8785_is_on_our_side() -> None:
    """G-15 prints 9.999999999999997e+22 as …996e+22; RFC 8785 §3.2.2.3 says otherwise."""
    differing = {}
    for fixture in shared_json("ctk", "golden", "identity.json")["fixtures"]:
        expected = fixture["expect"].get("context_identity", fixture["expect"].get("error"))
        try:
            ours = context_identity(fixture["ctx"])
        except ContextError:
            ours = "host_error:context_invalid"
        if ours != expected:
            differing[fixture["id"]] = (fixture, ours)
    assert list(differing) == ["G-15-rfc8785-numbers"]
    fixture, ours = differing["G-15-rfc8785-numbers"]
    right = fixture["expect"]["canonical_json"].replace(
        "9.999999999999996e+22", "9.999999999999997e+22"
    )
    assert rfc8785.dumps(projected(fixture["ctx"])).decode() == right
    assert ours == "sha256:" + hashlib.sha256(right.encode()).hexdigest()
    assert fixture["ctx"]["target"]["f"].hex() == float("9.999999999999997e+22").hex()


@pytest.mark.parametrize("point", POINTS)
@settings(max_examples=30)
@given(value=json_values)
def test_any_context_is_hashed_as_the_reference_prints_its_projection(
    point: str, value: Any
) -> None:
    """§10.2"""
    raw = context(point, extensions={"ours": value})
    raw["target"] = value
    members, _ = MEMBERS[point]
    for name in ("content", "value"):
        for member in members:
            if isinstance(raw[member], dict) and name in raw[member]:
                raw[member][name] = value
    try:
        text = rfc8785.dumps(projected(raw))
    except rfc8785.IntegerDomainError:
        with pytest.raises(ContextError, match="decimal strings"):
            context_identity(raw)
    else:
        assert context_identity(raw) == "sha256:" + hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize("point", REWRITABLE)
def test_a_large_integer_is_refused_wherever_the_projection_reaches(point: str) -> None:
    """§10.2"""
    _, place = MEMBERS[point]
    for holder in ("target", place[0]):
        raw = context(point)
        at = raw[holder]
        while isinstance(at, list):
            at = at[0]
        if holder == "target":
            raw["target"] = {"n": 2**53}
        elif place[0] == "messages":
            at["n"] = 2**53
        else:
            for name in ("content", "value", "args"):
                if name in at:
                    at[name] = {"n": 2**53}
        with pytest.raises(ContextError) as caught:
            context_identity(raw)
        assert str(caught.value).startswith(f"/{holder}: integer outside ±(2^53-1): write ")


def test_a_large_sequence_is_refused() -> None:
    """§10.2: any position in the projection"""
    with pytest.raises(ContextError, match=r"^/sequence: integer outside"):
        context_identity(context(sequence=2**53))


@pytest.mark.parametrize("place", ["extensions", "unheard_of", "trace"])
def test_a_large_integer_outside_the_projection_is_nobodys_concern(place: str) -> None:
    """§10.2"""
    assert context_identity(context(**{place: {"n": 2**60}})) == context_identity(context())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 0}, {"n": -0.0}, True),
        ({"n": 1}, {"n": True}, False),
        ({"n": 1}, {"n": "1"}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": None}, {}, False),
    ],
)
def test_identities_are_equal_where_canonical_texts_are(one: Any, other: Any, same: bool) -> None:
    assert (context_identity(call(one)) == context_identity(call(other))) == same


def test_the_target_and_its_member_both_count() -> None:
    """§10.2"""
    plain, apart = context(), context(target={"n": 1})
    assert context_identity(plain) != context_identity(apart)


@pytest.mark.parametrize("raw", [None, [], "x", 5, {}, {"spec": 5}, {"spec": ["x"]}], ids=repr)
def test_what_is_no_context_has_no_identity(raw: Any) -> None:
    """§10.2: no identity over a guessed preimage; always the same error."""
    with pytest.raises(ContextError):
        context_identity(raw)


def test_an_identity_needs_no_particular_version_of_the_specification() -> None:
    assert context_identity(context(spec="agent-hooks/0.7")) != context_identity(context())


@pytest.mark.parametrize("name", ["a", "hmac-sha256-k1", "my_provider-2", "j", "jc", "x-jcs"])
def test_a_provider_has_a_name_of_its_own(name: str) -> None:
    """§10.1"""
    provider = IdentityProvider(name, lambda _: "id")
    assert provider_name(provider) == name
    assert check_provider(provider) is provider


@pytest.mark.parametrize(
    "name", ["", "A", "1a", "-a", "a b", "é", "a\n", "jcs", "jcs-sha256", "jcsx"], ids=ascii
)
def test_a_reserved_or_malformed_provider_name_is_refused(name: str) -> None:
    """§10.1"""
    with pytest.raises(ValueError, match="reserved"):
        IdentityProvider(name, lambda _: "id")


@pytest.mark.parametrize("provider", [None, "jcs-sha256"])
def test_the_standing_providers_are_themselves(provider: str | None) -> None:
    """§10.1"""
    assert check_provider(provider) is provider
    assert provider_name(provider) == provider


@pytest.mark.parametrize("provider", ["sha256", "", 5, print, True])
def test_anything_else_is_no_provider(provider: Any) -> None:
    """§10.1"""
    with pytest.raises(ValueError, match="identity_provider must be"):
        check_provider(provider)


def test_no_provider_no_identity() -> None:
    """§10.1"""
    assert identify(snapshot_of(call({"n": 2**60})), None) is None


def test_a_provider_gets_a_copy_of_its_own() -> None:
    """§7, §10.1"""
    snapshot = snapshot_of(context())

    def spoil(raw: Any) -> str:
        raw["target"].clear()
        return "id"

    assert identify(snapshot, IdentityProvider("spoiler", spoil)) == "id"
    assert snapshot.context == context()


@pytest.mark.parametrize("answer", [None, 5, b"id", ["id"], KeyError("canary")], ids=repr)
def test_a_provider_that_gives_no_string_is_refused_without_its_words(answer: Any) -> None:
    """§10.1, §14"""

    def answers(_: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(ContextError, match="identity provider") as caught:
        identify(snapshot_of(context()), IdentityProvider("faulty", answers))
    assert "canary" not in str(caught.value)


@given(st.data())
def test_no_optional_member_perturbs_an_identity(data: st.DataObject) -> None:
    """§10.2"""
    raw = context(data.draw(st.sampled_from(POINTS)))
    more = copy.deepcopy(raw)
    more[data.draw(st.sampled_from(["extensions", "tenant", "x"]))] = data.draw(json_values)
    more["agent"]["name"] = more["session"]["turn"] = data.draw(json_values)
    for member in ("tool_result", "model", "tool_call"):
        if member in more:
            more[member]["unheard_of"] = data.draw(json_values)
    assert context_identity(more) == context_identity(raw)
