"""The port to interceptors that are no plain functions."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from agent_hooks.core.call import Call, Startable
from agent_hooks.core.context import Bounds, check_context
from agent_hooks.core.profile import EnforcementMode
from tests.core.support import SPEC, context


class Deferred:
    """Answers through a callback."""

    def start(self, call: Call, done: Any) -> Any:
        done({"decision": "deny"})
        return lambda timed_out: None


class Plain:
    """Answers by returning."""

    def intercept(self, context: Any) -> Any:
        return {"decision": "allow"}


def test_an_interceptor_is_startable_by_what_it_has() -> None:
    assert isinstance(Deferred(), Startable)
    assert not isinstance(Plain(), Startable)


def test_a_call_is_fixed_once_it_is_made() -> None:
    snapshot = check_context(context(), Bounds(), SPEC)
    call = Call(snapshot, "e-1", EnforcementMode.ENFORCE, False, 5.0)
    with pytest.raises(FrozenInstanceError):
        call.timeout = 60.0  # type: ignore[misc]
    answers: list[object] = []
    cancel = Deferred().start(call, answers.append)
    assert answers == [{"decision": "deny"}]
    assert cancel(True) is None
