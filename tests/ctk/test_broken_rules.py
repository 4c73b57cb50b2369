"""The kit notices rules that are wrong: each one fails a vector of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from agent_hooks.core import aggregate, approval, composition, path, record, verdict
from agent_hooks.core.context import Snapshot
from agent_hooks.core.verdict import Decision, Verdict
from agent_hooks.ctk import ReferenceHarness
from tests.ctk.support import status

Patch = Callable[[pytest.MonkeyPatch], None]


def _unite_by_reason(winner: Verdict, returned: Any) -> Verdict:
    warnings = {item.reason: item for v in reversed(returned) for item in reversed(v.warnings)}
    return replace(winner, warnings=tuple(warnings.values())[::-1])


def _unite_all_labels(winner: Verdict, returned: Any) -> Verdict:
    labels = dict.fromkeys(label for item in returned for label in item.result_labels)
    return replace(winner, result_labels=tuple(labels))


def _unite_permits_only(winner: Verdict, returned: Any) -> Verdict:
    return _unite(winner, [item for item in returned if item.decision is not Decision.DENY])


_unite = aggregate.unite
_child = path._child
_settle = approval.settle


def _upsert(target: Any, step: Any) -> Any:
    return target.get(step) if type(target) is dict else _child(target, step)


def _shape_before_echo(request: Any, answer: Any) -> Verdict:
    return _settle(request, replace(answer, context_identity=request.context_identity))


def _truncate_beyond(message: str | None) -> str | None:
    if message is None or len(message.encode()) <= 256:
        return message
    return message.encode()[:256].decode(errors="ignore") + "…"


def _truncate_characters(message: str | None) -> str | None:
    return message if message is None or len(message) <= 256 else message[:255] + "…"


def setting(target: Any, name: str, value: Any) -> Patch:
    return lambda patch: patch.setattr(target, name, value)


RULES: dict[str, tuple[Patch, str]] = {
    "consults at shutdown": (
        setting(composition, "InterceptionPoint", SimpleNamespace(AGENT_SHUTDOWN=None)),
        "AH-CTK-511",
    ),
    "consults in evaluate_only": (
        setting(
            composition, "EnforcementMode", SimpleNamespace(EVALUATE_ONLY=None, ENFORCE="enforce")
        ),
        "AH-CTK-584-evaluate-only-not-consulted",
    ),
    "takes a liftable deny for a plain one": (
        setting(aggregate, "severity", lambda v: {"allow": 0, "transform": 1}.get(v.decision, 2)),
        "AH-CTK-572",
    ),
    "keeps labels on a deny": (setting(aggregate, "unite", _unite_all_labels), "AH-CTK-586"),
    "unites warnings by reason": (setting(aggregate, "unite", _unite_by_reason), "AH-CTK-585"),
    "drops a deny's warnings": (setting(aggregate, "unite", _unite_permits_only), "AH-CTK-570"),
    "lets the last verdict win": (
        setting(aggregate, "strictest", lambda slots: len(slots) - 1), "AH-CTK-549",
    ),
    "adds missing members": (setting(path, "_child", _upsert), "AH-CTK-530-missing-member"),
    "checks the shape before the echo": (
        setting(composition, "settle", _shape_before_echo), "AH-CTK-554-echo-before-shape",
    ),
    "cuts messages at 259 bytes": (setting(record, "truncate", _truncate_beyond), "AH-CTK-588"),
    "cuts messages by characters": (
        setting(record, "truncate", _truncate_characters), "AH-CTK-589",
    ),
    "cuts messages a byte early": (setting(record, "MAX_MESSAGE_BYTES", 255), "AH-CTK-588"),
    "takes a byte too little evidence": (
        setting(verdict, "MAX_EVIDENCE_BYTES", 10239), "AH-CTK-590",
    ),
    "takes a byte too much evidence": (setting(verdict, "MAX_EVIDENCE_BYTES", 10241), "AH-CTK-591"),
    "goes on folding outside the domain": (
        setting(composition, "BIG_INTEGERS", 0),
        "AH-CTK-595-fold-leaves-the-domain",
    ),
    "hands everybody the same context": (
        setting(Snapshot, "copy", lambda self: self.context), "AH-CTK-544",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("patch", "vector"), RULES.values(), ids=list(RULES))
def test_broken_rule_fails(patch: Patch, vector: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert status(ReferenceHarness(), vector) == "pass"
    patch(monkeypatch)
    assert status(ReferenceHarness(), vector) == "fail"
