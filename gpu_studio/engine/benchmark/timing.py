"""Time a call: warm-up, then batches of at least 2 ms, and the pace at which they are sent.

Nothing here sends or draws anything.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event as Flag

    from gpu_studio.engine.stopwatch import Stopwatch

BATCH_S = 2e-3
WARM_UP_S = 0.3
# A round's tensors are new, and its device did other work: it has its caches and threads back
# after some milliseconds.
_WARM_AGAIN_S = 0.05
# The time that a card's clock has to settle after that.
_LONGEST_SETTLING_S = 2.7
_TRIES = 5
_CLOCK_PERIOD_S = 0.1
_STEADY_WITHIN = 0.02
# A CPU call of this length has warmed up everything.
_LONG_CALL_S = 2.0
LINE_PERIOD_S = 1 / 60
# You cannot read text and curves that change more often than this, and each update costs a rest.
RESTING_LINE_PERIOD_S = 1 / 4


def warm_up(
    time_once: Callable[[], float],
    first_call_s: float,
    clock_mhz: Callable[[], float | None],
    stopped: Callable[[], bool],
    *,
    is_on_card: bool = False,
    least_s: float | None = None,
) -> float:
    """Call until the device runs at a steady speed; return the seconds of the shortest call.

    Args:
        time_once: calls once, and returns the seconds.
        first_call_s: the first call's seconds.
        clock_mhz: reads the card's SM clock; returns None if unknown.
        stopped: checked between calls.
        is_on_card: whether the device has a clock that settles.
        least_s: the minimum seconds of warm-up; None for the default.
    """
    if least_s is None:
        if not is_on_card and first_call_s >= _LONG_CALL_S:
            return first_call_s
        least_s = WARM_UP_S
    start_s = time.perf_counter()
    clocks_mhz: list[float] = []
    call_s = math.inf
    while True:
        call_s = min(call_s, time_once())
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


def warm_up_again(
    time_once: Callable[[], float],
    first_call_s: float,
    clock_mhz: Callable[[], float | None],
    wanted_mhz: float | None,
    stopped: Callable[[], bool],
) -> float:
    """Call until a device is back at its speed; return the seconds of the shortest call.

    Args:
        time_once: calls once, and returns the seconds.
        first_call_s: the first call's seconds.
        clock_mhz: reads the card's SM clock; returns None if unknown.
        wanted_mhz: the SM clock after the first warm-up; None if unknown.
        stopped: checked between calls.
    """
    start_s = time.perf_counter()
    call_s = first_call_s
    while not stopped():
        spent_s = time.perf_counter() - start_s
        if spent_s >= _LONGEST_SETTLING_S:
            break
        if spent_s >= _WARM_AGAIN_S or call_s >= _WARM_AGAIN_S:
            mhz = clock_mhz() if wanted_mhz is not None else None
            if mhz is None or wanted_mhz is None or mhz >= (1 - _STEADY_WITHIN) * wanted_mhz:
                break
        call_s = min(call_s, time_once())
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
