import os
import sys
from pathlib import Path

import pytest

from gpu_studio.core import user_file
from gpu_studio.core.user_file import (
    UnusableFileError,
    open_user_file,
    read_user_file,
    write_atomically,
)


def test_an_ordinary_file_is_read(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"\r\nabc\x1a" * 1000)
    assert read_user_file(path, 10_000) == path.read_bytes()
    with open_user_file(path) as file:
        assert file.read(5) == b"\r\nabc"
    link = tmp_path / "link"
    if sys.platform != "win32":
        link.symlink_to(path)
        assert read_user_file(link, 10_000) == path.read_bytes()


def _reason(path: Path) -> str:
    with pytest.raises(UnusableFileError) as refused:
        read_user_file(path, 10_000)
    return str(refused.value)


def test_a_folder_and_what_is_not_there_are_refused(tmp_path: Path):
    assert _reason(tmp_path) == "it is a folder, not an ordinary file"
    assert _reason(tmp_path / "none") == "it does not exist"
    too_long = _reason(tmp_path / ("a" * 300))
    if sys.platform == "win32":  # which says the same of a name that it does not allow
        assert too_long == "it does not exist"
    else:
        assert too_long.startswith("it cannot be read (")
    assert _reason(tmp_path / "zero\0byte") == "it cannot be read (its name is invalid)"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices have no place in a folder")
def test_a_pipe_and_a_device_are_refused_without_waiting(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("zero", "link"):
        (tmp_path / name).symlink_to("/dev/zero")
    for path in tmp_path.iterdir():
        assert _reason(path) == "it is not an ordinary file"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes have no place in a folder")
def test_a_pipe_that_took_the_place_of_a_file_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(user_file.os, "stat", lambda _path: os.lstat(tmp_path / "file"))
    assert _reason(tmp_path / "pipe") == "it is not an ordinary file"


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")
def test_a_file_that_says_it_is_empty_is_capped_while_reading(tmp_path: Path):
    from pathlib import Path as AnyPath

    path = AnyPath("/proc/self/status")  # an ordinary file of no size that has content
    assert path.stat().st_size == 0
    assert b"Name" in read_user_file(path, 1 << 20)
    with pytest.raises(UnusableFileError, match="it is larger than 10 bytes"):
        read_user_file(path, 10)


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse: it takes no room
    with pytest.raises(UnusableFileError, match="it is larger than 1 MiB"):
        read_user_file(path, 1 << 20)


def test_readers_see_the_old_content_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    seen: list[bytes] = []

    class Slow(bytes):
        pass

    real = os.fsync

    def fsync(number: int) -> None:
        seen.append(path.read_bytes())
        real(number)

    user_file.os.fsync = fsync
    try:
        write_atomically(path, Slow(b"new"))
    finally:
        user_file.os.fsync = real
    assert seen == [b"old"]
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(sys.platform == "win32", reason="the user's own folder sees to it")
@pytest.mark.parametrize(("is_private", "mode"), [(True, 0o600), (False, 0o644)])
def test_what_is_private_is_read_by_nobody_else(
    tmp_path: Path, is_private: bool, mode: int
) -> None:
    before = os.umask(0o022)
    try:
        write_atomically(tmp_path / "a.json", b"new", is_private=is_private)
    finally:
        os.umask(before)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == mode


def test_what_a_killed_writer_left_is_removed_and_what_another_one_writes_is_not(tmp_path):
    abandoned, present = tmp_path / ".a[1].0123abcd.part", tmp_path / ".a[1].4567abcd.part"
    for part in (abandoned, present):
        part.write_bytes(b"half")
    os.utime(abandoned, (1.0, 1.0))
    write_atomically(tmp_path / "a[1]", b"whole")
    assert not abandoned.exists()
    assert present.exists()
