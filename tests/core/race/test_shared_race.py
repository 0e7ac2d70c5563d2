"""The race in a saved picture: every race that can be run can be saved, and read again."""

from __future__ import annotations

import msgspec

from gpu_studio.core.messages.race_messages import MOST_CONTESTANTS
from gpu_studio.core.race.contestant import Contestant
from gpu_studio.core.race.picture_order import picture_order
from gpu_studio.core.race.pictures import LEARN
from gpu_studio.core.race.race_track import RaceFrame, RaceTrack
from gpu_studio.core.race.shared_race import (
    MOST_POINTS,
    PictureOrder,
    decode_order,
    decode_shared,
    encode_shared,
)
from gpu_studio.core.race.verdict import judge
from tests.core.race.racing import over

# Digits as in a real way to the finish line.
_CURVE = tuple(1000 / 3 + 1 / (7 + number) for number in range(1000))


def order_of_many(count: int) -> PictureOrder:
    """Return the order of a race with long ways to the finish line."""
    curves = {"steps": _CURVE, "seconds": _CURVE, "sharpness": _CURVE}
    runs = [
        over(Contestant(device="cpu", threads=number), 0.01 + number / 3e4, curves=curves)
        for number in range(1, count + 1)
    ]
    frames = tuple(
        RaceFrame(at_s / 300, number * 100, at_s / 40, number / MOST_POINTS)
        for number, at_s in enumerate(_CURVE[:MOST_POINTS])
    )
    return picture_order(
        LEARN,
        judge(LEARN, runs),
        runs,
        [RaceTrack(frames) for _ in runs],
        made_at="2026-11-22T14:00:00+00:00",
        cpu_name="A CPU",
        torch_version="2.13.0",
    )


def test_the_largest_race_can_be_saved_and_opened_again() -> None:
    order = order_of_many(MOST_CONTESTANTS)

    given = decode_order(msgspec.json.encode(order))
    opened = decode_shared(encode_shared(given.shared))

    assert [len(run.points) for run in opened.runs] == [MOST_POINTS] * MOST_CONTESTANTS
    assert opened.race == order.shared.race


def test_a_saved_race_has_the_way_to_the_finish_line_once() -> None:
    (run, *_) = order_of_many(2).shared.runs

    assert run.points
    assert run.result is not None
    assert not run.result.curves
