"""What the host will honour of the answer to the context at hand (PROTOCOL Services)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from agent_hooks.core.grants import Right
from agent_hooks.v1 import interceptor_pb2
from agent_hooks.wire.rights import decode_rights


@dataclass(frozen=True, slots=True)
class Honoured:
    """What the host says beside a context.

    Attributes:
        may_return: what the plugin's manifest lets it return beside an allow;
            any other verdict is a deny, `host_error:verdict_invalid`.
        transform_paths: §5.2 paths; a transform may write at or below one of them.
        transform_permitted: False where a transform would be refused (§3).
        approval_available: whether a liftable deny would reach a resolver (§9).
        enforced: False where the verdict is recorded only (§8).
        timeout: seconds that the host waits.
    """

    may_return: frozenset[Right]
    transform_paths: tuple[str, ...]
    transform_permitted: bool
    approval_available: bool
    enforced: bool
    timeout: float


_request: ContextVar[interceptor_pb2.InterceptRequest] = ContextVar("request")


def honoured() -> Honoured:
    """What is honoured here and now; for `intercept` and what it calls.

    Raises:
        LookupError: no context is being judged.
    """
    request = _request.get()
    return Honoured(
        decode_rights(request),
        tuple(request.transform_paths),
        request.transform_permitted,
        request.approval_available,
        request.mode == interceptor_pb2.ENFORCEMENT_MODE_ENFORCE,
        request.timeout_ms / 1000,
    )


@contextmanager
def honouring(request: interceptor_pb2.InterceptRequest) -> Iterator[None]:
    """Let `honoured` speak of a request."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)
