"""The verdict and its gate (§5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from agent_hooks.core import canonical, parts
from agent_hooks.core.parts import VerdictError as VerdictError
from agent_hooks.core.reasons import RESERVED_PREFIX, HostError
from agent_hooks.core.values import JSON

MAX_EVIDENCE_BYTES: Final = 10240


class Decision(str, Enum):
    """The three decisions (§5.1)."""

    ALLOW = "allow"
    DENY = "deny"
    TRANSFORM = "transform"


@dataclass(frozen=True, slots=True)
class Warning:
    """A recorded concern that does not change the decision (§5.1)."""

    reason: str | None = None
    message: str | None = None

    @classmethod
    def from_wire(cls, obj: Any) -> Warning:
        """Parse `{reason?, message?}`. Raises VerdictError."""
        members = parts.closed(obj, "warnings[]", ("reason", "message"))
        return cls(
            parts.reason(members, "warnings[]."), parts.text(members, "message", "warnings[].")
        )

    def to_wire(self) -> dict[str, Any]:
        """The JSON form, without null members."""
        return parts.present(reason=self.reason, message=self.message)


@dataclass(frozen=True, slots=True)
class Transform:
    """A rewrite of one place in the target (§5.2). An absent value is null."""

    path: str
    value: Any = None

    @classmethod
    def from_wire(cls, obj: dict[str, Any]) -> Transform:
        """Parse `{path, value?}`. Raises VerdictError."""
        members = parts.closed(obj, "transform", ("path", "value"))
        path = parts.text(members, "path", "transform.")
        if path is None:
            raise VerdictError("transform.path: expected a string (§5.2)")
        return cls(path, parts.json_value(members.get("value"), "transform.value"))

    def to_wire(self) -> dict[str, Any]:
        """The JSON form, without a null value."""
        return {"path": self.path, **parts.present(value=self.value)}


@dataclass(frozen=True, slots=True)
class Evidence:
    """An opaque pointer to a proof (§5.3). Nobody here dereferences it."""

    artefact: str | None = None
    verification_pointers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_wire(cls, obj: dict[str, Any]) -> Evidence:
        """Parse `{artefact?, verification_pointers?}`. Raises VerdictError."""
        members = parts.closed(obj, "evidence", ("artefact", "verification_pointers"))
        pointers = members.get("verification_pointers", {})
        if not isinstance(pointers, dict) or not all(
            type(key) is str and type(value) is str for key, value in pointers.items()
        ):
            raise VerdictError(
                "evidence.verification_pointers: expected an object of strings (§5.3)"
            )
        evidence = cls(parts.text(members, "artefact", "evidence."), dict(pointers))
        wire = parts.json_value(evidence.to_wire(), "evidence")
        if len(canonical.canonical_bytes(wire)) > MAX_EVIDENCE_BYTES:
            raise VerdictError("evidence: larger than 10240 bytes of canonical JSON (§5.3)")
        return evidence

    def to_wire(self) -> dict[str, Any]:
        """The JSON form, without empty members."""
        pointers = self.verification_pointers
        return parts.present(artefact=self.artefact, verification_pointers=pointers or None)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an interceptor answers (§5).

    Build one with `allow`, `deny`, `warn`, `escalate` or the constructor; parse
    one with `from_wire`.
    """

    decision: Decision
    reason: str | None = None
    message: str | None = None
    warnings: tuple[Warning, ...] = ()
    approval: dict[str, Any] | None = None
    transform: Transform | None = None
    evidence: Evidence | None = None
    result_labels: tuple[str, ...] = ()

    @classmethod
    def allow(cls) -> Verdict:
        """The action proceeds."""
        return cls(Decision.ALLOW)

    @classmethod
    def deny(cls, *, reason: str | None = None, message: str | None = None) -> Verdict:
        """The action must not proceed."""
        return cls(Decision.DENY, reason, message)

    @classmethod
    def warn(cls, *, reason: str | None = None, message: str | None = None) -> Verdict:
        """An allow with one warning (§5.1)."""
        return cls(Decision.ALLOW, warnings=(Warning(reason, message),))

    @classmethod
    def escalate(cls, *, reason: str | None = None, message: str | None = None) -> Verdict:
        """A deny that an approval may lift (§5.1)."""
        return cls(Decision.DENY, reason, message, approval={})

    @classmethod
    def rewrite(cls, path: str, value: JSON, *, reason: str | None = None) -> Verdict:
        """A transform: put `value` where `path` points (§5.2)."""
        return cls(Decision.TRANSFORM, reason, transform=Transform(path, value))

    @classmethod
    def host_error(
        cls, err: HostError, message: str | None = None, *, liftable: bool = False
    ) -> Verdict:
        """A deny that the host synthesises (§11); never for interceptors."""
        return cls(Decision.DENY, err.value, message, approval={} if liftable else None)

    @property
    def is_liftable(self) -> bool:
        """Whether the approval seam may lift this deny (§5.1)."""
        return self.decision is Decision.DENY and self.approval is not None

    @property
    def is_plain_deny(self) -> bool:
        """Whether this deny stands whatever anybody says (§5.1)."""
        return self.decision is Decision.DENY and self.approval is None

    @classmethod
    def from_wire(cls, obj: Any) -> Verdict:
        """Parse and check a verdict (§5). What is returned shares nothing with `obj`.

        Raises:
            VerdictError: any breach; its text names the member.
        """
        members = parts.closed(obj, "verdict", _MEMBERS)
        try:
            decision = Decision(members.get("decision"))
        except ValueError:
            raise VerdictError("decision: expected allow, deny or transform (§5.1)") from None
        _check_presence(decision, members)
        return cls(
            decision,
            parts.reason(members),
            parts.text(members, "message"),
            tuple(Warning.from_wire(item) for item in parts.array(members, "warnings")),
            _approval(members),
            Transform.from_wire(members["transform"]) if "transform" in members else None,
            Evidence.from_wire(members["evidence"]) if "evidence" in members else None,
            tuple(parts.label(item) for item in parts.array(members, "result_labels")),
        )

    def to_wire(self) -> dict[str, Any]:
        """The JSON form, without null and empty members."""
        return parts.present(
            decision=self.decision.value,
            reason=self.reason,
            message=self.message,
            warnings=[item.to_wire() for item in self.warnings] or None,
            approval=self.approval,
            transform=self.transform.to_wire() if self.transform else None,
            evidence=self.evidence.to_wire() if self.evidence else None,
            result_labels=list(self.result_labels) or None,
        )


ALLOW: Final = Verdict(Decision.ALLOW)

_MEMBERS = tuple(Verdict.__dataclass_fields__)


def check_verdict(returned: object) -> Verdict:
    """The gate (§5): whatever an interceptor returned, as a valid verdict.

    Raises:
        VerdictError: it is none.
    """
    if returned is ALLOW:
        return ALLOW
    if type(returned) is Verdict and _is_plain(returned):
        return returned
    try:
        return Verdict.from_wire(returned.to_wire() if isinstance(returned, Verdict) else returned)
    except VerdictError:
        raise
    except Exception as exc:  # noqa: BLE001 - a subclass may do anything when it is read
        raise VerdictError(f"verdict: cannot be read ({type(exc).__name__}) (§5)") from None


def _is_plain(verdict: Verdict) -> bool:
    """Whether a verdict is valid at a glance: a decision and ASCII texts, nothing else."""
    return (
        type(verdict.decision) is Decision
        and verdict.decision is not Decision.TRANSFORM
        and verdict.approval is None
        and verdict.transform is None
        and verdict.evidence is None
        and verdict.warnings == ()
        and verdict.result_labels == ()
        and _is_plain_text(verdict.reason)
        and not (verdict.reason or "").startswith(RESERVED_PREFIX)
        and _is_plain_text(verdict.message)
    )


def _is_plain_text(text: object) -> bool:
    return text is None or (type(text) is str and text.isascii())


def _check_presence(decision: Decision, members: Mapping[str, Any]) -> None:
    if (decision is Decision.TRANSFORM) != ("transform" in members):
        raise VerdictError("transform: present exactly when decision is transform (§5)")
    if "approval" in members and decision is not Decision.DENY:
        raise VerdictError("approval: only on a deny (§5.1)")


def _approval(members: Mapping[str, Any]) -> dict[str, Any] | None:
    if "approval" not in members:
        return None
    if not isinstance(members["approval"], dict):
        raise VerdictError("approval: expected an object (§5.1)")
    approval: dict[str, Any] = parts.json_value(members["approval"], "approval")
    return approval
