from __future__ import annotations

import pytest

from gpu_studio.core.devices.run_effect import RunMark, effect_sentence
from gpu_studio.core.devices.sensor_history import SensorTrack
from gpu_studio.core.telemetry import ClockReason
from tests.fakes.pc import cpu_only, gt_1030, reading

IDLE = {"pstate": 8, "temperature_c": 26.0, "power_w": None, "sm_clock_mhz": 139.0,
        "memory_used_bytes": 4 << 20, "utilization_percent": 0.0,
        "clock_event_reasons": ClockReason(1)}  # fmt: skip
BUSY = {"pstate": 0, "temperature_c": 40.0, "power_w": None, "sm_clock_mhz": 1468.0,
        "memory_used_bytes": 340 << 20, "utilization_percent": 100.0,
        "clock_event_reasons": ClockReason(0)}  # fmt: skip


def tracked(steps, found=None):
    found = found or gt_1030()
    track = SensorTrack(found.devices[-1])
    for second, changes in enumerate(steps):
        track.append(reading(found, float(second), **changes))
    return track


def sentence(steps, began_s, ended_s):
    mark = RunMark("matmul", "cuda:0", began_s, ended_s)
    return effect_sentence(mark, tracked(steps)).replace("\u202f", " ")


def test_a_run_wakes_the_card_and_warms_it():
    words = sentence([IDLE, IDLE, BUSY, BUSY, IDLE], 1.5, 3.5)
    assert words == (
        "matmul: P8 → P0, GPU 100 %, VRAM 340 MiB, temperature 40 °C, SM clock 1468 MHz."
    )


def test_what_held_the_card_back_is_reported():
    hot = BUSY | {"clock_event_reasons": ClockReason(0x20 | 0x4)}
    assert sentence([IDLE, hot, BUSY], 0.5, 2.0).endswith(
        "held back: at the power limit, hot (driver)."
    )
    assert "held back" not in sentence([IDLE, BUSY, BUSY, hot], 0.5, 2.0)
    assert "held back" not in sentence([hot, BUSY, BUSY], 0.5, 2.0)


def test_what_no_reading_saw_is_not_told_as_nothing():
    asleep = IDLE | {"power_w": 8.0}
    unseen = "matmul: no sensor reading shows any load."
    assert sentence([asleep, asleep, asleep], 0.5, 2.0) == unseen
    assert sentence([asleep, asleep | {"utilization_percent": 0.4}], 0.5, 2.0) == unseen
    warm = asleep | {"temperature_c": 40.0}
    assert sentence([asleep, warm, warm], 0.5, 2.0) == "matmul: temperature 40 °C."
    silent = asleep | {"utilization_percent": None}
    assert "SM clock" in sentence([silent, silent], 0.5, 2.0)


def test_an_idle_card_is_not_held_back():
    assert "held back" not in sentence([IDLE, IDLE, IDLE], 0.5, 2.0)


def test_the_fastest_state_is_reported_even_where_the_card_was_asleep_again():
    assert "P8 → P0" in sentence([IDLE, BUSY, IDLE], 0.5, 2.0)


def test_a_run_that_changed_nothing_has_no_changes():
    words = sentence([BUSY, BUSY, BUSY], 0.5, 2.0)
    assert "→" not in words
    assert "+" not in words


@pytest.mark.parametrize("steps", [[IDLE], []])
def test_a_run_between_two_readings_has_no_effect_to_report(steps):
    assert sentence(steps, 1.2, 1.4) == "matmul: too short for a sensor reading."


def test_the_cpu_has_an_effect_too():
    track = tracked([{}, {}], cpu_only())
    mark = RunMark("matmul", "cpu", 0.5, 1.5)
    assert effect_sentence(mark, track).startswith("matmul: CPU ")
