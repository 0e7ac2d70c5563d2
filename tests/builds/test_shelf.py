from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_studio.builds import shelf as shelves
from gpu_studio.builds.shelf import (
    LONGEST_FOLDER,
    BuildShelf,
    extended,
    own_shelf,
    require_short,
)
from gpu_studio.core.builds.record import BuildRecord, Wanted
from gpu_studio.core.builds.trouble import TroubleError, TroubleKind

_CONTENTS = {
    "large": b" " * (2 << 20) + b"{}",
    "no text": b"\xff\xfe{}",
    "nested": b"[" * 100_000,
}


def put_strange(path, kind) -> None:
    """Put a pipe, a folder, or a file with such contents there."""
    if kind == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("a pipe has no place in a folder")
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(_CONTENTS[kind])


@pytest.fixture
def shelf(tmp_path):
    return BuildShelf(tmp_path / "Übung eins" / "engines")


def put(shelf, family="cpu"):
    folder = shelf.folder(family)
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "a.py").write_bytes(b"1234")
    shelf.write_record(BuildRecord(family, f"2.13.0+{family}", "3.11"))


def test_a_removed_build_leaves_nothing_and_no_other(shelf):
    put(shelf)
    put(shelf, "cu126")
    shelf.remove("cpu")
    assert [one.family for one in shelf.records()] == ["cu126"]
    assert sorted(path.name for path in shelf.root.iterdir()) == ["cu126", "cu126.json"]
    shelf.remove("cpu")  # nothing there


def test_a_build_that_a_program_holds_is_named(shelf, monkeypatch):
    put(shelf)

    def refuse(path, *_, **__):
        raise PermissionError(13, "used by another process", str(Path(path) / "torch" / "c10.dll"))

    monkeypatch.setattr("shutil.rmtree", refuse)
    with pytest.raises(TroubleError) as raised:
        shelf.remove("cpu")
    assert raised.value.trouble.kind is TroubleKind.FILE_HELD
    assert "c10.dll" in raised.value.trouble.sentence
    (rest,) = shelf.records()  # to be removed later, after a restart as well
    assert not rest.is_ready
    assert shelf.used() == ""
    monkeypatch.undo()
    shelf.remove("cpu")
    assert shelf.records() == ()
    assert not shelf.folder("cpu").exists()


def test_what_unfinished_installations_leave_is_reported_and_discarded(shelf):
    put(shelf)
    for folder in (shelf.folder("cu126") / "torch", shelf.downloads):
        folder.mkdir(parents=True)
        (folder / "part").write_bytes(b"12345")
    assert shelf.unfinished_bytes() == 10
    shelf.discard()
    assert shelf.unfinished_bytes() == 0
    assert not shelf.folder("cu126").exists()
    assert [one.family for one in shelf.records()] == ["cpu"]
    assert shelf.size_bytes("cpu") > 0


def test_a_build_is_removed_from_a_full_disk(shelf, monkeypatch):
    put(shelf)

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("gpu_studio.builds.shelf.write_atomically", refuse)
    shelf.remove("cpu")
    assert not shelf.folder("cpu").exists()
    assert shelf.records() == ()


@pytest.mark.parametrize("kind", ["pipe", "large", "no text", "nested", "folder"])
def test_files_that_anyone_may_have_left_hold_and_stop_nothing(shelf, kind):
    shelf.root.mkdir(parents=True)
    for name in ("wanted.json", "cpu.json"):
        put_strange(shelf.root / name, kind)
    assert shelf.wanted() == Wanted()
    assert shelf.records() == ()


_HOLDER = """
import sys
from pathlib import Path
from gpu_studio.builds.shelf import BuildShelf
with BuildShelf(Path(sys.argv[1])).alone("cpu"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_windows_do_not_install_at_once(shelf):
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(shelf.root)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    with holder:
        assert holder.stdout.readline().strip() == b"held"
        with pytest.raises(TroubleError) as raised, shelf.alone("cpu"):
            pass
        assert raised.value.trouble.kind is TroubleKind.IN_USE
        holder.stdin.close()
        holder.wait()
    with shelf.alone("cpu"):  # the lock ended with its process
        pass


def test_long_names_of_windows_get_their_prefix():
    assert extended(Path("/a/b"), "linux") == str(Path("/a/b"))
    assert extended(Path("/a/b"), "win32").startswith("\\\\?\\")


def test_a_folder_whose_files_windows_cannot_import_is_refused():
    long = Path("/" + "x" * LONGEST_FOLDER)
    require_short(long, "linux")
    require_short(Path("/short"), "win32")
    require_short(long, "win32", allows_long=True)
    with pytest.raises(TroubleError) as raised:
        require_short(long, "win32")
    assert raised.value.trouble.kind is TroubleKind.LONG_PATH


def test_the_engine_gets_the_best_build_that_it_can_load(shelf):
    assert shelf.used_folder() is None
    put(shelf)
    mine = BuildShelf(shelf.root, "2.13.0", "3.11")
    assert (mine.used(), mine.used_folder()) == ("cpu", shelf.folder("cpu"))
    shelf.folder("cu126").mkdir()
    shelf.write_record(BuildRecord("cu126", "2.13.0+cu126", "3.11", runs_on_card=True))
    assert mine.used() == "cu126"
    shelf.write_wanted(Wanted(used="cpu"))
    assert mine.used() == "cpu"
    newer = BuildShelf(shelf.root, "2.14.1", "3.11")
    assert newer.used() == "cpu"
    assert "2.14.1" in newer.outdated(shelf.record("cpu"))
    assert BuildShelf(shelf.root, "2.13.0", "3.12").used() == ""


def test_the_environment_of_a_checkout_has_its_own_builds(tmp_path, monkeypatch):
    monkeypatch.setattr(shelves, "has_own_torch", lambda: True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert own_shelf(lambda: tmp_path / "data") is None
    (tmp_path / "engines").mkdir()
    assert own_shelf(lambda: tmp_path / "data").root == tmp_path / "engines"


def test_two_pythons_of_a_user_do_not_replace_each_others_builds(tmp_path, monkeypatch):
    monkeypatch.setattr(shelves, "has_own_torch", lambda: False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    shared, other = tmp_path / "data" / "engines", tmp_path / "python3.1"

    def own_root():
        return own_shelf(lambda: tmp_path / "data").root

    shelf = BuildShelf(shared, python="3.1")
    (shelf.folder("cpu") / "torch").mkdir(parents=True)
    record = BuildRecord("cpu", "2.13.0+cpu", "3.1", made_by=str(other))
    shelf.write_record(record)
    assert own_root() == shared, "the other Python is gone, and this one takes its place"
    other.touch()
    assert own_root() == shared / f"python-{shelves.OWN_PYTHON}"
    shelf.write_record(record._replace(made_by=""))  # an older program's
    assert own_root() == shared
    own = BuildRecord("cu126", "2.13.0+cu126", shelves.OWN_PYTHON)
    shelf.folder("cu126").mkdir()
    shelf.write_record(own)
    shelf.write_record(record)
    assert own_root() == shared, "this Python has builds there already"


def test_only_the_plan_of_this_version_and_python_is_one_that_the_user_began(tmp_path):
    shelf = BuildShelf(tmp_path, "2.13.0", "3.11")
    assert shelf.is_begun("cpu")  # asked for, and nothing was done yet
    shelf.downloads.mkdir()
    for version, python, is_begun in (
        ("2.13.0+cpu", "3.11", True), ("2.12.0+cpu", "3.11", False), ("2.13.0+cpu", "3.9", False),
    ):  # fmt: skip
        text = json.dumps({"torch_version": version, "python": python, "files": []})
        shelf.plan_path("cpu").write_text(text)
        assert shelf.is_begun("cpu") is is_begun
    for broken in ("", "[]", '{"torch_version": 1}', "\0"):
        shelf.plan_path("cpu").write_text(broken)
        assert not shelf.is_begun("cpu")
