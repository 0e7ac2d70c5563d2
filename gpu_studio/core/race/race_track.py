"""The frames of one contestant, by the race's own clock: live, or again as a ghost."""

from __future__ import annotations

import bisect
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.packed_frame import PackedFrame
from gpu_studio.core.race.frame_file import read_frame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened

# Of one contestant.
MOST_BYTES = 96 << 20


class RaceFrame(NamedTuple):
    """A moment of a run.

    Attributes:
        elapsed_s: the time of the race's clock, in seconds.
        steps: the steps until then.
        measure: the quantity of the finish line.
        progress: the share of the way to it, 0 to 1.
        kept: the picture, shape (height, width, 3), ``uint8``, or as it was recorded; None if it
            was not kept.
        power_w: the device's mean power over the race until then; None if unknown.
        energy_j: its energy until then; None if unknown.
    """

    elapsed_s: float
    steps: int
    measure: float
    progress: float
    kept: NDArray[np.uint8] | PackedFrame | None = None
    power_w: float | None = None
    energy_j: float | None = None

    @property
    def picture(self) -> NDArray[np.uint8] | None:
        """The picture, shape (height, width, 3), ``uint8``; a recorded one is unpacked for it."""
        return self.kept.unpacked() if isinstance(self.kept, PackedFrame) else self.kept

    @classmethod
    def of(cls, ready: FrameReady, picture: NDArray[np.uint8] | PackedFrame | None) -> RaceFrame:
        """Return the moment that an engine or a recording tells, with its picture."""
        return cls(
            ready.elapsed_s,
            ready.steps,
            ready.measure,
            ready.progress,
            picture,
            ready.power_w,
            ready.energy_j,
        )

    @classmethod
    def sent(cls, ready: FrameReady, opened: FramesOpened, *, is_here: bool) -> RaceFrame:
        """Return the moment that an engine tells, with its picture from its event or its file.

        Args:
            ready: the event.
            opened: the one before the first frame.
            is_here: whether the engine is this PC's; no path from another one is opened.
        """
        if ready.picture is not None:
            return cls.of(ready, PackedFrame(ready.picture, opened.width, opened.height))
        return cls.of(ready, read_frame(Path(opened.path), ready.number) if is_here else None)


class RaceTrack:
    """The frames of a run, oldest first. It keeps copies, because the engine's file may go.

    Args:
        frames: those so far.
        most_bytes: of all pictures; beyond, it keeps every second frame, then every fourth.
    """

    def __init__(self, frames: tuple[RaceFrame, ...] = (), *, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._frames = list(frames)
        self._bytes = sum(_size_of(frame) for frame in frames)
        self._every = 1
        self._offered = 0

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
        """Append the newest frame.

        Among many, the last one always stays: it is what the contestant shows now.
        """
        if self._frames and self._offered % self._every:
            self._bytes -= _size_of(self._frames.pop())
        self._frames.append(frame)
        self._bytes += _size_of(frame)
        self._offered += 1
        if self._bytes > self._most_bytes and len(self._frames) > 2:
            self._thin()

    def at(self, elapsed_s: float) -> RaceFrame | None:
        """Return the frame that was shown at a time of the race's clock; None before the first."""
        place = bisect.bisect_right(self._frames, elapsed_s, key=lambda frame: frame.elapsed_s)
        return self._frames[place - 1] if place else None

    def _thin(self) -> None:
        """Drop every second frame, but neither the first nor the last one."""
        last = self._frames[-1]
        self._frames = self._frames[:-1:2]
        self._frames.append(last)
        self._bytes = sum(_size_of(frame) for frame in self._frames)
        self._every *= 2
        self._offered = 1


def _size_of(frame: RaceFrame) -> int:
    return frame.kept.nbytes if frame.kept is not None else 0
