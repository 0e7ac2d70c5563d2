"""A file that is written whole."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpu_studio.core import atomic_file
from gpu_studio.core.atomic_file import write_atomically

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

    atomic_file.os.fsync = fsync
    try:
        write_atomically(path, Slow(b"new"))
    finally:
        atomic_file.os.fsync = real
    assert seen == [b"old"]
    assert path.read_bytes() == b"new"
