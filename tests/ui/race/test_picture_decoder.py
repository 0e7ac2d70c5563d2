import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QLoggingCategory
from PySide6.QtGui import QColor, QImage

from gpu_studio.core.race.picture_file import (
    LARGEST_BYTES,
    DecodedPicture,
    FoundRace,
    PictureAnswer,
    RefusedPicture,
)
from gpu_studio.ui.race import picture_decoder
from gpu_studio.ui.race.picture_decoder import decode
from tests.hostile_pictures import HOSTILE, bmp, flat_webp, gif, gray_jpeg, png_bomb, riff

pytestmark = pytest.mark.usefixtures("qapp")

_FORMATS = QImage.Format
# Only the limits of the decoder's process end these: see tests/model/race/test_race_files.py.
_ENDLESS = {"passes.jpg", "flat.webp"}
_SMALL = {
    "png": png_bomb(40, 30, 8, 2), "jpg": gray_jpeg(64, 64, 64), "webp": riff(flat_webp(40, 30)),
    "gif": gif(20, 10, bytes(range(100)) * 2), "bmp": bmp(40, 30, 24, 0, bytes(3600)),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Nobody hears what Qt says of a stranger's picture, as in the decoder's process."""
    QLoggingCategory.setFilterRules("*=false")
    yield
    QLoggingCategory.setFilterRules("")


def picture(path: Path, width: int, height: int, kind: QImage.Format) -> Path:
    image = QImage(width, height, kind)
    image.fill(QColor(200, 100, 50))
    assert image.save(str(path))
    return path


def pixels_in(answer: PictureAnswer) -> NDArray[np.uint8]:
    assert isinstance(answer, DecodedPicture)
    assert answer.picture.pixels is not None
    return answer.picture.pixels


@pytest.mark.parametrize("ending", ["png", "bmp", "jpg", "webp"])
def test_a_picture_of_each_kind_keeps_its_colors_whatever_its_name(
    tmp_path: Path, ending: str
) -> None:
    path = picture(tmp_path / f"a.{ending}", 20, 10, _FORMATS.Format_RGB32)

    pixels = pixels_in(decode(path.rename(tmp_path / "a.svg")))

    assert pixels.shape == (10, 20, 3)
    assert np.abs(pixels[5, 5].astype(int) - (200, 100, 50)).max() <= 5


def test_of_an_animation_the_first_picture_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.gif").write_bytes(gif(20, 10, bytes([100]) * 200))

    assert (pixels_in(decode(tmp_path / "a.gif")) == 200).all()


@pytest.mark.parametrize(
    ("width", "height", "shape"),
    [(1, 1, (1, 1, 3)), (1, 10_000, (512, 1, 3)), (1600, 900, (288, 512, 3))],
)
@pytest.mark.parametrize("ending", ["png", "jpg"])
def test_a_picture_is_made_small_in_its_own_shape(
    tmp_path: Path, ending: str, width: int, height: int, shape: tuple[int, ...]
) -> None:
    path = picture(tmp_path / f"a.{ending}", width, height, _FORMATS.Format_RGB32)

    assert pixels_in(decode(path)).shape == shape


def test_what_is_transparent_becomes_white(tmp_path: Path) -> None:
    image = QImage(900, 9, _FORMATS.Format_ARGB32)
    image.fill(QColor(0, 0, 0, 0))
    image.save(str(tmp_path / "a.png"))

    assert pixels_in(decode(tmp_path / "a.png")).min() == 255


def test_a_photo_is_turned_as_its_camera_says(tmp_path: Path) -> None:
    image = QImage(64, 32, _FORMATS.Format_RGB32)
    image.fill(QColor("black"))
    for x in range(16):
        for y in range(16):
            image.setPixelColor(x, y, QColor("white"))
    path = tmp_path / "a.jpg"
    assert image.save(str(path))
    # CIPA DC-008, tag 0x0112: 6 turns the top left to the top right.
    entry = struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0) + bytes(4)
    body = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 1) + entry
    content = path.read_bytes()
    head = b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body
    path.write_bytes(content[:2] + head + content[2:])

    pixels = pixels_in(decode(path))
    assert pixels.shape == (64, 32, 3)
    assert (pixels[[8, -8]][:, [8, -8], 0] > 200).tolist() == [[False, True], [False, False]]


# ── what is hostile ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", sorted(HOSTILE.keys() - _ENDLESS))
def test_a_hostile_file_is_a_small_answer(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(HOSTILE[name]())

    found = decode(tmp_path / name)

    if isinstance(found, FoundRace):
        assert len(found.text) == LARGEST_BYTES + 1, "which is refused"
    elif isinstance(found, DecodedPicture):
        assert max(found.picture.width, found.picture.height) <= 512
    else:
        assert 0 < len(found.reason) <= 200


@pytest.mark.parametrize(
    "name", ["bomb.png", "bomb.jpg", "bomb.webp", "canvas.webp", "bomb.gif"]
)  # fmt: skip
def test_too_many_pixels_are_named_and_not_decoded(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_reader: object) -> None:
        raise AssertionError

    monkeypatch.setattr(picture_decoder.QImageReader, "read", refuse)
    (tmp_path / name).write_bytes(HOSTILE[name]())

    found = decode(tmp_path / name)

    assert isinstance(found, RefusedPicture)
    assert "pixels, and 100 megapixels is the limit" in found.reason


@pytest.mark.parametrize("kind", _SMALL)
def test_a_picture_that_is_cut_off_anywhere_is_an_answer(tmp_path: Path, kind: str) -> None:
    path, content = tmp_path / "a", _SMALL[kind]
    path.write_bytes(content)
    assert isinstance(decode(path), DecodedPicture)
    for size in range(0, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:size])
        found = decode(path)
        assert isinstance(found, DecodedPicture) or found.reason
