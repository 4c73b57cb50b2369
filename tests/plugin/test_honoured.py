"""What a Python author is told beside a context (PROTOCOL Services)."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from agent_hooks.plugin import ALLOW, Honoured, Right, honoured
from agent_hooks.plugin.honoured import honouring
from agent_hooks.plugin.testing import contexts, judging
from agent_hooks.v1 import interceptor_pb2

ALL = Honoured(frozenset(Right), ("$target",), True, False, True, 10.0)


class Asks:
    def __init__(self) -> None:
        self.told: list[Honoured] = []

    def intercept(self, _: Any) -> Any:
        self.told.append(honoured())
        return ALLOW


class AsksLater(Asks):
    async def intercept(self, _: Any) -> Any:
        await asyncio.sleep(0)
        self.told.append(honoured())
        return ALLOW


@pytest.mark.parametrize("kind", [Asks, AsksLater])
def test_author_is_told_what_is_honoured(kind: type[Asks]) -> None:
    """A plain method and a coroutine alike."""
    plugin = kind()
    with judging(plugin) as judge:
        judge(contexts().pre_tool_call(call_id="1", name="t", args={}))
        judge(contexts().agent_startup(tools_registered=[]))
    first, second = plugin.told
    assert first == ALL
    assert (second.transform_permitted, second.may_return) == (False, frozenset(Right))


def test_nothing_is_honoured_outside_of_a_call() -> None:
    """After one, or on a thread of the author's own."""
    plugin = Asks()
    with judging(plugin) as judge:
        judge(contexts().pre_tool_call(call_id="1", name="t", args={}))
    with pytest.raises(LookupError):
        honoured()
    raised: list[BaseException] = []

    def ask() -> None:
        try:
            honoured()
        except LookupError as error:
            raised.append(error)

    with honouring(interceptor_pb2.InterceptRequest(timeout_ms=1)):
        assert honoured().timeout == 0.001
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
    assert raised
