from agent_hooks.v1 import context_pb2 as _context_pb2
from agent_hooks.v1 import verdict_pb2 as _verdict_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ApprovalOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    APPROVAL_OUTCOME_UNSPECIFIED: _ClassVar[ApprovalOutcome]
    APPROVAL_OUTCOME_APPROVE: _ClassVar[ApprovalOutcome]
    APPROVAL_OUTCOME_REJECT: _ClassVar[ApprovalOutcome]
    APPROVAL_OUTCOME_UNRESOLVED: _ClassVar[ApprovalOutcome]
APPROVAL_OUTCOME_UNSPECIFIED: ApprovalOutcome
APPROVAL_OUTCOME_APPROVE: ApprovalOutcome
APPROVAL_OUTCOME_REJECT: ApprovalOutcome
APPROVAL_OUTCOME_UNRESOLVED: ApprovalOutcome

class ApprovalRequest(_message.Message):
    __slots__ = ("context_identity", "interception_point", "verdict", "context")
    CONTEXT_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    INTERCEPTION_POINT_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    context_identity: str
    interception_point: _context_pb2.InterceptionPoint
    verdict: _verdict_pb2.Verdict
    context: _context_pb2.AgentContext
    def __init__(self, context_identity: _Optional[str] = ..., interception_point: _Optional[_Union[_context_pb2.InterceptionPoint, str]] = ..., verdict: _Optional[_Union[_verdict_pb2.Verdict, _Mapping]] = ..., context: _Optional[_Union[_context_pb2.AgentContext, _Mapping]] = ...) -> None: ...

class ApprovalResolution(_message.Message):
    __slots__ = ("outcome", "context_identity", "verdict")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_IDENTITY_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    outcome: ApprovalOutcome
    context_identity: str
    verdict: _verdict_pb2.Verdict
    def __init__(self, outcome: _Optional[_Union[ApprovalOutcome, str]] = ..., context_identity: _Optional[str] = ..., verdict: _Optional[_Union[_verdict_pb2.Verdict, _Mapping]] = ...) -> None: ...

class ResolveRequest(_message.Message):
    __slots__ = ("request",)
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: ApprovalRequest
    def __init__(self, request: _Optional[_Union[ApprovalRequest, _Mapping]] = ...) -> None: ...

class ResolveResponse(_message.Message):
    __slots__ = ("resolution",)
    RESOLUTION_FIELD_NUMBER: _ClassVar[int]
    resolution: ApprovalResolution
    def __init__(self, resolution: _Optional[_Union[ApprovalResolution, _Mapping]] = ...) -> None: ...
