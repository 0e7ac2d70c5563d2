from __future__ import annotations

import csv
import io

import msgspec

from gpu_studio.core.pc.devices import CardReading, Telemetry
from gpu_studio.core.pc.sensor_csv import csv_head, csv_lines
from tests.fakes.pc import reading, two_cards


def rows(found, taken):
    text = csv_head() + csv_lines(taken, found, "2026-11-20T12:00:00.000+01:00")
    return list(csv.DictReader(io.StringIO(text)))


def test_every_device_has_a_line_and_every_sensor_a_column_with_its_unit():
    found = two_cards()
    numbered = (msgspec.structs.replace(c, cuda_index=i) for i, c in enumerate(found.cards))
    found = msgspec.structs.replace(found, devices=(found.cpu, *numbered))
    cpu, first, second = rows(found, reading(found, 12.5, temperature_c=41.0))
    assert [line["device"] for line in (cpu, first, second)] == ["cpu", "cuda:0", "cuda:1"]
    assert first["uuid"] == found.cards[0].uuid
    assert (first["temperature_c"], first["reader_clock_s"]) == ("41.0", "12.500")
    assert set(msgspec.structs.asdict(Telemetry())) <= set(first)


def test_what_a_card_refuses_is_an_empty_cell():
    found = two_cards()
    assert rows(found, reading(found, power_w=None))[1]["power_w"] == ""


def test_a_name_from_outside_is_no_formula_and_a_lost_card_says_why():
    found = two_cards()
    hostile = msgspec.structs.replace(found.cards[0], name='=cmd|"/c calc"!A1')
    found = msgspec.structs.replace(found, devices=(found.cpu, hostile))
    lost = CardReading(uuid=hostile.identity, telemetry=Telemetry(), error="Lost, and quiet.")
    line = rows(found, msgspec.structs.replace(reading(found), cards=(lost,)))[1]
    assert line["name"].startswith("'=cmd")
    assert line["trouble"] == "Lost, and quiet."
