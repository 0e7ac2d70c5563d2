from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import pytest
from studio_build.console import BuildError
from studio_build.side_picture import read_png, write_side_picture

if TYPE_CHECKING:
    from pathlib import Path


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check


def _png(side: int, rows: bytes, depth: int = 8) -> bytes:
    head = struct.pack(">IIBBBBB", side, side, depth, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows))


@pytest.mark.parametrize(
    ("kind", "second"),
    [
        (0, bytes([9, 8, 7, 6, 5, 4, 3, 2])),
        (1, bytes([9, 8, 7, 6, 252, 252, 252, 252])),
        (2, bytes([8, 6, 4, 2, 0, 254, 252, 250])),
        (3, bytes([9, 7, 6, 4, 254, 253, 252, 251])),
        (4, bytes([8, 6, 4, 2, 252, 252, 252, 250])),
    ],
)
def test_each_filter_of_a_png_is_undone(kind: int, second: bytes) -> None:
    first = bytes([1, 2, 3, 4, 5, 6, 7, 8])
    side, rows = read_png(_png(2, b"\0" + first + bytes([kind]) + second))
    assert side == 2
    assert rows == [first, bytes([9, 8, 7, 6, 5, 4, 3, 2])]


def test_the_icon_is_in_the_middle_of_a_bitmap_for_nsis(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "side.bmp"
    write_side_picture(root / "resources" / "app" / "gpu-studio.png", target)
    content = target.read_bytes()
    size, start = struct.unpack_from("<IxxxxI", content, 2)
    width, height, planes, bits = struct.unpack_from("<iiHH", content, 18)
    assert (content[:2], size, start) == (b"BM", len(content), 54)
    assert (width, height, planes, bits) == (164, 314, 1, 24)
    rows = [content[54 + 492 * y : 54 + 492 * y + 492] for y in range(height)]
    assert rows[0] == rows[0][:3] * 164  # the ground is plain
    assert len({rows[157][3 * x : 3 * x + 3] for x in range(164)}) > 5  # the icon is not


def test_another_kind_of_png_is_refused() -> None:
    with pytest.raises(BuildError, match="square PNG"):
        read_png(_png(2, bytes(18), depth=16))
