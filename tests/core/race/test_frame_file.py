"""The file of the frames: a reader gets a frame that is there, and None for anything else."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from gpu_studio.core.race.frame_file import (
    LARGEST_FILE_BYTES,
    capacity_of,
    header_of,
    offset_of,
    read_frame,
)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "frames"
    frames = [np.full((2, 3, 3), number, np.uint8) for number in (7, 9)]
    path.write_bytes(header_of(3, 2) + b"".join(frame.tobytes() for frame in frames))
    return path


def test_a_frame_is_read_by_its_number(path):
    frame = read_frame(path, 1)
    assert frame.shape == (2, 3, 3)
    assert (frame == 9).all()


@pytest.mark.parametrize("number", [-1, 2, 1 << 40])
def test_a_frame_that_is_not_there_is_none(path, number):
    assert read_frame(path, number) is None


def test_a_file_that_is_gone_is_none(path):
    path.unlink()
    assert read_frame(path, 0) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"GPUST", b"another file, long enough for a header" * 3,
     struct.pack("<8sIIII", b"GPUSTFRM", 2, 3, 2, 9) + bytes(200),
     struct.pack("<8sIIII", b"GPUSTFRM", 1, 1 << 30, 1 << 30, 9) + bytes(200)],
)  # fmt: skip
def test_a_foreign_file_is_none(path, content):
    path.write_bytes(content)
    assert read_frame(path, 0) is None


def test_the_largest_frames_fit_for_some_seconds():
    count = capacity_of(512, 512)
    assert count >= 80
    assert offset_of(count, 512, 512) <= LARGEST_FILE_BYTES
