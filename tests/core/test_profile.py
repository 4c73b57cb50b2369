"""Composition profiles and their knobs (§7.2)."""

from __future__ import annotations

from typing import Any

import pytest

from agent_hooks.core.effects import Rules
from agent_hooks.core.profile import (
    CompositionConfig,
    CompositionProfile,
    OnApproval,
    SynthesisPolicy,
)
from agent_hooks.core.reasons import HostError
from tests.shared import shared_json

FIRST_DENY, RUN_ALL = "sequential/first_deny", "sequential/run_all"
STRICTEST, UNANIMOUS = "parallel/strictest", "parallel/unanimous"
CONSULTED = {
    FIRST_DENY: {"on_approval": "stop"},
    RUN_ALL: {},
    STRICTEST: {"on_transform_conflict": "deny"},
    UNANIMOUS: {"on_disagreement": "deny"},
}
VALUES = {
    "on_approval": ("stop", "resume"),
    "on_disagreement": ("deny", "approval"),
    "on_transform_conflict": ("deny", "approval"),
}
EVERY_KNOB = {name: values[1] for name, values in VALUES.items()}


@pytest.mark.parametrize(("profile", "defaults"), CONSULTED.items())
def test_an_unset_knob_has_its_fail_closed_default_on_the_record(
    profile: str, defaults: dict[str, str]
) -> None:
    """§7.2, §10.3"""
    resolved = CompositionConfig.from_wire({"profile": profile}).resolved()
    assert resolved.to_wire() == {"profile": profile, **defaults}


@pytest.mark.parametrize(("profile", "defaults"), CONSULTED.items())
def test_a_knob_that_the_profile_never_consults_is_absent_from_the_record(
    profile: str, defaults: dict[str, str]
) -> None:
    """§10.3: on_transform_conflict is for parallel/strictest alone, as vector 121 says too"""
    resolved = CompositionConfig.from_wire({"profile": profile, **EVERY_KNOB}).resolved()
    kept = {name: EVERY_KNOB[name] for name in defaults}
    assert resolved.to_wire() == {"profile": profile, **kept}
    assert resolved.resolved() == resolved


@pytest.mark.parametrize("profile", CONSULTED)
@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in VALUES.items() for v in vs])
def test_what_was_set_comes_back(profile: str, name: str, value: str) -> None:
    wire = {"profile": profile, name: value}
    assert CompositionConfig.from_wire(wire).to_wire() == wire


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        ({}, "/profile: missing"),
        ([], "/profile: missing"),
        ("parallel/strictest", "/profile: missing"),
        ({"profile": "parallel/quorum"}, "/profile: expected one of sequential/first_deny"),
        ({"profile": None}, "/profile: expected one of"),
        ({"profile": [RUN_ALL]}, "/profile: expected one of"),
        ({"profile": RUN_ALL, "on_approval": "go"}, "/on_approval: expected one of stop, resume"),
        ({"profile": RUN_ALL, "on_disagreement": None}, "/on_disagreement: expected one of deny"),
        ({"profile": RUN_ALL, "quorum": 2}, "composition: members must be among profile"),
    ],
    ids=repr,
)
def test_anything_outside_the_closed_sets_is_refused(wire: Any, words: str) -> None:
    """§7.2"""
    with pytest.raises(ValueError, match=words) as caught:
        CompositionConfig.from_wire(wire)
    assert "quorum" not in str(caught.value)


def test_the_default_is_first_deny_that_stops() -> None:
    """§7.2"""
    stops = {"profile": FIRST_DENY, "on_approval": "stop"}
    for config in (CompositionConfig.default(), CompositionConfig.from_wire(None)):
        assert config.resolved().to_wire() == stops
    assert Rules().composition.to_wire() == stops


@pytest.mark.parametrize(
    ("config", "wire"),
    [
        (CompositionConfig.first_deny(), {"profile": FIRST_DENY, "on_approval": "stop"}),
        (
            CompositionConfig.first_deny(OnApproval.RESUME),
            {"profile": FIRST_DENY, "on_approval": "resume"},
        ),
        (CompositionConfig.run_all(), {"profile": RUN_ALL}),
        (CompositionConfig.strictest(), {"profile": STRICTEST, "on_transform_conflict": "deny"}),
        (
            CompositionConfig.strictest(SynthesisPolicy.APPROVAL),
            {"profile": STRICTEST, "on_transform_conflict": "approval"},
        ),
        (CompositionConfig.unanimous(), {"profile": UNANIMOUS, "on_disagreement": "deny"}),
        (
            CompositionConfig.unanimous(SynthesisPolicy.APPROVAL),
            {"profile": UNANIMOUS, "on_disagreement": "approval"},
        ),
    ],
)
def test_the_constructors_are_the_profiles_of_the_specification(
    config: CompositionConfig, wire: dict[str, str]
) -> None:
    """§7.2"""
    assert config.resolved().to_wire() == wire


def test_the_parallel_profiles_are_those_that_say_so() -> None:
    """§7.5"""
    assert {profile.value for profile in CompositionProfile if profile.is_parallel} == {
        STRICTEST,
        UNANIMOUS,
    }


def test_the_reserved_reasons_are_the_shared_ones() -> None:
    """§11"""
    document = shared_json("schema", "reserved-reasons.json")
    listed = {word for word in _strings(document) if word.startswith("host_error:")}
    assert {error.value for error in HostError} == listed - {"host_error:", "host_error:*"}


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [word for pair in value.items() for item in pair for word in _strings(item)]
    if isinstance(value, list):
        return [word for item in value for word in _strings(item)]
    return [value] if isinstance(value, str) else []
