"""The picture on its way to the engine."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.race.photo_file import encode_photo, photo_id, read_photo

PHOTO = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)


def test_a_picture_comes_back_as_it_was(tmp_path):
    path = tmp_path / "photo.ppm"
    path.write_bytes(encode_photo(PHOTO))
    assert (read_photo(path) == PHOTO).all()
    assert photo_id(read_photo(path)) == photo_id(PHOTO)


def test_the_shape_belongs_to_the_identity():
    assert photo_id(PHOTO) != photo_id(PHOTO.reshape(3, 2, 3))


@pytest.mark.parametrize(
    "content",
    [b"", b"P6\n3 2\n255\n", b"P5\n3 2\n255\n" + bytes(18), b"P6\n0 2\n255\n",
     b"P6\n9999 1\n255\n" + bytes(9999 * 3), encode_photo(PHOTO) + b"x",
     b"P6\n3 2\n65535\n" + bytes(36)],
)  # fmt: skip
def test_anything_else_is_refused_with_a_sentence(tmp_path, content):
    path = tmp_path / "photo.ppm"
    path.write_bytes(content)
    with pytest.raises(StudioError) as refused:
        read_photo(path)
    assert refused.value.kind is FailureKind.FILE_REFUSED


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(StudioError):
        read_photo(tmp_path / "none.ppm")
