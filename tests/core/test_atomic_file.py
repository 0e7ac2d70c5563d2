"""A file that is written whole."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from gpu_studio.core import user_file
from gpu_studio.core.user_file import write_atomically

if TYPE_CHECKING:
    from pathlib import Path


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
