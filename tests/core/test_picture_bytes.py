import io
import tracemalloc
import zlib

import numpy as np
import pytest

from gpu_studio.core.packed_frame import PackedFrame, unpack_rows
from gpu_studio.core.png_chunks import png_text
from tests.hostile_pictures import (
    packed_race,
    png_bomb,
    png_chunk,
)

PICTURE = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
PACKED = PackedFrame.of(PICTURE).packed


def test_a_frame_comes_back_as_it_was() -> None:
    found = PackedFrame(PACKED, 5, 4).pixels
    assert found is not None
    assert (found == PICTURE).all()


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"no zlib",
        PACKED[:-1],
        PACKED[:8],
        zlib.compress(bytes(4 * 5 * 3 - 1)),
        zlib.compress(bytes(4 * 5 * 3 + 1)),
        zlib.compress(bytes(10 << 20)),
    ],
    ids=["empty", "garbage", "cut", "cut early", "too short", "too long", "ten MiB"],
)
def test_anything_else_is_damaged(packed: bytes) -> None:
    assert unpack_rows(packed, width=5, height=4) is None


def test_no_more_than_the_picture_is_unpacked() -> None:
    bomb = zlib.compress(bytes(32 << 20))
    tracemalloc.start()
    try:
        assert unpack_rows(bomb, width=5, height=4) is None
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


_KEY = b"gpu-studio-race"
_TEXT = b"[1, 2]"


def with_texts(*chunks: bytes) -> io.BytesIO:
    return io.BytesIO(png_bomb(8, 8, texts=b"".join(chunks)))


@pytest.mark.parametrize(
    "chunk",
    [
        png_chunk(b"tEXt", _KEY + b"\0" + _TEXT),
        png_chunk(b"zTXt", _KEY + b"\0\0" + zlib.compress(_TEXT)),
        png_chunk(b"iTXt", _KEY + b"\0\0\0en\0key\0" + _TEXT),
        png_chunk(b"iTXt", _KEY + b"\0\1\0en\0key\0" + zlib.compress(_TEXT)),
    ],
    ids=["plain", "packed", "international", "international and packed"],
)
def test_a_text_is_found_in_every_kind_of_chunk(chunk: bytes) -> None:
    other = png_chunk(b"tEXt", b"Software\0GPU Studio")
    assert png_text(with_texts(other, chunk), _KEY, 100) == _TEXT


def test_a_text_that_would_fill_the_memory_is_cut() -> None:
    assert png_text(io.BytesIO(packed_race()), _KEY, 100) == bytes(101)
