"""The clocks: `perf_counter_ns` on the CPU, events on the stream of a card.

The events measure the card's own time with a resolution of about half a microsecond (CUDA Runtime
API, cudaEventElapsedTime).
"""

from __future__ import annotations

import time
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

from gpu_studio.core.uncollected import uncollected

if TYPE_CHECKING:
    from collections.abc import Callable

_EVENT_RESOLUTION_S = 0.5e-6


class Stopwatch(Protocol):
    """Times a batch of calls on one device."""

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        """Return the seconds of a batch: by the device's clock, and by the wall clock."""


class CpuStopwatch:
    """The clock of the process; both times are the same."""

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        """Return the wall time as both values: a CPU has one clock."""
        with uncollected():
            start_ns = time.perf_counter_ns()
            for _ in repeat(None, calls):
                call()
            elapsed_s = (time.perf_counter_ns() - start_ns) * 1e-9
        return elapsed_s, elapsed_s


class EventStopwatch:
    """Two events on a card's stream; ends with the card idle.

    Args:
        stream: PyTorch's stream on the card.
        start: an event that tells its time.
        end: another one.
    """

    def __init__(self, stream: Any, start: Any, end: Any) -> None:
        self._stream, self._start, self._end = stream, start, end

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        """Return the seconds of a batch between the events, and by the wall clock."""
        with uncollected():
            start_ns = time.perf_counter_ns()
            self._start.record(self._stream)
            for _ in repeat(None, calls):
                call()
            self._end.record(self._stream)
            self._end.synchronize()
            wall_s = (time.perf_counter_ns() - start_ns) * 1e-9
        card_s = self._start.elapsed_time(self._end) * 1e-3
        # A time below the resolution is reported as the resolution, never as zero.
        return max(card_s, _EVENT_RESOLUTION_S), wall_s
