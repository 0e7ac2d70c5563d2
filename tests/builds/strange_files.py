"""What may stand where this program keeps a file of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_CONTENTS = {
    "large": b" " * (2 << 20) + b"{}",
    "no text": b"\xff\xfe{}",
    "nested": b"[" * 100_000,
}


def put_strange(path: Path, kind: str) -> None:
    """Put a pipe, a folder, or a file with such contents there."""
    if kind == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("a pipe has no place in a folder")
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(_CONTENTS[kind])
