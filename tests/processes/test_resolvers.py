"""Approval resolvers out of process, and plugins taken for what they are not (§9)."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.core.verdict import Verdict
from agent_hooks.supervisor import Binding, Supervisor
from tests.processes.support import EMITTERS, QUICK, SLACK, bad, context, judge, status


class Escalator:
    """Denies, liftably."""

    def intercept(self, _: dict[str, Any]) -> Verdict:
        return Verdict.escalate(reason="ask")


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize(
    ("mode", "reason", "resolved_by"),
    [
        ("resolver", None, "approval"),
        ("resolver_garbage", "host_error:approval_resolver_failed", "rejection"),
        ("resolver_hangs", "host_error:approval_resolver_failed", "rejection"),
    ],
    ids=["approves", "answers_garbage", "hangs"],
)
def test_remote_resolver_lifts_or_leaves_the_deny_standing(
    tidy: Path, mode: str, reason: str | None, resolved_by: str, kind: Any
) -> None:
    """§9: a failed consultation is a deny, in time, with one record."""
    with Supervisor([Binding("p", bad(mode))], QUICK) as supervisor:
        judged = judge(
            kind,
            context(),
            Escalator(),
            resolver=supervisor.resolver("p"),
            approval_timeout=0.4 if mode == "resolver_hangs" else 10,
        )
        assert judged.reason == reason
        assert judged.decision == ("deny" if reason else "allow")
        assert judged.record.resolved_by == resolved_by
        assert judged.record.decided_by == 0
        assert judged.seconds < SLACK
        assert len(judged.records) == 1


@pytest.mark.parametrize("kind", EMITTERS)
def test_resolver_bound_as_an_interceptor_never_lets_through(tidy: Path, kind: Any) -> None:
    """PROTOCOL Services: its approval's bytes read as an allow, so it must not be asked at all."""
    with Supervisor([Binding("p", bad("resolver"))], QUICK) as supervisor:
        with contextlib.suppress(KeyError, TypeError, ValueError, RuntimeError):
            interceptor = supervisor.interceptor("p")
            judged = judge(kind, context(), interceptor, timeout=2)
            assert (judged.decision, len(judged.records)) == ("deny", 1)


@pytest.mark.parametrize("kind", EMITTERS)
def test_interceptor_bound_as_a_resolver_lifts_nothing(tidy: Path, kind: Any) -> None:
    """PROTOCOL Services: an allow is not an approval."""
    with Supervisor([Binding("p", bad())], QUICK) as supervisor:
        with contextlib.suppress(KeyError, TypeError, ValueError, RuntimeError):
            resolver = supervisor.resolver("p")
            judged = judge(kind, context(), Escalator(), resolver=resolver, approval_timeout=2)
            assert judged.decision == "deny"
            assert (judged.reason or "").startswith("host_error:approval_")


def test_calls_of_a_resolver_are_counted_as_an_interceptors(tidy: Path) -> None:
    """PROTOCOL Services: the same launch, the same life."""
    with Supervisor([Binding("p", bad("resolver"))], QUICK) as supervisor:
        judge(EMITTERS[1], context(), Escalator(), resolver=supervisor.resolver("p"))
        assert status(supervisor)["answered"] == 1
