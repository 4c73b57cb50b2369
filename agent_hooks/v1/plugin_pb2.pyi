from agent_hooks.v1 import context_pb2 as _context_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PluginKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLUGIN_KIND_UNSPECIFIED: _ClassVar[PluginKind]
    PLUGIN_KIND_INTERCEPTOR: _ClassVar[PluginKind]
    PLUGIN_KIND_APPROVAL_RESOLVER: _ClassVar[PluginKind]
PLUGIN_KIND_UNSPECIFIED: PluginKind
PLUGIN_KIND_INTERCEPTOR: PluginKind
PLUGIN_KIND_APPROVAL_RESOLVER: PluginKind

class DescribeRequest(_message.Message):
    __slots__ = ("protocol_versions", "specs")
    PROTOCOL_VERSIONS_FIELD_NUMBER: _ClassVar[int]
    SPECS_FIELD_NUMBER: _ClassVar[int]
    protocol_versions: _containers.RepeatedScalarFieldContainer[int]
    specs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, protocol_versions: _Optional[_Iterable[int]] = ..., specs: _Optional[_Iterable[str]] = ...) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("name", "version", "protocol_version", "specs", "kind", "points", "capabilities", "config_schema_json", "max_concurrency")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    SPECS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    CONFIG_SCHEMA_JSON_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    protocol_version: int
    specs: _containers.RepeatedScalarFieldContainer[str]
    kind: PluginKind
    points: _containers.RepeatedScalarFieldContainer[_context_pb2.InterceptionPoint]
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    config_schema_json: str
    max_concurrency: int
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., protocol_version: _Optional[int] = ..., specs: _Optional[_Iterable[str]] = ..., kind: _Optional[_Union[PluginKind, str]] = ..., points: _Optional[_Iterable[_Union[_context_pb2.InterceptionPoint, str]]] = ..., capabilities: _Optional[_Iterable[str]] = ..., config_schema_json: _Optional[str] = ..., max_concurrency: _Optional[int] = ...) -> None: ...

class ConfigureRequest(_message.Message):
    __slots__ = ("binding_id", "config_json")
    BINDING_ID_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    binding_id: str
    config_json: str
    def __init__(self, binding_id: _Optional[str] = ..., config_json: _Optional[str] = ...) -> None: ...

class ConfigureResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ShutdownRequest(_message.Message):
    __slots__ = ("grace_ms",)
    GRACE_MS_FIELD_NUMBER: _ClassVar[int]
    grace_ms: int
    def __init__(self, grace_ms: _Optional[int] = ...) -> None: ...

class ShutdownResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
