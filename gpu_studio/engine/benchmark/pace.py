"""The pace of a run's lines of samples: as often as a window draws, with rests meanwhile."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threading import Event as Flag

LINE_PERIOD_S = 1 / 60
# You cannot read text and curves that change more often than this, and each update costs a rest.
RESTING_LINE_PERIOD_S = 1 / 4


class Pace:
    """Decides when to send a line of samples, and rests after it.

    Args:
        rest_s: seconds to rest after each line; 0 if no window draws.
        stop: ends a rest early.
    """

    def __init__(self, rest_s: float, stop: Flag) -> None:
        self._rest_s = rest_s
        self._stop = stop
        self._period_s = RESTING_LINE_PERIOD_S if rest_s else LINE_PERIOD_S
        self._line_at_s = time.perf_counter()

    def is_due(self) -> bool:
        """Return whether the next line is due."""
        return time.perf_counter() - self._line_at_s >= self._period_s

    def begin_line(self) -> None:
        """Start to collect the samples of the next line."""
        self._line_at_s = time.perf_counter()

    def rest(self) -> bool:
        """Leave the processor to the window while it draws; return whether there was a rest."""
        if self._rest_s:
            self._stop.wait(self._rest_s)
        return bool(self._rest_s)

    def needs_untimed(self, batch_s: float) -> bool:
        """Return whether a batch has to run untimed after a rest.

        Another program used the caches and threads meanwhile. A batch that is longer than the rest
        recovers by itself.
        """
        return batch_s < self._rest_s
