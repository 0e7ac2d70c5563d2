from __future__ import annotations

import errno
import os
import sys
import zipfile

import pytest

from gpu_studio.builds import unpack
from gpu_studio.builds.download import StoppedError
from gpu_studio.builds.unpack import Unpacker, unpacked_bytes
from gpu_studio.core import operating_system
from gpu_studio.core.builds.trouble import TroubleError, TroubleKind
from tests.builds.wheels import write_wheel

FILES = {
    "engine/__init__.py": "ANSWER = 42\n",
    "engine/lib/größe.dll": b"\x00" * 5000,
    "engine/bin/tool": "#!/bin/sh\n",
    "engine-1.0.data/purelib/beside.py": "BESIDE = True\n",
    "engine-1.0.data/scripts/engine": "never here",
    "engine-1.0.data/data/lib/libsycl.so.9": "Intel's",
    "engine-1.0.data/data/Library/bin/sycl9.dll": "Intel's",
    "engine-1.0.data/data/include/engine": "never here",
}
RECORD = "engine-1.0.dist-info/RECORD"


@pytest.fixture
def wheel(tmp_path):
    folder = tmp_path / "my wheels äö"
    return write_wheel(folder, "engine", "1.0", FILES, executables=["engine/bin/tool"])


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "engines äö" / "cpu"


def kind_of(raised):
    return raised.value.trouble.kind


def test_a_wheel_is_unpacked_where_python_finds_it(wheel, folder):
    collected = []
    Unpacker(folder).unpack(wheel, collected.append)
    assert (folder / "engine/__init__.py").read_text() == "ANSWER = 42\n"
    assert (folder / "engine/lib/größe.dll").stat().st_size == 5000
    assert (folder / "beside.py").exists()
    assert (folder / "lib/libsycl.so.9").exists()
    assert (folder / "Library/bin/sycl9.dll").exists()
    assert (folder / RECORD).exists()
    assert not [path for path in folder.rglob("*") if path.name == "engine" and path.is_file()]
    assert collected == sorted(collected)
    assert 5000 < collected[-1] <= unpacked_bytes(wheel)
    assert Unpacker(folder).damaged() == ()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permission")
def test_a_program_may_be_run(wheel, folder):
    Unpacker(folder).unpack(wheel)
    assert os.access(folder / "engine/bin/tool", os.X_OK)
    assert not os.access(folder / "engine/lib/größe.dll", os.X_OK)


def test_an_interrupted_wheel_has_no_record_and_is_unpacked_again(wheel, folder):
    over = []
    stopping = Unpacker(folder, is_over=lambda: bool(over))
    with pytest.raises(StoppedError):
        stopping.unpack(wheel, lambda _done: over.append(1))
    assert (folder / "engine/__init__.py").exists()
    assert not (folder / RECORD).exists()
    Unpacker(folder).unpack(wheel)
    assert (folder / RECORD).exists()


@pytest.mark.parametrize("harm", ["change", "shorten", "remove"])
def test_damage_is_found_and_repaired(wheel, folder, harm):
    other = write_wheel(wheel.parent, "other", "2.0", {"other.py": "x = 1\n"})
    unpacker = Unpacker(folder)
    unpacker.unpack(wheel)
    unpacker.unpack(other)
    library = folder / "engine/lib/größe.dll"
    if harm == "change":
        library.write_bytes(b"\x01" * 5000)
    elif harm == "shorten":
        library.write_bytes(b"")
    else:
        library.unlink()
    assert unpacker.damaged() == (RECORD,)
    unpacker.forget(RECORD)
    unpacker.unpack(wheel)
    assert unpacker.damaged() == ()
    assert library.read_bytes() == b"\x00" * 5000


def held_open(name, times, error):
    """Return an `open` that fails some times for one file, as while a scanner reads it."""
    left = [times]

    def opened(path, mode="r", **options):
        if mode == "wb" and str(path).endswith(name) and left[0]:
            left[0] -= 1
            raise error
        return open(path, mode, **options)

    return opened


HELD = PermissionError(errno.EACCES, "used by another process")


def test_a_held_file_is_tried_again(wheel, folder, monkeypatch):
    waits = []
    monkeypatch.setattr(unpack, "open", held_open("größe.dll", 3, HELD), raising=False)
    Unpacker(folder, wait=waits.append).unpack(wheel)
    assert waits == [0.2, 0.5, 1.0]
    assert Unpacker(folder).damaged() == ()


def test_a_removed_file_is_named(wheel, folder):
    unpacker = Unpacker(folder)
    unpacker.unpack(wheel)
    (folder / "engine/lib/größe.dll").unlink()
    with pytest.raises(TroubleError) as raised:
        unpacker.require_all()
    assert kind_of(raised) is TroubleKind.FILE_REMOVED
    assert "größe.dll" in raised.value.trouble.sentence
    assert not (folder / RECORD).exists()  # so that "Try again" writes it again


def rewritten(wheel, change):
    """Write a wheel again with some files changed behind its RECORD's back."""
    with zipfile.ZipFile(wheel) as archive:
        files = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in (files | change).items():
            if data is not None:
                archive.writestr(name, data)


@pytest.mark.parametrize(
    "change",
    [
        {"engine/__init__.py": b"ANSWER = 43\n"},
        {"../outside.py": b""},
        {"/outside.py": b""},
        {"c:/outside.py": b""},
        {"engine/D:/outside.py": b""},
        {"engine/nul.txt": b""},
        {"engine/dot.": b""},
        {"engine//outside.py": b""},
        {"engine\\\\outside.py": b""},
        {RECORD: None},
        {RECORD: b"\xff\xfe"},
        {RECORD: b"a" * 200_000 + b",,"},
        {RECORD: b"engine/__init__.py,sha256=\xc3\xa4,1\n"},
    ],
    ids=[
        "changed",
        "above",
        "absolute",
        "drive",
        "other drive",
        "device",
        "dot",
        "empty part",
        "backslash",
        "no record",
        "no text",
        "long field",
        "no hash",
    ],
)
def test_a_wheel_that_is_not_what_it_says_is_refused(wheel, folder, change):
    rewritten(wheel, change)
    with pytest.raises(TroubleError) as raised:
        Unpacker(folder).unpack(wheel)
    assert kind_of(raised) is TroubleKind.CHANGED_FILE
    assert not (folder / RECORD).exists()
    assert not (folder.parent / "outside.py").exists()


@pytest.mark.parametrize("record", [b"", b"\xff", b"x" * 200_000 + b",,\n", "first half"])
def test_a_record_that_a_power_cut_left_is_written_again(wheel, folder, record):
    """Windows and some file systems keep a file's new length and lose what was in it."""
    unpacker = Unpacker(folder)
    unpacker.unpack(wheel)
    (folder / "engine/__init__.py").write_bytes(b"")
    whole = (folder / RECORD).read_bytes()
    (folder / RECORD).write_bytes(whole[: len(whole) // 2] if record == "first half" else record)
    assert unpacker.damaged() == (RECORD,)
    unpacker.unpack(wheel)
    assert unpacker.damaged() == ()
    assert (folder / "engine/__init__.py").read_text() == "ANSWER = 42\n"
    assert (folder / RECORD).read_bytes() == whole


@pytest.mark.parametrize("system", ["Linux", "Windows"])
def test_files_reach_the_disk_before_their_record(wheel, folder, monkeypatch, system):
    order = []
    monkeypatch.setattr(operating_system, "system", lambda: system)
    monkeypatch.setattr(os, "sync", lambda: order.append("files"), raising=False)
    real = os.fsync

    def fsync(file):
        order.append("file")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(
        unpack, "write_atomically", lambda path, content: order.append("record") or path
    )
    Unpacker(folder).unpack(wheel)
    assert order == ([*["file"] * 8, "record"] if system == "Windows" else ["files", "record"])
