"""PluginService on the wire: who a plugin is, its configuration, its end."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from agent_hooks.v1 import plugin_pb2
from agent_hooks.wire import fields
from agent_hooks.wire.context import parse_message, point_name, point_number

INTERCEPTOR = "interceptor"
APPROVAL_RESOLVER = "approval_resolver"
INTERCEPT_STREAM = "intercept_stream"
"""The capability of a plugin that serves InterceptStream."""
MAX_STREAMS = 16
"""InterceptStreams that a host has open to one plugin."""

_TO_KIND = {
    INTERCEPTOR: plugin_pb2.PLUGIN_KIND_INTERCEPTOR,
    APPROVAL_RESOLVER: plugin_pb2.PLUGIN_KIND_APPROVAL_RESOLVER,
}
_FROM_KIND = {number: name for name, number in _TO_KIND.items()}


@dataclass(frozen=True, slots=True)
class Description:
    """What a plugin says of itself.

    Attributes:
        kind: INTERCEPTOR, APPROVAL_RESOLVER, or "" for neither.
        points: those it serves; empty means none.
        config_schema_json: JSON Schema text, or None: it takes no configuration.
        max_concurrency: calls at once; 0 leaves it to the host.
        capabilities: optional parts of the protocol; those unknown here mean nothing.
    """

    name: str
    version: str
    protocol_version: int
    specs: tuple[str, ...]
    kind: str
    points: tuple[str, ...] = ()
    config_schema_json: str | None = None
    max_concurrency: int = 0
    capabilities: tuple[str, ...] = ()


def encode_describe(protocol_versions: Iterable[int], specs: Iterable[str]) -> bytes:
    """A serialised DescribeRequest."""
    return plugin_pb2.DescribeRequest(
        protocol_versions=protocol_versions, specs=specs
    ).SerializeToString()


def encode_description(description: Description) -> bytes:
    """A serialised DescribeResponse."""
    return plugin_pb2.DescribeResponse(
        name=description.name,
        version=description.version,
        protocol_version=description.protocol_version,
        specs=description.specs,
        kind=_TO_KIND[description.kind],
        points=[point_number(name) for name in description.points],  # type: ignore[misc]
        config_schema_json=description.config_schema_json,
        max_concurrency=description.max_concurrency,
        capabilities=description.capabilities,
    ).SerializeToString()


def decode_description(data: bytes, spoken: Container[int] = (1,)) -> Description:
    """The description in a serialised DescribeResponse.

    Args:
        spoken: protocol versions whose messages are known here. Of a
            description in another version only the versions are read.

    Raises:
        WireError: no such message, an unknown field or point.
    """
    message: plugin_pb2.DescribeResponse = parse_message(
        plugin_pb2.DescribeResponse, data, "answer"
    )
    version, specs = message.protocol_version, tuple(message.specs)
    if version not in spoken:
        return Description(message.name, message.version, version, specs, "")
    fields.refuse_unknown_fields(message, "answer")
    return Description(
        message.name,
        message.version,
        version,
        specs,
        _FROM_KIND.get(message.kind, ""),
        tuple(point_name(number) for number in message.points),
        message.config_schema_json if message.HasField("config_schema_json") else None,
        message.max_concurrency,
        tuple(message.capabilities),
    )


def encode_configure(binding_id: str, config_json: str) -> bytes:
    """A serialised ConfigureRequest."""
    return plugin_pb2.ConfigureRequest(
        binding_id=binding_id, config_json=config_json
    ).SerializeToString()


def encode_shutdown(grace: float) -> bytes:
    """A serialised ShutdownRequest; `grace` in seconds."""
    return plugin_pb2.ShutdownRequest(grace_ms=int(grace * 1000)).SerializeToString()
