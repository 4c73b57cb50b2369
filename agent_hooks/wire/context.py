"""The agent context on the wire."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from agent_hooks.core import canonical
from agent_hooks.core.context import AgentContext, Snapshot
from agent_hooks.core.points import POINTS
from agent_hooks.core.profile import EnforcementMode
from agent_hooks.core.values import JSON, ValueDomainError
from agent_hooks.v1 import context_pb2, interceptor_pb2
from agent_hooks.wire import fields
from agent_hooks.wire.fields import Path, Row, Table, WireError


def _row(kind: str, field: str, table: Table | None = None) -> Row:
    return Row(kind, field, False, table)


def _optional(kind: str, field: str, table: Table | None = None) -> Row:
    return Row(kind, field, True, table)


M = TypeVar("M", bound=Message)

_AGENT: Table = {
    "id": _row("str", "id"),
    "framework": _row("str", "framework"),
    "name": _optional("str", "name"),
    "version": _optional("str", "version"),
}
_SESSION: Table = {
    "id": _row("str", "id"),
    "started_at": _optional("str", "started_at"),
    "turn": _optional("int", "turn"),
}
_MODEL: Table = {
    "id": _row("str", "id"),
    "vendor": _optional("str", "vendor"),
    "params": _optional("json", "params_json"),
}
_MODEL_TOOL_CALL: Table = {
    "id": _optional("str", "id"),
    "name": _row("str", "name"),
    "args": _row("json", "args_json"),
}
_RESPONSE: Table = {
    "content": _row("json", "content_json"),
    "tool_calls": _row("messages", "tool_calls", _MODEL_TOOL_CALL),
    "finish_reason": _row("str", "finish_reason"),
}
_TOOL_CALL: Table = {
    "id": _row("str", "id"),
    "name": _row("str", "name"),
    "args": _row("json", "args_json"),
    "content_hash": _optional("str", "content_hash"),
}
_TOOL_RESULT: Table = {
    "value": _row("json", "value_json"),
    "is_error": _row("bool", "is_error"),
    "duration_ms": _optional("number", "duration_ms"),
}
_SUMMARY: Table = {
    "reason": _row("str", "reason"),
    "tool_calls": _optional("int", "tool_calls"),
    "errors": _optional("int", "errors"),
    "duration_seconds": _optional("number", "duration_seconds"),
}
_CONTEXT: Table = {
    "spec": _row("str", "spec"),
    "timestamp": _row("str", "timestamp"),
    "sequence": _row("int", "sequence"),
    "agent": _row("message", "agent", _AGENT),
    "session": _row("message", "session", _SESSION),
    "agent_init": _optional(
        "message", "agent_init", {"tools_registered": _row("strings", "tools_registered")}
    ),
    "input": _optional(
        "message", "input", {"content": _row("json", "content_json"), "role": _row("str", "role")}
    ),
    "model": _optional("message", "model", _MODEL),
    "messages": _optional("json", "messages_json"),
    "response": _optional("message", "response", _RESPONSE),
    "tool_call": _optional("message", "tool_call", _TOOL_CALL),
    "tool_result": _optional("message", "tool_result", _TOOL_RESULT),
    "output": _optional("message", "output", {"content": _row("json", "content_json")}),
    "summary": _optional("message", "summary", _SUMMARY),
    "request_id": _optional("str", "request_id"),
    "tools": _optional("json", "tools_json"),
    "usage": _optional(
        "message",
        "usage",
        {name: _optional("int", name) for name in ("prompt_tokens", "completion_tokens")},
    ),
    "trace": _optional(
        "message", "trace", {name: _optional("str", name) for name in ("trace_id", "span_id")}
    ),
    "tenant": _optional(
        "message", "tenant", {name: _optional("str", name) for name in ("id", "name")}
    ),
    "actor": _optional(
        "message", "actor", {name: _optional("str", name) for name in ("id", "kind")}
    ),
    "budgets": _optional(
        "message",
        "budgets",
        {
            name: _optional("number", name)
            for name in ("tool_call_count", "token_count", "elapsed_seconds", "cost_usd")
        },
    ),
}

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

    def text(at: Path, value: JSON) -> bytes:
        if len(at) <= 2 and all(type(step) is str for step in at):
            return snapshot.text(at)  # type: ignore[arg-type]
        return canonical.encode(value, snapshot.flags)

    members = {
        name: value
        for name, value in context.items()
        if name not in ("interception_point", "target", "extensions")
    }
    try:
        fields.encode(members, _CONTEXT, message, text, ())
        if not snapshot.target_is_member:
            message.target_json = snapshot.target_text().decode()
        _encode_extensions(context, message, text)
    except ValueDomainError as refusal:
        raise WireError(f"context: {refusal.problem}") from None
    except ValueError:
        raise WireError("context: a string is not valid Unicode (§4.4)") from None
    return message


def _encode_extensions(
    context: AgentContext, message: context_pb2.AgentContext, text: fields.Text
) -> None:
    if "extensions" not in context:
        return
    extensions = context["extensions"]
    if type(extensions) is not dict or not extensions:
        message.other_json["extensions"] = text(("extensions",), extensions).decode()
        return
    for namespace, value in extensions.items():
        message.extensions_json[namespace] = text(("extensions", namespace), value).decode()


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
) -> bytes:
    """A serialised InterceptRequest.

    The context is encoded once per emission and kept on the snapshot; the rest
    is appended, which protobuf defines as a merge.

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
            transform_permitted=snapshot.point.transform_permitted,
            approval_available=approval_available,
            timeout_ms=timeout_ms,
        ).SerializeToString()
    )


def parse_message(kind: type[M], data: bytes, what: str) -> M:
    """Parse bytes as a message.

    Raises:
        WireError: they are none.
    """
    try:
        return kind.FromString(data)
    except DecodeError:
        raise WireError(f"{what}: not a valid message") from None
