"""The posters of a race's pictures are what the engine draws."""

from collections.abc import Iterator
from pathlib import Path

import draw_posters
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PySide6.QtGui import QImage

from gpu_studio.core.race.pictures import LEARN, PICTURES, lake
from gpu_studio.ui.race.race_lane import poster

NAMES = [picture.name for picture in PICTURES if picture is not LEARN]
LARGEST_BYTES = 60_000
# Few bodies and JPEG change a picture by less than five steps of a swarm, which give 0.92.
ALIKE = 0.95


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pixels_of(image: QImage) -> NDArray[np.uint8]:
    plain = image.convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(bytes(plain.constBits()), np.uint8).reshape(plain.height(), -1)
    return rows[:, : 3 * plain.width()].reshape(plain.height(), plain.width(), 3)


def likeness(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    return float(np.corrcoef(one.ravel(), other.ravel())[0, 1])


def test_every_picture_has_one(root: Path) -> None:
    files = sorted((root / "resources" / "posters").iterdir())
    assert [file.name for file in files] == sorted(
        [*(f"{name}.jpg" for name in NAMES), "learn.zrgb"]
    )
    assert max(file.stat().st_size for file in files) <= LARGEST_BYTES
    assert lake().rows
    assert set(draw_posters.POSTERS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_what_the_engine_draws(name: str) -> None:
    image = poster(name)
    assert image is not None
    assert image.width() * 9 == image.height() * 16
    size = 10_000 if name == "swarm" else None  # a tenth of the poster's: seconds less
    assert likeness(pixels_of(image), draw_posters.drawn(name, size)) > ALIKE
