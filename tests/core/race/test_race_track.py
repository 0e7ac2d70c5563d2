"""The frames of a contestant, found again by their time."""

from __future__ import annotations

import itertools

import numpy as np

from gpu_studio.core.race.race_track import RaceFrame, RaceTrack


def frame(number: int) -> RaceFrame:
    picture = np.full((2, 2, 3), number % 256, np.uint8)
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
