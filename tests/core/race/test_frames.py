"""The frames of a contestant: found again by their time, few enough to keep and to read again."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.packed_frame import MOST_FRAMES_OF_RUN, PackedFrame, thinned
from gpu_studio.core.race.frames import (
    MOST_KEPT_BYTES,
    RaceFrame,
    RaceTrack,
    kept_frames,
)
from tests.core.race.racing import CPU, ONE, over

NOISE = np.random.default_rng(0)


def track(count: int, side: int = 4, *, noisy: bool = False) -> RaceTrack:
    def picture(number: int) -> PackedFrame:
        if noisy:
            return PackedFrame.of(NOISE.integers(0, 256, (side, side, 3), np.uint8))
        return PackedFrame.of(np.full((side, side, 3), number % 256, np.uint8))

    return RaceTrack(
        tuple(RaceFrame(n / 20, n, n / 10, n / count, picture(n)) for n in range(count))
    )


def ready(messages: tuple[FramesOpened | FrameReady, ...]) -> list[FrameReady]:
    return [one for one in messages if isinstance(one, FrameReady)]


def test_a_short_race_keeps_every_frame() -> None:
    run = over(CPU, 1e-3)
    kept = kept_frames([run], [track(7)])[run.request.run_id]
    assert kept[0] == FramesOpened(run_id=run.request.run_id, width=4, height=4)
    assert [one.elapsed_s for one in ready(kept)] == [n / 20 for n in range(7)]
    assert [one.number for one in ready(kept)] == list(range(7))


@pytest.mark.parametrize("count", [MOST_FRAMES_OF_RUN + 1, 10 * MOST_FRAMES_OF_RUN])
def test_a_long_race_is_thinned_to_its_ends(count: int) -> None:
    run = over(CPU, 1e-3)
    kept = ready(kept_frames([run], [track(count)])[run.request.run_id])
    assert len(kept) == MOST_FRAMES_OF_RUN
    assert (kept[0].elapsed_s, kept[-1].elapsed_s) == (0.0, (count - 1) / 20)
    assert len({one.elapsed_s for one in kept}) == MOST_FRAMES_OF_RUN


def test_large_frames_are_fewer() -> None:
    """Noise cannot be packed: 512 × 512 of it are 768 KiB."""
    run = over(CPU, 1e-3)
    kept = ready(kept_frames([run], [track(40, 512, noisy=True)])[run.request.run_id])
    assert 2 <= len(kept) < 40
    assert sum(len(one.picture) for one in kept) <= MOST_KEPT_BYTES
    assert kept[-1].elapsed_s == 39 / 20


def test_frames_without_pictures_are_not_kept() -> None:
    runs = [over(CPU, 1e-3), over(ONE, 1e-3)]
    empty = RaceTrack((RaceFrame(0.0, 0, 0.0, 0.0),))
    assert kept_frames(runs, [RaceTrack(), empty]) == {}


def frame(number: int) -> RaceFrame:
    picture = PackedFrame(bytes(12), 2, 2)
    return RaceFrame(number / 10, number, float(number), number / 100, picture)


def test_a_track_shows_the_frame_of_a_moment() -> None:
    track = RaceTrack((frame(1), frame(2), frame(4)))

    assert track.at(0.05) is None
    assert [track.at(s).steps for s in (0.1, 0.25, 0.39, 0.4, 99.0)] == [1, 2, 2, 4, 4]


def test_a_track_without_frames_shows_nothing() -> None:
    track = RaceTrack()

    assert track.at(1.0) is None
    assert track.last is None


def test_a_long_race_keeps_fewer_frames_over_its_whole_time() -> None:
    track = RaceTrack(most_bytes=12 * 10)

    for number in range(100):
        track.add(frame(number))
        assert track.last.steps == number, "the newest frame is always there"

    steps = [one.steps for one in track.frames]
    assert len(steps) <= 11
    assert steps[0] == 0
    assert steps == sorted(set(steps))
    assert max(later - one for one, later in itertools.pairwise(steps)) <= 32


def test_a_long_way_is_thinned_to_its_ends() -> None:
    few = thinned(range(1000), 200)

    assert len(few) == 200
    assert (few[0], few[-1]) == (0, 999)
    assert thinned(range(3), 200) == (0, 1, 2)
