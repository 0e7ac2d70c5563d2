"""Time a call: warm-up, then batches of at least 2 ms.

Nothing here sends or draws anything.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.statistics import FEWEST_GROUPS, GROUP_S, median_interval, quantile
from gpu_studio.engine.device import accelerator_of, time_once

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from gpu_studio.engine.stopwatch import Stopwatch
    from gpu_studio.engine.workloads.call import Call

BATCH_S = 2e-3
WARM_UP_S = 0.3
# The time that a card's clock has to settle after that.
_LONGEST_SETTLING_S = 2.7
_TRIES = 5
_CLOCK_PERIOD_S = 0.1
_STEADY_WITHIN = 0.02
# A CPU call of this length has warmed up everything.
_LONG_CALL_S = 2.0


class OwnStopwatch:
    """The clock of a call that times itself; each sample is one call.

    Args:
        call: the call, which measures its own time.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    def time(self, call: Callable[[], object], calls: int) -> tuple[float, float]:
        """Return the seconds of one call by its own clock, and by the wall clock."""
        start_ns = time.perf_counter_ns()
        call()
        wall_s = (time.perf_counter_ns() - start_ns) * 1e-9
        own_s = self._call.elapsed_s()
        return (wall_s if own_s is None else own_s), wall_s


def stopwatch_for(call: Call, device: torch.device) -> Stopwatch:
    """Return the stopwatch for a call that has run at least once."""
    if call.elapsed_s() is not None:
        return OwnStopwatch(call)
    return accelerator_of(device).stopwatch(device)


def warm_up(
    call: Callable[[], object],
    device: torch.device,
    first_call_s: float,
    clock_mhz: Callable[[], float | None],
    stopped: Callable[[], bool],
    *,
    least_s: float | None = None,
) -> float:
    """Call until the device runs at a steady speed; return the seconds of the shortest call.

    Args:
        call: the function to call.
        device: the device that it uses.
        first_call_s: the first call's seconds.
        clock_mhz: reads the card's SM clock; returns None if unknown.
        stopped: checked between calls.
        least_s: the minimum seconds of warm-up; None for the default.
    """
    if least_s is None:
        if is_cpu(device.type) and first_call_s >= _LONG_CALL_S:
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
    """Return the number of calls in a batch of at least 2 ms."""
    calls = 1
    if call_s >= BATCH_S:
        return calls
    while not stopped():
        # The shortest of a few, because an interruption makes one too long.
        batch_s, wall_s = min(stopwatch.time(call, calls) for _ in range(_TRIES))
        # If a card's clock shows no time at all, this loop would never end.
        if batch_s >= BATCH_S or wall_s >= 50 * BATCH_S:
            break
        calls *= min(10, max(2, math.ceil(1.1 * BATCH_S / batch_s)))
    return calls


def whole_batches(calls: int, total_calls: int) -> int:
    """Return the number of calls per batch that divides ``total_calls`` without a remainder.

    Args:
        calls: the minimum number of calls in a batch.
        total_calls: the number of all calls.
    """
    divisors = (n for n in range(calls, total_calls) if total_calls % n == 0)
    return next(divisors, total_calls)


class IntervalRule:
    """Decides whether a median is known well enough to stop early.

    Consecutive samples are not independent, because clocks and other programs drift. So the
    interval is that of medians over about 20 ms each; with single samples, it would stop far too
    early.
    """

    def __init__(self, relative_interval: float | None) -> None:
        self._wanted = relative_interval
        self._group: list[float] = []
        self._group_s = 0.0
        self._medians: list[float] = []

    def add(self, sample_s: float, wall_s: float) -> None:
        """Add a sample and the time of its batch."""
        if self._wanted is None:
            return
        self._group.append(sample_s)
        self._group_s += wall_s
        if self._group_s >= GROUP_S:
            self._medians.append(quantile(sorted(self._group), 0.5))
            self._group, self._group_s = [], 0.0

    def is_met(self) -> bool:
        """Return whether half the 95 % interval is within the requested share of the median."""
        if self._wanted is None or len(self._medians) < FEWEST_GROUPS:
            return False
        ordered = sorted(self._medians)
        low, high = median_interval(ordered)
        return (high - low) / 2 <= self._wanted * quantile(ordered, 0.5)
