"""The frames of a race that go into a recording, on request, and come back out of it.

A recording is read as a whole, so its frames have to stay few: they are thinned evenly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.packed_frame import pack_frame, unpack_frame
from gpu_studio.core.race.race_track import RaceFrame, RaceTrack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.benchmark.recorded_run import RecordedRun
    from gpu_studio.core.benchmark.run import Run

MOST_KEPT_FRAMES = 100
"""Of a run: over five seconds of all frames, or every few of a longer run."""
# Of a recording, packed: in JSON a third more, and well below the largest file that is read.
MOST_KEPT_BYTES = 16 << 20


def kept_frames(
    runs: Sequence[Run], tracks: Sequence[RaceTrack]
) -> dict[str, tuple[FramesOpened | FrameReady, ...]]:
    """Return the messages for `recording_of` that keep the frames of runs, by the run's id.

    Args:
        runs: the contestants.
        tracks: the frames of each, in the same order.
    """
    most_bytes = MOST_KEPT_BYTES // max(len(runs), 1)
    kept = {}
    for run, track in zip(runs, tracks, strict=True):
        shown = [frame for frame in track.frames if frame.picture is not None]
        count = min(len(shown), MOST_KEPT_FRAMES)
        messages = _messages(run.request.run_id, shown, count)
        # Halving the frames halves their bytes, more or less, and seldom has to be repeated.
        while _bytes_of(messages) > most_bytes and count > 1:
            count //= 2
            messages = _messages(run.request.run_id, shown, count)
        if messages and _bytes_of(messages) <= most_bytes:
            kept[run.request.run_id] = messages
    return kept


def track_of_recorded(run: RecordedRun) -> RaceTrack:
    """Return the frames of a recorded run; empty if they were left out."""
    frames: list[RaceFrame] = []
    opened: FramesOpened | None = None
    for event in run.events:
        if isinstance(event, FramesOpened):
            opened = event
        elif isinstance(event, FrameReady) and opened is not None and event.picture is not None:
            picture = unpack_frame(event.picture, opened.width, opened.height)
            frames.append(RaceFrame.of(event, picture))
    return RaceTrack(tuple(frames))


def _messages(
    run_id: str, frames: Sequence[RaceFrame], count: int
) -> tuple[FramesOpened | FrameReady, ...]:
    """Return the messages of so many frames, the last one among them."""
    if not frames or not count:
        return ()
    picture = frames[-1].picture
    assert picture is not None
    height, width, _ = picture.shape
    opened = FramesOpened(run_id=run_id, path="", width=width, height=height)
    return (opened, *_ready(run_id, frames, count))


def _ready(run_id: str, frames: Sequence[RaceFrame], count: int) -> Iterator[FrameReady]:
    last = len(frames) - 1
    for number in range(count):
        frame = frames[round(number * last / (count - 1)) if count > 1 else last]
        assert frame.picture is not None
        yield FrameReady(
            run_id=run_id,
            number=number,
            elapsed_s=frame.elapsed_s,
            steps=frame.steps,
            measure=frame.measure,
            progress=frame.progress,
            picture=pack_frame(frame.picture),
        )


def _bytes_of(messages: Sequence[FramesOpened | FrameReady]) -> int:
    return sum(len(one.picture or b"") for one in messages if isinstance(one, FrameReady))
