"""When a temperature is steady, and how two rounds add up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.check.heat import is_steady, largest_steady_gap_c, seconds_of, steady_gap_c
from gpu_studio.core.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable


def first_steady_s(degrees: Callable[[float], float], *, until_s: int = 1800) -> int | None:
    """Return when a sensor of whole degrees is first called steady, at one reading a second."""
    log: list[Telemetry] = []
    for second in range(until_s):
        log.append(Telemetry(at_s=float(second), temperature_c=math.floor(degrees(second))))
        if is_steady(log[-90:]):
            return second
    return None


def heating(tau_s: float) -> Callable[[float], float]:
    return lambda at_s: 35.0 + 45.0 * (1 - math.exp(-at_s / tau_s))


def test_a_card_on_its_way_is_not_steady() -> None:
    """45 °C in 300 s by 1 − 1/e: it is slower than 1 °C a minute after 659 s."""
    at_s = first_steady_s(heating(300.0))
    assert at_s is not None
    assert 640 < at_s < 800


@pytest.mark.parametrize("per_minute", [1.0, 1.1, 1.5, 3.0, -1.5])
def test_a_degree_a_minute_is_never_steady(per_minute: float) -> None:
    assert first_steady_s(lambda at_s: 60.0 + per_minute * at_s / 60, until_s=1200) is None


def test_a_sensor_that_wavers_between_two_degrees_is_steady() -> None:
    at_s = first_steady_s(lambda second: 70.0 + second % 2)
    assert at_s is not None
    assert 60 < at_s < 90


def test_readings_that_are_missing_make_nothing_steady() -> None:
    log = [Telemetry(at_s=at_s, temperature_c=60.0) for at_s in (0.0, 1.0, 75.0)]
    assert not is_steady(log)
    assert not is_steady([Telemetry(at_s=float(at_s)) for at_s in range(100)])


def test_the_time_of_readings_counts_no_gap_between_them() -> None:
    log = [Telemetry(at_s=at_s) for at_s in (0.0, 1.0, 1.2, 50.0)]
    assert seconds_of(log) == pytest.approx(1.0 + 0.2 + 1.0 + 1.0)


# ── the hot spot ─────────────────────────────────────────────────────────────────────────────────


def readings(*pairs: tuple[float | None, float | None]) -> list[Telemetry]:
    return [
        Telemetry(at_s=float(second), temperature_c=core, hotspot_c=spot)
        for second, (core, spot) in enumerate(pairs)
    ]


def test_a_steady_card_has_the_smallest_gap_of_the_last_seconds() -> None:
    assert steady_gap_c(readings(*[(60.0, 75.0)] * 8, *[(61.0, 79.0)] * 8)) == 15.0


def test_a_card_that_still_heats_up_has_no_gap() -> None:
    heating = readings(*[(40.0 + second, 70.0 + second) for second in range(20)])
    assert steady_gap_c(heating) is None
    assert largest_steady_gap_c(heating) is None


@pytest.mark.parametrize(
    "pairs",
    [
        [(60.0, 90.0), (60.0, 91.0)] * 4,
        [(60.0, None)] * 20,
        [(None, 90.0), (None, 91.0)] * 10,
        [],
        [(60.0, 90.0)] * 20,
    ],
    ids=["short", "no hot spot", "no core", "nothing", "stuck"],
)
def test_without_both_for_ten_seconds_there_is_no_gap(
    pairs: list[tuple[float | None, float | None]],
) -> None:
    assert steady_gap_c(readings(*pairs)) is None


def test_the_largest_gap_of_a_stage_may_be_in_its_middle() -> None:
    stage = readings(*[(60.0, 72.0)] * 12, *[(70.0, 101.0)] * 14, *[(60.0, 70.0)] * 12)
    assert largest_steady_gap_c(stage) == 31.0
