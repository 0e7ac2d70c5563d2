"""The hot spot: a gap counts while the chip's temperature is steady, and only ever as a note."""

from __future__ import annotations

import pytest

from gpu_studio.core.check.heat import largest_steady_gap_c, steady_gap_c
from gpu_studio.core.telemetry import Telemetry


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
