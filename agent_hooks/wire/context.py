"""The agent context on the wire."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from agent_hooks.core import canonical
from agent_hooks.core.context import AgentContext, Snapshot
from agent_hooks.core.grants import EVERYTHING, Grants, Right
from agent_hooks.core.points import POINTS
from agent_hooks.core.profile import EnforcementMode
from agent_hooks.core.values import JSON, ValueDomainError
from agent_hooks.v1 import context_pb2, interceptor_pb2
from agent_hooks.wire import fields
from agent_hooks.wire.fields import (
    Path,
    Table,
    WireError,
    boolean,
    integer,
    json,
    nested,
    number,
    objects,
    strings,
    text,
)
from agent_hooks.wire.rights import encode_rights

M = TypeVar("M", bound=Message)

_AGENT = Table(
    id=text("id"),
    framework=text("framework"),
    name=text("name", optional=True),
    version=text("version", optional=True),
)
_SESSION = Table(
    id=text("id"),
    started_at=text("started_at", optional=True),
    turn=integer("turn", optional=True),
)
_MODEL = Table(
    id=text("id"),
    vendor=text("vendor", optional=True),
    params=json("params_json", optional=True),
)
_MODEL_TOOL_CALL = Table(
    id=text("id", optional=True),
    name=text("name"),
    args=json("args_json"),
)
_RESPONSE = Table(
    content=json("content_json"),
    tool_calls=objects("tool_calls", _MODEL_TOOL_CALL),
    finish_reason=text("finish_reason"),
)
_TOOL_CALL = Table(
    id=text("id"),
    name=text("name"),
    args=json("args_json"),
    content_hash=text("content_hash", optional=True),
)
_TOOL_RESULT = Table(
    value=json("value_json"),
    is_error=boolean("is_error"),
    duration_ms=number("duration_ms"),
)
_SUMMARY = Table(
    reason=text("reason"),
    tool_calls=integer("tool_calls", optional=True),
    errors=integer("errors", optional=True),
    duration_seconds=number("duration_seconds"),
)
_USAGE = Table(
    prompt_tokens=integer("prompt_tokens", optional=True),
    completion_tokens=integer("completion_tokens", optional=True),
)
_TRACE = Table(trace_id=text("trace_id", optional=True), span_id=text("span_id", optional=True))
_TENANT = Table(id=text("id", optional=True), name=text("name", optional=True))
_ACTOR = Table(id=text("id", optional=True), kind=text("kind", optional=True))
_BUDGETS = Table(
    tool_call_count=number("tool_call_count"),
    token_count=number("token_count"),
    elapsed_seconds=number("elapsed_seconds"),
    cost_usd=number("cost_usd"),
)
_CONTEXT = Table(
    spec=text("spec"),
    timestamp=text("timestamp"),
    sequence=integer("sequence"),
    agent=nested("agent", _AGENT),
    session=nested("session", _SESSION),
    agent_init=nested(
        "agent_init", Table(tools_registered=strings("tools_registered")), optional=True
    ),
    input=nested("input", Table(content=json("content_json"), role=text("role")), optional=True),
    model=nested("model", _MODEL, optional=True),
    messages=json("messages_json", optional=True),
    response=nested("response", _RESPONSE, optional=True),
    tool_call=nested("tool_call", _TOOL_CALL, optional=True),
    tool_result=nested("tool_result", _TOOL_RESULT, optional=True),
    output=nested("output", Table(content=json("content_json")), optional=True),
    summary=nested("summary", _SUMMARY, optional=True),
    request_id=text("request_id", optional=True),
    tools=json("tools_json", optional=True),
    usage=nested("usage", _USAGE, optional=True),
    trace=nested("trace", _TRACE, optional=True),
    tenant=nested("tenant", _TENANT, optional=True),
    actor=nested("actor", _ACTOR, optional=True),
    budgets=nested("budgets", _BUDGETS, optional=True),
)

_TO_POINT = {
    name: context_pb2.InterceptionPoint.Value(f"INTERCEPTION_POINT_{name.upper()}")
    for name in POINTS
}
_FROM_POINT = {number: name for name, number in _TO_POINT.items()}
_TO_MODE = {
    mode: interceptor_pb2.EnforcementMode.Value(f"ENFORCEMENT_MODE_{mode.name}")
    for mode in EnforcementMode
}


def point_number(name: str) -> int:
    """The enum number of an interception point."""
    return _TO_POINT[name]


def point_name(number: int) -> str:
    """The point of an enum number.

    Raises:
        WireError: unspecified or unknown.
    """
    try:
        return _FROM_POINT[number]
    except KeyError:
        raise WireError("interception_point: unspecified or unknown") from None


def encode_context(snapshot: Snapshot) -> context_pb2.AgentContext:
    """A checked context as a message.

    Canonical texts are taken from the snapshot, so that the text a plugin
    judges is the text that the identity binds.

    Raises:
        WireError: an integer outside ±(2⁵³−1) anywhere (§4.4), or a lone surrogate.
    """
    context = snapshot.context
    message = context_pb2.AgentContext(interception_point=_TO_POINT[context["interception_point"]])  # type: ignore[arg-type]

    def text_of(at: Path, value: JSON) -> bytes:
        if len(at) <= 2 and all(type(step) is str for step in at):
            return snapshot.text(at)  # type: ignore[arg-type]
        return canonical.encode(value, snapshot.flags)

    members = {
        name: value
        for name, value in context.items()
        if name not in ("interception_point", "target", "extensions")
    }
    try:
        fields.encode(members, _CONTEXT, message, text_of, ())
        if not snapshot.target_is_member:
            message.target_json = snapshot.target_text().decode()
        _encode_extensions(context, message, text_of)
    except ValueDomainError as refusal:
        raise WireError(f"context: {refusal.problem}") from None
    except ValueError:
        raise WireError("context: a string is not valid Unicode (§4.4)") from None
    return message


def _encode_extensions(
    context: AgentContext, message: context_pb2.AgentContext, text_of: fields.Text
) -> None:
    if "extensions" not in context:
        return
    extensions = context["extensions"]
    if type(extensions) is not dict or not extensions:
        message.other_json["extensions"] = text_of(("extensions",), extensions).decode()
        return
    for namespace, value in extensions.items():
        message.extensions_json[namespace] = text_of(("extensions", namespace), value).decode()


def decode_context(message: context_pb2.AgentContext) -> AgentContext:
    """The context that `encode_context` was given.

    Raises:
        WireError: a malformed message.
    """
    fields.refuse_unknown_fields(message, "context")
    name = point_name(message.interception_point)
    for member in ("agent", "session"):
        if not message.HasField(member):
            raise WireError(f"context.{member}: missing")
    context = fields.decode(message, _CONTEXT)
    twice = {"interception_point", "target", *(["extensions"] if message.extensions_json else [])}
    if not twice.isdisjoint(context):
        raise WireError("other_json: carries a member that has a field of its own")
    context["interception_point"] = name
    if message.extensions_json:
        extensions: AgentContext = {}
        fields.decode_map(message.extensions_json, "extensions_json", extensions)
        context["extensions"] = extensions
    context["target"] = _target(message, context, name)
    return context


def _target(message: context_pb2.AgentContext, context: AgentContext, name: str) -> JSON:
    if message.HasField("target_json"):
        return fields.parse(message.target_json, "target_json")
    value: JSON = context
    for step in POINTS[name].target:
        if type(value) is not dict or step not in value:
            raise WireError(f"context.{'.'.join(POINTS[name].target)}: missing")
        value = value[step]
    return value


def encode_request(
    snapshot: Snapshot,
    *,
    emission_id: str,
    mode: EnforcementMode,
    approval_available: bool,
    timeout_ms: int,
    grants: Grants = EVERYTHING,
) -> bytes:
    """A serialised InterceptRequest.

    The context is encoded once per emission and kept on the snapshot; the rest
    is appended, which protobuf defines as a merge.

    Args:
        snapshot: what the plugin sees; narrowing it is the caller's part.
        grants: what it may return.

    Raises:
        WireError: as `encode_context`.
    """
    if snapshot.wire is None:
        request = interceptor_pb2.InterceptRequest(context=encode_context(snapshot))
        snapshot.wire = request.SerializeToString()
    return (
        snapshot.wire
        + interceptor_pb2.InterceptRequest(
            emission_id=emission_id,
            mode=_TO_MODE[mode],  # type: ignore[arg-type]
            transform_permitted=snapshot.point.transform_permitted
            and Right.TRANSFORM in grants.may,
            approval_available=approval_available and Right.APPROVAL in grants.may,
            timeout_ms=timeout_ms,
        ).SerializeToString()
        + encode_rights(grants)
    )


def encode_stream_request(request: bytes, traceparent: str | None) -> bytes:
    """A serialised InterceptStreamRequest around a serialised InterceptRequest."""
    head = bytearray(b"\x0a")  # field 1, of a length that follows
    size = len(request)
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    traced = interceptor_pb2.InterceptStreamRequest(traceparent=traceparent)
    return b"".join((head, request, traced.SerializeToString()))


def parse_message(kind: type[M], data: bytes, what: str) -> M:
    """Parse bytes as a message.

    Raises:
        WireError: they are none.
    """
    try:
        return kind.FromString(data)
    except DecodeError:
        raise WireError(f"{what}: not a valid message") from None
