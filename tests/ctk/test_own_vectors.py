"""What is true of our own vectors as data."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from agent_hooks.core.reasons import HostError
from tests.ctk.support import OWN, Vector, own, upstream
from tests.shared import shared, shared_json


@cache
def validator() -> Draft202012Validator:
    registry: Registry[Any] = Registry()
    for path in sorted(shared("schema").rglob("*.json")):
        schema = shared_json("schema", *path.relative_to(shared("schema")).parts)
        if "$id" in schema:
            registry = registry.with_resource(schema["$id"], Resource.from_contents(schema))
    return Draft202012Validator(shared_json("ctk", "vectors.schema.json"), registry=registry)


@pytest.mark.parametrize("vector", own().values(), ids=list(own()))
def test_vector_is_valid_against_the_shared_schema(vector: Vector) -> None:
    assert [error.message for error in validator().iter_errors(vector)] == []


def test_ids_are_of_our_range_and_lead_the_file_names() -> None:
    assert len(own()) == len(list(OWN.glob("*.json"))) >= 40
    for path, name in zip(sorted(OWN.glob("*.json")), own(), strict=True):
        assert re.match(r"AH-CTK-5[0-9]{2}(-|$)", name)
        assert path.stem.startswith(name)
    assert not own().keys() & upstream().keys()


def test_host_errors_at_a_tool_leave_room_for_either_posture() -> None:
    """§6.2 permits a host to end the turn there: no vector may demand that it goes on."""
    for name, vector in own().items():
        if vector.get("mode") != "evaluate_only" and _host_denies_at_a_tool(vector["expect"]):
            assert "run_outcome_by_posture" in vector["expect"], name
            assert "final_output" not in vector["expect"], name


def _host_denies_at_a_tool(expect: Vector) -> bool:
    return any(
        record["interception_point"] in ("pre_tool_call", "post_tool_call")
        and str(record["assert"].get("verdict.reason")).startswith("host_error:")
        for record in expect.get("records", ())
    )


def test_every_reason_a_vector_can_reach_is_expected_by_one() -> None:
    expected = {
        value
        for vector in own().values()
        for record in vector["expect"].get("records", ())
        for value in record["assert"].values()
        if isinstance(value, str) and value.startswith("host_error:")
    }
    beyond_vectors = {
        HostError.INTERCEPTOR_TIMEOUT,  # no vector is about time
        HostError.ADAPTER_UNSUPPORTED,  # every point is emitted
        HostError.STREAMING_UNSUPPORTED,  # the reference host buffers
    }
    assert expected == {reason.value for reason in HostError if reason not in beyond_vectors}
