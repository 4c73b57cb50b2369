"""The reserved reasons of §11."""

from __future__ import annotations

from enum import Enum

RESERVED_PREFIX = "host_error:"


class HostError(str, Enum):
    """Why a host synthesised a deny (§11). The set is closed."""

    CONTEXT_INVALID = "host_error:context_invalid"
    INTERCEPTOR_FAILED = "host_error:interceptor_failed"
    INTERCEPTOR_TIMEOUT = "host_error:interceptor_timeout"
    VERDICT_INVALID = "host_error:verdict_invalid"
    TRANSFORM_INVALID = "host_error:transform_invalid"
    TRANSFORM_TARGET_FORBIDDEN = "host_error:transform_target_forbidden"
    TRANSFORM_CONFLICT = "host_error:transform_conflict"
    COMPOSITION_DISAGREEMENT = "host_error:composition_disagreement"
    APPROVAL_RESOLVER_FAILED = "host_error:approval_resolver_failed"
    APPROVAL_UNRESOLVED = "host_error:approval_unresolved"
    APPROVAL_IDENTITY_MISMATCH = "host_error:approval_identity_mismatch"
    ADAPTER_UNSUPPORTED = "host_error:adapter_unsupported"
    NO_INTERCEPTOR = "host_error:no_interceptor"
    STREAMING_UNSUPPORTED = "host_error:streaming_unsupported"
