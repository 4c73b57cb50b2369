"""agent-hooks plugins pin: the table that a launch is held to."""

from __future__ import annotations

import hashlib
import os
import tomllib
from pathlib import Path

import pytest

from agent_hooks.supervisor import load_manifest
from tests.cli.conftest import MANIFEST, agent_hooks


@pytest.fixture
def plugin(folder: Path) -> Path:
    return folder / "plugins" / "guard"


def digest(path: Path) -> str:
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def test_table_is_printed(plugin: Path) -> None:
    """As TOML, whatever a file is called; the manifest stays as it is."""
    names = ['quo"te.py', "back\\slash", "sp ace/ü.txt", "main.py"]
    (plugin / "sp ace").mkdir()
    for name in names[:3]:
        (plugin / name).write_text(name)
    done = agent_hooks("plugins", "pin", plugin)
    assert done.returncode == 0, done.stderr
    expected = {name: digest(plugin / name) for name in names}
    assert tomllib.loads(done.stdout) == {"files": expected}
    assert (plugin / "plugin.toml").read_text() == MANIFEST


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ('\n[files]\n"gone.py" = "sha256:{0}"\n\n# On [env].\n[env]\nA = "1"\n',
         '\n# On [env].\n[env]\nA = "1"\n'),
        ('# Mine.\n[env]\nA = """\n[files\n"""\n[files]\n',
         '# Mine.\n[env]\nA = """\n[files\n"""\n'),
    ],
    ids=["none", "in_the_middle", "at_the_end"],
)  # fmt: skip
def test_table_is_written_in_place_of_the_old(plugin: Path, before: str, after: str) -> None:
    """And everything else stays as its author wrote it."""
    (plugin / "plugin.toml").write_text(MANIFEST + before.format("0" * 64))
    for _ in range(2):  # written twice it is the same
        done = agent_hooks("plugins", "pin", plugin, "--write")
        assert (done.returncode, done.stderr) == (0, "")
        assert "files pinned: 1" in done.stdout
        text = (plugin / "plugin.toml").read_text()
        pins = f'\n[files]\n"main.py" = "{digest(plugin / "main.py")}"\n'
        assert text == MANIFEST + after + pins
    assert load_manifest(plugin / "plugin.toml").files == {"main.py": digest(plugin / "main.py")}
    assert not list(plugin.glob(".plugin*"))


def test_plugin_that_was_pinned_is_replayed_until_it_changes(folder: Path, plugin: Path) -> None:
    """Exit code 3, the path, and what to do; pinned anew it runs again."""

    def replay() -> tuple[int, str]:
        done = agent_hooks("replay", folder / "runs.ndjson", "--config", folder / "host.toml")
        return done.returncode, done.stderr

    assert agent_hooks("plugins", "pin", plugin, "--write").returncode == 0
    assert replay() == (0, "")
    with (plugin / "main.py").open("a") as file:
        file.write("# changed\n")
    code, said = replay()
    assert code == 3
    assert f"{plugin / 'main.py'}: is not the file" in said
    assert f"agent-hooks plugins pin {plugin} --write" in said
    assert agent_hooks("plugins", "pin", plugin, "--write").returncode == 0
    assert replay() == (0, "")


@pytest.mark.parametrize(
    "text",
    [
        'files = { "main.py" = "sha256:' + "0" * 64 + '" }\n' + MANIFEST,
        MANIFEST + '[files]\n# Mine.\n"a" = "sha256:' + "0" * 64 + '"\n',
        MANIFEST + '[env]\nA = """\n[files]\n"""\n',
        "[plugin",
    ],
    ids=["inline", "with_a_comment", "in_a_string", "not_toml"],
)
def test_manifest_that_cannot_be_edited_is_left_alone(plugin: Path, text: str) -> None:
    """Rather than to break what an author wrote."""
    (plugin / "plugin.toml").write_text(text)
    done = agent_hooks("plugins", "pin", plugin, "--write")
    assert done.returncode == 2
    assert f"{plugin / 'plugin.toml'}: " in done.stderr
    assert (plugin / "plugin.toml").read_text() == text


def test_folder_that_cannot_be_pinned_is_refused(plugin: Path) -> None:
    """A link, a name that nobody can read, a file that others can write."""
    (plugin / "link").symlink_to("main.py")
    done = agent_hooks("plugins", "pin", plugin)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{plugin / 'link'}: is a symbolic link" in done.stderr
    (plugin / "link").rename(plugin.parent / "link")
    os.close(os.open(bytes(plugin) + b"/\xff", os.O_CREAT))
    done = agent_hooks("plugins", "pin", plugin)
    assert (done.returncode, done.stdout) == (2, "")
    assert "a name that cannot be printed: rename it" in done.stderr
    os.unlink(bytes(plugin) + b"/\xff")
    (plugin / "main.py").chmod(0o777)
    done = agent_hooks("plugins", "pin", plugin)
    assert (done.returncode, done.stdout) == (2, "")
    assert "main.py: group or others can write to it: chmod go-w it" in done.stderr
