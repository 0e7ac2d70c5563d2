"""The curves and the map of a check, as values and as a drawing."""

from __future__ import annotations

from itertools import accumulate

import msgspec
import pytest

from gpu_studio.core.check.check_chart import (
    band_at,
    chart_sentence,
    plan_chart,
    reading_at,
    record_chart,
    run_chart,
    time_ticks,
    value_ticks,
)
from gpu_studio.core.check.check_drawing import chart_height, draw_chart, draw_map, map_place
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.finding_lines import finding_lines
from gpu_studio.core.check.memory_map import MOST_SQUARES, memory_map, place_words
from gpu_studio.core.check.readings import RecordedReading
from gpu_studio.core.check.stages import stage_budget_s
from gpu_studio.core.check.steps_table import steps_table
from gpu_studio.core.messages.check_messages import STAGE_NAMES, LoadStep, MemoryCoverage, WrongWord
from gpu_studio.core.pause import Pause
from gpu_studio.core.svg_canvas import EM, SvgCanvas
from tests.fakes.check_answers import COVERAGE, MIB, check_round, hot_card, wrong_bit
from tests.fakes.check_records import STARTED_AT, check_record

ENDS_S = [*accumulate(stage_budget_s(name, 360.0) for name in STAGE_NAMES)]


def test_stages_stand_on_the_time_axis_where_they_ran() -> None:
    chart = record_chart(check_record())
    assert [band.end_s for band in chart.bands] == pytest.approx(ENDS_S)
    assert [band.start_s for band in chart.bands] == pytest.approx([0.0, *ENDS_S[:-1]])
    assert chart.end_s == pytest.approx(360)
    place = STAGE_NAMES.index("memory")
    memory = band_at(chart, ENDS_S[place] - 1.0)
    assert memory is not None
    assert (memory.title, memory.number) == ("Video memory", place + 1)
    assert record_chart(check_record({"memory": (wrong_bit(),)})).bands[place].verdict == "failed"


def test_a_running_check_shows_the_stages_to_come() -> None:
    run = CheckRun(CheckPlan(device="cuda:0", minutes=6), STARTED_AT)
    request = run.next_request()
    assert request is not None
    for event in check_round(request, end_in="compute"):
        run.apply(event)  # type: ignore[arg-type]  # no pause
    chart = run_chart(run)
    assert [band.end_s for band in chart.bands] == pytest.approx(ENDS_S)
    assert chart.bands[STAGE_NAMES.index("compute")].verdict is None


def test_limits_are_those_of_the_card_and_a_missing_sensor_has_no_lane() -> None:
    record = check_record()
    heat, clock, power = record_chart(record).lanes
    assert [limit.value for lane in (heat, clock, power) for limit in lane.limits] == [94, 1227, 30]
    assert heat.high > 94
    silent = msgspec.structs.replace(
        record, readings=tuple(RecordedReading(at_s=s, power_w=9.0) for s in (0.0, 1.0))
    )
    assert [lane.title for lane in record_chart(silent).lanes] == ["Power"]
    assert record_chart(check_record(device="cpu")).lanes == ()


def test_a_pause_of_the_readings_is_a_gap() -> None:
    times = [*range(40), *range(200, 240)]
    readings = tuple(RecordedReading(at_s=float(s), temperature_c=50.0) for s in times)
    record = msgspec.structs.replace(check_record(), readings=readings)
    (curve,) = record_chart(record).lanes[0].curves
    assert [len(piece) for piece in curve.pieces] == [40, 40]
    assert reading_at(record_chart(record), 120.0) is None
    assert reading_at(record_chart(record), 210.2) == readings[50]


def test_a_sleep_is_marked_on_the_time_axis() -> None:
    slept = Pause(after_s=30.0, paused_s=80.0), Pause(after_s=1e6, paused_s=9.0)  # a stranger's
    chart = record_chart(msgspec.structs.replace(check_record(), pauses=slept))
    assert chart.pauses == slept
    canvas = SvgCanvas()
    draw_chart(chart, canvas, 900, 400, EM)
    page = canvas.svg(900, 400, "")
    words = "The PC slept for 1:20, or the program was stopped, 0:30 into the check"
    assert page.count("The PC slept") == page.count(words) == 1
    assert words in chart_sentence(chart)


def test_times_are_read_as_a_clock_shows_them() -> None:
    assert time_ticks(60.0, 6) == (0, 10, 20, 30, 40, 50, 60)
    assert time_ticks(360.0, 12)[1] == 30
    assert len(time_ticks(2.4e6, 7)) <= 9
    assert value_ticks(20.0, 103.0, 5) == (20, 40, 60, 80, 100)
    canvas = SvgCanvas()
    draw_chart(record_chart(check_record(minutes=1)), canvas, 900, 400, EM)
    assert ">0:30</text>" in canvas.svg(900, 400, "")


def test_a_drawing_stays_in_its_place() -> None:
    chart = record_chart(check_record())
    for width in (300.0, 420.0, 900.0):
        canvas, height = SvgCanvas(), chart_height(chart, EM)
        place = draw_chart(chart, canvas, width, height, EM)
        assert 0 <= place.left < place.right <= width
        assert 0 < place.top < place.bottom < height
        assert place.seconds(place.x(100.0, chart.end_s), chart.end_s) == pytest.approx(100)
    empty = plan_chart([("load", 60.0), ("memory", 300.0)], "cpu")
    assert [band.title for band in empty.bands] == ["Load and heat", "RAM"]
    draw_chart(empty, SvgCanvas(), 300, 200, EM)


def chunks(*bad: int, **changes: int) -> MemoryCoverage:
    sizes = {"chunk_bytes": 16 * MIB} | changes
    return msgspec.structs.replace(COVERAGE, bad_chunks=bad, **sizes)


def test_the_map_has_the_bad_places_and_what_was_not_tested() -> None:
    memory = memory_map(chunks(2))
    assert memory is not None
    assert memory.square_bytes == 8 * MIB
    assert [number for number, one in enumerate(memory.squares) if one.state == "bad"] == [4, 5]
    states = [square.state for square in memory.squares]
    assert (states.count("untested"), len(states)) == (75, 250)
    running = memory_map(chunks(tested_bytes=160 * MIB), is_running=True)
    assert running is not None
    assert [one.state for one in running.squares].count("waiting") == 187 - 20
    assert memory_map(None) is None


def test_a_word_is_reported_with_its_bit() -> None:
    word = WrongWord(at_byte=4096, expected="f" * 16, seen="f" * 15 + "e", pattern="ones")
    assert place_words(word) == "Byte 0x1000: bit 0 read 0 instead of 1, written: ones"
    many = msgspec.structs.replace(word, seen="0" * 16)
    assert "64 bits wrong" in place_words(many)


def test_a_map_from_a_stranger_is_bounded() -> None:
    huge = 1 << 62
    coverage = MemoryCoverage(
        tested_bytes=huge, free_bytes=1, total_bytes=huge, reserve_bytes=huge,
        chunk_bytes=huge, bad_chunks=(0, (1 << 31) - 1),
    )  # fmt: skip
    memory = memory_map(coverage)
    assert memory is not None
    assert len(memory.squares) <= MOST_SQUARES
    canvas = SvgCanvas()
    assert draw_map(memory, canvas, 420, EM) == map_place(len(memory.squares), 420, EM)
    assert memory_map(msgspec.structs.replace(COVERAGE, total_bytes=0)) is None


def test_equal_findings_are_one_line_with_their_count() -> None:
    other = msgspec.structs.replace(wrong_bit(), sentence="Another bit.")
    lines = finding_lines([hot_card(), wrong_bit(), wrong_bit(), hot_card()])
    assert [(line.severity, line.times) for line in lines] == [("error", 2), ("doubt", 2)]
    assert lines[0].sentence.endswith("(2 times)")
    (mixed,) = finding_lines([wrong_bit(), other])
    assert "1 more" in mixed.sentence
    assert mixed.details == (wrong_bit().sentence, "Another bit.")
    first = hot_card()
    assert finding_lines([first], first) == ()


def test_the_steps_are_a_table_of_periods_and_loads() -> None:
    def step(period_s: float, duty: float, errors: int = 0) -> LoadStep:
        return LoadStep(
            duty_percent=duty, period_s=period_s, bursts=90, errors=errors, sm_clock_mhz=1480.0,
            power_w=21.0,
        )  # fmt: skip

    table = steps_table([step(1.0, 40.0, errors=2), step(0.005, 20.0), step(0.005, 40.0)])
    assert table is not None
    assert table.heads == ("20\u202f% load", "40\u202f% load")
    (short, cells), (long, (missing, bad)) = table.rows
    assert (short, long) == ("5\u202fms", "1\u202fs")
    assert cells[0].text == "0 of 90 wrong, 1480\u202fMHz, 21\u202fW"
    assert (missing.text, bad.text.split(",")[0], bad.is_bad) == ("not run", "2 of 90 wrong", True)
    assert steps_table(()) is None
