"""What a failed call means to the emission: gRPC status → failure, one table (§6.3)."""

from __future__ import annotations

import grpc

from agent_hooks.core.effects import Failed
from agent_hooks.core.reasons import HostError

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Largest message either way; the specification's contexts reach 5 MiB."""

_TOO_LARGE = "Received message larger than max"


def failure(code: grpc.StatusCode, details: str | None, timed_out: bool) -> Failed:
    """The failure that takes the slot.

    Args:
        code: the call's status.
        details: its text; only looked at, never kept.
        timed_out: whether the host's own clock had run out. A plugin's own
            DEADLINE_EXCEEDED before that is a failure, not a timeout.
    """
    if timed_out and code in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED):
        return Failed(HostError.INTERCEPTOR_TIMEOUT, "no answer in time")
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in (details or ""):
        return Failed(HostError.VERDICT_INVALID, "answer larger than 16 MiB")
    return Failed(HostError.INTERCEPTOR_FAILED, f"gRPC status {code.name}")
