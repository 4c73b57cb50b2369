"""What a plugin's manifest lets it return, and how that is written (PROTOCOL Least privilege)."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from agent_hooks.core.context import Bounds, Snapshot, check_context
from agent_hooks.core.grants import EVERYTHING, Grants, GrantsError, Right, parse_grants
from agent_hooks.core.narrow import WITHHELD
from agent_hooks.core.verdict import ALLOW, Decision, Evidence, Transform, Verdict, VerdictError
from tests.core.support import POINTS, REWRITABLE, SPEC, call, context
from tests.shared import ROOT

DENY, ESCALATE = Verdict.deny(reason="r"), Verdict.escalate(reason="r")
REWRITE = Verdict.rewrite("$target", {})
OF = {Right.DENY: DENY, Right.APPROVAL: ESCALATE, Right.TRANSFORM: REWRITE}


def checked(raw: Any) -> Snapshot:
    return check_context(raw, Bounds(), SPEC)


def grants(**table: list[str]) -> Grants:
    return parse_grants(table)


def refusal(given: Grants, verdict: Verdict, raw: Any = None) -> str | None:
    """Why a verdict is beyond the grants; None where it is not."""
    try:
        assert given.check(verdict, checked(raw or call({"a": 1, "b": [2, 3]}))) is verdict
    except VerdictError as error:
        return str(error)
    return None


# -- may --


@pytest.mark.parametrize("may", [[], *[[right] for right in Right], list(Right)], ids=repr)
def test_verdict_is_within_rights_exactly_where_may_lists_it(may: list[Right]) -> None:
    """§5.1: the three verdicts beside allow, each by itself; none implies another."""
    given = grants(may=[right.value for right in may])
    for right, verdict in OF.items():
        refused = refusal(given, verdict)
        assert (refused is None) == (right in may)
        assert refused is None or right.value in refused


@pytest.mark.parametrize(
    "verdict",
    [
        ALLOW,
        Verdict.warn(reason="w", message="m"),
        Verdict(Decision.ALLOW, "r", "m", evidence=Evidence("a"), result_labels=("l",)),
    ],
    ids=["allow", "warning", "metadata"],
)
def test_allow_is_always_permitted(verdict: Verdict) -> None:
    """PROTOCOL: with whatever it carries."""
    assert refusal(grants(sees=[], may=[]), verdict) is None


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(Decision.TRANSFORM),
        Verdict(Decision.ALLOW, transform=Transform("$target.b", 1)),
        Verdict(Decision.TRANSFORM, transform=Transform("$context.a", 1)),
        Verdict(Decision.TRANSFORM, transform=Transform("$target..a", 1)),
    ],
    ids=["no_transform", "allow_with_transform", "foreign_root", "bad_syntax"],
)
def test_what_section_5_refuses_is_left_to_its_gate(verdict: Verdict) -> None:
    """§5, §11: the reason is the one that any interceptor's verdict would get."""
    narrow = grants(sees=["$target.a"], transform_paths=["$target.a"])
    assert refusal(narrow, verdict) is None
    if verdict.decision is Decision.TRANSFORM:
        assert refusal(grants(may=[]), verdict) is not None


# -- where a transform may write --


@pytest.mark.parametrize(
    ("prefixes", "text", "within"),
    [
        (["$target"], "$target", True),
        (["$target"], "$target.b[0]", True),
        (["$policy_target.a"], "$target.a", True),
        (["$target.a"], "$policy_target.a", True),
        (["$target.a"], '$target["a"]', True),
        (["$target.a"], "$target.a.x", True),
        (["$target.a"], "$target", False),
        (["$target.a"], "$target.ab", False),
        (["$target.a"], "$target.b", False),
        (["$target.b[0]"], "$target.b[0]", True),
        (["$target.b[0]"], "$target.b[1]", False),
        (["$target.b[0]"], "$target.b", False),
        (["$target.a", "$target.b[1]"], "$target.b[1]", True),
        (["$target.nowhere"], "$target.nowhere", True),
    ],
)
def test_transform_writes_at_or_below_one_of_its_paths(
    prefixes: list[str], text: str, within: bool
) -> None:
    """§5.2: compared by steps, not by letters; whether the place is there is the core's."""
    refused = refusal(grants(transform_paths=prefixes), Verdict.rewrite(text, 1))
    assert (refused is None) == within
    assert refused is None or "transform_paths" in refused


@pytest.mark.parametrize(
    ("seen", "text", "within"),
    [
        (["$target.a"], "$target.a", True),
        (["$target.a"], "$target.a.deeper", True),
        (["$tool_call.args.a"], "$target.a", True),
        (["tool_call"], "$target.b[0]", True),
        (["$target.a"], "$target", False),  # over
        (["$target.b[0]"], "$target.b", False),  # over
        (["$target.a"], "$target.b", False),  # the very place
        (["$target.a"], "$target.b[0]", False),  # through
        (["$target.a"], "$target.nowhere", False),  # whether it is there is withheld
        (["$target.a"], "$target.b[99]", False),
        (["session"], "$target", False),
        (["$tool_call.name"], "$target.a", False),
        ([], "$target.a", False),
    ],
)
def test_transform_writes_only_where_all_is_seen(seen: list[str], text: str, within: bool) -> None:
    """PROTOCOL: not over a withheld value, not through it, and no answer says what is there."""
    refused = refusal(grants(sees=seen), Verdict.rewrite(text, 1))
    assert (refused is None) == within
    assert refused is None or "withheld" in refused


@pytest.mark.parametrize("point", REWRITABLE)
def test_whole_target_is_written_where_it_is_seen_whole(point: str) -> None:
    """At each point that permits a transform (§3)."""
    rewrite = Verdict.rewrite("$target", 1)
    assert refusal(grants(sees=["target"]), rewrite, context(point)) is None
    assert refusal(grants(sees=["session"]), rewrite, context(point))


@pytest.mark.parametrize("value", [WITHHELD, [{"x": WITHHELD}], {"a": 1, "b": WITHHELD}], ids=repr)
def test_transform_does_not_write_what_stands_for_a_withheld_value(value: Any) -> None:
    """A tool must not be called with it; nor has it been read, whatever it was."""
    verdict = Verdict.rewrite("$target.a", value)
    assert "transform.value" in (refusal(grants(sees=["$target.a"]), verdict) or "")
    assert refusal(grants(), verdict) is None
    assert refusal(grants(sees=["$target.a"]), Verdict.rewrite("$target.a.b", value)) is None


def test_content_that_looks_withheld_may_be_written_back() -> None:
    """A context's own look-alike confuses nothing."""
    raw = call({"a": {"was": WITHHELD}, "b": 1})
    given = grants(sees=["$target.a"])
    assert refusal(given, Verdict.rewrite("$target.a", [WITHHELD]), raw) is None
    assert "withheld" in (refusal(given, Verdict.rewrite("$target.b", 1), raw) or "")


def test_refusals_hold_nothing_of_the_verdict() -> None:
    """§14: they go to a log."""
    given = grants(sees=["$target.a"], transform_paths=["$target.a", "$target.s3cret"])
    for text, value in (("$target.s3cret", 1), ("$target.x.s3cret", 1), ("$target.a", WITHHELD)):
        assert "s3cret" not in (refusal(given, Verdict.rewrite(text, value)) or "s3cret")
    assert "r3ason" not in (refusal(grants(may=[]), Verdict.deny(reason="r3ason")) or "r3ason")


# -- the view --


@pytest.mark.parametrize("point", POINTS)
def test_view_is_the_snapshot_itself_where_all_is_seen(point: str) -> None:
    """PROTOCOL: narrowing costs nothing where nothing is narrowed."""
    snapshot = checked(context(point))
    assert EVERYTHING.view(snapshot) is snapshot
    assert grants(may=["deny"]).view(snapshot) is snapshot
    assert grants(sees=[]).view(snapshot) is not snapshot


def test_view_is_made_once_for_equal_grants_and_once_for_each_context() -> None:
    """PROTOCOL: for all of an emission's plugins that have them, and anew after a fold."""
    snapshot = checked(context())
    one = grants(sees=["$target.n", "session"]).view(snapshot)
    assert grants(sees=["session", "$target.n"], may=["deny"]).view(snapshot) is one
    assert grants(sees=["session"]).view(snapshot) is not one
    folded = snapshot.with_target({"n": 1}, Bounds())
    assert grants(sees=["$target.n", "session"]).view(folded).context["target"] == {"n": 1}
    assert grants(sees=["$target.n", "session"]).view(snapshot) is one


# -- how they are written --


def test_grants_that_narrow_nothing_are_everything() -> None:
    """An empty table, or all that there is."""
    assert parse_grants({}) is EVERYTHING
    all_rights = ["approval", "transform", "deny"]
    assert parse_grants({"may": all_rights, "transform_paths": ["$target"]}) is EVERYTHING


def test_equal_grants_are_one_however_they_are_written() -> None:
    """So that an emission is narrowed once for all plugins that have them."""
    one = grants(sees=["target", "$tool_call.name", "session", "target"])
    two = grants(sees=["$session", '$tool_call["name"]', "$target"])
    assert one == two
    assert hash(one) == hash(two)


_NAMES = "expected one of target, agent, session"
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown_key": ({"see": ["target"]}, "see: unknown; known are sees, may, transform_paths"),
    "sees_text": ({"sees": "target"}, "sees: expected an array of strings"),
    "sees_number": ({"sees": [5]}, "sees: expected an array of strings"),
    "sees_unknown": ({"sees": ["target", "s3cret"]}, f"sees[1]: {_NAMES}"),
    "sees_unknown_root": ({"sees": ["$s3cret.a"]}, f"sees[0]: {_NAMES}"),
    "sees_alias": ({"sees": ["$policy_target"]}, f"sees[0]: {_NAMES}"),
    "sees_core": ({"sees": ["timestamp"]}, f"sees[0]: {_NAMES}"),
    "sees_no_root": ({"sees": ["target.s3cret"]}, f"sees[0]: {_NAMES}"),
    "sees_only_a_root": ({"sees": ["$"]}, f"sees[0]: {_NAMES}"),
    "sees_empty": ({"sees": [""]}, f"sees[0]: {_NAMES}"),
    "sees_syntax": ({"sees": ["$target[s3cret]"]}, f"sees[0]: {_NAMES}"),
    "sees_newline": ({"sees": ["$target\n"]}, f"sees[0]: {_NAMES}"),
    "may_unknown": ({"may": ["deny", "s3cret"]}, "may[1]: expected one of deny, transform"),
    "may_allow": ({"may": ["allow"]}, "may[0]: expected one of"),
    "may_text": ({"may": "deny"}, "may: expected an array of strings"),
    "paths_root": (
        {"transform_paths": ["$s3cret"]},
        "transform_paths[0]: is not rooted at $target",
    ),
    "paths_syntax": ({"transform_paths": ["$target", "$target[x]"]}, "transform_paths[1]: has bad"),
    "paths_empty": ({"transform_paths": []}, "leave transform out of may instead"),
    "paths_of_no_use": (
        {"may": ["deny"], "transform_paths": ["$target"]},
        "transform_paths: of no",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_refusal_names_the_key_and_the_remedy(fault: str) -> None:
    """And never the value."""
    table, named = FAULTS[fault]
    with pytest.raises(GrantsError) as raised:
        parse_grants(table)
    assert str(raised.value).startswith(named) or named in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_example_of_the_documentation_is_read() -> None:
    """docs/plugins.md."""
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    found = re.search(r"```toml\n(\[grants\]\n.*?)```", page, re.DOTALL)
    assert found is not None
    read = parse_grants(tomllib.loads(found[1])["grants"])
    assert read.may == {Right.DENY, Right.TRANSFORM}
    assert read.sees is not None
    assert len(read.sees) == 3


def test_equal_grants_share_one_view_of_an_emission() -> None:
    """Narrowed and encoded once, however many plugins; a snapshot does not hold itself."""
    whole = checked(call({"a": 1}))
    first = grants(sees=["session"]).view(whole)
    assert first is not whole
    assert grants(sees=["session"]).view(whole) is first
    everything = grants(sees=["target", "tool_call", "agent", "session"])
    assert everything.view(whole) is whole
    assert whole not in whole.views.values()
