"""A side of a race: its run and the frames that it showed, live, as a ghost and in a recording."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.kept_run import finished_run
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.packed_frame import MOST_FRAMES, MOST_FRAMES_OF_RUN, PackedFrame, thinned
from gpu_studio.core.race.contestant import label_of
from gpu_studio.core.units import shown_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpu_studio.core.benchmark.recording import RecordedRun, Recording
    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.messages.race_messages import RaceOutcome
    from gpu_studio.core.messages.run_messages import RunFinished

MOST_BYTES = 96 << 20
"""Of the frames of one contestant in memory."""
# Of a recording, packed: in JSON a third more, and well below the largest file that is read.
MOST_KEPT_BYTES = 16 << 20
_ROUNDING_S = 1e-6


class RaceTrack:
    """The frames of a run, oldest first.

    Args:
        events: those so far; all but frames and their size are left out.
        most_bytes: of all pictures; beyond, it keeps every second frame, then every fourth.

    Attributes:
        frames: all kept frames.
        opened: the size of their pictures; None without any.
    """

    def __init__(self, events: Iterable[Event] = (), *, most_bytes: int = MOST_BYTES) -> None:
        self.frames: list[FrameReady] = []
        self.opened: FramesOpened | None = None
        self._most_bytes = most_bytes
        self._bytes, self._every, self._offered = 0, 1, 0
        for event in events:
            self.add(event)

    @property
    def last(self) -> FrameReady | None:
        """The newest frame."""
        return self.frames[-1] if self.frames else None

    def add(self, event: Event) -> None:
        """Append the newest frame; it stays until the next one, whatever was dropped before."""
        if isinstance(event, FramesOpened):
            self.opened = event
        if not isinstance(event, FrameReady):
            return
        if self.frames and self._offered % self._every:
            self._bytes -= _bytes_of([self.frames.pop()])
        self.frames.append(event)
        self._bytes += _bytes_of([event])
        self._offered += 1
        if self._bytes > self._most_bytes and len(self.frames) > 2:
            self.frames = [*self.frames[:-1:2], event]
            self._bytes = _bytes_of(self.frames)
            self._every, self._offered = 2 * self._every, 1

    def at(self, elapsed_s: float) -> FrameReady | None:
        """Return the frame that was shown at a time of the race's clock; None before the first."""
        place = bisect.bisect_right(self.frames, elapsed_s, key=lambda frame: frame.elapsed_s)
        return self.frames[place - 1] if place else None

    def picture_at(self, elapsed_s: float) -> PackedFrame | None:
        """Return the picture that was shown at a time of the race's clock; None without one."""
        frame = self.at(elapsed_s)
        if frame is None or frame.picture is None or self.opened is None:
            return None
        return PackedFrame(frame.picture, self.opened.width, self.opened.height)


class RaceSide:
    """A contestant with its run; a run that is over from the beginning is a ghost from elsewhere.

    Attributes:
        label: its name on the picture.
        run: its run.
        track: the frames so far.
        origin: where a ghost comes from, in words; empty for a run of this race.
    """

    def __init__(
        self, label: str, run: Run, track: RaceTrack | None = None, origin: str = ""
    ) -> None:
        self.label, self.run, self.origin = label, run, origin
        self.track = track or RaceTrack()

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, in whatever way."""
        return self.run.state.is_over

    @property
    def is_reached(self) -> bool:
        """Whether the run reached the finish line."""
        return self._outcome is not None and self._outcome.reached

    @property
    def is_raceable(self) -> bool:
        """Whether it has a result of this version's pictures, so that one can race against it."""
        return self._outcome is not None and self._outcome.finish_steps is not None

    @property
    def finish_steps(self) -> int | None:
        """The finish line; None until it is known, or from older versions."""
        return self._outcome.finish_steps if self._outcome else self.run.finish_steps

    @property
    def end_s(self) -> float:
        """The race's time at the end of the run, or until now."""
        last = self.track.last
        shown_s = last.elapsed_s if last else 0.0
        return max(shown_s, self._outcome.seconds if self._outcome else 0.0)

    @property
    def pace(self) -> float | None:
        """The steps a second of the whole run; None before its end."""
        outcome = self._outcome
        return outcome.steps / outcome.seconds if outcome and outcome.seconds else None

    @property
    def _outcome(self) -> RaceOutcome | None:
        return self.run.result.outcome if self.run.result is not None else None

    def has_ended(self, now_s: float) -> bool:
        """Return whether the run is over at a time of the race's clock."""
        return self.is_over and now_s + _ROUNDING_S >= self.end_s


def first_finish_s(sides: Iterable[RaceSide]) -> float:
    """Return the time at which the first side reached the finish line, or else the last time."""
    sides = list(sides)
    finishes_s = [side.end_s for side in sides if side.is_reached]
    return min(finishes_s) if finishes_s else max((side.end_s for side in sides), default=0.0)


def kept_frames(sides: Sequence[RaceSide]) -> dict[str, tuple[FramesOpened | FrameReady, ...]]:
    """Return the messages for `recording_of` that keep the frames of sides, by the run's id.

    A recording is read as a whole, so its frames are thinned evenly.
    """
    most_bytes = MOST_KEPT_BYTES // max(len(sides), 1)
    most = min(MOST_FRAMES_OF_RUN, MOST_FRAMES // max(len(sides), 1))
    kept: dict[str, tuple[FramesOpened | FrameReady, ...]] = {}
    for side in sides:
        opened = side.track.opened
        shown = thinned([one for one in side.track.frames if one.picture is not None], most)
        # Halving the frames halves their bytes, more or less, and seldom has to be repeated.
        while _bytes_of(shown) > most_bytes:
            shown = thinned(shown, len(shown) // 2)
        if opened is not None and shown:
            numbered = (
                msgspec.structs.replace(one, number=number, power_w=None, energy_j=None)
                for number, one in enumerate(shown)
            )
            kept[side.run.request.run_id] = (opened, *numbered)
    return kept


def ghost_side(result: RunFinished, name: str, origin: str, track: RaceTrack) -> RaceSide:
    """Return a finished run from elsewhere as a side of a race.

    Args:
        result: its result.
        name: the contestant's name.
        origin: where it comes from, in words: ``saved 2026-11-22``.
        track: its way to the finish line.
    """
    # Whatever this PC claims of it says that it comes from elsewhere.
    labeled = msgspec.structs.replace(result, recording=result.recording or origin)
    finished = finished_run(labeled)
    return RaceSide(f"{name}, {origin}", finished, track, origin)


def recorded_sides(recording: Recording) -> tuple[RaceSide, ...]:
    """Return the contestants of the first race in a recording, at most two.

    Of more than two, the fastest and the slowest are returned, in the order of their runs. The
    last run of each contestant counts. Without a finished run of a race, there are none.
    """
    day = shown_moment(recording.header.recorded_at)[:10]
    first, found = None, dict[tuple[object, ...], RaceSide]()
    for run in recording.runs:
        result = run.result
        if result is None or result.race is None or result.outcome is None:
            continue
        first = first or run.request
        if (run.request.workload, run.request.size) == (first.workload, first.size):
            labeled = msgspec.structs.replace(result, recording=recording.label)
            found[(result.device, result.race, result.dtype)] = ghost_side(
                labeled, label_of(result), f"recorded {day}".rstrip(), _recorded_track(run, result)
            )
    sides = list(found.values())
    by_time = sorted(sides, key=lambda side: side.end_s)
    return tuple(side for side in sides if side in (by_time[0], by_time[-1]))


def _recorded_track(run: RecordedRun, result: RunFinished) -> RaceTrack:
    """Return the frames of a recorded run; without any, its way to the finish line."""
    track = RaceTrack(run.events)
    return track if track.frames else RaceTrack(_way(result))


def _way(result: RunFinished) -> Iterator[FrameReady]:
    """Yield a run's way to the finish line from its curves, as frames without pictures."""
    curves = dict(result.details.curves)
    seconds, steps = curves.pop("seconds", ()), curves.pop("steps", ())
    measures = next(iter(curves.values()), ())
    last = result.outcome
    if last is None:
        return
    first = measures[0] if measures else 0.0
    span = last.measure - first
    for elapsed_s, count, measure in zip(seconds, steps, measures, strict=False):
        share = (measure - first) / span if span else 1.0
        progress = min(max(share, 0.0), 1.0) * last.progress
        yield frame_of(elapsed_s, int(count), measure, progress)


def frame_of(elapsed_s: float, steps: int, measure: float, progress: float) -> FrameReady:
    """Return a moment of a run without its picture."""
    return FrameReady(
        run_id="", number=0, elapsed_s=elapsed_s, steps=steps, measure=measure, progress=progress
    )


def _bytes_of(frames: Sequence[FrameReady]) -> int:
    return sum(len(frame.picture) for frame in frames if frame.picture is not None)
