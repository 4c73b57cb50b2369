"""The README's plugin, manifest and host, put together and run as they stand."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent_hooks import InterceptionBlocked

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def example(name: str) -> str:
    found = re.search(rf"<!-- example: {name} -->\n```\w+\n(.*?)```", README, re.S)
    assert found is not None, f"README has no example {name}"
    return found[1]


def test_the_host_of_the_readme_obeys_the_plugin_of_the_readme(tmp_path, monkeypatch):
    folder = tmp_path / "plugins" / "no_shell"
    folder.mkdir(parents=True)
    (folder / "main.py").write_text(example("plugin"))
    (folder / "plugin.toml").write_text(example("manifest"))
    monkeypatch.chdir(tmp_path)
    host: dict = {}
    exec(compile(example("host"), "README.md", "exec"), host)

    assert asyncio.run(host["call_tool"]("search", {"q": "tea"})) == {"q": "tea"}
    with pytest.raises(InterceptionBlocked, match="no_shell"):
        asyncio.run(host["call_tool"]("shell", {"cmd": "ls"}))


@pytest.mark.parametrize("name", ["plugin", "host"])
def test_the_examples_are_as_short_as_the_readme_says(name):
    lines = [line for line in example(name).splitlines() if line.strip()]
    assert len(lines) <= 12


def test_every_make_target_that_the_readme_names_exists():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z][a-z-]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_commands_that_the_readme_names_exist():
    help_text = subprocess.run(
        [sys.executable, "-m", "agent_hooks.cli.main", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for command in set(re.findall(r"^\$ agent-hooks (\w+)", README, re.M)):
        assert command in help_text


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")))
def test_relative_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
