"""Context identity (§10.1, §10.2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import orjson

from agent_hooks.core.context import (
    SPEC_VERSION,
    AgentContext,
    Bounds,
    ContextError,
    Snapshot,
    check_context,
    public_detail,
)
from agent_hooks.core.points import Path
from agent_hooks.core.values import JSON, ValueDomainError

JCS_SHA256: Final = "jcs-sha256"

_NAME = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class IdentityProvider:
    """A host-defined identity provider (§10.1).

    Attributes:
        name: matches `^[a-z][a-z0-9_-]*$` and does not begin with `jcs`.
        fn: pure function from a context to a string.

    Raises:
        ValueError: a name outside the rules.
    """

    name: str
    fn: Callable[[AgentContext], str]

    def __post_init__(self) -> None:
        if _NAME.fullmatch(self.name) is None or self.name.startswith("jcs"):
            raise ValueError(
                "identity provider name must match ^[a-z][a-z0-9_-]*$ and not begin with "
                "'jcs', which is reserved (§10.1)"
            )


Provider = str | IdentityProvider | None
"""`"jcs-sha256"`, a host-defined provider, or None for identity-unbound records."""


def check_provider(provider: Provider) -> Provider:
    """The provider, if it is one.

    Raises:
        ValueError: any other string or object.
    """
    if provider is None or provider == JCS_SHA256 or isinstance(provider, IdentityProvider):
        return provider
    raise ValueError(
        "identity_provider must be 'jcs-sha256', an IdentityProvider or None; wrap a function "
        "in IdentityProvider(name, fn) (§10.1)"
    )


def provider_name(provider: Provider) -> str | None:
    """The provider's name as it stands in records."""
    return provider.name if isinstance(provider, IdentityProvider) else provider


def identify(snapshot: Snapshot, provider: Provider) -> str | None:
    """The identity of a context, or None where no provider is declared.

    Raises:
        ContextError: the provider refused, raised, or gave no string (§10.1).
    """
    if provider is None:
        return None
    if not isinstance(provider, IdentityProvider):
        return _jcs_sha256(snapshot)
    try:
        identity = provider.fn(snapshot.copy())
    except Exception as exc:  # noqa: BLE001 - a provider's failure is a value: fail closed
        raise ContextError(f"identity provider raised {type(exc).__name__} (§10.1)") from None
    if not isinstance(identity, str):
        raise ContextError("identity provider did not return a string (§10.1)")
    return identity


def context_identity(ctx: AgentContext) -> str:
    """The `jcs-sha256` identity of a context (§10.2): "sha256:" and 64 hex digits.

    Raises:
        ContextError: an invalid envelope, or a projection outside I-JSON.
    """
    spec = ctx.get("spec") if isinstance(ctx, dict) else None
    return _jcs_sha256(
        check_context(ctx, Bounds(), spec if isinstance(spec, str) else SPEC_VERSION)
    )


def canonical_projection(snapshot: Snapshot) -> bytes:
    """RFC 8785 bytes of the required and conditional members only (§10.2).

    Raises:
        ContextError: the projection is outside I-JSON.
    """
    target, *pieces = _pieces(snapshot)
    return target.join(pieces)


_TARGET: Final = b"\0"
"""Stands for the target's text, which may be long; no JSON text holds this byte."""


def _pieces(snapshot: Snapshot) -> list[bytes]:
    """The target's text, and what stands around it in the projection."""
    context = snapshot.context
    agent = context["agent"]
    try:
        projected: dict[str, JSON] = {
            "spec": context["spec"],
            "interception_point": context["interception_point"],
            "timestamp": context["timestamp"],
            "sequence": _value(snapshot, ("sequence",), context["sequence"]),
            "agent": {"id": agent["id"], "framework": agent["framework"]},
            "session": {"id": context["session"]["id"]},
            "target": orjson.Fragment(_TARGET),
        }
        for member, whitelist in snapshot.point.projection.items():
            projected[member] = _project(snapshot, member, whitelist)
        target = snapshot.target_text()
    except ValueDomainError as refusal:
        raise ContextError(public_detail(refusal)) from None
    return [target, *orjson.dumps(projected, option=orjson.OPT_SORT_KEYS).split(_TARGET)]


def _project(snapshot: Snapshot, member: str, whitelist: tuple[str, ...] | None) -> JSON:
    value = snapshot.context[member]
    if whitelist is None:
        return _value(snapshot, (member,), value)
    return {name: _value(snapshot, (member, name), value[name]) for name in whitelist}


def _value(snapshot: Snapshot, path: Path, value: JSON) -> JSON:
    if snapshot.target_is_member and path == snapshot.point.target:
        return orjson.Fragment(_TARGET)
    kind = type(value)
    if kind is str or kind is bool or (kind is int and not snapshot.flags):
        return value
    return orjson.Fragment(snapshot.text(path))


def _jcs_sha256(snapshot: Snapshot) -> str:
    target, head, *pieces = _pieces(snapshot)
    digest = sha256(head)
    for piece in pieces:
        digest.update(target)
        digest.update(piece)
    return "sha256:" + digest.hexdigest()
