"""Inputs to start from: the conformance vectors, in the form that each decoder takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

from agent_hooks.core.approval import ApprovalOutcome, ApprovalRequest
from agent_hooks.core.context import Bounds, check_context
from agent_hooks.core.points import POINTS, InterceptionPoint
from agent_hooks.core.profile import EnforcementMode
from agent_hooks.core.verdict import Verdict, VerdictError, check_verdict
from agent_hooks.host import SyncInterceptionEmitter
from agent_hooks.wire.approval import encode_resolution, encode_resolve
from agent_hooks.wire.context import encode_request, encode_stream_request
from agent_hooks.wire.plugin import APPROVAL_RESOLVER, INTERCEPTOR, Description, encode_description
from agent_hooks.wire.record import encode_record
from agent_hooks.wire.verdict import encode_response, encode_stream_response, encode_verdict
from tests.fuzz.targets import EMISSION
from tests.shared import ROOT, shared, shared_json


@cache
def seeds() -> dict[str, list[bytes]]:
    """Target → inputs, none twice."""
    vectors = [shared_json("ctk", "vectors", path.name) for path in _vector_files()]
    objects = [item for vector in vectors for item in _objects(vector)]
    scripted = [item for item in objects if "decision" in item]
    verdicts = list(_verdicts(scripted))
    contexts = [item["ctx"] for item in shared_json("ctk", "golden", "identity.json")["fixtures"]]
    texts = [_text(item) for item in [*vectors, *contexts, *scripted]]
    found = {
        **dict.fromkeys(("parse", "parse_canonical", "parse_json"), texts),
        "gate": [_text(item) for item in scripted],
        "path": [item["path"].encode() for item in objects if isinstance(item.get("path"), str)],
        "manifest": [path.read_bytes() for path in _manifests()] + [_PINNED],
        "host_file": [path.read_bytes() for path in sorted(ROOT.glob("*/**/host.toml"))],
        "answer": [encode_response(item) for item in verdicts],
        "stream_answer": [encode_stream_response(item, EMISSION) for item in verdicts],
        "resolution": [
            encode_resolution(outcome, "sha256:0", encode_verdict(item))
            for outcome in ApprovalOutcome
            for item in verdicts
        ],
        "description": [
            encode_description(Description("n", "1", 1, ("agent-hooks/0.1",), kind, tuple(POINTS)))
            for kind in (INTERCEPTOR, APPROVAL_RESOLVER)
        ],
        **_of_contexts(contexts, verdicts),
    }
    return {name: list(dict.fromkeys(inputs)) for name, inputs in found.items()}


_PINNED = b"""[plugin]
name = "n"
kind = "k"
command = ["{python}", "./main.py"]
[files]
"main.py" = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
"""


def _vector_files() -> list[Any]:
    return sorted(shared("ctk", "vectors").glob("*.json"))


def _manifests() -> list[Any]:
    return sorted(
        path for top in ("plugins", "examples") for path in (ROOT / top).rglob("plugin.toml")
    )


def _text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, (dict, list)):
            yield from _objects(item)


def _verdicts(scripted: list[dict[str, Any]]) -> Iterator[Verdict]:
    for item in scripted:
        try:
            yield check_verdict(item)
        except VerdictError:
            continue


def _of_contexts(contexts: list[Any], verdicts: list[Verdict]) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {"request": [], "resolve": [], "record": []}
    for number, context in enumerate(contexts):
        try:
            snapshot = check_context(context, Bounds(), context["spec"])
            request = encode_request(
                snapshot,
                emission_id=EMISSION,
                mode=EnforcementMode.ENFORCE,
                approval_available=True,
                timeout_ms=5000,
            )
        except ValueError:
            continue  # there to be refused
        verdict = verdicts[number % len(verdicts)]
        found["request"].append(request)
        point = InterceptionPoint(context["interception_point"])
        asked = ApprovalRequest("sha256:0", point, verdict, context)
        found["resolve"].append(encode_resolve(asked, snapshot))
        found["record"].append(_record(context, verdict))
    found["stream_request"] = [
        encode_stream_request(item, "00-0-0-01") for item in found["request"]
    ]
    return found


def _record(context: Any, verdict: Verdict) -> bytes:
    """The record of an emission in which one interceptor says this."""
    emitter = SyncInterceptionEmitter()
    emitter.register(SimpleNamespace(intercept=lambda _: verdict))
    return encode_record(emitter.emit_unchecked(context)).SerializeToString()
