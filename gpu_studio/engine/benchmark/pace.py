"""When a run hands its samples over, and the rest it takes after that.

A window that draws while a sample is taken takes the processor, a shared cache or a turbo clock
from it: on two cores the slowest hundredth of the samples took twice as long beside a window that
drew at times of its own. A run that rests after each line gives the window its turn; what is
timed has the processor to itself again. A rest is no part of any sample nor of the time budget.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threading import Event as Flag

LINE_PERIOD_S = 1 / 60
# Text and curves that change more often than this cannot be read, and each turn costs a rest.
RESTING_LINE_PERIOD_S = 1 / 4


class Pace:
    """Says when a line of samples is due, and rests after it.

    Args:
        rest_s: how long to rest after each line; 0 for nobody who draws.
        stop: ends a rest early.
    """

    def __init__(self, rest_s: float, stop: Flag) -> None:
        self._rest_s = rest_s
        self._stop = stop
        self._period_s = RESTING_LINE_PERIOD_S if rest_s else LINE_PERIOD_S
        self._line_at_s = time.perf_counter()

    def is_due(self) -> bool:
        """Return whether the last line was long enough ago."""
        return time.perf_counter() - self._line_at_s >= self._period_s

    def begin_line(self) -> None:
        """Begin to collect the samples of the next line now."""
        self._line_at_s = time.perf_counter()

    def rest(self) -> bool:
        """Leave the processor to whoever draws; return whether there is anybody."""
        if self._rest_s:
            self._stop.wait(self._rest_s)
        return bool(self._rest_s)

    def needs_untimed(self, batch_s: float) -> bool:
        """Return whether one batch has to run untimed after a rest.

        Caches and threads were somebody else's meanwhile; what takes longer than the rest itself
        finds its own pace.
        """
        return batch_s < self._rest_s
