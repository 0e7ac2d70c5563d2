"""How long a call takes: warm-up, and batches that last at least 2 ms.

Nothing here sends or draws.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from gpu_studio.core.statistics import FEWEST_GROUPS, GROUP_S, median_interval, quantile
from gpu_studio.engine.stopwatch import CpuStopwatch, CudaStopwatch, Stopwatch, time_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from gpu_studio.engine.workloads.call import Call

BATCH_S = 2e-3
WARM_UP_S = 0.3
# A card's clock is given this long to settle after that.
_LONGEST_SETTLING_S = 2.7
_TRIES = 5
_CLOCK_PERIOD_S = 0.1
_STEADY_WITHIN = 0.02
# A call this long on the CPU has warmed up whatever there is to warm up.
_LONG_CALL_S = 2.0


class OwnStopwatch:
    """The clock of a call that times itself, which is made once a sample.

    Args:
        call: tells how long it took.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        """Return the seconds of one call by its own clock, and on the wall."""
        start_ns = time.perf_counter_ns()
        call()
        wall_s = (time.perf_counter_ns() - start_ns) * 1e-9
        own_s = self._call.elapsed_s()
        return (wall_s if own_s is None else own_s), wall_s


def stopwatch_for(call: Call, device: torch.device) -> Stopwatch:
    """Return the stopwatch for a call that was made at least once."""
    if call.elapsed_s() is not None:
        return OwnStopwatch(call)
    return CpuStopwatch() if device.type == "cpu" else CudaStopwatch(device)


def warm_up(
    call: Callable[[], object],
    device: torch.device,
    first_call_s: float,
    clock_mhz: Callable[[], float | None],
    stopped: Callable[[], bool],
    *,
    least_s: float | None = None,
) -> float:
    """Call until the device has reached its pace; return the seconds of the shortest call.

    Args:
        call: what to call.
        device: where it works.
        first_call_s: how long the first call took.
        clock_mhz: reads the card's SM clock; None where it is not told.
        stopped: looked at between calls.
        least_s: how long to call at least; None for the usual warm-up.
    """
    if least_s is None:
        if device.type == "cpu" and first_call_s >= _LONG_CALL_S:
            return first_call_s
        least_s = WARM_UP_S
    start_s = time.perf_counter()
    clocks_mhz: list[float] = []
    call_s = math.inf
    while True:
        call_s = min(call_s, time_once(call, device))
        spent_s = time.perf_counter() - start_s
        if stopped() or spent_s >= least_s + _LONGEST_SETTLING_S:
            return call_s
        if spent_s < least_s + len(clocks_mhz) * _CLOCK_PERIOD_S:
            continue
        mhz = clock_mhz()
        if mhz is None:
            return call_s
        clocks_mhz.append(mhz)
        if _is_steady(clocks_mhz):
            return call_s


def _is_steady(clocks_mhz: Sequence[float]) -> bool:
    """Return whether the last three readings agree."""
    latest = clocks_mhz[-3:]
    return len(latest) == 3 and max(latest) - min(latest) <= _STEADY_WITHIN * max(latest)


def choose_calls(
    stopwatch: Stopwatch, call: Callable[[], object], call_s: float, stopped: Callable[[], bool]
) -> int:
    """Return how many calls make a batch of at least 2 ms."""
    calls = 1
    if call_s >= BATCH_S:
        return calls
    while not stopped():
        # The shortest of a few, since an interruption makes one long.
        batch_s, wall_s = min(stopwatch.time(call, calls) for _ in range(_TRIES))
        # A card that takes no time at all would never be done by its own clock.
        if batch_s >= BATCH_S or wall_s >= 50 * BATCH_S:
            break
        calls *= min(10, max(2, math.ceil(1.1 * BATCH_S / batch_s)))
    return calls


def whole_batches(calls: int, total_calls: int) -> int:
    """Return how many calls make a batch of ``total_calls`` that are divided without a rest.

    Args:
        calls: how many a batch should have at least.
        total_calls: how many are made together.
    """
    divisors = (n for n in range(calls, total_calls) if total_calls % n == 0)
    return next(divisors, total_calls)


class IntervalRule:
    """Says when a median is known well enough to stop early.

    Consecutive samples are not independent (clocks and other programs drift), so the interval is
    the one of medians over some 20 ms each; taking samples one by one stops far too early.
    """

    def __init__(self, relative_interval: float | None) -> None:
        self._wanted = relative_interval
        self._group: list[float] = []
        self._group_s = 0.0
        self._medians: list[float] = []

    def add(self, sample_s: float, wall_s: float) -> None:
        """Take over one sample and the time its batch took."""
        if self._wanted is None:
            return
        self._group.append(sample_s)
        self._group_s += wall_s
        if self._group_s >= GROUP_S:
            self._medians.append(quantile(sorted(self._group), 0.5))
            self._group, self._group_s = [], 0.0

    def is_met(self) -> bool:
        """Return whether half the 95 % interval is within the wanted share of the median."""
        if self._wanted is None or len(self._medians) < FEWEST_GROUPS:
            return False
        ordered = sorted(self._medians)
        low, high = median_interval(ordered)
        return (high - low) / 2 <= self._wanted * quantile(ordered, 0.5)
