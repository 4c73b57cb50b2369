"""The interception record and its payload-free projection (§10.3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

from agent_hooks.core.points import InterceptionPoint
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from agent_hooks.core.verdict import Decision, Evidence, Transform, Verdict, Warning

MAX_MESSAGE_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class VerdictSummary:
    """One interceptor's verdict without content (§10.3)."""

    index: int
    decision: Decision
    reason: str | None = None
    name: str | None = None

    @classmethod
    def from_wire(cls, obj: dict[str, Any]) -> VerdictSummary:
        """Parse the JSON form."""
        return cls(obj["index"], Decision(obj["decision"]), obj.get("reason"), obj.get("name"))

    def to_wire(self) -> dict[str, Any]:
        """The JSON form, without null members."""
        wire: dict[str, Any] = {"index": self.index, "decision": self.decision.value}
        if self.reason is not None:
            wire["reason"] = self.reason
        if self.name is not None:
            wire["name"] = self.name
        return wire


@dataclass(frozen=True, slots=True)
class InterceptionRecord:
    """What is kept of one emission (§10.3). It never holds content of a target.

    `sequence` is -1 and `session_id` empty where the context had none.
    `fold_truncated` is None in parallel profiles.
    """

    interception_point: InterceptionPoint
    mode: EnforcementMode
    verdict: Verdict
    input_identity: str | None
    enforced_identity: str | None
    identity_provider: str | None = None
    session_id: str = ""
    sequence: int = -1
    timestamp: str | None = None
    trace: dict[str, str] | None = None
    decided_by: int | None = None
    composition: CompositionConfig = field(default_factory=CompositionConfig)
    declaration: str | None = None
    verdicts: tuple[VerdictSummary, ...] = ()
    fold_truncated: bool | None = None
    resolved_by: str | None = None
    interceptors_registered: int = 0

    @property
    def proceeds(self) -> bool:
        """Whether the guarded action may proceed (§6, §8)."""
        return (
            self.mode is EnforcementMode.EVALUATE_ONLY or self.verdict.decision is not Decision.DENY
        )

    @classmethod
    def from_core(cls, obj: dict[str, Any]) -> InterceptionRecord:
        """Parse the JSON form of a record this package wrote."""
        return cls(
            interception_point=InterceptionPoint(obj["interception_point"]),
            input_identity=obj.get("input_identity"),
            enforced_identity=obj.get("enforced_identity"),
            mode=EnforcementMode(obj["mode"]),
            verdict=_parse_projection(obj["verdict"]),
            composition=CompositionConfig.from_wire(obj["composition"]),
            verdicts=tuple(VerdictSummary.from_wire(item) for item in obj.get("verdicts", ())),
            **{name: obj[name] for name in _PLAIN if name in obj},
        )

    def to_wire(self) -> dict[str, Any]:
        """The JSON form: one object, its members in the order of §10.3."""
        wire: dict[str, Any] = {
            "interception_point": self.interception_point.value,
            "mode": self.mode.value,
            "verdict": self.verdict.to_wire(),
            "input_identity": self.input_identity,
            "enforced_identity": self.enforced_identity,
            "identity_provider": self.identity_provider,
            "session_id": self.session_id,
            "sequence": self.sequence,
            "decided_by": self.decided_by,
            "composition": self.composition.to_wire(),
            "interceptors_registered": self.interceptors_registered,
        }
        for name in ("timestamp", "trace", "declaration", "fold_truncated", "resolved_by"):
            value = getattr(self, name)
            if value is not None:
                wire[name] = value
        # §10.3: required in multi-verdict profiles, even where nobody was asked.
        if self.verdicts or self.composition.on_approval is None:
            wire["verdicts"] = [item.to_wire() for item in self.verdicts]
        return wire


_PLAIN = (
    "identity_provider", "session_id", "sequence", "timestamp", "trace", "decided_by",
    "declaration", "fold_truncated", "resolved_by", "interceptors_registered",
)  # fmt: skip


def project(verdict: Verdict) -> Verdict:
    """The payload-free projection of a combined verdict (§10.3)."""
    if verdict.message is None and not verdict.warnings and verdict.transform is None:
        return verdict if not verdict.approval else replace(verdict, approval={})
    return replace(
        verdict,
        message=truncate(verdict.message),
        warnings=tuple(Warning(item.reason, truncate(item.message)) for item in verdict.warnings),
        approval=None if verdict.approval is None else {},
        transform=verdict.transform and Transform(verdict.transform.path),
    )


def truncate(message: str | None) -> str | None:
    """At most 256 UTF-8 bytes, a trailing … included, cut on a character boundary (§10.3)."""
    if message is None:
        return None
    encoded = message.encode()
    if len(encoded) <= MAX_MESSAGE_BYTES:
        return message
    mark = "…".encode()
    return encoded[: MAX_MESSAGE_BYTES - len(mark)].decode(errors="ignore") + mark.decode()


def _parse_projection(obj: dict[str, Any]) -> Verdict:
    """A projected verdict: unlike an interceptor's, it may carry a reserved reason."""
    return Verdict(
        Decision(obj["decision"]),
        obj.get("reason"),
        obj.get("message"),
        tuple(Warning(item.get("reason"), item.get("message")) for item in obj.get("warnings", ())),
        obj.get("approval"),
        Transform(obj["transform"]["path"]) if "transform" in obj else None,
        Evidence.from_wire(obj["evidence"]) if "evidence" in obj else None,
        tuple(obj.get("result_labels", ())),
    )
