"""What a plugin may return, on the wire."""

from __future__ import annotations

from functools import lru_cache

from agent_hooks.core.grants import Grants, Right
from agent_hooks.v1 import interceptor_pb2

_TO_RIGHT = {right: interceptor_pb2.Right.Value(f"RIGHT_{right.name}") for right in Right}
_FROM_RIGHT = {number: right for right, number in _TO_RIGHT.items()}


@lru_cache(maxsize=256)
def encode_rights(grants: Grants) -> bytes:
    """The fields of a serialised InterceptRequest that say it."""
    return interceptor_pb2.InterceptRequest(
        may_return=sorted(_TO_RIGHT[right] for right in grants.may),  # type: ignore[misc]
        transform_paths=grants.transform_paths if Right.TRANSFORM in grants.may else (),
    ).SerializeToString()


def decode_rights(request: interceptor_pb2.InterceptRequest) -> frozenset[Right]:
    """What a request says may be returned beside an allow; a right unknown here is none."""
    return frozenset(_FROM_RIGHT[item] for item in request.may_return if item in _FROM_RIGHT)
