"""The clocks: `perf_counter_ns` on the CPU, CUDA events on the stream of a card.

The events measure the card's own time with a resolution of about half a microsecond (CUDA Runtime
API, cudaEventElapsedTime).
"""

from __future__ import annotations

import contextlib
import gc
import time
from itertools import repeat
from typing import TYPE_CHECKING, Protocol

import torch

from gpu_studio.engine.device import synchronize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_EVENT_RESOLUTION_S = 0.5e-6
# torch.cuda._sleep counts clock cycles; every card's clock is below this.
_FASTEST_CLOCK_HZ = 3.5e9
_HEAD_START_S = 0.5e-3


class Stopwatch(Protocol):
    """Times a batch of calls on one device."""

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        """Return the seconds of a batch: by the device's clock, and by the wall clock."""


class CpuStopwatch:
    """The clock of the process; both times are the same."""

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        """Return the seconds of a batch, twice."""
        with _without_collector():
            start_ns = time.perf_counter_ns()
            for _ in repeat(None, calls):
                call()
            elapsed_s = (time.perf_counter_ns() - start_ns) * 1e-9
        return elapsed_s, elapsed_s


class CudaStopwatch:
    """Two events on a card's stream; ends with the card idle."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.current_stream(device)
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        """Return the seconds of a batch between the events, and by the wall clock."""
        with _without_collector():
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


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Keep Python's garbage collector out of a batch."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def time_once(call: Callable[[], object], device: torch.device) -> float:
    """Return the seconds of one call until the device is idle, by the wall clock."""
    start_s = time.perf_counter()
    call()
    synchronize(device)
    return time.perf_counter() - start_s


def idle(device: torch.device, seconds: float) -> None:
    """Let a card's stream idle for at least this long, and at least 0.5 ms; returns at once.

    Kernels that are launched meanwhile queue up, so that no kernel waits for its own launch.
    """
    with torch.cuda.device(device):
        torch.cuda._sleep(int((seconds + _HEAD_START_S) * _FASTEST_CLOCK_HZ))
