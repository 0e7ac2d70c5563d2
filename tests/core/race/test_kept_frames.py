"""The frames that a recording keeps: few and small enough to be read again."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.packed_frame import MOST_FRAMES_OF_RUN
from gpu_studio.core.race.kept_frames import MOST_KEPT_BYTES, kept_frames
from gpu_studio.core.race.race_track import RaceFrame, RaceTrack
from tests.core.race.racing import CPU, ONE, over

NOISE = np.random.default_rng(0)


def track(count: int, side: int = 4, *, noisy: bool = False) -> RaceTrack:
    def picture(number: int) -> np.ndarray:
        if noisy:
            return NOISE.integers(0, 256, (side, side, 3), np.uint8)
        return np.full((side, side, 3), number % 256, np.uint8)

    return RaceTrack(
        tuple(RaceFrame(n / 20, n, n / 10, n / count, picture(n)) for n in range(count))
    )


def ready(messages: tuple[FramesOpened | FrameReady, ...]) -> list[FrameReady]:
    return [one for one in messages if isinstance(one, FrameReady)]


def test_a_short_race_keeps_every_frame() -> None:
    run = over(CPU, 1e-3)
    kept = kept_frames([run], [track(7)])[run.request.run_id]
    assert kept[0] == FramesOpened(run_id=run.request.run_id, path="", width=4, height=4)
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
