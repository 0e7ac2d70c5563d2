"""One side of a race, by itself: the figures below its picture."""

from __future__ import annotations

import pytest

from gpu_studio.ui.parts import Text
from gpu_studio.ui.race.race_lane import LaneFigures, RaceLane
from gpu_studio.ui.theme import COLOURS
from tests.driving.window import find, sees, text

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
    lane.layout().activate()
    assert title.geometry().left() > count.geometry().right(), "on one line"
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
