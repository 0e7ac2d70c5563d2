"""The stages of an installation, its one progress bar, and the time that is left."""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.builds.trouble import Trouble  # noqa: TC001  # msgspec reads it

if TYPE_CHECKING:
    from collections.abc import Callable

_PACE_SPAN_S = 20.0  # a shorter span jumps with every burst of a radio link
_PACE_LEAST_S = 2.0


class InstallStage(str, Enum):
    """Where an installation is.

    ::

        WAITING ─► PLANNING ─► DOWNLOADING ─► CHECKING ─► INSTALLING ─► TESTING ─► READY
                                      └─► FETCHED, while the engine still uses an older build
                        ▲         │   ▲                                     └─► FAILED
                        └─ PAUSED ◄┘   └─ RESUMING (after a broken line)
    """

    WAITING = "waiting"
    PLANNING = "planning"
    DOWNLOADING = "downloading"
    RESUMING = "resuming"
    CHECKING = "checking"
    INSTALLING = "installing"
    TESTING = "testing"
    PAUSED = "paused"
    FETCHED = "fetched"
    READY = "ready"
    FAILED = "failed"

    @property
    def is_at_work(self) -> bool:
        """Whether the installer works in this stage."""
        return self not in _AT_REST


# The last stages: nothing comes after one of them.
ENDS = (InstallStage.PAUSED, InstallStage.FETCHED, InstallStage.READY, InstallStage.FAILED)
_AT_REST = (InstallStage.WAITING, *ENDS)


class InstallProgress(msgspec.Struct, frozen=True):
    """One line of an installer.

    Attributes:
        stage: Where it is. One of `ENDS` comes last.
        done_bytes: The bytes that are done in this stage.
        total_bytes: All bytes of this stage; 0 if unknown.
        fraction: The done share of the whole installation, 0 to 1.
        left_s: The seconds that are left in this stage; None if unknown.
        subject: The file or package in work.
        trouble: Why it failed.
        result: The sentence of a finished test; "" otherwise.
    """

    stage: InstallStage
    done_bytes: int = 0
    total_bytes: int = 0
    fraction: float = 0.0
    left_s: float | None = None
    subject: str = ""
    trouble: Trouble | None = None
    result: str = ""


class DownloadPace:
    """The speed of a download over its last seconds.

    Args:
        clock: Returns seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._marks: deque[tuple[float, int]] = deque()

    def note(self, done_bytes: int) -> None:
        """Take the number of bytes that are done now."""
        now_s = self._clock()
        self._marks.append((now_s, done_bytes))
        while len(self._marks) > 2 and now_s - self._marks[0][0] > _PACE_SPAN_S:
            self._marks.popleft()

    def restart(self) -> None:
        """Forget everything: after a pause, the time of the pause does not count."""
        self._marks.clear()

    def left_s(self, total_bytes: int) -> float | None:
        """Return the seconds that are left; None until the speed is known."""
        if len(self._marks) < 2:
            return None
        (first_s, first), (last_s, last) = self._marks[0], self._marks[-1]
        if last_s - first_s < _PACE_LEAST_S or last <= first or total_bytes <= 0:
            return None
        return max(0.0, (total_bytes - last) * (last_s - first_s) / (last - first))


def format_left(seconds: float) -> str:
    """Return a rough time for people: "about 3 minutes left"."""
    if seconds < 10:
        return "a few seconds left"
    if seconds < 55:
        return f"about {round(seconds / 10) * 10:.0f} seconds left"
    minutes = max(1, round(seconds / 60))
    if minutes < 60:
        return f"about {minutes} minute{'s' if minutes > 1 else ''} left"
    hours = seconds / 3600
    return f"about {hours:.1f} hours left" if hours >= 1.05 else "about 1 hour left"
