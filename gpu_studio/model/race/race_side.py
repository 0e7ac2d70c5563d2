"""One side of a race: a contestant, its run, and the frames that it has shown."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from gpu_studio.core.race.frames import RaceFrame, RaceTrack

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.race_messages import FrameReady
    from gpu_studio.model.race.race_entries import RaceEntry


class RaceSide:
    """Follows one run; a side whose run is over from the beginning is a ghost from elsewhere.

    Attributes:
        entry: the contestant.
        run: its run.
        track: the frames so far.
        began_at: the clock time of the run's first frame, ``14:02``; empty before.
        origin: where a ghost comes from, in words; empty for a run of this race.
    """

    def __init__(
        self, entry: RaceEntry, run: Run, track: RaceTrack | None = None, origin: str = ""
    ) -> None:
        self.entry = entry
        self.run = run
        self.track = track or RaceTrack()
        self.began_at = ""
        self.origin = origin

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, in whatever way."""
        return self.run.state.is_over

    @property
    def is_reached(self) -> bool:
        """Whether the run reached the finish line."""
        result = self.run.result
        return result is not None and result.outcome is not None and result.outcome.reached

    @property
    def finish_steps(self) -> int | None:
        """The finish line; None until it is known, or from older versions."""
        result = self.run.result
        if result is not None and result.outcome is not None:
            return result.outcome.finish_steps
        return self.run.finish_steps

    @property
    def end_s(self) -> float:
        """The race's time at the end of the run, or until now."""
        last = self.track.last
        shown_s = last.elapsed_s if last else 0.0
        result = self.run.result
        if result is None or result.outcome is None:
            return shown_s
        return max(shown_s, result.outcome.seconds)

    def add(self, event: FrameReady) -> None:
        """Add a frame of the run."""
        self.track.add(RaceFrame.of(event, self.run.opened))
        if not self.began_at:
            self.began_at = datetime.now(timezone.utc).astimezone().strftime("%H:%M")

    def at(self, elapsed_s: float) -> RaceFrame | None:
        """Return what this side shows at a time of the race's clock."""
        return self.track.at(elapsed_s)
