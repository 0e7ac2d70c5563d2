"""The curves and the map of a check, as values and as a drawing."""

from __future__ import annotations

from itertools import accumulate

import msgspec
import pytest

from gpu_studio.core.check.check_chart import record_chart, run_chart
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.stages import stage_budget_s
from gpu_studio.core.messages.check_messages import STAGE_NAMES
from gpu_studio.core.telemetry import Telemetry
from tests.fakes.check_answers import check_round
from tests.fakes.check_records import STARTED_AT, check_record

ENDS_S = [*accumulate(stage_budget_s(name, 360.0) for name in STAGE_NAMES)]


def test_stages_stand_on_the_time_axis_where_they_ran() -> None:
    chart = record_chart(check_record())
    assert [at_s for at_s, _ in chart.marks] == pytest.approx([0.0, *ENDS_S[:-1]])
    assert [word for _, word in chart.marks][:2] == ["Load", "Compute"]
    assert chart.end_s == pytest.approx(360)
    night = record_chart(check_record(minutes=480))
    assert [word for _, word in night.marks] == [str(number) for number in range(1, 17)]


def test_a_running_check_leaves_room_for_the_stages_to_come() -> None:
    run = CheckRun(CheckPlan(device="cuda:0", minutes=6), STARTED_AT)
    request = run.next_request()
    assert request is not None
    for event in check_round(request, end_in="compute"):
        run.apply(event)  # type: ignore[arg-type]  # no pause
    chart = run_chart(run)
    assert len(chart.marks) == STAGE_NAMES.index("compute") + 1
    assert chart.end_s == pytest.approx(360, rel=0.05)


def test_limits_are_those_of_the_card_and_a_missing_sensor_has_no_lane() -> None:
    record = check_record()
    heat, clock, power = record_chart(record).lanes
    assert (heat.limits, clock.limits, power.limits) == ((94,), (1227,), (30,))
    assert heat.words == "Chip, highest 63\u202f°C, slows itself down at 94\u202f°C"
    assert heat.high > 94
    silent = msgspec.structs.replace(
        record, readings=tuple(Telemetry(at_s=s, power_w=9.0) for s in (0.0, 1.0))
    )
    assert [lane.title for lane in record_chart(silent).lanes] == ["Power"]
    assert record_chart(check_record(device="cpu")).lanes == ()


def test_a_pause_of_the_readings_is_a_gap() -> None:
    times = [*range(40), *range(200, 240)]
    readings = tuple(Telemetry(at_s=float(s), temperature_c=50.0) for s in times)
    record = msgspec.structs.replace(check_record(), readings=readings)
    (curve,) = record_chart(record).lanes[0].curves
    assert [place for place, y in enumerate(curve.ys) if y != y] == [40]
    assert len(curve.values) == 80


def test_a_reading_that_no_sensor_has_is_not_drawn() -> None:
    readings = tuple(Telemetry(at_s=float(s), power_w=10.0**s) for s in range(99))
    (lane,) = record_chart(msgspec.structs.replace(check_record(), readings=readings)).lanes
    assert max(lane.curves[0].values) == 1e6
