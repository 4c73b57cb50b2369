"""§10.3: an emission that breaks off inside the machinery itself still ends in one record."""

from __future__ import annotations

from typing import Any

import pytest

from agent_hooks.core import emission
from tests.core.support import context
from tests.host.support import EMITTERS, Sync, emitted, finished


def breaking(monkeypatch: pytest.MonkeyPatch, exc: BaseException) -> None:
    def compose(*_: Any) -> Any:
        raise exc
        yield

    monkeypatch.setattr(emission, "compose", compose)


@pytest.mark.parametrize("kind", EMITTERS)
def test_defect_of_the_machinery_is_a_deny_with_one_record(
    kind: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    breaking(monkeypatch, RuntimeError("canary"))
    emitter = kind()
    emitter.register(Sync())
    record = emitted(emitter, context())
    assert record.verdict.reason == "host_error:context_invalid"
    assert not record.proceeds
    assert emitter.results == [record]
    assert "canary" not in caplog.text + str(record)


@pytest.mark.parametrize("kind", EMITTERS)
def test_interruption_of_the_machinery_is_recorded_and_handed_on(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking(monkeypatch, KeyboardInterrupt())
    emitter = kind()
    emitter.register(Sync())
    with pytest.raises(KeyboardInterrupt):
        finished(emitter.emit(context()))
    assert [record.proceeds for record in emitter.results] == [False]


@pytest.mark.parametrize("kind", EMITTERS)
def test_broken_startup_bars_its_session(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """§6.1a"""
    emitter = kind()
    emitter.register(Sync())
    with monkeypatch.context() as patched:
        breaking(patched, RuntimeError())
        emitted(emitter, context("agent_startup"))
    assert emitted(emitter, context("input", sequence=1)).verdict.reason is not None
