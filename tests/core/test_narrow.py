"""What a plugin sees: exactly what it is granted, in a context that is valid still (§4, §14)."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_hooks.core.context import Bounds, Snapshot, check_context
from agent_hooks.core.envelope import check_envelope
from agent_hooks.core.grants import parse_grants
from agent_hooks.core.narrow import CLASSES, WITHHELD, holds_withheld, narrow, sees_whole
from agent_hooks.core.points import POINTS
from tests.core.support import MEMBERS, SPEC, context, validator
from tests.wire.strategies import contexts

# Every member of §4.5 and §4.6. Each "?" becomes a text of its own, see `full`.
OPTIONAL: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": "?", "name": "?"},
        {"role": "tool", "content": {"parts": ["?", "?"]}},
    ],
    "request_id": "?",
    "tools": [{"name": "book", "description": "?", "schema": {"title": "?"}}, {"name": "pay"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 8},
    "trace": {"trace_id": "?", "span_id": "?"},
    "tenant": {"id": "?", "name": "?", "plan": "?"},
    "actor": {"id": "?", "kind": "human"},
    "budgets": {"cost_usd": 0.5},
    "extensions": {"acs": {"labels": ["?", "?"]}, "other": "?"},
}
CALL = {"id": "c-1", "name": "book", "args": {"to": "?", "cc": ["?", {"name": "?"}]}}
CONDITIONAL: dict[str, dict[str, Any]] = {
    "agent_startup": {"agent_init": {"tools_registered": ["book"]}},
    "input": {"input": {"content": {"text": "?", "more": "?"}, "role": "user"}},
    "pre_model_call": {"model": {"id": "m-1", "vendor": "?", "params": {"stop": "?"}}},
    "post_model_call": {
        "model": {"id": "m-1", "vendor": "?", "params": {"stop": "?"}},
        "response": {
            "content": "?",
            "tool_calls": [{"id": "?", "name": "book", "args": {"to": "?"}}],
            "finish_reason": "stop",
        },
    },
    "pre_tool_call": {"tool_call": {**CALL, "content_hash": "sha256:" + "0" * 64}},
    "post_tool_call": {
        "tool_call": CALL,
        "tool_result": {"value": ["?", {"a": "?"}], "is_error": False, "duration_ms": 1.5},
    },
    "output": {"output": {"content": "?"}},
    "agent_shutdown": {"summary": {"reason": "error", "errors": 1}},
}


def filled(value: Any, at: tuple[Any, ...] = ()) -> Any:
    """Each "?" says where it stands, so that no two are alike."""
    if isinstance(value, dict):
        return {key: filled(item, (*at, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, (*at, index)) for index, item in enumerate(value)]
    return "<" + "/".join(map(str, at)) + ">" if value == "?" else value


def full(point: str) -> dict[str, Any]:
    """A context with all that §4 knows, its target the member's very object."""
    members = filled({**OPTIONAL, **CONDITIONAL[point]})
    target = members
    for step in MEMBERS[point][1]:
        target = target[step]
    agent = {"id": "a-1", "framework": "f", **filled({"name": "?", "version": "?"}, ("agent",))}
    session = {"id": "s-1", "started_at": "2026-03-04T05:06:07Z", "turn": 3}
    core = {"spec": SPEC, "interception_point": point, "timestamp": "2026-03-04T05:06:07.890Z"}
    return {**core, "sequence": 0, "agent": agent, "session": session, "target": target, **members}


def checked(raw: Any) -> Snapshot:
    return check_context(raw, Bounds(), SPEC)


def sees(*places: str) -> tuple[Any, ...]:
    parsed = parse_grants({"sees": list(places)}).sees
    assert parsed is not None
    return parsed


def view(raw: Any, *places: str) -> dict[str, Any]:
    return narrow(checked(raw), sees(*places)).context


def texts(value: Any) -> set[str]:
    """Those that say where they stand."""
    if isinstance(value, (dict, list)):
        return set().union(*map(texts, value.values() if isinstance(value, dict) else value))
    return {value} if isinstance(value, str) and value.startswith("<") else set()


def listed(narrowed: dict[str, Any]) -> list[str]:
    return list(narrowed["extensions"]["agent_hooks_host"]["redacted"])


def valid(raw: dict[str, Any], point: str) -> bool:
    return validator("agent-context.schema.json").is_valid(raw) and validator(
        f"agent-context/{point}.schema.json"
    ).is_valid(raw)


# -- what is seen --

GRANTS = (
    *CLASSES,
    "$target.to",
    "$target.cc[1].name",
    "$tool_call.args.to",
    "$tool_call.name",
    "$target.content",
    "$target[0].content",
    '$target["tool_calls"][0].args',
    "$messages[1].content.parts[1]",
    "$tools[0].schema",
    "$tenant.name",
    "$agent.version",
    "$extensions.acs.labels[0]",
)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("grant", [*GRANTS, None])
def test_what_is_granted_is_seen_and_nothing_else(point: str, grant: str | None) -> None:
    """PROTOCOL Least privilege, over each text of a full context."""
    raw = full(point)
    places = [] if grant is None else [grant]
    member = "/".join(POINTS[point].target)
    granted = [
        "/".join(map(str, steps)).replace("target", member) if steps[0] == "target" else
        "/".join(map(str, steps))
        for steps in sees(*places)
    ]  # fmt: skip
    expected = {
        text for text in texts(raw) if any((text[1:-1] + "/").startswith(g + "/") for g in granted)
    }
    assert texts(view(raw, *places)) == expected


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("grant", [*GRANTS, None])
def test_view_is_a_valid_context(point: str, grant: str | None) -> None:
    """§4, and the closed schema of each point."""
    raw = full(point)
    assert valid(raw, point)
    narrowed = narrow(checked(raw), sees(*([grant] if grant else [])))
    assert valid(narrowed.context, point)
    assert check_context(narrowed.context, Bounds(), SPEC).target_is_member
    assert narrowed.target_is_member


@pytest.mark.parametrize("point", POINTS)
@settings(max_examples=60)
@given(data=st.data())
def test_any_context_narrows_to_one_that_passes_the_same_checks(point: str, data: Any) -> None:
    """§4, §6.3: mistyped optional members and foreign ones included; and the context stays."""
    raw = data.draw(contexts(point))
    places = data.draw(st.lists(st.sampled_from(GRANTS), max_size=3))
    snapshot, kept = checked(raw), copy.deepcopy(raw)
    narrowed = narrow(snapshot, sees(*places))
    check_envelope(narrowed.context, SPEC)
    assert json.dumps(snapshot.context) == json.dumps({k: kept[k] for k in snapshot.context})
    assert not valid(raw, point) or valid(narrowed.context, point)
    if narrowed is not snapshot:
        assert listed(narrowed.context)


CORE = {
    "spec": SPEC,
    "agent": {"id": "agent-1", "framework": "hand-made"},
    "session": {"id": "s-1"},
    "timestamp": "2026-03-04T05:06:07.890Z",
    "sequence": 0,
}
# What is left where nothing is granted, and what is listed.
LEAST: dict[str, tuple[dict[str, Any], list[str]]] = {
    "agent_startup": (
        {"agent_init": {"tools_registered": ["book"], "n": WITHHELD}},
        ["$target.n"],
    ),
    "input": (
        {"input": {"content": WITHHELD, "role": "user", "n": WITHHELD}},
        ["$target.content", "$target.n"],
    ),
    "pre_model_call": (
        {
            "model": {"id": "m-1"},
            "messages": [{"role": "user", "content": WITHHELD, "n": WITHHELD}],
        },
        ["$target[0].content", "$target[0].n"],
    ),
    "post_model_call": (
        {
            "model": {"id": "m-1"},
            "response": {
                "content": WITHHELD,
                "tool_calls": [{"name": "book", "args": WITHHELD}],
                "finish_reason": "stop",
                "n": WITHHELD,
            },
        },
        ["$target.content", "$target.tool_calls[0].id", "$target.tool_calls[0].args", "$target.n"],
    ),
    "pre_tool_call": (
        {"tool_call": {"id": "call-1", "name": "book", "args": WITHHELD}},
        ["$target"],
    ),
    "post_tool_call": (
        {
            "tool_call": {"id": "call-1", "name": "book", "args": WITHHELD},
            "tool_result": {"value": WITHHELD, "is_error": False},
        },
        ["$tool_call.args", "$target"],
    ),
    "output": (
        {"output": {"content": WITHHELD, "n": WITHHELD}},
        ["$target.content", "$target.n"],
    ),
    "agent_shutdown": ({"summary": {"reason": "completed", "n": WITHHELD}}, ["$target.n"]),
}


@pytest.mark.parametrize("point", POINTS)
def test_least_that_a_plugin_sees_tells_it_what_it_judges(point: str) -> None:
    """§4.1, §4.2: the core, and the point's own names and flags."""
    members, paths = LEAST[point]
    narrowed = view(context(point))
    target: Any = narrowed
    for step in MEMBERS[point][1]:
        target = target[step]
    assert narrowed == {
        **CORE,
        "interception_point": point,
        **members,
        "target": target,
        "extensions": {"agent_hooks_host": {"redacted": paths}},
    }


def test_optional_members_are_left_out_or_stood_for_as_their_type_allows() -> None:
    """§4.5: an object stands only where an object may."""
    raw = full("output")
    narrowed = view(raw)
    assert narrowed.keys() == {
        *CORE, "interception_point", "target", "output", "extensions",
        "usage", "trace", "tenant", "actor", "budgets",
    }  # fmt: skip
    assert narrowed["tenant"] == WITHHELD
    assert narrowed["agent"] == {"id": "a-1", "framework": "f"}
    assert {"$messages", "$tools", "$request_id", "$tenant", "$agent.name"} <= {*listed(narrowed)}
    assert {"$session.started_at", "$session.turn", "$extensions.other"} <= {*listed(narrowed)}
    narrowed = view(raw, "$tenant.name", "$tools[0].description")
    assert narrowed["tenant"] == {"name": "<tenant/name>", "plan": WITHHELD}
    assert narrowed["tools"] == [
        {"name": "book", "description": "<tools/0/description>", "schema": WITHHELD},
        {"name": "pay"},
    ]


# -- the target and its member --


@pytest.mark.parametrize(
    "grant", ["target", "$tool_call.args", "tool_call"], ids=["target", "member", "holder"]
)
def test_target_and_the_member_it_mirrors_are_one_place(grant: str) -> None:
    """§4.3: neither shows what the other withholds."""
    narrowed = view(full("pre_tool_call"), grant)
    assert (
        narrowed["target"] == narrowed["tool_call"]["args"] == filled(CALL, ("tool_call",))["args"]
    )
    assert sees_whole(sees(grant), POINTS["pre_tool_call"], ("to",))


def test_target_that_differs_from_its_member_is_narrowed_like_it() -> None:
    """§4.3: what a host put there instead is no way around the grants."""
    raw = context(tool_call={"id": "c", "name": "t", "args": {"to": 1, "cc": 2}})
    raw["target"] = {"to": 3, "cc": 4}
    narrowed = narrow(checked(raw), sees("$target.to"))
    assert narrowed.context["target"] == {"to": 3, "cc": WITHHELD}
    assert narrowed.context["tool_call"]["args"] == {"to": 1, "cc": WITHHELD}
    assert listed(narrowed.context) == ["$tool_call.args.cc", "$target.cc"]
    assert not narrowed.target_is_member


# -- places --


@pytest.mark.parametrize(
    ("args", "grants", "seen"),
    [
        ({"a": {"b": 1, "c": 2}}, ["$target.a.b"], {"a": {"b": 1, "c": WITHHELD}}),
        ({"a": [1, 2, 3]}, ["$target.a[1]"], {"a": [WITHHELD, 2, WITHHELD]}),
        ({"a": 1, "b": 2}, ["$target.b", "$target.a"], None),
        ({"a": {"b": 1}, "c": 2}, ["$target.a", "$target.a.b"], {"a": {"b": 1}, "c": WITHHELD}),
        ({"a": {"b": 1}, "c": 2}, ["$target.a.b", "$target.a"], {"a": {"b": 1}, "c": WITHHELD}),
        ({"a": "text"}, ["$target.a.b"], {"a": WITHHELD}),
        ({"a": [1]}, ["$target.a[7]"], {"a": WITHHELD}),
        ({"a": [1]}, ["$target.a.b"], {"a": WITHHELD}),
        ({"a": {"0": 1}}, ["$target.a[0]"], {"a": WITHHELD}),
        ({"a": 1}, ["$target.b"], WITHHELD),
        ({"a": None, "b": None}, ["$target.a"], {"a": None, "b": WITHHELD}),
    ],
    ids=repr,
)
def test_container_is_seen_as_far_as_a_granted_place_is_in_it(
    args: Any, grants: list[str], seen: Any
) -> None:
    """§5.2: a place that is not there grants nothing, and shows nothing of what is."""
    raw = context(tool_call={"id": "c", "name": "t", "args": args})
    assert view(raw, *grants)["target"] == (args if seen is None else seen)


def test_paths_are_those_of_5_2_and_clear_where_it_has_none() -> None:
    """§14: names outside the grammar are JSON text."""
    args = {"a-b": 1, "ä b": 2, 'q"': 3, "": 4, "seen": [5]}
    raw = context(tool_call={"id": "c", "name": "t", "args": args})
    assert listed(view(raw, "$target.seen")) == [
        "$target.a-b", '$target["ä b"]', '$target["q\\""]', '$target[""]',
    ]  # fmt: skip


@pytest.mark.parametrize("role", [{"s": "canary"}, ["canary"], None], ids=repr)
def test_name_that_is_none_is_not_seen_for_its_place(role: Any) -> None:
    """Where a host put something else, which §4.2 checks at the point's own members only."""
    raw = context(messages=[{"role": role, "content": 1}, "canary", ["canary"]])
    narrowed = view(raw, "$messages[0].content")
    assert narrowed["messages"] == [{"role": WITHHELD, "content": 1}, WITHHELD, WITHHELD]


# -- the listing --


def test_nothing_withheld_is_nothing_copied_and_nothing_listed() -> None:
    """PROTOCOL: the snapshot itself, its texts and its encoding."""
    snapshot = checked(context())
    assert narrow(snapshot, sees(*CLASSES)) is snapshot
    assert narrow(snapshot, sees("target")) is snapshot


def test_listing_goes_on_where_the_host_had_begun_it() -> None:
    """§14: what the host redacted before is redacted still."""
    own = {"agent_hooks_host": {"redacted": ["$target.card"], "int64_paths": ["$target.n"]}}
    raw = context(extensions=own)
    assert view(raw, "extensions")["extensions"]["agent_hooks_host"] == {
        "redacted": ["$target.card", "$target"],
        "int64_paths": ["$target.n"],
    }
    assert view(raw)["extensions"]["agent_hooks_host"] == {
        "redacted": ["$target", "$extensions.agent_hooks_host"]
    }


@pytest.mark.parametrize(
    "own", [{"redacted": "none"}, {"redacted": None}, "text", ["$target"], None], ids=repr
)
def test_listing_of_another_shape_gives_way(own: Any) -> None:
    """A context cannot hide what is withheld from the plugin."""
    raw = context(extensions={"agent_hooks_host": own, "acs": 1})
    assert listed(view(raw, "extensions")) == ["$target"]
    assert checked(raw).context["extensions"]["agent_hooks_host"] == own


@pytest.mark.parametrize("extensions", [None, "text", [1], 7], ids=repr)
def test_extensions_that_are_no_object_cannot_hold_the_listing(extensions: Any) -> None:
    """§4.6: left out, and listed."""
    raw = context(extensions=extensions)
    for grant in ([], ["extensions"]):
        narrowed = view(raw, *grant)
        assert narrowed["extensions"].keys() == {"agent_hooks_host"}
        assert listed(narrowed) == ["$target", "$extensions"]
    assert view(raw, "target", "extensions")["extensions"] == extensions


def test_what_looks_withheld_in_the_context_is_content_like_any_other() -> None:
    """Seen where granted, and listed where not."""
    raw = context(tool_call={"id": "c", "name": "t", "args": {"a": WITHHELD, "b": WITHHELD}})
    narrowed = view(raw, "$target.a")
    assert narrowed["target"] == {"a": WITHHELD, "b": WITHHELD}
    assert listed(narrowed) == ["$target.b"]
    raw = context(extensions={"agent_hooks_host": WITHHELD})
    assert view(raw, "extensions")["extensions"]["agent_hooks_host"] == {
        **WITHHELD,
        "redacted": ["$target"],
    }


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        (WITHHELD, True),
        ({"a": [0, {"b": {"$withheld": "not granted"}}]}, True),
        ({"$withheld": "not granted", "more": 1}, False),
        ({"$withheld": "granted"}, False),
        ("$withheld", False),
        ([[], {}], False),
        (None, False),
    ],
    ids=repr,
)
def test_what_looks_withheld_is_found_at_any_depth(value: Any, holds: bool) -> None:
    """For a transform's value; see test_grants."""
    assert holds_withheld(value) == holds


@pytest.mark.parametrize(
    ("grant", "steps", "whole"),
    [
        ("target", (), True),
        ("target", ("anything", 7), True),
        ("$target.a", (), False),
        ("$target.a", ("a",), True),
        ("$target.a", ("a", "b"), True),
        ("$target.a", ("b",), False),
        ("$target.a.b", ("a",), False),
        ("$target[0]", ("0",), False),
        ("session", ("a",), False),
    ],
)
def test_place_is_seen_whole_at_and_below_a_grant(grant: str, steps: Any, whole: bool) -> None:
    """Whatever the target is."""
    assert sees_whole(sees(grant), POINTS["output"], steps) == whole
