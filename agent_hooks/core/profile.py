"""Composition profiles and their knobs (§7.2)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import Any


class CompositionProfile(str, Enum):
    """How the verdicts of one emission combine (§7.2). The set is closed."""

    SEQUENTIAL_FIRST_DENY = "sequential/first_deny"
    SEQUENTIAL_RUN_ALL = "sequential/run_all"
    PARALLEL_STRICTEST = "parallel/strictest"
    PARALLEL_UNANIMOUS = "parallel/unanimous"

    @property
    def is_parallel(self) -> bool:
        """Whether every interceptor judges the same snapshot (§7.5)."""
        return self in (self.PARALLEL_STRICTEST, self.PARALLEL_UNANIMOUS)


class OnApproval(str, Enum):
    """What follows a lifted deny under `sequential/first_deny` (§7.4)."""

    STOP = "stop"
    RESUME = "resume"


class SynthesisPolicy(str, Enum):
    """Whether a synthesised deny may be lifted (§7.5)."""

    DENY = "deny"
    APPROVAL = "approval"


_KNOBS: dict[
    str, tuple[type[OnApproval] | type[SynthesisPolicy], tuple[CompositionProfile, ...]]
] = {
    "on_approval": (OnApproval, (CompositionProfile.SEQUENTIAL_FIRST_DENY,)),
    "on_disagreement": (SynthesisPolicy, (CompositionProfile.PARALLEL_UNANIMOUS,)),
    # §7.5: under unanimous any transform is a disagreement; there is no conflict to settle.
    "on_transform_conflict": (SynthesisPolicy, (CompositionProfile.PARALLEL_STRICTEST,)),
}
"""Knob → its values, and the profiles that consult it (§10.3)."""


class EnforcementMode(str, Enum):
    """Whether combined verdicts are honoured (§8)."""

    ENFORCE = "enforce"
    EVALUATE_ONLY = "evaluate_only"


@dataclass(frozen=True, slots=True)
class CompositionConfig:
    """A profile and its knobs (§7.2). An unset knob has its normative default."""

    profile: CompositionProfile = CompositionProfile.SEQUENTIAL_FIRST_DENY
    on_approval: OnApproval | None = None
    on_disagreement: SynthesisPolicy | None = None
    on_transform_conflict: SynthesisPolicy | None = None

    @classmethod
    def default(cls) -> CompositionConfig:
        """`sequential/first_deny`, stop."""
        return cls()

    @classmethod
    def first_deny(cls, on_approval: OnApproval = OnApproval.STOP) -> CompositionConfig:
        """Sequential; the first deny ends the emission."""
        return cls(CompositionProfile.SEQUENTIAL_FIRST_DENY, on_approval=on_approval)

    @classmethod
    def run_all(cls) -> CompositionConfig:
        """Sequential; every interceptor runs."""
        return cls(CompositionProfile.SEQUENTIAL_RUN_ALL)

    @classmethod
    def strictest(
        cls, on_transform_conflict: SynthesisPolicy = SynthesisPolicy.DENY
    ) -> CompositionConfig:
        """Parallel; the most severe verdict wins."""
        return cls(
            CompositionProfile.PARALLEL_STRICTEST, on_transform_conflict=on_transform_conflict
        )

    @classmethod
    def unanimous(
        cls,
        on_disagreement: SynthesisPolicy = SynthesisPolicy.DENY,
        on_transform_conflict: SynthesisPolicy = SynthesisPolicy.DENY,
    ) -> CompositionConfig:
        """Parallel; anything but all-allow is a disagreement."""
        return cls(
            CompositionProfile.PARALLEL_UNANIMOUS,
            on_disagreement=on_disagreement,
            on_transform_conflict=on_transform_conflict,
        )

    @classmethod
    def from_wire(cls, obj: dict[str, Any] | None) -> CompositionConfig:
        """Parse `{profile, knobs…}`; None is the default.

        Raises:
            ValueError: an unknown member or a value outside its set.
        """
        if obj is None:
            return cls()
        if not isinstance(obj, dict) or "profile" not in obj:
            raise ValueError("/profile: missing")
        unknown = obj.keys() - {item.name for item in fields(cls)}
        if unknown:
            raise ValueError(f"composition: members must be among profile, {', '.join(_KNOBS)}")
        knobs = {
            name: _member(kind, name, obj[name])
            for name, (kind, _) in _KNOBS.items()
            if name in obj
        }
        return cls(_member(CompositionProfile, "profile", obj["profile"]), **knobs)

    def to_wire(self) -> dict[str, Any]:
        """The JSON form of what was set."""
        return {
            item.name: getattr(self, item.name).value
            for item in fields(self)
            if getattr(self, item.name) is not None
        }

    def resolved(self) -> CompositionConfig:
        """The form a record carries (§10.3): consulted knobs filled in, others absent."""
        knobs: dict[str, Any] = {}
        for name, (kind, profiles) in _KNOBS.items():
            if self.profile in profiles:
                # §7.2: each default is the first, fail-closed value of its set.
                knobs[name] = getattr(self, name) or next(iter(kind))
        return CompositionConfig(self.profile, **knobs)


def _member(kind: type[Enum], name: str, value: Any) -> Any:
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(member.value for member in kind)
        raise ValueError(f"/{name}: expected one of {allowed}") from None
