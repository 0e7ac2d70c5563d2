"""Pictures of a person's own, good and bad."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from PySide6.QtGui import QColor, QImage

from gpu_studio.core.failure import StudioError
from gpu_studio.core.race.photo_file import Photo
from gpu_studio.ui.race.photo import open_photo, pixels_of
from gpu_studio.ui.race.share_card import png_of_card
from tests.ui.race.pictures import order, png_of_size, shared_race

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("qapp")

_FORMATS = QImage.Format


def picture(path: Path, width: int, height: int, kind: QImage.Format) -> Path:
    image = QImage(width, height, kind)
    image.fill(QColor(200, 100, 50))
    assert image.save(str(path))
    return path


@pytest.mark.parametrize("ending", ["png", "bmp", "ppm", "xpm"])
def test_a_picture_of_any_format_keeps_its_colors(tmp_path: Path, ending: str) -> None:
    photo = open_photo(picture(tmp_path / f"a.{ending}", 20, 10, _FORMATS.Format_RGB32))

    assert isinstance(photo, Photo)
    assert photo.name == f"a.{ending}"
    assert photo.pixels.shape == (10, 20, 3)
    assert photo.pixels[5, 5].tolist() == [200, 100, 50]


@pytest.mark.parametrize(
    "kind", [_FORMATS.Format_RGBA64, _FORMATS.Format_Indexed8, _FORMATS.Format_Grayscale16]
)
def test_an_unusual_depth_becomes_8_bit_colors(tmp_path: Path, kind: QImage.Format) -> None:
    image = QImage(30, 30, _FORMATS.Format_RGB32)
    image.fill(QColor(90, 90, 90))
    assert image.convertToFormat(kind).save(str(tmp_path / "a.png"))

    pixels = open_photo(tmp_path / "a.png").pixels

    assert pixels.dtype == np.uint8
    assert pixels.shape == (30, 30, 3)
    assert abs(int(pixels[10, 10, 0]) - 90) <= 2


@pytest.mark.parametrize(
    ("width", "height", "shape"),
    [(1, 1, (1, 1, 3)), (1, 10_000, (512, 1, 3)), (1600, 900, (288, 512, 3))],
)
def test_a_picture_is_made_small_in_its_own_shape(
    tmp_path: Path, width: int, height: int, shape: tuple[int, ...]
) -> None:
    path = picture(tmp_path / "a.png", width, height, _FORMATS.Format_RGB32)

    assert open_photo(path).pixels.shape == shape


def test_what_is_transparent_becomes_white(tmp_path: Path) -> None:
    image = QImage(9, 9, _FORMATS.Format_ARGB32)
    image.fill(QColor(0, 0, 0, 0))
    image.save(str(tmp_path / "a.png"))

    assert open_photo(tmp_path / "a.png").pixels.min() == 255


def test_colors_of_print_can_be_learned() -> None:
    image = QImage(9, 9, _FORMATS.Format_RGB32)
    image.fill(QColor(200, 100, 50))

    pixels = pixels_of(image.convertToFormat(_FORMATS.Format_CMYK8888))

    assert np.abs(pixels[4, 4].astype(int) - (200, 100, 50)).max() <= 3


@pytest.mark.parametrize("kind", ["missing", "folder", "text", "cut"])
def test_what_is_no_picture_is_refused_in_a_sentence(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.png"
    if kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("hello")
    elif kind == "cut":
        png_of_size(path, 100, 100)

    with pytest.raises(StudioError) as refusal:
        open_photo(path)

    assert str(refusal.value).startswith("a.png cannot be learned: ")


def test_a_picture_beyond_100_megapixels_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    with pytest.raises(StudioError, match="120 megapixels"):
        open_photo(png_of_size(tmp_path / "a.png", 12_000, 10_000))


def test_a_saved_race_opens_as_the_race(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png_of_card(order()))

    assert open_photo(tmp_path / "a.png") == shared_race()
