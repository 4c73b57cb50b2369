"""The kit notices broken hosts: each one fails a vector of ours, and the sound one passes it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from agent_hooks import (
    ALLOW,
    ApprovalOutcome,
    ApprovalResolution,
    CompositionConfig,
    EnforcementMode,
)
from agent_hooks.core.points import POINTS
from agent_hooks.ctk import ReferenceHarness
from tests.ctk.support import status


class NoOrder:
    """In place of the emitter's own guard, which would stop some of these hosts itself."""

    def refuse(self, _: Any) -> None:
        return None

    def note(self, *_: Any) -> None:
        return None


class Deaf(ReferenceHarness):
    """Goes on after a deny at one point."""

    point = ""

    def setup(self, *args: Any, **kwargs: Any) -> None:
        super().setup(*args, **kwargs)
        self.emitter._sessions = NoOrder()  # type: ignore[assignment]

    async def emit(self, context: Any) -> Any:
        kept = await super().emit(context)
        if context["interception_point"] != self.point:
            return kept
        return replace(kept, mode=EnforcementMode.EVALUATE_ONLY)


class Skipping(ReferenceHarness):
    """Does not emit one point."""

    point = ""

    async def emit(self, context: Any) -> Any:
        if context["interception_point"] == self.point:
            return SimpleNamespace(proceeds=True)
        return await super().emit(context)


class Reporting(ReferenceHarness):
    """Changes each record on its way out."""

    def change(self, wire: dict[str, Any]) -> None:
        raise NotImplementedError

    async def emit(self, context: Any) -> Any:
        kept = await super().emit(context)
        self.change(self.report.records[-1])
        return kept


class Configured(ReferenceHarness):
    """Overrules what the vector asks of the host."""

    overruled: dict[str, Any] = {}  # noqa: RUF012 - a constant of each subclass

    def setup(self, scenario: Any, interceptors: Any, *rest: Any, **more: Any) -> None:
        names = ("resolver", "mode", "composition", "identity_provider")
        given = dict(zip(names, rest, strict=True)) | more
        given |= {name: self.overruled[name] for name in self.overruled if name in given}
        super().setup(scenario, self.judges(interceptors), **given)

    def judges(self, interceptors: list[Any]) -> list[Any]:
        return interceptors


class IgnoresTransforms(ReferenceHarness):
    async def emit(self, context: Any) -> Any:
        before = copy.deepcopy(context)
        kept = await super().emit(context)
        context.clear()
        context.update(before)
        return kept


class AppliesInEvaluateOnly(Configured):
    overruled = {"mode": EnforcementMode.ENFORCE}  # noqa: RUF012

    async def emit(self, context: Any) -> Any:
        kept = await super().emit(context)
        self.report.records[-1]["mode"] = "evaluate_only"
        return replace(kept, mode=EnforcementMode.EVALUATE_ONLY)


class MovesFloats(ReferenceHarness):
    async def call_tool(self, call_id: str, name: str, args: dict[str, Any]) -> Any:
        moved = {
            key: math.nextafter(value, 0) if type(value) is float else value
            for key, value in args.items()
        }
        return await super().call_tool(call_id, name, moved)


class NeverErrs(ReferenceHarness):
    """Says at shutdown that all went well."""

    async def emit(self, context: Any) -> Any:
        if context["interception_point"] == "agent_shutdown":
            context["summary"]["reason"] = "completed"
        return await super().emit(context)


class IncorporatesDenied(ReferenceHarness):
    async def call_tool(self, call_id: str, name: str, args: dict[str, Any]) -> Any:
        told = await super().call_tool(call_id, name, args)
        if not str(told).startswith("blocked"):
            return told
        return [told, *(tool.behavior[0].return_ for tool in self.scenario.tools.values())]


class HidesDenies(ReferenceHarness):
    async def call_tool(self, call_id: str, name: str, args: dict[str, Any]) -> Any:
        told = await super().call_tool(call_id, name, args)
        return "" if str(told).startswith("blocked") else told


class EveryoneAgrees:
    def resolve(self, request: Any) -> ApprovalResolution:
        return ApprovalResolution(ApprovalOutcome.APPROVE, request.context_identity, ALLOW)


class PermitsWhereNobodyJudges(Configured):
    def judges(self, interceptors: list[Any]) -> list[Any]:
        return interceptors or [SimpleNamespace(intercept=lambda _: ALLOW)]


class Reversed(Configured):
    def judges(self, interceptors: list[Any]) -> list[Any]:
        return interceptors[:1] + interceptors[:0:-1]


def overruling(**overruled: Any) -> type[ReferenceHarness]:
    return type("Overruling", (Configured,), {"overruled": overruled})


def at(point: str, kind: type[ReferenceHarness]) -> type[ReferenceHarness]:
    return type(f"{kind.__name__}At", (kind,), {"point": point})


def reporting(change: Callable[[dict[str, Any]], Any]) -> type[ReferenceHarness]:
    return type("Changed", (Reporting,), {"change": lambda _, wire: change(wire)})


HOSTS: dict[str, tuple[type[ReferenceHarness], str]] = {
    "goes on after a denied startup": (at("agent_startup", Deaf), "AH-CTK-514"),
    "goes on after a denied input": (at("input", Deaf), "AH-CTK-532"),
    "goes on after a denied request to the model": (
        at("pre_model_call", Deaf), "AH-CTK-502-deny-pre-model",
    ),
    "goes on after a denied response": (at("post_model_call", Deaf), "AH-CTK-501"),
    "goes on after a denied tool call": (at("pre_tool_call", Deaf), "AH-CTK-500"),
    "goes on after a denied tool result": (at("post_tool_call", Deaf), "AH-CTK-508"),
    "goes on after a denied output": (at("output", Deaf), "AH-CTK-502-deny-output"),
    **{f"skips {point}": (at(point, Skipping), "AH-CTK-509") for point in POINTS},
    "ignores every transform": (IgnoresTransforms, "AH-CTK-520"),
    "applies transforms in evaluate_only": (
        AppliesInEvaluateOnly, "AH-CTK-584-evaluate-only-fold",
    ),
    "enforces in evaluate_only": (
        overruling(mode=EnforcementMode.ENFORCE), "AH-CTK-584-evaluate-only-boundaries",
    ),
    "only evaluates": (overruling(mode=EnforcementMode.EVALUATE_ONLY), "AH-CTK-500"),
    "always stops after an approval": (
        overruling(composition=CompositionConfig.first_deny()), "AH-CTK-557",
    ),
    "knows one profile": (overruling(composition=CompositionConfig.run_all()), "AH-CTK-578"),
    "has no resolver": (overruling(resolver=None), "AH-CTK-513"),
    "approves everything": (overruling(resolver=EveryoneAgrees()), "AH-CTK-551"),
    "does not redact": (overruling(redact_for_approval=None), "AH-CTK-567"),
    "always binds": (overruling(identity_provider="jcs-sha256"), "AH-CTK-598-unbound-integer"),
    "never binds": (overruling(identity_provider=None), "AH-CTK-594-first-unsafe-integer"),
    "permits where nobody judges": (
        PermitsWhereNobodyJudges, "AH-CTK-593-no-interceptor-unanimous",
    ),
    "asks in another order": (Reversed, "AH-CTK-543"),
    "moves floats": (MovesFloats, "AH-CTK-524"),
    "says that all went well": (NeverErrs, "AH-CTK-501"),
    "tells the model a denied result": (IncorporatesDenied, "AH-CTK-508"),
    "does not tell the model of a deny": (HidesDenies, "AH-CTK-500"),
    "drops warnings": (reporting(lambda r: r["verdict"].pop("warnings", None)), "AH-CTK-585"),
    "drops labels": (reporting(lambda r: r["verdict"].pop("result_labels", None)), "AH-CTK-587"),
    "drops evidence": (reporting(lambda r: r["verdict"].pop("evidence", None)), "AH-CTK-592"),
    "drops the mark of a liftable deny": (
        reporting(lambda r: r["verdict"].pop("approval", None)), "AH-CTK-511",
    ),
    "forgets fold_truncated": (reporting(lambda r: r.update(fold_truncated=False)), "AH-CTK-540"),
    "always reports fold_truncated": (
        reporting(lambda r: r.update(fold_truncated=True)), "AH-CTK-547",
    ),
    "reports nobody's index": (reporting(lambda r: r.update(decided_by=None)), "AH-CTK-551"),
    "forgets who resolved": (reporting(lambda r: r.pop("resolved_by", None)), "AH-CTK-552"),
    "leaks the transform's value": (
        reporting(lambda r: r["verdict"].get("transform", {}).update(value=0)), "AH-CTK-503",
    ),
    "reports unresolved knobs": (
        reporting(lambda r: r["composition"].pop("on_transform_conflict", None)), "AH-CTK-576",
    ),
    "reports knobs that nobody consults": (
        reporting(lambda r: r["composition"].update(on_approval="stop")),
        "AH-CTK-593-no-interceptor-run-all",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("host", "vector"), HOSTS.values(), ids=list(HOSTS))
def test_broken_host_fails(host: type[ReferenceHarness], vector: str) -> None:
    assert status(ReferenceHarness(), vector) == "pass"
    assert status(host(), vector) == "fail"
