from agent_hooks.v1 import context_pb2 as _context_pb2
from agent_hooks.v1 import interceptor_pb2 as _interceptor_pb2
from agent_hooks.v1 import verdict_pb2 as _verdict_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InterceptionRecord(_message.Message):
    __slots__ = ("interception_point", "mode", "verdict", "input_identity", "enforced_identity", "identity_provider", "session_id", "sequence", "timestamp", "trace", "decided_by", "composition", "declaration", "verdicts", "fold_truncated", "resolved_by", "interceptors_registered")
    INTERCEPTION_POINT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    INPUT_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    ENFORCED_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_PROVIDER_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    DECIDED_BY_FIELD_NUMBER: _ClassVar[int]
    COMPOSITION_FIELD_NUMBER: _ClassVar[int]
    DECLARATION_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    FOLD_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_BY_FIELD_NUMBER: _ClassVar[int]
    INTERCEPTORS_REGISTERED_FIELD_NUMBER: _ClassVar[int]
    interception_point: _context_pb2.InterceptionPoint
    mode: _interceptor_pb2.EnforcementMode
    verdict: _verdict_pb2.Verdict
    input_identity: str
    enforced_identity: str
    identity_provider: str
    session_id: str
    sequence: int
    timestamp: str
    trace: _context_pb2.Trace
    decided_by: int
    composition: Composition
    declaration: str
    verdicts: _containers.RepeatedCompositeFieldContainer[VerdictSummary]
    fold_truncated: bool
    resolved_by: str
    interceptors_registered: int
    def __init__(self, interception_point: _Optional[_Union[_context_pb2.InterceptionPoint, str]] = ..., mode: _Optional[_Union[_interceptor_pb2.EnforcementMode, str]] = ..., verdict: _Optional[_Union[_verdict_pb2.Verdict, _Mapping]] = ..., input_identity: _Optional[str] = ..., enforced_identity: _Optional[str] = ..., identity_provider: _Optional[str] = ..., session_id: _Optional[str] = ..., sequence: _Optional[int] = ..., timestamp: _Optional[str] = ..., trace: _Optional[_Union[_context_pb2.Trace, _Mapping]] = ..., decided_by: _Optional[int] = ..., composition: _Optional[_Union[Composition, _Mapping]] = ..., declaration: _Optional[str] = ..., verdicts: _Optional[_Iterable[_Union[VerdictSummary, _Mapping]]] = ..., fold_truncated: bool = ..., resolved_by: _Optional[str] = ..., interceptors_registered: _Optional[int] = ...) -> None: ...

class Composition(_message.Message):
    __slots__ = ("profile", "on_approval", "on_disagreement", "on_transform_conflict")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    ON_APPROVAL_FIELD_NUMBER: _ClassVar[int]
    ON_DISAGREEMENT_FIELD_NUMBER: _ClassVar[int]
    ON_TRANSFORM_CONFLICT_FIELD_NUMBER: _ClassVar[int]
    profile: str
    on_approval: str
    on_disagreement: str
    on_transform_conflict: str
    def __init__(self, profile: _Optional[str] = ..., on_approval: _Optional[str] = ..., on_disagreement: _Optional[str] = ..., on_transform_conflict: _Optional[str] = ...) -> None: ...

class VerdictSummary(_message.Message):
    __slots__ = ("index", "decision", "reason", "name")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    index: int
    decision: _verdict_pb2.Decision
    reason: str
    name: str
    def __init__(self, index: _Optional[int] = ..., decision: _Optional[_Union[_verdict_pb2.Decision, str]] = ..., reason: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...
