"""Every decoder that meets somebody else's bytes, and what must hold of it for any input.

A target takes bytes and returns what it made of them, or None where they were
refused as documented. Anything else it raises is a finding; so is `Finding`:
the decoder took what a strict reader of the same standard refuses, or read
something else in it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from agent_hooks.cli.hostfile import HostFileError, load_host_file
from agent_hooks.core import canonical, values
from agent_hooks.core import path as paths
from agent_hooks.core.context import Bounds, ContextError, check_context
from agent_hooks.core.values import ValueDomainError
from agent_hooks.core.verdict import Decision, Verdict, VerdictError, check_verdict
from agent_hooks.supervisor import ManifestError
from agent_hooks.supervisor.manifest import parse_manifest
from agent_hooks.v1 import approval_pb2, interceptor_pb2, record_pb2
from agent_hooks.wire import rights
from agent_hooks.wire.approval import decode_resolution, decode_resolve
from agent_hooks.wire.context import decode_context, encode_context, parse_message
from agent_hooks.wire.fields import WireError
from agent_hooks.wire.plugin import decode_description, encode_description
from agent_hooks.wire.record import decode_record, encode_record
from agent_hooks.wire.verdict import decode_response, decode_stream_response
from tests.fuzz import reference
from tests.fuzz.reference import Refused

EMISSION = "0123456789abcdef0123456789abcdef"
DEPTH = 64


class Finding(AssertionError):
    """What a decoder must not do."""


def require(claim: bool, what: str) -> None:
    if not claim:
        raise Finding(what)


def _strictly(read: Callable[[], Any]) -> Any:
    """What the reference reads; `Refused` itself where it reads nothing."""
    try:
        return read()
    except Refused:
        return Refused


def _same(ours: Any, theirs: Any, what: str) -> None:
    require(theirs is not Refused, f"{what}: taken, though a strict reader refuses it")
    require(_text(ours) == _text(theirs), f"{what}: read as something else")


def _text(value: Any) -> str:
    """Tells 1 from 1.0, and 0.0 from -0.0."""
    return json.dumps(value, sort_keys=True)


# -- JSON text --


def _json(parse: Callable[..., Any], is_canonical: bool) -> Callable[[bytes], Any]:
    def target(data: bytes) -> Any:
        theirs = _strictly(lambda: reference.Json(data, DEPTH, is_canonical).read())
        try:
            ours = parse(data, DEPTH)
        except ValueDomainError:
            require(theirs is Refused, "JSON: refused, though a strict reader takes it")
            return None
        _same(ours, theirs, "JSON")
        return (ours,)

    return target


# -- verdicts --


def _gate(data: bytes) -> Any:
    try:
        value = values.parse_json(data)
    except ValueDomainError:
        return None
    try:
        verdict = check_verdict(value)
    except VerdictError:
        return None
    require(reference.is_verdict(value), "gate: took what is no verdict")
    again = check_verdict(verdict.to_wire())
    require(again == verdict, "gate: a verdict that passed it does not pass it again")
    return verdict


def _answer(decode: Callable[[bytes], Verdict], emission_id: str | None) -> Any:
    def target(data: bytes) -> Any:
        theirs = _strictly(lambda: reference.answer(data, emission_id))
        try:
            verdict = decode(data)
        except WireError:
            # A second id is refused even where it is the same one.
            twice = emission_id is not None and data.count(emission_id.encode()) > 1
            require(theirs is Refused or twice, "answer: refused, though a strict reader takes it")
            return None
        _same(verdict.to_wire(), theirs, "answer")
        try:
            gated = check_verdict(verdict)
        except VerdictError:
            return None
        if gated.decision is Decision.ALLOW:
            require(reference.is_verdict(theirs), "answer: an allow that is no verdict")
        return gated

    return target


def _resolution(data: bytes) -> Any:
    try:
        resolution = decode_resolution(data)
    except WireError:
        return None
    return resolution


# -- contexts, records, descriptions --


def _context(message: Any) -> Any:
    context = decode_context(message)
    try:
        snapshot = check_context(context, Bounds(), context["spec"])
    except ContextError:
        return context
    again = decode_context(encode_context(snapshot))
    require(again == context, "context: what was decoded is encoded as something else")
    return context


def _request(data: bytes) -> Any:
    try:
        request = parse_message(interceptor_pb2.InterceptRequest, data, "request")
        rights.decode_rights(request)
        return _context(request.context)
    except WireError:
        return None


def _stream_request(data: bytes) -> Any:
    try:
        message = parse_message(interceptor_pb2.InterceptStreamRequest, data, "request")
        return _context(message.request.context)
    except WireError:
        return None


def _resolve(data: bytes) -> Any:
    try:
        return decode_resolve(parse_message(approval_pb2.ResolveRequest, data, "request"))
    except WireError:
        return None


def _record(data: bytes) -> Any:
    try:
        record = decode_record(parse_message(record_pb2.InterceptionRecord, data, "record"))
    except WireError:
        return None
    require(decode_record(encode_record(record)) == record, "record: encoded as something else")
    return record


def _description(data: bytes) -> Any:
    try:
        described = decode_description(data)
    except WireError:
        return None
    if described.kind:
        again = decode_description(encode_description(described))
        require(again == described, "description: encoded as something else")
    return described


# -- paths --


def _path(data: bytes) -> Any:
    text = data.decode("utf-8", "replace")
    theirs = _strictly(lambda: reference.path(text))
    try:
        steps = paths.parse(text)
    except paths.PathError:
        require(theirs is Refused, "path: refused, though the grammar has it")
        return None
    require(theirs == steps, "path: read as something else")
    return (steps,)


# -- files --

_HERE = Path("/plugins/p")


def _manifest(data: bytes) -> Any:
    try:
        manifest = parse_manifest(_HERE / "plugin.toml", _HERE, data)
    except ManifestError:
        return None
    require(bool(manifest.command), "manifest: without a command")
    outside = [
        name for name in manifest.files if not (_HERE / name).resolve().is_relative_to(_HERE)
    ]
    require(not outside, "manifest: pins a file outside its folder")
    return manifest


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="agent-hooks-fuzz-"))
    for kind in ("agent_hooks.policy_cel", "agent_hooks.secrets"):
        plugin = folder / "plugins" / kind
        plugin.mkdir(parents=True)
        (plugin / "plugin.toml").write_text(
            f'[plugin]\nname = "p"\nkind = "{kind}"\ncommand = ["p"]\n'
        )
    return folder


def _host_file(data: bytes) -> Any:
    path = _folder() / "host.toml"
    path.write_bytes(data)
    try:
        return load_host_file(path, plugins=_folder() / "plugins")
    except (HostFileError, ManifestError):
        return None


TARGETS: dict[str, Callable[[bytes], Any]] = {
    "parse": _json(canonical.parse, False),
    "parse_canonical": _json(canonical.parse_canonical, True),
    "parse_json": _json(values.parse_json, False),
    "gate": _gate,
    "answer": _answer(decode_response, None),
    "stream_answer": _answer(lambda data: decode_stream_response(data, EMISSION), EMISSION),
    "resolution": _resolution,
    "request": _request,
    "stream_request": _stream_request,
    "resolve": _resolve,
    "record": _record,
    "description": _description,
    "path": _path,
    "manifest": _manifest,
    "host_file": _host_file,
}
