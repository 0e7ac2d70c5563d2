import itertools

import numpy as np
import pytest

from gpu_studio.core.benchmark.recording import decode_recording, recording_of
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.packed_frame import MOST_FRAMES_OF_RUN, PackedFrame
from gpu_studio.core.race.contestant import Contestant
from gpu_studio.core.race.side import (
    RaceSide,
    RaceTrack,
    kept_frames,
    recorded_sides,
)
from tests.core.race.racing import CARD, CPU, ONE, over
from tests.fakes.descriptions import described
from tests.fakes.recording_header import recording_header

NOISE = np.random.default_rng(0)


def frame(number: int, packed: bytes | None = bytes(12), seconds: float = 0.1) -> FrameReady:
    return FrameReady(
        run_id="a", number=number, elapsed_s=number * seconds, steps=number,
        measure=float(number), progress=number / 1000, picture=packed,
    )  # fmt: skip


def side(count: int, length: int = 4, *, noisy: bool = False) -> RaceSide:
    """Return a side with frames of one color, or of noise, which cannot be packed."""

    def packed(number: int) -> bytes:
        pixels = np.full((length, length, 3), number % 256, np.uint8)
        if noisy:
            pixels = NOISE.integers(0, 256, pixels.shape, np.uint8)
        return PackedFrame.of(pixels).packed

    run = over(CPU, 1e-3)
    opened = FramesOpened(run_id=run.request.run_id, width=length, height=length)
    frames = (frame(number, packed(number), 0.05) for number in range(count))
    return RaceSide("CPU", run, RaceTrack([opened, *frames]))


def kept(one: RaceSide) -> list[FrameReady]:
    (opened, *ready) = kept_frames([one])[one.run.request.run_id]
    assert opened == one.track.opened
    return ready


def test_a_short_race_keeps_every_frame_in_its_recording() -> None:
    ready = kept(side(7))
    assert [one.elapsed_s for one in ready] == [n * 0.05 for n in range(7)]
    assert [one.number for one in ready] == list(range(7))


@pytest.mark.parametrize("count", [MOST_FRAMES_OF_RUN + 1, 10 * MOST_FRAMES_OF_RUN])
def test_a_long_race_is_thinned_to_its_ends(count: int) -> None:
    steps = [one.steps for one in kept(side(count))]
    assert len(set(steps)) == MOST_FRAMES_OF_RUN
    assert (steps[0], steps[-1]) == (0, count - 1)


def test_a_long_race_keeps_fewer_frames_over_its_whole_time() -> None:
    track = RaceTrack(most_bytes=12 * 10)
    for number in range(100):
        track.add(frame(number))
        assert track.last.steps == number, "the newest frame is always there"
    steps = [one.steps for one in track.frames]
    assert len(steps) <= 11
    assert steps[0] == 0
    assert max(later - one for one, later in itertools.pairwise(steps)) <= 32


def test_of_a_recorded_race_the_fastest_and_the_slowest_are_shown() -> None:
    runs = [
        over(ONE, 0.04), over(Contestant(device="cpu", threads=2), 0.02), over(CARD, 0.01),
    ]  # fmt: skip
    content = recording_of(recording_header(), described(), runs)
    sides = recorded_sides(decode_recording(content))
    assert [one.label for one in sides] == [
        "CPU, 1 thread, recorded 2026-01-02", "GT 1030, recorded 2026-01-02",
    ]  # fmt: skip
    assert all(one.is_over and one.run.result.recording for one in sides)


def test_a_recording_without_pictures_still_has_the_way_to_the_finish() -> None:
    curves = {"steps": (0, 100, 200), "seconds": (0, 1, 2), "sharpness": (10, 20, 30)}
    run = over(CARD, 0.01, curves=curves)
    (one,) = recorded_sides(decode_recording(recording_of(recording_header(), described(), [run])))
    assert [(at.elapsed_s, at.progress) for at in one.track.frames] == [(0, 0), (1, 0.5), (2, 1)]
    assert one.track.picture_at(1.0) is None
