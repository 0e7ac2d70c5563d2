"""The frames of a race that go into a recording, on request, and come back out of it.

A recording is read as a whole, so its frames have to stay few: they are thinned evenly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.packed_frame import (
    MOST_FRAMES,
    MOST_FRAMES_OF_RUN,
    PackedFrame,
    pack_frame,
)
from gpu_studio.core.race.race_track import RaceFrame, RaceTrack
from gpu_studio.core.thinning import thinned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.benchmark.recorded_run import RecordedRun
    from gpu_studio.core.benchmark.run import Run

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
    most = min(MOST_FRAMES_OF_RUN, MOST_FRAMES // max(len(runs), 1))
    kept = {}
    for run, track in zip(runs, tracks, strict=True):
        shown = [frame for frame in track.frames if frame.kept is not None]
        count = min(len(shown), most)
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
            picture = PackedFrame(event.picture, opened.width, opened.height)
            frames.append(RaceFrame.of(event, picture))
    return RaceTrack(tuple(frames))


def _messages(
    run_id: str, frames: Sequence[RaceFrame], count: int
) -> tuple[FramesOpened | FrameReady, ...]:
    """Return the messages of so many frames, the last one among them."""
    if not frames or not count:
        return ()
    width, height = _sides_of(frames[-1])
    opened = FramesOpened(run_id=run_id, path="", width=width, height=height)
    return (opened, *_ready(run_id, frames, count))


def _ready(run_id: str, frames: Sequence[RaceFrame], count: int) -> Iterator[FrameReady]:
    for number, frame in enumerate(thinned(frames, count)):
        yield FrameReady(
            run_id=run_id,
            number=number,
            elapsed_s=frame.elapsed_s,
            steps=frame.steps,
            measure=frame.measure,
            progress=frame.progress,
            picture=_packed(frame),
        )


def _sides_of(frame: RaceFrame) -> tuple[int, int]:
    """Return a picture's width and height."""
    if isinstance(frame.kept, PackedFrame):
        return frame.kept.width, frame.kept.height
    assert frame.kept is not None
    height, width, _ = frame.kept.shape
    return width, height


def _packed(frame: RaceFrame) -> bytes:
    assert frame.kept is not None
    return frame.kept.packed if isinstance(frame.kept, PackedFrame) else pack_frame(frame.kept)


def _bytes_of(messages: Sequence[FramesOpened | FrameReady]) -> int:
    return sum(len(one.picture or b"") for one in messages if isinstance(one, FrameReady))
