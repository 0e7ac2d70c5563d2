"""A frame in a line of a recording: exact, or refused."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from gpu_studio.core.packed_frame import PackedFrame, unpack_rows

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
