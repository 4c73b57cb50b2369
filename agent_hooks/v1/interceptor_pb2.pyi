from agent_hooks.v1 import context_pb2 as _context_pb2
from agent_hooks.v1 import verdict_pb2 as _verdict_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EnforcementMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ENFORCEMENT_MODE_UNSPECIFIED: _ClassVar[EnforcementMode]
    ENFORCEMENT_MODE_ENFORCE: _ClassVar[EnforcementMode]
    ENFORCEMENT_MODE_EVALUATE_ONLY: _ClassVar[EnforcementMode]

class Right(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RIGHT_UNSPECIFIED: _ClassVar[Right]
    RIGHT_DENY: _ClassVar[Right]
    RIGHT_TRANSFORM: _ClassVar[Right]
    RIGHT_APPROVAL: _ClassVar[Right]
ENFORCEMENT_MODE_UNSPECIFIED: EnforcementMode
ENFORCEMENT_MODE_ENFORCE: EnforcementMode
ENFORCEMENT_MODE_EVALUATE_ONLY: EnforcementMode
RIGHT_UNSPECIFIED: Right
RIGHT_DENY: Right
RIGHT_TRANSFORM: Right
RIGHT_APPROVAL: Right

class InterceptRequest(_message.Message):
    __slots__ = ("context", "emission_id", "mode", "transform_permitted", "approval_available", "timeout_ms", "may_return", "transform_paths")
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    EMISSION_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    TRANSFORM_PERMITTED_FIELD_NUMBER: _ClassVar[int]
    APPROVAL_AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MAY_RETURN_FIELD_NUMBER: _ClassVar[int]
    TRANSFORM_PATHS_FIELD_NUMBER: _ClassVar[int]
    context: _context_pb2.AgentContext
    emission_id: str
    mode: EnforcementMode
    transform_permitted: bool
    approval_available: bool
    timeout_ms: int
    may_return: _containers.RepeatedScalarFieldContainer[Right]
    transform_paths: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, context: _Optional[_Union[_context_pb2.AgentContext, _Mapping]] = ..., emission_id: _Optional[str] = ..., mode: _Optional[_Union[EnforcementMode, str]] = ..., transform_permitted: bool = ..., approval_available: bool = ..., timeout_ms: _Optional[int] = ..., may_return: _Optional[_Iterable[_Union[Right, str]]] = ..., transform_paths: _Optional[_Iterable[str]] = ...) -> None: ...

class InterceptResponse(_message.Message):
    __slots__ = ("verdict",)
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    verdict: _verdict_pb2.Verdict
    def __init__(self, verdict: _Optional[_Union[_verdict_pb2.Verdict, _Mapping]] = ...) -> None: ...

class InterceptStreamRequest(_message.Message):
    __slots__ = ("request", "traceparent")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    request: InterceptRequest
    traceparent: str
    def __init__(self, request: _Optional[_Union[InterceptRequest, _Mapping]] = ..., traceparent: _Optional[str] = ...) -> None: ...

class InterceptStreamResponse(_message.Message):
    __slots__ = ("emission_id", "verdict")
    EMISSION_ID_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    emission_id: str
    verdict: _verdict_pb2.Verdict
    def __init__(self, emission_id: _Optional[str] = ..., verdict: _Optional[_Union[_verdict_pb2.Verdict, _Mapping]] = ...) -> None: ...
