"""agent-hooks doctor: what this machine and this environment can promise, and what not."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import multiprocessing
import operator
import os
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from agent_hooks.cli.exits import FINDING, Output
from agent_hooks.cli.machine import MISSING, OK, WARNING, Check, machine

DISTRIBUTION = "agent-hooks-grpc"
SDK = "agent-hooks-sdk"

_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy", "all_proxy")
_ENGINE = ("GRPC_EXPERIMENTS", "GRPC_POLL_STRATEGY", "GRPC_DNS_RESOLVER")
_STYLES = {OK: "green", WARNING: "yellow", MISSING: "red"}


def doctor(
    output: Annotated[Output, typer.Option("--output", "-o", help="text or json.")] = Output.text,
) -> None:
    """Check what plugins need of this machine and this environment.

    Each line is ok, warning or missing, with what it means and what to do.
    Exits with 1 where something is missing that every plugin needs.
    """
    checks = [*_software(), *machine(), *_environment()]
    if output is Output.json:
        print(json.dumps({"ok": not any(map(_fatal, checks)), "checks": list(map(asdict, checks))}))
    else:
        _print(Console(highlight=False, soft_wrap=True), checks)
    if any(map(_fatal, checks)):
        raise typer.Exit(FINDING)


def _fatal(check: Check) -> bool:
    return check.required and check.state == MISSING


def _print(console: Console, checks: list[Check]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        state = f"[{_STYLES[check.state]}]{check.state:<7}[/]"
        needed = " (required)" if _fatal(check) else ""
        console.print(f"{state}  {check.name:<{width}}  {escape(check.says)}{needed}")
        if check.remedy:
            console.print(f"{'':7}  {'':<{width}}  → {escape(check.remedy)}")


# -- software --


def _software() -> Iterator[Check]:
    try:
        metadata = importlib.metadata.metadata(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        says = f"{DISTRIBUTION} is not installed: versions are not checked"
        yield Check("versions", WARNING, says, f"pip install {DISTRIBUTION}")
    else:
        yield _version("Python", platform.python_version(), metadata["Requires-Python"] or "")
        for requirement in metadata.get_all("Requires-Dist") or []:
            if ";" not in requirement:  # of no extra
                yield _installed(requirement)
    yield _sdk()
    yield _otlp()


def _installed(requirement: str) -> Check:
    matched = re.match(r"[\w.-]+", requirement)
    name = matched[0] if matched else requirement
    try:
        return _version(name, importlib.metadata.version(name), requirement[len(name) :])
    except importlib.metadata.PackageNotFoundError:
        remedy = f"pip install '{requirement}'"
        return Check(name, MISSING, "is not installed", remedy, required=True)


_COMPARISONS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, "<": operator.lt,
}  # fmt: skip


def _version(name: str, found: str, wanted: str) -> Check:
    """Compare with the range that this distribution declares, by the numbers alone."""
    for comparison, bound in re.findall(r"([<>=!]=?)\s*([\d.]+)", wanted):
        if not _COMPARISONS[comparison](_numbers(found), _numbers(bound)):
            says = f"{found} is outside the supported range {wanted}"
            remedy = f"install {name}{wanted}"
            return Check(name, MISSING, says, remedy, required=True)
    return Check(name, OK, f"{found}, supported is {wanted}")


def _numbers(version: str) -> tuple[int, ...]:
    matched = re.match(r"\d+(?:\.\d+)*", version)
    parts = [int(part) for part in matched[0].split(".")] if matched else []
    while parts and parts[-1] == 0:  # 8.0 is 8
        parts.pop()
    return tuple(parts)


def _sdk() -> Check:
    try:
        version = importlib.metadata.version(SDK)
    except importlib.metadata.PackageNotFoundError:
        return Check(SDK, OK, "is not installed beside this package")
    says = f"{version} is installed too: both are imported as agent_hooks, files of one may be run"
    remedy = (
        f"pip uninstall {SDK} {DISTRIBUTION}; pip install {DISTRIBUTION}, which has its names, too"
    )
    return Check(SDK, WARNING, says, remedy)


def _otlp() -> Check:
    try:
        found = importlib.util.find_spec("opentelemetry.exporter.otlp.proto.grpc")
    except ModuleNotFoundError:
        found = None
    if found is not None:
        return Check("OTLP exporter", OK, "spans can go to a collector")
    remedy = f"pip install '{DISTRIBUTION}[otlp]', if they should"
    return Check("OTLP exporter", MISSING, "spans cannot go to a collector", remedy)


# -- environment --


def _environment() -> Iterator[Check]:
    yield _proxies()
    yield _engine()
    yield _fork()


def _set(names: tuple[str, ...]) -> str:
    """Those that are set; never what they are set to, which may hold a password."""
    return ", ".join(
        written for name in names for written in (name, name.upper()) if os.environ.get(written)
    )


def _proxies() -> Check:
    if not (found := _set(_PROXIES)):
        return Check("proxies", OK, "no proxy variable is set")
    says = f"set: {found}. Calls of plugins take no proxy; spans to a collector would go through it"
    return Check("proxies", WARNING, says, "put the collector's host into no_proxy")


def _engine() -> Check:
    found = ", ".join(name for name in _ENGINE if os.environ.get(name))
    if not found:
        return Check("gRPC engine", OK, "as gRPC comes")
    says = f"changed by {found}: timeouts and restarts are not tested that way"
    return Check("gRPC engine", WARNING, says, "unset what is named")


def _fork() -> Check:
    method = multiprocessing.get_start_method()
    if os.environ.get("GRPC_ENABLE_FORK_SUPPORT", "0").lower() in ("1", "true", "yes"):
        says = "GRPC_ENABLE_FORK_SUPPORT is set: gRPC stops its threads at each fork of the host"
        return Check("forks", WARNING, says, "unset it; start a supervisor in each worker instead")
    says = f"multiprocessing starts by {method}; in a forked child every call is refused"
    return Check("forks", OK, f"{says}, so that each worker starts its own supervisor")
