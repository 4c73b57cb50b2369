"""A plugin's files: only what was pinned is run, only what nobody else can change (PROTOCOL)."""

from __future__ import annotations

import contextlib
import grp
import hashlib
import os
import pwd
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_hooks.supervisor import Manifest, ManifestError, integrity, load_manifest
from agent_hooks.supervisor.integrity import MAX_MANIFEST, Folder, IntegrityError, prepare

MANIFEST = '[plugin]\nname = "n"\nkind = "k"\ncommand = ["{python}", "./main.py"]\n'
FILES = {"main.py": b"import lib.a\n", "lib/a.py": b"A = 1\n", "data.bin": bytes(range(256)) * 9000}


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


PINS = {name: digest(data) for name, data in FILES.items()}


@pytest.fixture(autouse=True)
def _not_for_ever() -> Iterator[None]:
    """What waits for a FIFO's other end waits for ever."""

    def waited(*_: object) -> None:
        pytest.fail("it hangs")  # no OSError, as TimeoutError would be

    kept = signal.signal(signal.SIGALRM, waited)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, kept)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plugin: its manifest without pins, three files, a cache."""
    made = tmp_path / "plugin"
    (made / "lib" / "__pycache__").mkdir(parents=True)
    (made / "plugin.toml").write_text(MANIFEST)
    (made / "lib" / "__pycache__" / "a.pyc").write_bytes(b"cached")
    for name, data in FILES.items():
        (made / name).write_bytes(data)
    (made / "main.py").chmod(0o755)
    return made


def pinned(folder: Path, pins: dict[str, str] | str) -> Path:
    """The manifest, with pins."""
    if isinstance(pins, dict):
        pins = "".join(f'"{name}" = "{value}"\n' for name, value in pins.items())
    (folder / "plugin.toml").write_text(f"{MANIFEST}[files]\n{pins}")
    return folder / "plugin.toml"


def launched(folder: Path, pins: dict[str, str] = PINS, *words: str) -> tuple[str, ...]:
    """The command that a launch would run."""
    words = words or (f"{folder}/main.py",)
    return prepare(("python", *words), folder, pins, folder.parent / "copy")


# -- the table --


def test_pins_of_a_manifest_are_read(folder: Path) -> None:
    """PROTOCOL Isolation: SHA-256 of the program's files."""
    manifest = load_manifest(pinned(folder, PINS))
    assert manifest.files == PINS
    assert manifest.folder == folder
    assert manifest.command == (sys.executable, str(folder / "main.py"))


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../main.py", "/etc/passwd", "lib/../main.py", "./main.py", "lib//a.py",
     "lib/", "lib/..", "plugin.toml"],
)  # fmt: skip
def test_pin_of_what_is_no_file_of_the_folder_is_refused(folder: Path, name: str) -> None:
    """One name for one file, and none outside."""
    path = pinned(folder, {name: digest(b"")})
    with pytest.raises(ManifestError) as raised:
        load_manifest(path)
    assert str(raised.value).startswith(f"{path}: [files] {name!r}: expected a file's path")


@pytest.mark.parametrize(
    "value",
    [f'"{"0" * 64}"', '"sha256:"', f'"sha1:{"0" * 40}"', f'"sha256:{"A" * 64}"',
     f'"sha256:{"0" * 63}"', f'"sha256:{"0" * 65}"', f'"sha256:{"0" * 64}\\n"', "5", "{}"],
)  # fmt: skip
def test_digest_that_is_none_is_refused(folder: Path, value: str) -> None:
    """And not repeated."""
    path = pinned(folder, f"'main.py' = {value}\n")
    with pytest.raises(ManifestError, match="expected sha256: and 64 hexadecimal") as raised:
        load_manifest(path)
    assert f"{path}: [files] 'main.py'" in str(raised.value)
    assert "000" not in str(raised.value)


def test_pins_without_a_folder_are_refused() -> None:
    """Not silently left unchecked."""
    with pytest.raises(ValueError, match="folder"):
        Manifest("n", "k", ("c",), files=PINS)


@pytest.mark.parametrize("word", ["./../main.py", "./lib/../../x", "./.."])
def test_command_that_climbs_out_of_the_folder_is_refused(folder: Path, word: str) -> None:
    """`./` is the plugin's folder, and nothing above it."""
    path = folder / "plugin.toml"
    path.write_text(MANIFEST.replace("./main.py", word))
    with pytest.raises(ManifestError, match="leads out of the folder") as raised:
        load_manifest(path)
    assert f"{path}: [plugin] command" in str(raised.value)


# -- what is run --


def test_what_is_run_is_a_copy_of_what_is_pinned_and_nothing_else(folder: Path) -> None:
    """PROTOCOL Isolation: no cache and no other file of the folder can be loaded beside it."""
    (folder / "other.py").write_text("never")
    command = launched(folder)
    copy = folder.parent / "copy"
    assert command == ("python", str(copy / "main.py"))
    found = {str(p.relative_to(copy)): p.read_bytes() for p in copy.rglob("*") if p.is_file()}
    assert found == FILES
    assert stat.S_IMODE((copy / "main.py").stat().st_mode) == 0o500
    assert stat.S_IMODE((copy / "data.bin").stat().st_mode) == 0o400
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700


def test_without_pins_the_command_runs_where_it_is(folder: Path) -> None:
    """Nothing is copied that nobody asked to be checked."""
    assert launched(folder, {}) == ("python", f"{folder}/main.py")
    assert not (folder.parent / "copy").exists()


def test_word_of_the_command_that_is_a_folder_or_the_hosts_own_is_kept(folder: Path) -> None:
    """A folder counts as pinned where files in it are; what only begins alike is not ours."""
    copy = folder.parent / "copy"
    words = (f"{folder}/lib", f"{folder}", f"{folder}/lib/../main.py", f"{folder}2/x", "-v")
    expected = (f"{copy}/lib", f"{copy}", f"{copy}/main.py", f"{folder}2/x", "-v")
    assert launched(folder, PINS, *words) == ("python", *expected)


@pytest.mark.parametrize("word", ["other.py", "li", "lib/b.py", "plugin.toml"])
def test_file_that_the_command_names_must_be_pinned(folder: Path, word: str) -> None:
    """Where there are pins; half a check is none."""
    with pytest.raises(IntegrityError, match=r"does not pin it: run `agent-hooks plugins pin"):
        launched(folder, PINS, f"{folder}/{word}")


@pytest.mark.parametrize("change", [b"", b"import lib.b\n", b"import lib.a\n\n"])
def test_file_that_is_another_is_refused(folder: Path, change: bytes) -> None:
    """With its path and what to do, and nothing of what it holds."""
    (folder / "main.py").write_bytes(change)
    with pytest.raises(IntegrityError, match="is not the file that") as raised:
        launched(folder)
    assert str(raised.value).startswith(f"{folder / 'main.py'}: ")
    assert "import" not in str(raised.value)


def test_file_that_is_missing_is_refused(folder: Path) -> None:
    """Not taken for an empty one."""
    (folder / "lib" / "a.py").unlink()
    with pytest.raises(IntegrityError, match=r"lib/a\.py: cannot be read \(No such file"):
        launched(folder)


@pytest.mark.parametrize("name", ["a\0b", "lib", "main.py/x", "x" * 300])
def test_pin_that_cannot_be_a_file_is_refused(folder: Path, name: str) -> None:
    """Whatever the system says of such a name."""
    with pytest.raises(IntegrityError, match="cannot be read"):
        launched(folder, {**PINS, name: digest(b"")})


def _fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(path))
    path.chmod(0o600)


@pytest.mark.parametrize("make", [_fifo, _socket, Path.mkdir], ids=["fifo", "socket", "folder"])
@pytest.mark.parametrize("name", ["main.py", "plugin.toml"])
def test_what_stands_in_a_files_place_is_refused_at_once(
    folder: Path, name: str, make: Callable[[Path], None]
) -> None:
    """A FIFO would keep a reader waiting."""
    (folder / name).unlink()
    make(folder / name)
    with pytest.raises((IntegrityError, ManifestError), match=f"{name}: cannot be read"):
        load_manifest(folder / name) if name == "plugin.toml" else launched(folder)


def test_huge_file_is_refused_unread(folder: Path) -> None:
    """Neither memory nor the disk is filled: both of these are sparse."""
    for name, size in (("main.py", 1 << 40), ("plugin.toml", 1 << 40)):
        with contextlib.suppress(OSError):
            os.truncate(folder / name, size)
    with pytest.raises(
        IntegrityError, match=r"main\.py: the pinned files are larger than 1024 MiB"
    ):
        launched(folder)
    assert not any((folder.parent / "copy").rglob("main.py"))
    with pytest.raises(ManifestError, match=f"is larger than {MAX_MANIFEST} bytes"):
        load_manifest(folder / "plugin.toml")


def test_all_pinned_files_share_one_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small ones fill a disk, too."""
    monkeypatch.setattr(integrity, "MAX_PINNED", sum(map(len, FILES.values())))
    launched(folder)
    monkeypatch.setattr(integrity, "MAX_PINNED", sum(map(len, FILES.values())) - 1)
    with pytest.raises(IntegrityError, match="larger than"), Folder(folder) as opened:
        opened.copy(PINS, folder.parent / "again")


def test_folder_that_forbids_execution_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy of a binary cannot run on a file system mounted noexec; of a script it can."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC))
    assert launched(folder)
    copy = folder.parent / "copy2"
    with pytest.raises(IntegrityError, match="noexec: set TMPDIR"):
        prepare((f"{folder}/main.py",), folder, PINS, copy)


# -- links --


@pytest.mark.parametrize("name", ["main.py", "lib"])
@pytest.mark.parametrize("inside", [True, False], ids=["inside", "outside"])
def test_pinned_file_is_reached_without_a_link(folder: Path, name: str, inside: bool) -> None:
    """Wherever the link leads, and though the bytes are the pinned ones."""
    real = (folder if inside else folder.parent) / "real"
    (folder / name).rename(real)
    (folder / name).symlink_to(real)
    with pytest.raises(IntegrityError, match=f"{name}: is a symbolic link"):
        launched(folder)


@pytest.mark.parametrize("target", ["../outside", "/etc/passwd", "lib/../../outside", "hop"])
@pytest.mark.parametrize("name", ["main.py", "lib/deep", "plugin.toml"])
def test_link_that_leads_out_of_the_folder_is_refused(folder: Path, name: str, target: str) -> None:
    """At once, or over another link; named by the command or not."""
    (folder.parent / "outside").write_text(MANIFEST)
    (folder / "hop").symlink_to("../outside")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(folder / target if target != "/etc/passwd" else target)
    with pytest.raises(ManifestError, match=r"leads out of the plugin's folder"):
        load_manifest(folder / "plugin.toml")
    if name != "plugin.toml":
        with pytest.raises(IntegrityError, match=r"leads out of the plugin's folder"):
            launched(folder, {})


@pytest.mark.parametrize("name", ["main.py", "plugin.toml"])
def test_link_that_stays_in_the_folder_is_followed(folder: Path, name: str) -> None:
    """Where nothing is pinned."""
    (folder / name).rename(folder / "lib" / "real")
    (folder / name).symlink_to("lib/real")
    assert load_manifest(folder / "plugin.toml").kind == "k"
    assert launched(folder, {})


def test_links_in_a_circle_are_refused(folder: Path) -> None:
    """Not followed for ever."""
    (folder / "plugin.toml").unlink()
    (folder / "plugin.toml").symlink_to("other.toml")
    (folder / "other.toml").symlink_to("plugin.toml")
    with pytest.raises(ManifestError, match="is a symbolic link"):
        load_manifest(folder / "plugin.toml")


# -- who could have changed it --

PLACES = [".", "plugin.toml", "main.py", "lib", "lib/a.py", "data.bin"]


@pytest.mark.parametrize("mode", [0o020, 0o002], ids=["group", "others"])
@pytest.mark.parametrize("name", PLACES)
def test_what_others_can_write_is_refused(
    folder: Path, name: str, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At load, and at each launch again; pinned or not. The command's own word or a module."""
    place = folder / name
    shared = grp.struct_group(("shared", "x", 4321, []))
    monkeypatch.setattr(integrity.grp, "getgrgid", lambda _: shared)
    place.chmod(stat.S_IMODE(place.stat().st_mode) | mode)
    _refused_everywhere(folder, name, "group or others can write to it: chmod go-w")


@pytest.mark.parametrize(
    ("group", "members", "private"),
    [("me", [], True), ("me", ["me"], True), ("me", ["me", "you"], False), ("us", [], False)],
)
def test_users_own_group_may_write(
    folder: Path, group: str, members: list[str], private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """umask 002, as it is usual where each user has a group: DECISIONS 45."""
    named = grp.struct_group((group, "x", 4321, members))
    user = pwd.struct_passwd(("me", "x", os.geteuid(), 4321, "", "/", "/bin/sh"))
    monkeypatch.setattr(integrity.grp, "getgrgid", lambda _: named)
    monkeypatch.setattr(integrity.pwd, "getpwuid", lambda _: user)
    (folder / "main.py").chmod(0o775)
    if private:
        assert load_manifest(folder / "plugin.toml")
    else:
        with pytest.raises(ManifestError, match="group or others can write to it"):
            load_manifest(folder / "plugin.toml")


@pytest.mark.parametrize("name", PLACES)
def test_what_belongs_to_another_user_is_refused(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner may change it at any time."""
    if os.geteuid() == 0:
        os.chown(folder / name, 54321, -1)
    else:  # everything here is another's, then
        monkeypatch.setattr(os, "geteuid", lambda: 54321)
        name = "."
    _refused_everywhere(folder, name, "belongs to another user: chown it")


def _refused_everywhere(folder: Path, name: str, why: str) -> None:
    place = str(folder if name == "." else folder / name)
    with pytest.raises(ManifestError, match=why) as raised:
        load_manifest(folder / "plugin.toml")
    assert str(raised.value).startswith(f"{place}: ")
    if name != "plugin.toml":  # which is read once
        with pytest.raises(IntegrityError, match=why) as refused:
            launched(folder)
        assert str(refused.value).startswith(f"{place}: ")


def test_files_of_root_are_fit_for_every_host(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As installed by a package manager."""
    if os.geteuid() != 0:
        pytest.skip("needs files of root")
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert load_manifest(folder / "plugin.toml")
    assert launched(folder)


# -- swaps --


def test_folder_swapped_while_it_is_read_is_still_the_one_that_was_opened(folder: Path) -> None:
    """PROTOCOL Isolation: what is reached through the open folder is of one folder."""
    with Folder(folder) as opened:
        folder.rename(folder.parent / "moved")
        (folder / "lib").mkdir(parents=True)
        for name in ("plugin.toml", *FILES):
            (folder / name).write_bytes(b"swapped")
        assert opened.read("plugin.toml", MAX_MANIFEST).decode() == MANIFEST
        opened.check()
        opened.copy(PINS, folder.parent / "copy")
    assert (folder.parent / "copy" / "main.py").read_bytes() == FILES["main.py"]


def test_file_that_grows_while_it_is_read_is_copied_as_it_is_hashed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody writes on and on: the copy ends where the file ended when it was opened."""
    real = os.fstat

    def grows(fd: int) -> os.stat_result:
        info = real(fd)
        if stat.S_ISREG(info.st_mode) and info.st_size >= len(FILES["data.bin"]):
            with (folder / "data.bin").open("ab") as file:
                file.write(b"more")
        return info

    with Folder(folder) as opened:
        monkeypatch.setattr(os, "fstat", grows)
        hashed, size = opened._copy("data.bin", folder.parent / "copied", 1 << 30)
    copied = (folder.parent / "copied").read_bytes()
    assert (len(copied), digest(copied)) == (size, hashed)
    assert (folder / "data.bin").stat().st_size == size + len(b"more")


def test_every_descriptor_is_closed(folder: Path) -> None:
    """Refused or not; a host launches for months."""
    launched(folder, PINS)
    before = len(os.listdir("/proc/self/fd"))
    (folder / "lib" / "a.py").write_bytes(b"other")
    _fifo(folder / "fifo")
    (folder / "link").symlink_to("main.py")
    faults = (
        {**PINS, "fifo": ""},
        {**PINS, "link": ""},
        {"lib/none": ""},
        {"none/a": ""},
        PINS,
        {},
    )
    for number, pins in enumerate(faults):
        with contextlib.suppress(IntegrityError), Folder(folder) as opened:
            opened.copy(pins, folder.parent / str(number))
    folder.chmod(0o777)
    with pytest.raises(IntegrityError):
        Folder(folder)
    assert len(os.listdir("/proc/self/fd")) == before


def test_folder_that_is_none_is_refused(folder: Path) -> None:
    """Gone, a file, or no path at all."""
    for path in (folder / "none", folder / "main.py", Path("a\0b")):
        with pytest.raises(IntegrityError, match="cannot be read"):
            Folder(path)


# -- making the table --


def test_pins_of_a_folder_are_what_a_launch_accepts(folder: Path) -> None:
    """Every file but the manifest, caches and version control."""
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref")
    with Folder(folder) as opened:
        pins = opened.pins()
    assert pins == PINS
    assert list(pins) == sorted(pins)
    assert launched(folder, pins)


def test_folder_with_a_link_or_no_file_in_it_cannot_be_pinned(folder: Path) -> None:
    """What a launch would refuse is refused now."""
    (folder / "link.py").symlink_to("main.py")
    with pytest.raises(IntegrityError, match=r"link\.py: is a symbolic link"), Folder(folder) as it:
        it.pins()
    (folder / "link.py").unlink()
    _fifo(folder / "fifo")
    with pytest.raises(IntegrityError, match="fifo: cannot be read"), Folder(folder) as it:
        it.pins()
