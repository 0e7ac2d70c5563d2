import csv
import io

import msgspec
import numpy as np
import pytest

from gpu_studio.core.devices.devices import CardReading
from gpu_studio.core.devices.sensor_history import SensorTrack, csv_head, csv_lines
from gpu_studio.core.telemetry import SENSORS, Telemetry
from tests.fakes.pc import gt_1030, reading, two_cards


def plain(text):
    return text.replace("\u202f", " ")


def spans_of(device, readings, longest_s=60.0):
    track = SensorTrack(device)
    for taken in readings:
        track.append(taken)
    return track.spans(longest_s)


def card_spans(steps, first_s=100.0, longest_s=60.0):
    """The sensors of a GT 1030 over readings a second apart with these telemetry changes."""
    found = gt_1030()
    readings = [reading(found, first_s + i, **changes) for i, changes in enumerate(steps)]
    return {span.kind.key: span for span in spans_of(found.cards[0], readings, longest_s)}


def test_a_run_warms_the_card_and_raises_its_clocks():
    cold = {"temperature_c": 26.0, "pstate": 8, "sm_clock_mhz": 139.0, "memory_used_bytes": 4 << 20}
    hot = {"temperature_c": 40.0, "pstate": 0, "sm_clock_mhz": 1468.0,
           "memory_used_bytes": 340 << 20}  # fmt: skip
    spans = card_spans([cold, cold, hot])
    assert (plain(spans["temperature"].latest), plain(spans["temperature"].change)) == (
        "40 °C", "+14 °C",
    )  # fmt: skip
    assert (plain(spans["clock"].latest), spans["clock"].change) == ("1468 MHz · P0", "P8 → P0")
    assert plain(spans["memory"].latest) == "340 MiB of 2 GiB"
    assert plain(spans["memory"].change) == "+336 MiB"


def test_curve_table_and_sentence_say_the_same():
    span = card_spans([{"temperature_c": t} for t in (30.0, 40.0, 35.0)])["temperature"]
    assert span.values.tolist() == [30.0, 40.0, 35.0]
    assert span.times_s.tolist() == [100.0, 101.0, 102.0]
    assert [plain(cell) for cell in span.row] == [
        "GPU temperature", "35 °C", "+5 °C", "30 °C", "35 °C", "40 °C",
    ]  # fmt: skip
    assert plain(span.sentence) == (
        "GPU temperature: 35 °C, +5 °C. Last 2 seconds: 30 °C to 40 °C, average 35 °C."
    )


def test_a_refused_sensor_is_said_to_be_and_has_no_curve():
    span = card_spans([{"power_w": None}] * 3)["power"]
    assert span.is_refused
    assert not span.has_values
    assert span.row == ("Power", "n/a", "", "", "", "")
    assert span.sentence == "Power: n/a, this device does not report it."


def test_a_curve_is_not_drawn_over_a_time_without_readings():
    found = gt_1030()
    readings = [reading(found, at_s) for at_s in (0.0, 1.0, 30.0, 31.0)]
    span = spans_of(found.cards[0], readings)[0]
    assert span.times_s.tolist() == [0.0, 1.0, 15.5, 30.0, 31.0]
    assert np.isnan(span.values).tolist() == [False, False, True, False, False]
    assert span.at(15.0) == "n/a"
    assert plain(span.at(29.0)) == "4 %"


def test_an_hour_is_kept_in_a_ring_and_read_in_any_length():
    found = gt_1030()
    track = SensorTrack(found.cards[0], capacity=100)
    for second in range(1234):
        track.append(reading(found, float(second), temperature_c=float(second % 90)))
    for longest_s, first_s in ((10.0, 1223.0), (60.0, 1173.0), (3600.0, 1134.0)):
        temperature = track.spans(longest_s)[2]
        assert temperature.times_s.tolist() == [first_s + i for i in range(int(1234 - first_s))]
        assert temperature.values.tolist() == [t % 90 for t in temperature.times_s.tolist()]


@pytest.mark.parametrize(
    ("key", "changes", "scale"),
    [
        ("utilization", {"utilization_percent": 3.0}, (0.0, 100.0)),
        ("memory", {"memory_used_bytes": 1 << 20}, (0.0, float(2 << 30))),
        ("temperature", {"temperature_c": 40.0}, (30.0, 70.0)),
        ("temperature", {"temperature_c": 95.0}, (90.0, 130.0)),
        ("temperature", {"temperature_c": -5.0}, (-10.0, 30.0)),
        ("power", {"power_w": 10.0, "power_limit_w": 30.0}, (0.0, 30.0)),
        ("power", {"power_w": 10.0, "power_limit_w": None}, (0.0, 12.0)),
        ("power", {"power_w": 40.0, "power_limit_w": 30.0}, (0.0, 48.0)),
        ("clock", {"sm_clock_mhz": 227.0}, (0.0, 1911.0)),
        ("fan", {"fan_percent": 0.0}, (0.0, 100.0)),
    ],
)
def test_a_scale_holds_its_values_and_what_there_is(key, changes, scale):
    assert card_spans([changes])[key].scale == pytest.approx(scale)


def rows(found, taken):
    text = csv_head() + csv_lines(taken, found, "2026-11-20T12:00:00.000+01:00")
    return list(csv.DictReader(io.StringIO(text)))


def test_every_device_has_a_line_and_every_sensor_a_column_with_its_unit():
    found = two_cards()
    numbered = (msgspec.structs.replace(c, torch_index=i) for i, c in enumerate(found.cards))
    found = msgspec.structs.replace(found, devices=(found.cpu, *numbered))
    cpu, first, second = rows(found, reading(found, 12.5, temperature_c=41.0))
    assert [line["device"] for line in (cpu, first, second)] == ["cpu", "cuda:0", "cuda:1"]
    assert first["uuid"] == found.cards[0].uuid
    assert (first["temperature_c"], first["reader_clock_s"]) == ("41.0", "12.500")
    assert set(SENSORS) <= set(first)


def test_a_name_from_outside_is_no_formula_and_a_lost_card_says_why():
    found = two_cards()
    hostile = msgspec.structs.replace(found.cards[0], name='=cmd|"/c calc"!A1')
    found = msgspec.structs.replace(found, devices=(found.cpu, hostile))
    lost = CardReading(uuid=hostile.identity, telemetry=Telemetry(), error="Lost, and quiet.")
    line = rows(found, msgspec.structs.replace(reading(found), cards=(lost,)))[1]
    assert line["name"].startswith("'=cmd")
    assert line["trouble"] == "Lost, and quiet."


def test_every_sensor_of_a_card_has_a_place():
    rates = {"pcie_rx_bytes_per_s": 2.5e9, "pcie_tx_bytes_per_s": 1e6, "memory_clock_mhz": 3004.0}
    spans = card_spans([rates])
    assert plain(spans["pcie_in"].latest) == "2.50 GB/s"
    assert plain(spans["pcie_out"].latest) == "1.00 MB/s"
    assert plain(spans["memory_clock"].latest) == "3004 MHz"


IDLE = {"pstate": 8, "temperature_c": 26.0, "utilization_percent": 0.0}
BUSY = {"pstate": 0, "temperature_c": 40.0, "utilization_percent": 100.0}


@pytest.mark.parametrize(
    ("steps", "effect"),
    [
        ([IDLE, IDLE, BUSY, BUSY, IDLE], "P8 → P0, +14 °C, load 100 %"),
        ([IDLE, IDLE, IDLE], "load 0 %"),
        ([IDLE, IDLE], ""),  # too short for a reading
        ([{"utilization_percent": None}] * 3, "no change of the sensors"),
    ],
)
def test_what_a_run_did_to_the_sensors_is_said(steps, effect):
    found = gt_1030()
    track = SensorTrack(found.devices[-1])
    for second, values in enumerate(steps):
        track.append(reading(found, float(second), **values))
    assert plain(track.effect(1.5, 2.5)) == effect
