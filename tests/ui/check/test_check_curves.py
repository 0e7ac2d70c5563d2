"""The curves of a check: what they show, and where its stages began, by name."""

from __future__ import annotations

from itertools import accumulate, combinations
from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.check.stages import stage_budget_s
from gpu_studio.core.messages.check_messages import STAGE_NAMES
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.ui.check.check_curves import CheckCurves, lanes_of
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.window import find
from tests.fakes.check_records import check_record, check_until

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.ui.theme import Theme

ENDS_S = [*accumulate(stage_budget_s(name, 360.0) for name in STAGE_NAMES)]


def with_readings(*readings: Telemetry) -> CheckRecord:
    return msgspec.structs.replace(check_record(), readings=readings)


def test_stages_stand_on_the_time_axis_where_they_ran() -> None:
    first, *others = lanes_of(check_record())
    assert [mark.x for mark in first.marks] == pytest.approx([0.0, *ENDS_S[:-1]])
    assert [mark.label for mark in first.marks][:2] == ["Load", "Compute"]
    assert first.end_s == pytest.approx(360)
    assert {mark.label for one in others for mark in one.marks} == {""}
    night = lanes_of(check_record(minutes=480))[0]
    assert [mark.label for mark in night.marks] == [str(number) for number in range(1, 17)]


def test_a_running_check_leaves_room_for_the_stages_to_come() -> None:
    lane = lanes_of(check_until("compute", minutes=6))[0]
    assert len(lane.marks) == STAGE_NAMES.index("compute") + 1
    assert lane.end_s == pytest.approx(360, rel=0.05)


def test_limits_are_those_of_the_card_and_a_missing_sensor_has_no_lane() -> None:
    heat, clock, power = lanes_of(check_record())
    assert (heat.limit, clock.limit, power.limit) == (94, 1227, 30)
    assert heat.words == "Chip, highest 63\u202f°C, slows itself down at 94\u202f°C"
    assert heat.high > 94
    silent = with_readings(*(Telemetry(at_s=s, power_w=9.0) for s in (0.0, 1.0)))
    assert [lane.unit for lane in lanes_of(silent)] == ["W"]
    assert lanes_of(check_record(device="cpu")) == ()


def test_a_pause_of_the_readings_is_a_gap() -> None:
    times = [*range(40), *range(200, 240)]
    (lane,) = lanes_of(with_readings(*(Telemetry(at_s=s, temperature_c=50.0) for s in times)))
    _, ys = lane.points["temperature_c"]
    assert [place for place, y in enumerate(ys) if y != y] == [40]
    assert len(ys) == 81


def test_a_reading_that_no_sensor_has_is_not_drawn() -> None:
    (lane,) = lanes_of(with_readings(*(Telemetry(at_s=s, power_w=10.0**s) for s in range(99))))
    assert max(y for y in lane.points["power_w"][1] if y == y) == 1e6


@pytest.mark.parametrize("width", [640, 900, 1300])
def test_no_name_of_a_stage_covers_another_one(qtbot: QtBot, theme: Theme, width: int) -> None:
    curves = CheckCurves(theme)
    qtbot.addWidget(curves)
    curves.show_lanes(lanes_of(check_record()))
    curves.resize(width, 800)
    curves.show()
    plot = find(curves, "check.curves.°C", LivePlot)
    labels = [item.label for item in plot.lay_out().mark_items["markers"] if hasattr(item, "label")]
    places = {label.format: label.mapRectToScene(label.boundingRect()) for label in labels}
    assert len(places) >= 4
    covered = [
        (one, other)
        for one, other in combinations(places, 2)
        if places[one].intersects(places[other])
    ]
    assert not covered
