from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Decision(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECISION_UNSPECIFIED: _ClassVar[Decision]
    DECISION_ALLOW: _ClassVar[Decision]
    DECISION_DENY: _ClassVar[Decision]
    DECISION_TRANSFORM: _ClassVar[Decision]
DECISION_UNSPECIFIED: Decision
DECISION_ALLOW: Decision
DECISION_DENY: Decision
DECISION_TRANSFORM: Decision

class Verdict(_message.Message):
    __slots__ = ("decision", "reason", "message", "warnings", "approval_json", "transform", "evidence", "result_labels")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_JSON_FIELD_NUMBER: _ClassVar[int]
    TRANSFORM_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    RESULT_LABELS_FIELD_NUMBER: _ClassVar[int]
    decision: Decision
    reason: str
    message: str
    warnings: _containers.RepeatedCompositeFieldContainer[Warning]
    approval_json: str
    transform: Transform
    evidence: Evidence
    result_labels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, decision: _Optional[_Union[Decision, str]] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., warnings: _Optional[_Iterable[_Union[Warning, _Mapping]]] = ..., approval_json: _Optional[str] = ..., transform: _Optional[_Union[Transform, _Mapping]] = ..., evidence: _Optional[_Union[Evidence, _Mapping]] = ..., result_labels: _Optional[_Iterable[str]] = ...) -> None: ...

class Warning(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class Transform(_message.Message):
    __slots__ = ("path", "value_json")
    PATH_FIELD_NUMBER: _ClassVar[int]
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    path: str
    value_json: str
    def __init__(self, path: _Optional[str] = ..., value_json: _Optional[str] = ...) -> None: ...

class Evidence(_message.Message):
    __slots__ = ("artefact", "verification_pointers")
    class VerificationPointersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ARTEFACT_FIELD_NUMBER: _ClassVar[int]
    VERIFICATION_POINTERS_FIELD_NUMBER: _ClassVar[int]
    artefact: str
    verification_pointers: _containers.ScalarMap[str, str]
    def __init__(self, artefact: _Optional[str] = ..., verification_pointers: _Optional[_Mapping[str, str]] = ...) -> None: ...
