"""The curves of a record stay small and keep every peak."""

from __future__ import annotations

import msgspec
import pytest

from gpu_studio.core.check.check_record import (
    CheckRecord,
    Interruption,
    decode_record,
    encode_record,
)
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.heat import LoggedReading
from gpu_studio.core.check.readings import MOST_READINGS, RecordedReading, recorded
from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.check_messages import Vitals
from tests.fakes.check_answers import check_round
from tests.fakes.check_records import check_record


def a_night() -> list[LoggedReading]:
    readings = [
        LoggedReading(
            float(second),
            Vitals(temperature_c=60.0 + second % 3, sm_clock_mhz=1500.0, power_w=20.04),
        )
        for second in range(28_800)
    ]
    readings[12_345] = LoggedReading(12_345.0, Vitals(temperature_c=97.0, sm_clock_mhz=1500.0))
    readings[23_456] = LoggedReading(23_456.0, Vitals(temperature_c=60.0, sm_clock_mhz=139.0))
    return readings


def test_a_short_check_keeps_every_reading() -> None:
    readings = [
        LoggedReading(float(second), Vitals(temperature_c=50.0)) for second in range(MOST_READINGS)
    ]
    saved = recorded(readings)
    assert [one.at_s for one in saved] == [float(second) for second in range(MOST_READINGS)]


def test_a_night_keeps_its_hottest_and_its_slowest_moment() -> None:
    saved = recorded(a_night())
    assert MOST_READINGS // 2 <= len(saved) <= MOST_READINGS
    assert [one.at_s for one in saved] == sorted(one.at_s for one in saved)
    assert RecordedReading(at_s=12_345.0, temperature_c=97.0, sm_clock_mhz=1500.0) in saved
    assert RecordedReading(at_s=23_456.0, temperature_c=60.0, sm_clock_mhz=139.0) in saved
    assert saved[0].at_s < 200
    assert saved[-1].at_s > 28_600


def test_a_record_of_a_night_is_small() -> None:
    record = msgspec.structs.replace(check_record(), readings=recorded(a_night()))
    assert len(encode_record(record)) < 60_000
    assert decode_record(encode_record(record)) == record


def test_a_reading_without_a_curve_is_left_out() -> None:
    assert recorded(
        [LoggedReading(1.0, Vitals(pcie_replays=3)), LoggedReading(2.0, Vitals(power_w=9.0))]
    ) == (RecordedReading(at_s=2.0, power_w=9.0),)


def test_a_check_records_its_curves() -> None:
    readings = check_record().readings
    assert len(readings) == 100  # 20 a stage
    assert readings[0].temperature_c == 38.0
    assert readings[-1].temperature_c == 63.0
    assert readings[0].sm_clock_mhz is not None
    assert readings[0].power_w is not None
    assert check_record(device="cpu").readings == ()


def test_a_check_that_continues_keeps_the_curves_from_before() -> None:
    run = CheckRun(CheckPlan(device="cuda:0", minutes=480), "")
    request = run.next_request()
    assert request is not None
    for event in check_round(request, end_in="memory"):
        run.apply(event)
    before = run.record().readings
    again = CheckRun.resumed(run.state(), Interruption(after_s=run.elapsed_s, is_restart=False))
    request = again.next_request()
    assert request is not None
    for event in check_round(request):
        again.apply(event)
    after = again.record().readings
    assert after[: len(before)] == before
    assert len(after) == len(before) + 40  # two stages more
    assert [one.at_s for one in after] == sorted(one.at_s for one in after)


def test_an_older_programs_record_has_no_curves() -> None:
    written = msgspec.json.decode(encode_record(check_record()))
    del written["readings"]
    opened: CheckRecord = decode_record(msgspec.json.encode(written))
    assert opened == msgspec.structs.replace(check_record(), readings=())


def test_a_strangers_record_with_too_many_readings_is_refused() -> None:
    written = msgspec.json.decode(encode_record(check_record()))
    written["readings"] = [{"at_s": 1.0}] * (MOST_READINGS + 1)
    with pytest.raises(StudioError, match="not the record of a check"):
        decode_record(msgspec.json.encode(written))
