"""The race in a saved picture: every race that can be run can be saved, and read again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.race_messages import MOST_CONTESTANTS, RaceOutcome
from gpu_studio.core.race.contestant import Contestant
from gpu_studio.core.race.frames import RaceFrame, RaceTrack
from gpu_studio.core.race.pictures import LEARN
from gpu_studio.core.race.shared_race import (
    MOST_POINTS,
    PictureOrder,
    SharedRace,
    decode_shared,
    encode_shared,
    picture_order,
)
from gpu_studio.core.race.stage_view import decode_order, encode_order
from gpu_studio.core.race.verdict import judge
from tests.core.race.racing import over
from tests.fakes.run_answers import changed

# Digits as in a real way to the finish line.
_CURVE = tuple(1000 / 3 - 1 / (7 + number) for number in range(1000))


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

    given = decode_order(encode_order(order))
    assert isinstance(given, PictureOrder)
    opened = decode_shared(encode_shared(given.shared))

    assert [len(run.points) for run in opened.runs] == [MOST_POINTS] * MOST_CONTESTANTS
    assert opened.race == order.shared.race


def test_a_saved_race_has_the_way_to_the_finish_line_once() -> None:
    (run, *_) = order_of_many(2).shared.runs

    assert run.points
    assert run.result is not None
    assert not run.result.details.curves


def two(**changes: Any) -> SharedRace:
    """Return a saved race of two with changes of the result of the first."""
    shared = order_of_many(2).shared
    first, second = shared.runs
    assert first.result is not None
    result = changed(first.result, **changes)
    return msgspec.structs.replace(
        shared, runs=(msgspec.structs.replace(first, result=result), second)
    )


def faster(shared: SharedRace, **changes: Any) -> SharedRace:
    """Return a saved race with changes of its first contestant."""
    first, second = shared.race.contestants
    contestants = (msgspec.structs.replace(first, **changes), second)
    race = msgspec.structs.replace(shared.race, contestants=contestants)
    return msgspec.structs.replace(shared, race=race)


OUTCOME = RaceOutcome(reached=True, steps=200, seconds=0.1, measure=30.0, progress=1.0)
HALFWAY = msgspec.structs.replace(OUTCOME, progress=0.5)


@pytest.mark.parametrize(
    ("shared", "reason"),
    [
        (two(outcome=OUTCOME), "contradict the steps and their median"),
        (two(timed_s=0.1), "contradict its timed seconds"),
        (two(outcome=HALFWAY), "says that it finished, and that it did not"),
        (faster(two(), seconds=0.1), "contradict a contestant's result"),
        (faster(two(), steps=2), "contradict a contestant's result"),
        (faster(two(), step_median_s=1e-6), "contradicts a contestant's result"),
    ],
    ids=["too fast for its steps", "timed otherwise", "halfway", "seconds", "steps", "a step"],
)
def test_a_ghost_whose_times_contradict_each_other_is_refused(
    shared: SharedRace, reason: str
) -> None:
    with pytest.raises(StudioError) as caught:
        decode_shared(encode_shared(shared))
    assert caught.value.kind is FailureKind.FILE_REFUSED
    assert reason in str(caught.value)


def test_a_ghost_whose_way_ends_before_its_race_is_refused() -> None:
    shared = two()
    first, second = shared.runs
    early = tuple(msgspec.structs.replace(p, elapsed_s=p.elapsed_s / 9) for p in first.points)
    backwards = first.points[::-1]
    for points in (early, backwards):
        changed = msgspec.structs.replace(first, points=points)
        with pytest.raises(StudioError, match="the way to the finish line contradicts"):
            decode_shared(encode_shared(msgspec.structs.replace(shared, runs=(changed, second))))
