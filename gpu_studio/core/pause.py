"""Times in which this program did not run: its PC slept, or it was stopped.

A laptop's lid or a suspended virtual PC stops a program and its children alike. What waits for an
answer must not take that for silence.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY_S = 1.0
"""How often to call `PauseWatch.tick` at least, in seconds."""
LATE_S = 5.0
"""A tick that comes so much later than it should was held up by a pause, in seconds."""


def sleepless_s() -> float:
    """Return the seconds of a clock that goes on while the PC sleeps, and is never set.

    `time.monotonic` is such a clock on Windows; Linux has another one (clock_gettime(2)).
    """
    read: Callable[[int], float] | None = getattr(time, "clock_gettime", None)
    number: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    if read is None or number is None:
        return time.monotonic()
    return read(number)


class PauseWatch:
    """Notices a pause by a tick that comes late.

    Args:
        clock: Returns the seconds of a clock that goes on during a sleep.
    """

    def __init__(self, clock: Callable[[], float] = sleepless_s) -> None:
        self._clock = clock
        self._ticked_s = clock()

    def tick(self) -> float:
        """Return the seconds of the pause that is just over; 0.0 if there was none."""
        now_s = self._clock()
        late_s, self._ticked_s = now_s - self._ticked_s - EVERY_S, now_s
        return late_s if late_s > LATE_S else 0.0
