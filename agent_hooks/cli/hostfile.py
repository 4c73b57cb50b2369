"""A host's configuration from one TOML file, and the host that it describes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_hooks.core.approval import ApprovalOutcome, ApprovalRequest, ApprovalResolution
from agent_hooks.core.points import POINTS
from agent_hooks.core.profile import CompositionConfig, EnforcementMode
from agent_hooks.core.verdict import ALLOW, Verdict
from agent_hooks.host import AllowAll, NdjsonSink, SyncInterceptionEmitter
from agent_hooks.supervisor import Binding, Manifest, Supervisor, load_manifests
from agent_hooks.telemetry import Tracing

ALLOW_ALL = "agent_hooks.allow_all"
"""The kind of a deliberate passthrough; it needs no plugin."""

RESOLVERS = ("none", "approve", "reject", "unresolved")


class HostFileError(ValueError):
    """A file that is refused; the text names the file, the key and the remedy."""


@dataclass(frozen=True, slots=True)
class HostFile:
    """What a host file says.

    Attributes:
        resolver: the scripted approver, one of `RESOLVERS`.
        bindings: in the order of §7.4; one without a manifest is a passthrough.
    """

    mode: EnforcementMode
    composition: CompositionConfig
    resolver: str
    bindings: tuple[Binding | Passthrough, ...]


@dataclass(frozen=True, slots=True)
class Passthrough:
    """A binding that allows everything at some points (§7)."""

    id: str
    points: tuple[str, ...]


class ScriptedApprover:
    """Answers every consultation alike, as an approver who is always there would."""

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def resolve(self, request: ApprovalRequest) -> ApprovalResolution:
        """Approve, reject or leave unresolved."""
        verdict = {"approve": ALLOW, "reject": Verdict.deny(reason="approver:rejected")}
        outcome = ApprovalOutcome(self._answer)
        return ApprovalResolution(outcome, request.context_identity, verdict.get(self._answer))


def load_host_file(
    path: Path,
    *,
    plugins: Path | None = None,
    profile: str | None = None,
    mode: str | None = None,
) -> HostFile:
    """Read a host file; the keyword arguments stand in for what it says.

    Raises:
        HostFileError: unreadable, not TOML, or a key that is unknown or wrong.
        ManifestError: a bad plugin folder.
    """
    document = _read(path)
    _known(path, "", document, ("plugins", "configuration", "approval", "bindings"))
    configuration = _table(path, document, "configuration")
    _known(path, "configuration.", configuration, ("mode", "composition"))
    approval = _table(path, document, "approval")
    _known(path, "approval.", approval, ("resolver",))
    composition = dict(_table(path, configuration, "composition", "configuration."))
    if profile is not None:
        composition = {"profile": profile}
    folder = plugins or path.parent / _text(path, document, "plugins", default="plugins")
    manifests = load_manifests(folder)
    return HostFile(
        _mode(path, mode or _text(path, configuration, "mode", default="enforce")),
        _composition(path, composition),
        _choice(path, approval, "resolver", RESOLVERS, "none"),
        tuple(
            _binding(path, index, entry, manifests, folder)
            for index, entry in enumerate(_bindings(path, document))
        ),
    )


@contextmanager
def running(
    host: HostFile, records: Path, tracing: Tracing | None = None
) -> Iterator[SyncInterceptionEmitter]:
    """The host that a file describes, its plugins ready; everything ends with it.

    Raises:
        PluginStartError: a plugin could not be started.
    """
    with ExitStack() as stack:
        sink = NdjsonSink(records)
        stack.callback(sink.close)
        if tracing is not None:
            stack.callback(tracing.shutdown)
        plugins = [item for item in host.bindings if isinstance(item, Binding)]
        supervisor = stack.enter_context(Supervisor(plugins))
        emitter = SyncInterceptionEmitter(
            mode=host.mode,
            composition=host.composition,
            resolver=None if host.resolver == "none" else ScriptedApprover(host.resolver),
            observer=tracing,
        )
        emitter.set_record_sink(sink)
        for item in host.bindings:
            if isinstance(item, Binding):
                emitter.register(supervisor.interceptor(item.id), name=item.id)
            else:
                emitter.register(AllowAll(), name=item.id, at=item.points)
        yield emitter


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise HostFileError(f"{path}: cannot be read ({exc.strerror})") from None
    except UnicodeDecodeError:
        raise HostFileError(f"{path}: is not UTF-8") from None
    except (ValueError, RecursionError) as exc:  # a number too long, tables too deep
        detail = f": {exc}" if isinstance(exc, tomllib.TOMLDecodeError) else ""
        raise HostFileError(f"{path}: is not TOML{detail}") from None


def _known(path: Path, where: str, table: dict[str, Any], names: tuple[str, ...]) -> None:
    for key in table:
        if key not in names:
            raise HostFileError(f"{path}: {where}{key}: unknown; known are {', '.join(names)}")


def _table(path: Path, table: dict[str, Any], name: str, where: str = "") -> dict[str, Any]:
    value = table.get(name, {})
    if not isinstance(value, dict):
        raise HostFileError(f"{path}: {where}{name}: expected a table")
    return value


def _text(
    path: Path, table: dict[str, Any], name: str, default: str | None, where: str = ""
) -> str:
    value = table.get(name, default)
    if not isinstance(value, str) or not value:
        raise HostFileError(f"{path}: {where}{name}: expected a string")
    return value


def _choice(
    path: Path, table: dict[str, Any], name: str, allowed: tuple[str, ...], default: str
) -> str:
    value = _text(path, table, name, default)
    if value not in allowed:
        raise HostFileError(f"{path}: {name}: expected one of {', '.join(allowed)}")
    return value


def _mode(path: Path, mode: str) -> EnforcementMode:
    try:
        return EnforcementMode(mode)
    except ValueError:
        raise HostFileError(
            f"{path}: configuration.mode: expected enforce or evaluate_only"
        ) from None


def _composition(path: Path, composition: dict[str, Any]) -> CompositionConfig:
    try:
        return CompositionConfig.from_wire(composition or None)
    except ValueError as exc:
        raise HostFileError(f"{path}: configuration.composition: {exc}") from None


def _bindings(path: Path, document: dict[str, Any]) -> list[dict[str, Any]]:
    bindings = document.get("bindings", [])
    if not isinstance(bindings, list) or not all(isinstance(item, dict) for item in bindings):
        raise HostFileError(f"{path}: bindings: expected an array of tables, [[bindings]]")
    ids = [item.get("id") for item in bindings]
    if len(set(map(str, ids))) != len(ids):
        raise HostFileError(f"{path}: bindings: two of them have the same id")
    return bindings


def _binding(
    path: Path, index: int, entry: dict[str, Any], manifests: dict[str, Manifest], folder: Path
) -> Binding | Passthrough:
    where = f"bindings[{index}]."
    _known(path, where, entry, ("id", "kind", "at", "timeout_ms", "config"))
    kind = _text(path, entry, "kind", None, where)
    if kind == ALLOW_ALL:
        _known(path, where, entry, ("id", "kind", "at"))
        return Passthrough(_text(path, entry, "id", None, where), _at(path, where, entry, POINTS))
    if kind not in manifests:
        known = ", ".join([*manifests, ALLOW_ALL])
        raise HostFileError(
            f"{path}: {where}kind: no plugin in {folder} has it; there are: {known}"
        )
    points = _at(path, where, entry, manifests[kind].points)
    timeout = entry.get("timeout_ms")
    if timeout is not None and (type(timeout) is not int or timeout <= 0):
        raise HostFileError(f"{path}: {where}timeout_ms: expected a whole number > 0")
    return Binding(
        id=_text(path, entry, "id", None, where),
        manifest=manifests[kind],
        config=_table(path, entry, "config", where),
        timeout=None if timeout is None else timeout / 1000,
        points=points,
    )


def _at(path: Path, where: str, entry: dict[str, Any], allowed: Iterable[str]) -> tuple[str, ...]:
    points = entry.get("at", list(allowed))
    if not isinstance(points, list) or not set(map(str, points)) <= set(allowed):
        raise HostFileError(f"{path}: {where}at: expected points among {', '.join(allowed)}")
    return tuple(points)
