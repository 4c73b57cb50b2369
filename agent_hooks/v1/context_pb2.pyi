from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InterceptionPoint(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INTERCEPTION_POINT_UNSPECIFIED: _ClassVar[InterceptionPoint]
    INTERCEPTION_POINT_AGENT_STARTUP: _ClassVar[InterceptionPoint]
    INTERCEPTION_POINT_INPUT: _ClassVar[InterceptionPoint]
    INTERCEPTION_POINT_PRE_MODEL_CALL: _ClassVar[InterceptionPoint]
    INTERCEPTION_POINT_POST_MODEL_CALL: _ClassVar[InterceptionPoint]
    INTERCEPTION_POINT_PRE_TOOL_CALL: _ClassVar[InterceptionPoint]
    INTERCEPTION_POINT_POST_TOOL_CALL: _ClassVar[InterceptionPoint]
    INTERCEPTION_POINT_OUTPUT: _ClassVar[InterceptionPoint]
    INTERCEPTION_POINT_AGENT_SHUTDOWN: _ClassVar[InterceptionPoint]
INTERCEPTION_POINT_UNSPECIFIED: InterceptionPoint
INTERCEPTION_POINT_AGENT_STARTUP: InterceptionPoint
INTERCEPTION_POINT_INPUT: InterceptionPoint
INTERCEPTION_POINT_PRE_MODEL_CALL: InterceptionPoint
INTERCEPTION_POINT_POST_MODEL_CALL: InterceptionPoint
INTERCEPTION_POINT_PRE_TOOL_CALL: InterceptionPoint
INTERCEPTION_POINT_POST_TOOL_CALL: InterceptionPoint
INTERCEPTION_POINT_OUTPUT: InterceptionPoint
INTERCEPTION_POINT_AGENT_SHUTDOWN: InterceptionPoint

class AgentContext(_message.Message):
    __slots__ = ("spec", "interception_point", "timestamp", "sequence", "agent", "session", "target_json", "agent_init", "input", "model", "messages_json", "response", "tool_call", "tool_result", "output", "summary", "request_id", "tools_json", "usage", "trace", "tenant", "actor", "budgets", "extensions_json", "other_json")
    class ExtensionsJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SPEC_FIELD_NUMBER: _ClassVar[int]
    INTERCEPTION_POINT_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    TARGET_JSON_FIELD_NUMBER: _ClassVar[int]
    AGENT_INIT_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_JSON_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_FIELD_NUMBER: _ClassVar[int]
    TOOL_RESULT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TOOLS_JSON_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    EXTENSIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    spec: str
    interception_point: InterceptionPoint
    timestamp: str
    sequence: int
    agent: Agent
    session: Session
    target_json: str
    agent_init: AgentInit
    input: Input
    model: Model
    messages_json: str
    response: Response
    tool_call: ToolCall
    tool_result: ToolResult
    output: Output
    summary: Summary
    request_id: str
    tools_json: str
    usage: Usage
    trace: Trace
    tenant: Tenant
    actor: Actor
    budgets: Budgets
    extensions_json: _containers.ScalarMap[str, str]
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, spec: _Optional[str] = ..., interception_point: _Optional[_Union[InterceptionPoint, str]] = ..., timestamp: _Optional[str] = ..., sequence: _Optional[int] = ..., agent: _Optional[_Union[Agent, _Mapping]] = ..., session: _Optional[_Union[Session, _Mapping]] = ..., target_json: _Optional[str] = ..., agent_init: _Optional[_Union[AgentInit, _Mapping]] = ..., input: _Optional[_Union[Input, _Mapping]] = ..., model: _Optional[_Union[Model, _Mapping]] = ..., messages_json: _Optional[str] = ..., response: _Optional[_Union[Response, _Mapping]] = ..., tool_call: _Optional[_Union[ToolCall, _Mapping]] = ..., tool_result: _Optional[_Union[ToolResult, _Mapping]] = ..., output: _Optional[_Union[Output, _Mapping]] = ..., summary: _Optional[_Union[Summary, _Mapping]] = ..., request_id: _Optional[str] = ..., tools_json: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., trace: _Optional[_Union[Trace, _Mapping]] = ..., tenant: _Optional[_Union[Tenant, _Mapping]] = ..., actor: _Optional[_Union[Actor, _Mapping]] = ..., budgets: _Optional[_Union[Budgets, _Mapping]] = ..., extensions_json: _Optional[_Mapping[str, str]] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Agent(_message.Message):
    __slots__ = ("id", "framework", "name", "version", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    framework: str
    name: str
    version: str
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., framework: _Optional[str] = ..., name: _Optional[str] = ..., version: _Optional[str] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ("id", "started_at", "turn", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    started_at: str
    turn: int
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., started_at: _Optional[str] = ..., turn: _Optional[int] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class AgentInit(_message.Message):
    __slots__ = ("tools_registered", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TOOLS_REGISTERED_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    tools_registered: _containers.RepeatedScalarFieldContainer[str]
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, tools_registered: _Optional[_Iterable[str]] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Input(_message.Message):
    __slots__ = ("content_json", "role", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CONTENT_JSON_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    content_json: str
    role: str
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, content_json: _Optional[str] = ..., role: _Optional[str] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("id", "vendor", "params_json", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    VENDOR_FIELD_NUMBER: _ClassVar[int]
    PARAMS_JSON_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    vendor: str
    params_json: str
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., vendor: _Optional[str] = ..., params_json: _Optional[str] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Response(_message.Message):
    __slots__ = ("content_json", "tool_calls", "finish_reason", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CONTENT_JSON_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    content_json: str
    tool_calls: _containers.RepeatedCompositeFieldContainer[ModelToolCall]
    finish_reason: str
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, content_json: _Optional[str] = ..., tool_calls: _Optional[_Iterable[_Union[ModelToolCall, _Mapping]]] = ..., finish_reason: _Optional[str] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ModelToolCall(_message.Message):
    __slots__ = ("id", "name", "args_json", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGS_JSON_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    args_json: str
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., args_json: _Optional[str] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ToolCall(_message.Message):
    __slots__ = ("id", "name", "args_json", "content_hash", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGS_JSON_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    args_json: str
    content_hash: str
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., args_json: _Optional[str] = ..., content_hash: _Optional[str] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ToolResult(_message.Message):
    __slots__ = ("value_json", "is_error", "duration_ms", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    value_json: str
    is_error: bool
    duration_ms: float
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, value_json: _Optional[str] = ..., is_error: bool = ..., duration_ms: _Optional[float] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Output(_message.Message):
    __slots__ = ("content_json", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CONTENT_JSON_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    content_json: str
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, content_json: _Optional[str] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Summary(_message.Message):
    __slots__ = ("reason", "tool_calls", "errors", "duration_seconds", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    REASON_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    DURATION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    tool_calls: int
    errors: int
    duration_seconds: float
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, reason: _Optional[str] = ..., tool_calls: _Optional[int] = ..., errors: _Optional[int] = ..., duration_seconds: _Optional[float] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("prompt_tokens", "completion_tokens", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    prompt_tokens: int
    completion_tokens: int
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, prompt_tokens: _Optional[int] = ..., completion_tokens: _Optional[int] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Trace(_message.Message):
    __slots__ = ("trace_id", "span_id", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    SPAN_ID_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    trace_id: str
    span_id: str
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, trace_id: _Optional[str] = ..., span_id: _Optional[str] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Tenant(_message.Message):
    __slots__ = ("id", "name", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Actor(_message.Message):
    __slots__ = ("id", "kind", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: str
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[str] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Budgets(_message.Message):
    __slots__ = ("tool_call_count", "token_count", "elapsed_seconds", "cost_usd", "other_json")
    class OtherJsonEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TOOL_CALL_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_COUNT_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COST_USD_FIELD_NUMBER: _ClassVar[int]
    OTHER_JSON_FIELD_NUMBER: _ClassVar[int]
    tool_call_count: float
    token_count: float
    elapsed_seconds: float
    cost_usd: float
    other_json: _containers.ScalarMap[str, str]
    def __init__(self, tool_call_count: _Optional[float] = ..., token_count: _Optional[float] = ..., elapsed_seconds: _Optional[float] = ..., cost_usd: _Optional[float] = ..., other_json: _Optional[_Mapping[str, str]] = ...) -> None: ...
