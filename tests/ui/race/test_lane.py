"""One side of a race, by itself: the figures below its picture."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest

from gpu_studio.ui.parts import Text
from gpu_studio.ui.race.picture_chip import ChipPainter, PictureChip
from gpu_studio.ui.race.race_lane import Chips, LaneFigures, RaceLane
from gpu_studio.ui.theme import COLOURS
from tests.driving.window import find, sees, text, wait_until

FIGURES = LaneFigures("7.0\u202fs", "400", "steps", "15.0\u202fdB", "sharpness", 0.5)


@pytest.fixture
def lane(qtbot, theme):
    theme.apply()
    made = RaceLane(theme, name="lane")
    qtbot.addWidget(made)
    made.resize(500, 400)
    made.show()
    made.show_figures(FIGURES, "cpu")
    return made


def test_each_number_keeps_its_unit_in_a_low_window(lane):
    lane.set_dense(True)
    assert [text(lane, f"lane.{name}") for name in ("steps", "step_title")] == ["400", "steps"]
    count, title = (find(lane, f"lane.{name}", Text) for name in ("steps", "step_title"))
    assert sees(lane, "lane.step_title")
    wait_until(lambda: title.geometry().left() > count.geometry().right())  # on one line
    assert not sees(lane, "lane.goal")


@pytest.mark.parametrize("is_large", [False, True])
def test_a_reached_measure_is_green_and_as_large_as_before(lane, is_large):
    measure = find(lane, "lane.measure", Text)
    lane.set_large(is_large)
    measure.ensurePolished()
    before = measure.font().pointSizeF(), measure.font().weight()
    lane.show_figures(FIGURES._replace(is_reached=True), "cpu")
    measure.ensurePolished()
    assert (measure.font().pointSizeF(), measure.font().weight()) == before
    seen = {
        measure.grab().toImage().pixelColor(x, y).name().upper()
        for x in range(measure.width())
        for y in range(measure.height())
    }
    assert COLOURS["good"][0] in seen or COLOURS["good"][1] in seen


def shape(width, height):
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.red)
    return image


def test_the_figures_stand_where_they_leave_the_picture_more_room(lane):
    lane.resize(1000, 330)
    lane.picture.show_picture(shape(64, 64))
    wait_until(lambda: lane.picture.width() < lane.width() / 2)
    beside = lane.picture.size()
    assert abs(beside.width() - beside.height()) <= 1, "nothing is empty beside a square"
    clock = find(lane, "lane.clock", Text)
    assert clock.mapTo(lane, QPoint()).x() > lane.picture.geometry().right()

    lane.picture.show_picture(shape(640, 64))
    wait_until(lambda: clock.mapTo(lane, QPoint()).y() > lane.picture.geometry().bottom())
    assert lane.picture.width() > 0.95 * lane.width()


def test_the_lowest_lane_has_its_picture_beside_the_figures(lane):
    """Above them, the picture would be half as high."""
    lane.set_dense(True)
    lane.show_contestant(PictureChip("CPU, 4 threads"), PictureChip("Finishes at 12.0 s"))
    lane.picture.show_picture(shape(96, 96))
    height = lane.minimumSizeHint().height()
    lane.resize(4 * height, height)
    wait_until(lambda: lane.picture.height() > 0.9 * lane.height())


def test_a_click_beside_the_picture_points_nowhere(lane):
    picture = lane.picture
    picture.show_picture(shape(128, 32))
    wait_until(lambda: picture.width() > 0.95 * lane.width())
    seen = []
    picture.pointed.connect(lambda x, y: seen.append((x, y)))
    QTest.mouseClick(picture, Qt.MouseButton.LeftButton, pos=QPoint(9, 1))
    QTest.mouseClick(picture, Qt.MouseButton.LeftButton, pos=picture.rect().center())
    assert seen == [pytest.approx((0.5, 0.5), abs=0.02)]


def test_a_side_without_a_picture_is_narrow_and_its_state_is_not_cut(lane, theme):
    name, state = PictureChip("GT 1030", "gpu0"), PictureChip("Ghost of 14:02, finishes at 26.0 s")
    lane.show_contestant(name, state)
    whole = lane.minimumSizeHint().width()
    before = lane.sizeHint().width()
    lane.set_alone(True)
    lane.layout().activate()
    assert lane.sizeHint().width() < before
    assert lane.minimumSizeHint().width() <= whole
    chips = ChipPainter(theme, lane.font())
    one, two = (chips.size_of(state, room) for room in (1000, 200))
    assert two.height() > one.height(), "a long state takes a second line and is not cut"
    assert two.width() < one.width()


def test_a_long_name_takes_a_second_line_and_is_not_cut(lane, theme):
    name = PictureChip("GTX 1650 with Max-Q Design", "gpu0")
    chips = ChipPainter(theme, lane.font())
    whole = chips.size_of(name, 1000)
    narrow = chips.size_of(name, 0.7 * whole.width())
    assert narrow.height() > whole.height()
    assert narrow.width() < 0.7 * whole.width(), "no line is as wide as the room: none is elided"


def test_large_type_is_for_the_names_too(lane):
    lane.show_contestant(PictureChip("GT 1030", "gpu0"), PictureChip("Finished"))
    lane.set_alone(True)
    high, wide = lane.sizeHint().height(), lane.sizeHint().width()
    chips = lane.findChild(Chips)
    before = chips.heightForWidth(wide)
    lane.set_large(True)
    assert chips.heightForWidth(wide) > 1.2 * before
    assert lane.sizeHint().height() > high
    assert lane.sizeHint().width() > wide, "a longer name still fits into its column"
    lane.set_large(False)
    assert chips.heightForWidth(wide) == before
