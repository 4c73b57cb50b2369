"""The contract's threat model, by its own numbers, against interceptors in other processes.

`docs/threat-model.md` names these tests.
"""

from __future__ import annotations

import copy
import json
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.core.approval import ApprovalOutcome, ApprovalRequest, ApprovalResolution
from agent_hooks.core.builder import AgentContextBuilder
from agent_hooks.core.context import Bounds
from agent_hooks.core.profile import CompositionConfig
from agent_hooks.core.verdict import ALLOW
from agent_hooks.supervisor import Binding, Manifest, Supervisor
from tests.processes.support import EMITTERS, HERE, PROFILES, QUICK, SLACK, context, judge
from tests.processes.support import leaving_nothing as nothing_left

CANARY = "canary-7c2f"
TREACHEROUS = Manifest(
    "treacherous", "treacherous", (sys.executable, str(HERE / "plugins" / "treacherous.py"))
)


@pytest.fixture(scope="module")
def plugins(temporary: Path) -> Iterator[Supervisor]:
    """Two of them, each a process."""
    with nothing_left(temporary):
        bindings = [Binding("a", TREACHEROUS), Binding("b", TREACHEROUS)]
        with Supervisor(bindings, QUICK) as supervisor:
            yield supervisor


def saying(what: str, **arguments: Any) -> dict[str, Any]:
    raw = context()
    raw["tool_call"]["args"] |= {"say": what, **arguments}
    return raw


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("profile", PROFILES)
def test_tm_05_mutation_of_the_received_context_reaches_nobody(
    plugins: Supervisor, profile: str, kind: Any
) -> None:
    """§7: the other interceptor, the host's own context and the identity are untouched."""
    raw = saying("mutated")
    before = copy.deepcopy(raw)
    judged = judge(
        kind,
        raw,
        plugins.interceptor("a"),
        plugins.interceptor("b"),
        composition=PROFILES[profile],
    )
    assert judged.decision == "allow"
    assert raw == before
    assert judged.record.input_identity == judged.record.enforced_identity is not None


@pytest.mark.parametrize("kind", EMITTERS)
def test_tm_09_no_payload_reaches_the_record(
    plugins: Supervisor, kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """§10.3: of what an interceptor writes on purpose, 256 bytes; of an exception, its type."""
    for what in ("raise", "canary"):
        judged = judge(kind, saying(what, canary=CANARY), plugins.interceptor("a"))
        text = json.dumps(judged.record.to_wire())
        if what == "raise":
            assert CANARY not in text
        else:
            assert judged.record.verdict.message is not None
            assert len(judged.record.verdict.message.encode()) <= 256
            assert all(len(w.message or "") <= 256 for w in judged.record.verdict.warnings)
    assert CANARY not in caplog.text


@pytest.mark.parametrize("kind", EMITTERS)
def test_tm_10_pointers_of_evidence_are_not_followed(plugins: Supervisor, kind: Any) -> None:
    """§5.3, §14: neither by the host nor by the plugin's library: nobody connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/proof"
        judged = judge(kind, saying("pointers", url=url), plugins.interceptor("a"))
        assert judged.decision == "deny"
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize("kind", EMITTERS)
def test_tm_11_part_of_a_stream_is_judged_by_nobody_and_kept_by_nobody(
    plugins: Supervisor, kind: Any
) -> None:
    """§12.1: a host that could not assemble a response gets a deny; the plugin hears nothing."""
    builder = AgentContextBuilder(agent_id="a", framework="f", session_id="s")
    raw = builder.post_model_call(
        model_id="m", content="half of", tool_calls=[], finish_reason="stream_incomplete"
    )
    before = plugins.status()[0]["answered"]
    judged = judge(kind, raw, plugins.interceptor("a"))
    assert judged.reason == "host_error:streaming_unsupported"
    assert judged.record.verdicts == ()
    assert plugins.status()[0]["answered"] == before


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize(
    "raw",
    [
        saying("", much="x" * (6 << 20)),
        saying("", deep=json.loads("[" * 127 + "]" * 127)),
        saying("", wide=[[]] * 1_800_000),
    ],
    ids=["size", "depth", "width"],
)
def test_tm_12_context_beyond_its_bounds_reaches_no_plugin(
    plugins: Supervisor, raw: Any, kind: Any
) -> None:
    """§12.3: a deny, in time, before anything is sent; and the next one is judged."""
    judged = judge(kind, raw, plugins.interceptor("a"))
    assert judged.reason == "host_error:context_invalid"
    assert judged.record.verdicts == ()
    assert judged.seconds < 10 + SLACK
    assert judge(kind, saying(""), plugins.interceptor("a")).decision == "allow"


@pytest.mark.parametrize("kind", EMITTERS)
def test_tm_12_bounds_are_the_hosts_to_set(plugins: Supervisor, kind: Any) -> None:
    """§12.3: lower ones bind too."""
    raw = saying("", much="x" * 4000)
    bounds = Bounds(max_bytes=2000)
    judged = judge(kind, raw, plugins.interceptor("a"), bounds=bounds)
    assert judged.reason == "host_error:context_invalid"


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("profile", PROFILES)
def test_tm_13_labels_of_every_permit_are_united_and_a_deny_has_none(
    plugins: Supervisor, profile: str, kind: Any
) -> None:
    """§7.3, §5.4: the union half; what a host keeps of them is its adapter's."""
    both = (plugins.interceptor("a"), plugins.interceptor("b"))
    judged = judge(
        kind, saying("labels", labels=["pii", "eu"]), *both, composition=PROFILES[profile]
    )
    assert judged.record.verdict.result_labels == ("pii", "eu")
    judged = judge(
        kind, saying("labelled deny", labels=["pii"]), *both, composition=PROFILES[profile]
    )
    assert judged.decision == "deny"
    assert judged.record.verdict.result_labels == ()


class Approver:
    """Approves everything, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []
        self._lock = threading.Lock()

    def resolve(self, request: ApprovalRequest) -> ApprovalResolution:
        with self._lock:
            self.asked.append(request)
        return ApprovalResolution(ApprovalOutcome.APPROVE, request.context_identity, ALLOW)


class Denier:
    """A control that no approval may override."""

    def intercept(self, _: dict[str, Any]) -> Any:
        return {"decision": "deny", "reason": "never"}


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize(
    "profile", [CompositionConfig.run_all(), CompositionConfig.strictest()], ids=["all", "strict"]
)
def test_tm_18_one_approval_lifts_no_more_than_liftable_denies(
    plugins: Supervisor, profile: CompositionConfig, kind: Any
) -> None:
    """§7.4, §7.5: at most one consultation, none beside a plain deny; the record keeps each."""
    approver = Approver()
    both = (plugins.interceptor("a"), plugins.interceptor("b"))
    raw = saying("liftable")
    judged = judge(kind, raw, *both, composition=profile, resolver=approver)
    assert (judged.decision, judged.record.resolved_by) == ("allow", "approval")
    assert [slot.decision.value for slot in judged.record.verdicts] == ["deny", "deny"]
    assert len(approver.asked) == 1
    judged = judge(kind, raw, *both, Denier(), composition=profile, resolver=approver)
    assert (judged.decision, judged.reason) == ("deny", "never")
    assert judged.record.resolved_by is None
    assert len(approver.asked) == 1


@pytest.mark.parametrize("kind", EMITTERS)
def test_tm_02_reserved_reason_is_no_plugins_to_say(plugins: Supervisor, kind: Any) -> None:
    """§5: a plugin cannot speak for the host."""
    judged = judge(kind, saying("reserved"), plugins.interceptor("a"))
    assert judged.reason == "host_error:verdict_invalid"
