"""The arrows between the rooms of the house, and the budgets that keep it readable."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.shared import ROOT, shared

PACKAGE = ROOT / "agent_hooks"
MODULES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "v1"
)
CORE = [path for path in MODULES if path.is_relative_to(PACKAGE / "core")]

MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 45

TOP = {"adapters", "cli", "ctk"}
"""Rooms that stand on all the others; nobody below imports them."""

MAY_IMPORT = {
    "core": {"core"},
    "wire": {"core", "wire", "v1"},
    "plugin": {"core", "wire", "plugin", "v1"},
    "supervisor": {"core", "wire", "supervisor", "v1"},
    "host": {"core", "host"},
    "telemetry": {"core", "telemetry"},
}
IMPURE = {
    "asyncio", "concurrent", "grpc", "io", "logging", "multiprocessing", "opentelemetry", "os",
    "pathlib", "queue", "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "tempfile",
    "threading", "time", "urllib",
}  # fmt: skip


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, *, at_import_time: bool = False) -> Iterator[str]:
    """Dotted names that a module imports; for `from x import y` both x and x.y."""
    found = ast.walk(tree(path)) if not at_import_time else _executed(tree(path).body)
    for node in found:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(path, node)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _executed(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Statements that run when the module is imported; not those for type checkers."""
    for node in body:
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _executed(node.orelse)
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            for inner in ("body", "orelse", "finalbody"):
                yield from _executed(getattr(node, inner, []))
            for handler in getattr(node, "handlers", []):
                yield from _executed(handler.body)


def _absolute(path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = path.relative_to(ROOT).with_suffix("").parts[: -node.level]
    return ".".join((*package, *filter(None, [node.module])))


def rooms(path: Path) -> set[str]:
    """Rooms of the package that a module reaches into; "" is its public front."""
    reached = set()
    for name in imports(path):
        first, *rest = name.split(".")
        if first == "agent_hooks" and rest:
            reached.add(rest[0] if _is_room(rest[0]) else "")
    return reached


def _is_room(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_imports_point_one_way(path: Path) -> None:
    """core ← wire ← {plugin, supervisor}; core ← host; telemetry sees records alone."""
    room = path.relative_to(PACKAGE).parts[0]
    if room in MAY_IMPORT:
        assert rooms(path) <= MAY_IMPORT[room], "an arrow points the wrong way"
    elif room not in TOP and room != "__init__.py":
        assert not rooms(path) & TOP, "nobody stands on the rooms at the top"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_only_wire_and_plugin_see_the_generated_code(path: Path) -> None:
    if path.relative_to(PACKAGE).parts[0] not in ("wire", "plugin"):
        assert "v1" not in rooms(path)


@pytest.mark.parametrize("path", CORE, ids=named)
def test_the_core_imports_nothing_that_acts(path: Path) -> None:
    """No I/O, no clock, no threads; of others' code, two canonical JSON libraries."""
    roots = {name.split(".")[0] for name in imports(path)} - {"agent_hooks"}
    assert not roots & IMPURE
    allowed = set(sys.stdlib_module_names) | {"orjson"}
    if path.name == "canonical.py":
        allowed.add("rfc8785")
    assert roots <= allowed


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_only_canonical_imports_the_reference_implementation(path: Path) -> None:
    if named(path) != "agent_hooks/core/canonical.py":
        assert "rfc8785" not in {name.split(".")[0] for name in imports(path)}


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_only_the_command_line_prints_or_exits(path: Path) -> None:
    if path.relative_to(PACKAGE).parts[0] == "cli":
        return
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in ("print", "exit", "quit", "sys.exit"), node.lineno


def test_no_module_imports_itself_by_a_detour() -> None:
    """No cycles, type checking aside."""
    names = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in MODULES}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    edges = {
        name: {other for other in imports(path, at_import_time=True) if other in names} - {name}
        for name, path in names.items()
    }
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " → ".join((*above[above.index(name) :], name))
        if name not in done:
            for other in sorted(edges[name]):
                visit(other, (*above, name))
            done.add(name)

    for name in sorted(edges):
        visit(name, ())


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_files_and_functions_keep_their_budgets(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_FILE_LINES, f"{lines} lines"
    for node in ast.walk(tree(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= MAX_FUNCTION_LINES, f"{node.name}: {length} lines"


def test_every_module_of_the_core_is_named_by_a_test_of_its_own() -> None:
    """tests/core mirrors agent_hooks/core."""
    mirrors = {
        "points": "context",
        "builder": "context",
        "reasons": "profile",
        "composition": "composition_paths",
        "effects": "emission",
        "envelope": "context",
        "parts": "verdict",
    }
    for path in CORE:
        if path.stem != "__init__":
            mirror = mirrors.get(path.stem, path.stem)
            assert (ROOT / f"tests/core/test_{mirror}.py").exists(), path.stem


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail), ("", pytest.skip)])
def test_absent_shared_data_skips_a_test_but_fails_it_in_ci(
    ci: str, outcome: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGENT_HOOKS_SHARED", str(tmp_path))
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome.Exception, match="shared data is absent"):  # type: ignore[attr-defined]
        shared("schema", "verdict.schema.json")
