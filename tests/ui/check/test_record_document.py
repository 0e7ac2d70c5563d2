"""The document of a record: what a buyer reads in the picture."""

import io
from itertools import accumulate, combinations

import msgspec
import pytest
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from gpu_studio.core.check.check_file import CHUNK, decode_record
from gpu_studio.core.check.check_record import CheckRecord
from gpu_studio.core.check.check_words import record_parts
from gpu_studio.core.check.stages import PLANTED_MARK, stage_budget_s
from gpu_studio.core.messages.check_messages import STAGE_NAMES, CheckFinding
from gpu_studio.core.png_chunks import png_text
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.ui.check.check_curves import CheckCurves, lanes_of
from gpu_studio.ui.check.record_document import RecordDocument, png_of_record
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.theme import Theme
from tests.driving.window import find
from tests.fakes.check_answers import check_record, wrong_bit

with_qt = pytest.mark.usefixtures("qapp")
HOSTILE = '</script><img src="http://example.org/x"> & "quoted"'


def words(record: CheckRecord) -> str:
    return RecordDocument(record).toPlainText()


@with_qt
def test_a_document_says_what_the_record_says() -> None:
    record = check_record({"memory": (wrong_bit(),) * 2})
    device = msgspec.structs.replace(record.device, uuid_tail="3f2a")
    record = msgspec.structs.replace(record, device=device)
    shown = words(record)
    for text in (
        "GeForce GT 1030, 1.95", "November 22, 2026, 14:40", "6:00", "2\u202ferrors: failed",
        "2 times", record.next_action, "slows down at 94", "at 512",
        "UUID ends in", "3f2a", "can be forged", "fresh one",
        *(words for part in record_parts(record) for row in part.rows for words in row[:2]),
        *(stage.tested for stage in record.stages),
    ):  # fmt: skip
        assert text in shown, text
    assert shown.count("\ufffc") == 3, "three curves"
    assert PLANTED_MARK not in shown
    assert PLANTED_MARK in words(check_record(plant="bit"))
    assert "From the file sold.json" in words(msgspec.structs.replace(record, origin="sold.json"))


@with_qt
def test_a_name_from_outside_is_never_markup() -> None:
    finding = CheckFinding(kind="wrong_bits", severity="error", stage="memory", sentence=HOSTILE)
    record = check_record({"memory": (finding,)})
    record = msgspec.structs.replace(
        record, device=msgspec.structs.replace(record.device, name=HOSTILE)
    )
    shown = words(record)
    assert shown.count(HOSTILE) >= 3
    assert shown.count("\ufffc") == 3


@with_qt
@pytest.mark.parametrize("number", [1e99, 0.0])
def test_a_picture_has_the_record_inside_whatever_numbers_it_has(number: float) -> None:
    readings = tuple(
        Telemetry(at_s=5e5 * one, temperature_c=number, power_w=number) for one in range(400)
    )
    absurd = msgspec.structs.replace(
        check_record(), readings=readings, seconds=1e6,
        highest_temperature_c=number, lowest_clock_mhz=number, highest_hotspot_c=number,
    )  # fmt: skip
    picture = png_of_record(absurd)
    text = png_text(io.BytesIO(picture), CHUNK.encode(), LARGEST_RECORD_BYTES)
    assert text is not None
    assert decode_record(text) == absurd


@with_qt
def test_a_picture_shows_all_of_it() -> None:
    record = check_record()
    image = QImage.fromData(png_of_record(record))
    assert {colors_of(image, image.height() - row) for row in range(1, 60)} == {1}, "a margin"
    assert max(colors_of(image, image.height() - row) for row in range(60, 140)) > 1, "the foot"
    more = check_record({"memory": (wrong_bit(),)}, plant="bit")
    assert QImage.fromData(png_of_record(more)).height() > image.height()


def colors_of(image: QImage, row: int) -> int:
    """Return the number of colors in a row of pixels."""
    return len({image.pixel(x, row) for x in range(image.width())})


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
