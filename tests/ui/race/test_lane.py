"""One side of a race, by itself: the figures below its picture."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gpu_studio.core.race.photo import Detail
from gpu_studio.ui.race.framed_picture import place_in
from gpu_studio.ui.race.race_lane import LaneFigures, RaceLane
from gpu_studio.ui.race.race_picture import PictureChip
from tests.driving.pages import settle
from tests.driving.window import find, text, wait_until

FIGURES = LaneFigures("7.0\u202fs", "412 steps/s", "400 of 2,400", "15.0\u202fdB", share=0.5)


@pytest.fixture
def lane(qtbot, theme):
    theme.apply()
    made = RaceLane(theme, name="lane")
    qtbot.addWidget(made)
    made.resize(500, 400)
    made.show()
    made.show_figures(FIGURES, "cpu")
    return made


def test_the_figures_say_clock_pace_and_steps(lane):
    shown = [text(lane, f"lane.{name}") for name in ("clock", "pace", "steps", "achieved")]
    assert shown == ["7.0 s", "412 steps/s", "400 of 2,400", "15.0 dB"]


def test_in_a_small_window_clock_pace_and_steps_are_whole(lane):
    lane.show_figures(
        FIGURES._replace(achieved="15.0\u202fdB · 31.0\u202fW · 9\u202fJ a picture"), "cpu"
    )
    lane.resize(430, 220)
    settle()
    for name in ("clock", "pace", "steps"):
        label = find(lane, f"lane.{name}")
        assert label.width() >= label.sizeHint().width(), name
    assert lane.picture.height() > 100


def test_nothing_moves_when_the_figures_and_the_state_change(lane):
    lane.show_contestant(PictureChip("GT 1030"), PictureChip("Live"))
    before = lane.picture.geometry()
    lane.show_contestant(PictureChip("GT 1030"), PictureChip("Finished"))
    lane.show_figures(
        FIGURES._replace(achieved="113\u202fW · 658\u202fJ a picture", is_reached=True), "cpu"
    )
    lane.layout().activate()
    QApplication.processEvents()
    assert lane.picture.geometry() == before


@pytest.mark.parametrize(
    ("shape_of", "is_whole"),
    [((16, 9), False), ((10, 16), True), ((1, 10), True), ((10, 1), True)],
    ids=str,
)
def test_a_picture_fills_its_place_only_if_it_loses_little(shape_of, is_whole):
    frame = QRectF(0, 0, 445, 262)
    place = place_in(frame, QSizeF(*shape_of))
    assert frame.contains(place) is is_whole
    if not is_whole:
        assert place.contains(frame)
        assert place.width() * place.height() * 0.84 <= frame.width() * frame.height()


def test_the_lens_shows_the_detail_large(lane):
    image = QImage(160, 90, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.blue)
    for x in range(28, 36):
        for y in range(64, 72):
            image.setPixelColor(x, y, QColor("red"))
    lane.picture.show_picture(image)

    def red() -> int:
        seen = lane.picture.grab().toImage()
        return sum(
            seen.pixelColor(x, y) == QColor("red")
            for x in range(0, seen.width(), 4)
            for y in range(0, seen.height(), 4)
        )

    plain = red()
    lane.picture.show_detail(Detail(0.2, 0.755, 0.06))
    assert red() > 5 * plain
    lane.picture.show_detail(None)
    assert red() == plain


def shape(width, height):
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.red)
    return image


def test_a_click_beside_the_picture_points_nowhere(lane):
    picture = lane.picture
    picture.show_picture(shape(128, 32))
    wait_until(lambda: picture.width() > 0.95 * lane.width())
    seen = []
    picture.pointed.connect(lambda x, y: seen.append((x, y)))
    QTest.mouseClick(picture, Qt.MouseButton.LeftButton, pos=QPoint(9, 1))
    QTest.mouseClick(picture, Qt.MouseButton.LeftButton, pos=picture.rect().center())
    assert seen == [pytest.approx((0.5, 0.5), abs=0.02)]
