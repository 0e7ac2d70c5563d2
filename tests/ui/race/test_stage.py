"""The stage of a race on screens of all shapes."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from gpu_studio.core.packed_frame import PackedFrame, pack_rows
from gpu_studio.core.race.stage_view import StageSide, StageView
from gpu_studio.ui.race.stage import headline_share, paint_stage

WORDS = StageSide(name="", role="")
_SHADES = {"muted": "white"}


def painted(size: tuple[int, int], detail: str) -> np.ndarray:
    """Return the stage in red where words are and in green where pictures are: (y, x, color)."""
    lime = PackedFrame(pack_rows(b"\0\xff\0" * 160 * 90), 160, 90)
    ground = QImage(*size, QImage.Format.Format_RGB32)
    ground.fill(QColor("black"))
    painter = QPainter(ground)
    view = StageView(headline="", sides=(WORDS._replace(picture=lime),) * 2, detail=detail)
    paint_stage(
        painter, QRectF(ground.rect()), view, lambda role: QColor("red" if role == "muted" else 0)
    )
    painter.end()
    return np.frombuffer(ground.constBits(), np.uint8).reshape(size[1], size[0], 4).copy()


def test_the_energy_of_a_picture_is_whole(qapp):
    """The room that the steps leave is its own."""
    whole = "34.3\u202fdB · 113\u202fW · 658\u202fJ a picture"

    def inked(achieved: str) -> int:
        words = WORDS._replace(clock="5.8\u202fs", steps="2,400 of 2,400 steps", achieved=achieved)
        image = QImage(1280, 720, QImage.Format.Format_RGB32)
        image.fill(QColor("black"))
        painter = QPainter(image)
        view = StageView(headline="", sides=(words,) * 2)
        paint_stage(painter, QRectF(image.rect()), view, lambda role: QColor(_SHADES.get(role, 0)))
        painter.end()
        return int(np.count_nonzero(np.frombuffer(image.constBits(), np.uint8) > 128))

    assert inked(whole) - inked(whole[:-1]) > 10, "the last letter is painted"


@pytest.mark.parametrize("size", [(960, 540), (1920, 1080)])
def test_the_foot_is_whole_beside_a_short_word_of_trust(qapp, size):
    """What was raced is read in a film of the screen, as large as the other small words."""
    foot = (
        "GPU Studio · Swarm in two streams · 100,000 bodies · float32 against float16 · in turns, "
        "each alone"
    )

    def last_ink(words: str, trust: str) -> int:
        image = QImage(*size, QImage.Format.Format_RGB32)
        image.fill(QColor("black"))
        painter = QPainter(image)
        view = StageView(headline="", sides=(WORDS,) * 2, foot=words, trust=trust)
        shades = {"muted": "white", "amber": "black"}
        paint_stage(painter, QRectF(image.rect()), view, lambda role: QColor(shades.get(role, 0)))
        painter.end()
        pixels = np.frombuffer(image.constBits(), np.uint8).reshape(size[1], size[0], 4)
        return int(np.flatnonzero((pixels[size[1] * 9 // 10 :, :, 0] > 128).any(axis=0))[-1])

    assert last_ink(f"{foot}i", "Checked") > last_ink(foot, "Checked")
    assert last_ink(foot, "Checked") == last_ink(foot, "")
    assert last_ink(foot, "x" * 200) < size[0] * 0.65


def test_a_headline_fits_and_another_digit_rarely_changes_its_size():
    shares = [headline_share(wide, 1000.0) for wide in range(900, 2000, 10)]
    assert all(
        share * wide <= 1000 for share, wide in zip(shares, range(900, 2000, 10), strict=True)
    )
    assert shares[0] == 1.0
    assert len(set(shares)) < 20
    assert headline_share(9000.0, 1000.0) == headline_share(8000.0, 1000.0) > 0.2


@pytest.mark.parametrize("size", [(1080, 1920), (1024, 768), (1280, 720)])
def test_the_pictures_fill_the_stage_and_no_word_is_cut(qapp, size):
    width, height = size
    green = painted(size, "")[:, :, 1] > 200
    across, down = green.any(axis=0), green.any(axis=1)
    pictures = 2 if height > width else 1
    assert np.count_nonzero(np.diff(down.astype(int)) == 1) == pictures
    assert np.count_nonzero(np.diff(across.astype(int)) == 1) == 3 - pictures
    assert across.mean() > 0.9
    one, all_words = (painted(size, "word " * count)[:, :, 2] > 200 for count in (1, 40))
    assert np.count_nonzero(all_words) > 25 * np.count_nonzero(one)
