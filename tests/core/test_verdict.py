"""The verdict and its gate (§5)."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_hooks.core.canonical import canonical_bytes
from agent_hooks.core.reasons import HostError
from agent_hooks.core.verdict import (
    ALLOW,
    MAX_EVIDENCE_BYTES,
    Decision,
    Evidence,
    Transform,
    Verdict,
    VerdictError,
    Warning,
    check_verdict,
)
from tests.core.support import validator
from tests.core.test_context import mutate
from tests.core.test_values import CYCLE, json_values, nested, text, typed

WHOLE: dict[str, Any] = {
    "decision": "deny",
    "reason": "too-dear",
    "message": "Too dear.",
    "warnings": [{"reason": "r", "message": "m"}, {}],
    "approval": {"queue": "night", "limit": 2.5},
    "evidence": {"artefact": "sha256:ab", "verification_pointers": {"log": "https://l"}},
    "result_labels": ["costly"],
}
REWRITE: dict[str, Any] = {
    "decision": "transform",
    "transform": {"path": "$target.a", "value": {"b": [1, 1.0, None]}},
}
WARNED = {"decision": "allow", "warnings": [{"reason": "r"}]}
BASES: tuple[dict[str, Any], ...] = (WHOLE, REWRITE, {"decision": "allow"}, WARNED)


def evidence_of(size: int) -> dict[str, str]:
    """Evidence whose canonical text has `size` bytes."""
    return {"artefact": "é" * ((size - 15) // 2) + "x" * ((size - 15) % 2)}


@pytest.mark.parametrize("wire", BASES, ids=lambda wire: wire["decision"])
def test_a_valid_verdict_comes_back_as_it_was(wire: Any) -> None:
    """§5"""
    verdict = check_verdict(copy.deepcopy(wire))
    assert typed(verdict.to_wire()) == typed({name: wire[name] for name in verdict.to_wire()})
    assert verdict.to_wire() == wire
    assert check_verdict(verdict) == verdict


def test_the_shared_schema_and_the_gate_agree() -> None:
    """verdict.schema.json: random breaches of valid verdicts. A path is judged later (§5.2)."""
    random = Random("verdicts")
    schema = validator("verdict.schema.json")
    seen = {True: 0, False: 0}
    for _ in range(4_000):
        wire = copy.deepcopy(random.choice(BASES))
        for _ in range(random.choice([1, 1, 2])):
            mutate(wire, random)
        rooted = copy.deepcopy(wire)
        if isinstance(wire.get("transform"), dict) and type(wire["transform"].get("path")) is str:
            rooted["transform"]["path"] = "$target"
        valid = schema.is_valid(rooted)
        seen[valid] += 1
        try:
            check_verdict(wire)
            accepted = True
        except VerdictError:
            accepted = False
        assert accepted == valid, json.dumps(wire)
    assert min(seen.values()) > 200


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"decision": None}, "decision: expected allow, deny or transform"),
        ({"decision": "ALLOW"}, "decision: expected"),
        ({"decision": ["allow"]}, "decision: expected"),
        ({"reason": 5}, "reason: expected a string"),
        ({"reason": "host_error:timeout"}, "reason: begins with host_error:"),
        ({"reason": "host_error:"}, "reason: begins with host_error:"),
        ({"message": ["x"]}, "message: expected a string"),
        ({"message": "\ud800"}, "message: a string holds a lone surrogate"),
        ({"warnings": {"reason": "x"}}, "warnings: expected an array"),
        ({"warnings": "x"}, "warnings: expected an array"),
        ({"warnings": ["x"]}, "warnings[]: expected an object"),
        ({"warnings": [None]}, "warnings[]: expected an object"),
        ({"warnings": [{"reason": 1}]}, "warnings[].reason: expected a string"),
        ({"warnings": [{"reason": "host_error:x"}]}, "warnings[].reason: begins with host_error:"),
        ({"warnings": [{"level": "x"}]}, "warnings[]: has a member that is not one of"),
        ({"result_labels": "x"}, "result_labels: expected an array"),
        ({"result_labels": [None]}, "result_labels[]: expected a string"),
        ({"result_labels": [5]}, "result_labels[]: expected a string"),
        ({"result_labels": ["\udfff"]}, "result_labels[]: a string holds a lone surrogate"),
        ({"approval": {}}, "approval: only on a deny"),
        ({"approval": None}, "approval: only on a deny"),
        ({"decision": "deny", "approval": None}, "approval: expected an object"),
        ({"decision": "deny", "approval": []}, "approval: expected an object"),
        ({"decision": "deny", "approval": {"x": {1}}}, "approval: not a JSON value"),
        ({"transform": None}, "transform: present exactly when"),
        ({"transform": {"path": "$target"}}, "transform: present exactly when"),
        ({"decision": "transform"}, "transform: present exactly when"),
        ({"decision": "transform", "transform": None}, "transform: expected an object"),
        ({"decision": "transform", "transform": {}}, "transform.path: expected a string"),
        ({"decision": "transform", "transform": {"path": 5}}, "transform.path: expected a string"),
        ({"evidence": None}, "evidence: expected an object"),
        ({"evidence": []}, "evidence: expected an object"),
        ({"evidence": {"uri": "x"}}, "evidence: has a member that is not one of"),
        ({"evidence": {"artefact": 5}}, "evidence.artefact: expected a string"),
        ({"evidence": {"verification_pointers": None}}, "evidence.verification_pointers: expected"),
        ({"evidence": {"verification_pointers": {"k": 1}}}, "evidence.verification_pointers: exp"),
        ({"evidence": {"artefact": "\ud800"}}, "evidence.artefact: a string holds a lone surr"),
        (
            {"evidence": {"verification_pointers": {"\ud800": "x"}}},
            "evidence: a string holds a lone surrogate",
        ),
        ({"severity": 5}, "verdict: has a member that is not one of decision, reason"),
        ({5: 5}, "verdict: has a member that is not one of"),
    ],
    ids=repr,
)
def test_each_breach_is_refused_and_named(changed: Any, words: str) -> None:
    """§5; null is no transform, no approval and no evidence"""
    with pytest.raises(VerdictError) as caught:
        check_verdict({"decision": "allow", **changed})
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    "answer", [None, [], "allow", 5, True, object(), [{"decision": "allow"}], b"{}"], ids=repr
)
def test_only_an_object_is_a_verdict(answer: object) -> None:
    """§5"""
    with pytest.raises(VerdictError, match="verdict: expected an object"):
        check_verdict(answer)


@pytest.mark.parametrize("name", ["reason", "message", "warnings", "result_labels"])
def test_null_is_the_same_as_absent_where_the_schema_allows_it(name: str) -> None:
    """verdict.schema.json"""
    assert check_verdict({"decision": "allow", name: None}) == ALLOW


@pytest.mark.parametrize("transform", [{"path": "$target"}, {"path": "$target", "value": None}])
def test_an_absent_value_and_null_are_the_same_transform(transform: Any) -> None:
    """§5.2"""
    verdict = check_verdict({"decision": "transform", "transform": transform})
    assert verdict.transform == Transform("$target", None)
    assert verdict.to_wire()["transform"] == {"path": "$target"}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "not a finite number"),
        ("\ud800", "lone surrogate"),
        ({1, 2}, "not a JSON value"),
        (nested(129), "nested too deeply"),
        (nested(5_000), "nested too deeply"),
        (CYCLE, "nested too deeply"),
    ],
    ids=["nan", "surrogate", "set", "depth-129", "depth-5000", "cycle"],
)
@pytest.mark.parametrize("member", ["transform", "approval"])
def test_a_value_that_is_no_json_is_refused(member: str, value: Any, words: str) -> None:
    """§4.4, §5"""
    wire: Any = {"decision": "deny", "approval": {"x": value}}
    if member == "transform":
        wire = {"decision": "transform", "transform": {"path": "$target", "value": value}}
    with pytest.raises(VerdictError, match=words):
        check_verdict(wire)


@pytest.mark.parametrize(("size", "fits"), [(10239, True), (10240, True), (10241, False)])
def test_evidence_is_measured_in_bytes_of_canonical_json(size: int, fits: bool) -> None:
    """§5.3"""
    wire = {"decision": "allow", "evidence": evidence_of(size)}
    assert len(canonical_bytes(wire["evidence"])) == size
    assert MAX_EVIDENCE_BYTES == 10240
    if fits:
        assert check_verdict(wire).to_wire() == wire
    else:
        with pytest.raises(VerdictError, match="evidence: larger than 10240 bytes"):
            check_verdict(wire)


@pytest.mark.parametrize(
    "evidence", [{}, {"artefact": "a"}, {"verification_pointers": {"k": "u"}}], ids=repr
)
def test_evidence_passes_unchanged(evidence: Any) -> None:
    """§5.3"""
    verdict = check_verdict({"decision": "deny", "evidence": evidence})
    assert verdict.to_wire()["evidence"] == evidence


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict("allow"),  # type: ignore[arg-type]
        Verdict(Decision.ALLOW, warnings=("w",)),  # type: ignore[arg-type]
        Verdict(Decision.ALLOW, warnings=5),  # type: ignore[arg-type]
        Verdict(Decision.ALLOW, evidence={"artefact": "x"}),  # type: ignore[arg-type]
        Verdict(Decision.TRANSFORM, transform={"path": "$target"}),  # type: ignore[arg-type]
        Verdict(Decision.ALLOW, result_labels=5),  # type: ignore[arg-type]
        Verdict(Decision.ALLOW, reason=5),  # type: ignore[arg-type]
        Verdict(Decision.ALLOW, approval={}),
        Verdict(Decision.TRANSFORM),
        Verdict(Decision.ALLOW, evidence=Evidence("x" * 10_240)),
        Verdict.host_error(HostError.NO_INTERCEPTOR),
    ],
    ids=lambda verdict: repr(verdict)[:60],
)
def test_a_verdict_built_wrong_is_refused_at_the_gate(verdict: Verdict) -> None:
    """§5: an object of ours is checked like any other answer."""
    with pytest.raises(VerdictError):
        check_verdict(verdict)


class Hostile(dict[str, Any]):
    """A mapping that misbehaves when it is read."""

    def get(self, *_: Any) -> Any:
        raise RuntimeError("canary")

    def keys(self) -> Any:
        raise RuntimeError("canary")


def test_an_answer_that_raises_when_it_is_read_is_refused() -> None:
    """§6.3: a failure is a value, whatever was returned."""
    with pytest.raises(VerdictError):
        check_verdict(Hostile(decision="allow"))


def test_a_parsed_verdict_shares_nothing_with_what_was_returned() -> None:
    """§7"""
    wire = copy.deepcopy(WHOLE)
    verdict = check_verdict(wire)
    for mutable in (wire["approval"], wire["evidence"]["verification_pointers"], wire["warnings"]):
        mutable.clear()
    assert verdict.to_wire() == WHOLE


@given(json_values)
def test_a_transform_value_stays_exact(value: Any) -> None:
    """§5.2"""
    wire = {"decision": "transform", "transform": {"path": "$target", "value": value}}
    verdict = check_verdict(wire)
    assert verdict.transform is not None
    assert typed(verdict.transform.value) == typed(value)


@given(
    st.fixed_dictionaries(
        {"decision": st.just("allow")},
        optional={
            "reason": text.filter(lambda word: not word.startswith("host_error:")),
            "message": text,
            "warnings": st.lists(
                st.fixed_dictionaries({}, optional={"message": text}), min_size=1, max_size=3
            ),
            "result_labels": st.lists(text, min_size=1, max_size=3),
        },
    )
)
def test_wire_forms_round_trip(wire: Any) -> None:
    """§5"""
    assert Verdict.from_wire(wire).to_wire() == wire


def test_the_constructors_are_the_shapes_of_the_specification() -> None:
    """§5.1"""
    shapes = {
        Verdict.allow(): {"decision": "allow"},
        Verdict.deny(reason="r", message="m"): {"decision": "deny", "reason": "r", "message": "m"},
        Verdict.warn(reason="r", message="m"): {
            "decision": "allow",
            "warnings": [{"reason": "r", "message": "m"}],
        },
        Verdict.rewrite("$target.a", 1, reason="r"): {
            "decision": "transform",
            "reason": "r",
            "transform": {"path": "$target.a", "value": 1},
        },
    }
    for verdict, wire in shapes.items():
        assert verdict.to_wire() == wire
        assert check_verdict(verdict) == verdict
        assert not verdict.is_liftable
    asking = Verdict.escalate(reason="r", message="m")
    assert asking.to_wire() == {"decision": "deny", "reason": "r", "message": "m", "approval": {}}
    assert asking.is_liftable
    assert not asking.is_plain_deny
    assert Verdict.deny().is_plain_deny
    assert not Verdict.allow().is_plain_deny
    assert check_verdict(ALLOW) is ALLOW


def test_only_the_host_speaks_in_reserved_reasons() -> None:
    """§11"""
    plain = Verdict.host_error(HostError.TRANSFORM_CONFLICT, "detail")
    assert plain.to_wire() == {
        "decision": "deny",
        "reason": "host_error:transform_conflict",
        "message": "detail",
    }
    assert Verdict.host_error(HostError.TRANSFORM_CONFLICT, liftable=True).is_liftable


def test_a_warning_keeps_only_what_it_says() -> None:
    """§5.1"""
    assert Warning.from_wire({"reason": None, "message": "m"}).to_wire() == {"message": "m"}
    assert Warning("r").to_wire() == {"reason": "r"}
