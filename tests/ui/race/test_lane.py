"""One side of a race, by itself: the figures below its picture."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from gpu_studio.core.race.photo import Detail
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.race.framed_picture import place_in
from gpu_studio.ui.race.picture_chip import ChipPainter, PictureChip
from gpu_studio.ui.race.race_lane import LaneFigures, RaceLane
from tests.driving.pages import settle
from tests.driving.window import find, sees, text, wait_until

FIGURES = LaneFigures(
    "7.0\u202fs", "412", "steps/s", "400 of 2,400 steps", "400 of 2,400", "15.0\u202fdB",
    "sharpness", share=0.5,
)  # fmt: skip


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
    shown = [text(lane, f"lane.{name}") for name in ("clock", "pace", "pace_unit", "steps")]
    assert shown == ["7.0 s", "412", "steps/s", "400 of 2,400 steps"]
    assert text(lane, "lane.power") == ""


def test_in_a_low_window_the_picture_has_the_whole_lane(lane):
    """The figures lie on its lower edge, and each number keeps its unit."""
    below = lane.picture.height()
    lane.set_dense(True)
    wait_until(lambda: lane.picture.height() > lane.height() - 9)
    assert lane.picture.height() > below + 30
    pace, steps = (find(lane, f"lane.{name}") for name in ("pace", "steps"))
    wait_until(lambda: steps.mapTo(lane, QPoint()).x() > pace.mapTo(lane, QPoint()).x())
    assert sees(lane, "lane.pace_unit")
    assert not sees(lane, "lane.measure_title")
    assert steps.text() == "400 of 2,400"
    lane.set_dense(False)
    assert steps.text() == "400 of 2,400 steps"


def test_the_figures_of_a_low_window_have_no_words_and_a_smaller_type(lane):
    lane.show_figures(FIGURES._replace(power="31.0\u202fW", energy="9\u202fJ a picture"), "cpu")
    clock = find(lane, "lane.clock")
    (title,) = (one for one in lane.findChildren(ElidedText) if one.text() == "race clock")
    way = find(lane, "lane.way")
    figures = way.parentWidget()

    def looks():
        settle()
        room = clock.mapTo(figures, QPoint()).x(), figures.height() - way.geometry().bottom()
        return sees(lane, "lane.energy"), title.isVisible(), clock.fontMetrics().height(), *room

    assert looks()[:2] == (True, True)
    _, _, height, left, below = looks()
    lane.set_dense(True)
    *words, dense_height, dense_left, dense_below = looks()
    assert words == [False, False]
    assert dense_height < height
    assert dense_left < left
    assert dense_below < below
    lane.set_dense(False)
    assert looks() == (True, True, height, left, below)
    lane.set_narrow(True)
    assert looks()[:3] == (True, True, dense_height)


def test_a_lane_asks_for_room_below_its_picture_unless_the_figures_lie_on_it(lane):
    def height_below():
        both = lane.picture.parentWidget().minimumSizeHint().height()
        return both - lane.picture.minimumSizeHint().height()

    assert height_below() > 0
    lane.set_dense(True)
    assert height_below() == 0


def test_no_figure_of_a_low_window_is_cut(lane):
    lane.set_dense(True)
    lane.show_figures(FIGURES._replace(pace_unit="tiles/s", power="31.0\u202fW"), "cpu")
    lane.resize(460, 260)
    settle()
    for name in ("pace_unit", "steps"):
        assert not find(lane, f"lane.{name}", ElidedText).is_elided, name


def test_nothing_moves_when_the_figures_and_the_state_change(lane):
    lane.show_contestant(PictureChip("GT 1030"), PictureChip("Live"))
    before = lane.picture.geometry()
    lane.show_contestant(PictureChip("GT 1030"), PictureChip("Finished"))
    lane.show_figures(
        FIGURES._replace(power="113\u202fW", energy="658\u202fJ a picture", is_reached=True), "cpu"
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


def test_the_lens_of_a_low_window_is_above_the_figures_and_in_the_picture(lane):
    """The rim is white, and nothing else is."""
    image = QImage(160, 90, QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    lane.picture.show_picture(image)
    lane.picture.show_detail(Detail(0.25, 0.5, 0.2))
    for height, is_dense in ((260, True), (600, False)):
        lane.resize(500, height)
        lane.set_dense(is_dense)
        settle()
        shown = lane.picture.grab().toImage()
        rows = [
            y
            for y in range(shown.height() // 4, shown.height())
            if shown.pixelColor(shown.width() - shown.height() // 4, y) == QColor("white")
        ]
        figures = find(lane, "lane.way").parentWidget()
        lowest = figures.mapTo(lane, QPoint()).y() - lane.picture.mapTo(lane, QPoint()).y()
        if not is_dense:
            lowest = place_in(QRectF(lane.picture.rect()), image.size().toSizeF()).bottom()
        assert rows
        assert max(rows) < lowest, is_dense


def test_a_click_beside_the_picture_points_nowhere(lane):
    picture = lane.picture
    picture.show_picture(shape(128, 32))
    wait_until(lambda: picture.width() > 0.95 * lane.width())
    seen = []
    picture.pointed.connect(lambda x, y: seen.append((x, y)))
    QTest.mouseClick(picture, Qt.MouseButton.LeftButton, pos=QPoint(9, 1))
    QTest.mouseClick(picture, Qt.MouseButton.LeftButton, pos=picture.rect().center())
    assert seen == [pytest.approx((0.5, 0.5), abs=0.02)]


def test_a_long_name_takes_a_second_line_and_is_not_cut(lane, theme):
    name = PictureChip("GTX 1650 with Max-Q Design", "gpu0")
    chips = ChipPainter(theme, lane.font())
    whole = chips.size_of(name, 1000)
    narrow = chips.size_of(name, 0.7 * whole.width())
    assert narrow.height() > whole.height()
    assert narrow.width() < 0.7 * whole.width(), "no line is as wide as the room: none is elided"
