"""The frames of a race: live, as a ghost and in a recording, packed and few enough to keep."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.packed_frame import MOST_FRAMES, MOST_FRAMES_OF_RUN, PackedFrame, thinned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.recorded_run import RecordedRun
    from gpu_studio.core.benchmark.run import Run

MOST_BYTES = 96 << 20
"""Of the frames of one contestant in memory."""
# Of a recording, packed: in JSON a third more, and well below the largest file that is read.
MOST_KEPT_BYTES = 16 << 20


class RaceFrame(NamedTuple):
    """A moment of a run.

    Attributes:
        elapsed_s: the time of the race's clock, in seconds.
        steps: the steps until then.
        measure: the quantity of the finish line.
        progress: the share of the way to it, 0 to 1.
        picture: what the contestant showed; None if it was not kept.
        power_w: the device's mean power over the race until then; None if unknown.
        energy_j: its energy until then; None if unknown.
    """

    elapsed_s: float
    steps: int
    measure: float
    progress: float
    picture: PackedFrame | None = None
    power_w: float | None = None
    energy_j: float | None = None

    @classmethod
    def of(cls, ready: FrameReady, opened: FramesOpened | None) -> RaceFrame:
        """Return the moment that an engine or a recording tells; `opened` has its size."""
        picture = None
        if ready.picture is not None and opened is not None:
            picture = PackedFrame(ready.picture, opened.width, opened.height)
        return cls(
            ready.elapsed_s,
            ready.steps,
            ready.measure,
            ready.progress,
            picture,
            ready.power_w,
            ready.energy_j,
        )


class RaceTrack:
    """The frames of a run, oldest first.

    Args:
        frames: those so far.
        most_bytes: of all pictures; beyond, it keeps every second frame, then every fourth.
    """

    def __init__(self, frames: Sequence[RaceFrame] = (), *, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._frames = list(frames)
        self._bytes = _bytes_of(self._frames)
        self._every, self._offered = 1, 0

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def frames(self) -> tuple[RaceFrame, ...]:
        """All kept frames."""
        return tuple(self._frames)

    @property
    def last(self) -> RaceFrame | None:
        """The newest frame."""
        return self._frames[-1] if self._frames else None

    def add(self, frame: RaceFrame) -> None:
        """Append the newest frame; it stays until the next one, whatever was dropped before."""
        if self._frames and self._offered % self._every:
            self._bytes -= _bytes_of([self._frames.pop()])
        self._frames.append(frame)
        self._bytes += _bytes_of([frame])
        self._offered += 1
        if self._bytes > self._most_bytes and len(self._frames) > 2:
            self._frames = [*self._frames[:-1:2], frame]
            self._bytes = _bytes_of(self._frames)
            self._every, self._offered = 2 * self._every, 1

    def at(self, elapsed_s: float) -> RaceFrame | None:
        """Return the frame that was shown at a time of the race's clock; None before the first."""
        place = bisect.bisect_right(self._frames, elapsed_s, key=lambda frame: frame.elapsed_s)
        return self._frames[place - 1] if place else None


def kept_frames(
    runs: Sequence[Run], tracks: Sequence[RaceTrack]
) -> dict[str, tuple[FramesOpened | FrameReady, ...]]:
    """Return the messages for `recording_of` that keep the frames of runs, by the run's id.

    A recording is read as a whole, so its frames are thinned evenly.

    Args:
        runs: the contestants.
        tracks: the frames of each, in the same order.
    """
    most_bytes = MOST_KEPT_BYTES // max(len(runs), 1)
    most = min(MOST_FRAMES_OF_RUN, MOST_FRAMES // max(len(runs), 1))
    kept = {}
    for run, track in zip(runs, tracks, strict=True):
        shown = thinned([frame for frame in track.frames if frame.picture is not None], most)
        # Halving the frames halves their bytes, more or less, and seldom has to be repeated.
        while _bytes_of(shown) > most_bytes:
            shown = thinned(shown, len(shown) // 2)
        if shown:
            kept[run.request.run_id] = _messages(run.request.run_id, shown)
    return kept


def track_of_recorded(run: RecordedRun) -> RaceTrack:
    """Return the frames of a recorded run; empty if they were left out."""
    opened = next((event for event in run.events if isinstance(event, FramesOpened)), None)
    ready = (event for event in run.events if isinstance(event, FrameReady))
    return RaceTrack([RaceFrame.of(event, opened) for event in ready if event.picture is not None])


def _messages(run_id: str, frames: Sequence[RaceFrame]) -> tuple[FramesOpened | FrameReady, ...]:
    picture = frames[-1].picture
    assert picture is not None
    opened = FramesOpened(run_id=run_id, width=picture.width, height=picture.height)
    ready = (
        FrameReady(
            run_id=run_id,
            number=number,
            elapsed_s=frame.elapsed_s,
            steps=frame.steps,
            measure=frame.measure,
            progress=frame.progress,
            picture=frame.picture.packed if frame.picture is not None else None,
        )
        for number, frame in enumerate(frames)
    )
    return opened, *ready


def _bytes_of(frames: Sequence[RaceFrame]) -> int:
    return sum(frame.picture.nbytes for frame in frames if frame.picture is not None)
