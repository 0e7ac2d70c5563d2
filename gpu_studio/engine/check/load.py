"""Load and heat: full load until the device is steady, then bursts with rests between them.

Heat comes first: a card that fails only when it is hot is then hot in all stages after it. Weak
power delivery and unstable clocks show when the load changes. The columns of each product are
summed on the device, as whole numbers, and all sums of a burst are compared: no product goes
unseen, and only a few KiB are copied.

The bandwidth of the memory is measured before and after the full load: GDDR6 and newer memory sends
again what arrived damaged, so a hot or weak chip is slower, not wrong. A CPU's is not measured:
other programs use the same RAM.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from gpu_studio.core.check.stages import (
    SAME_CLOCK_SHARE,
    SLOW_MEMORY_SHARE,
    SLOWER_CORE_SHARE,
    STEADY_CLOCK_S,
    STEADY_CLOCK_SHARE,
    UNSENSED_LOAD_S,
)
from gpu_studio.core.devices.facts import celsius_text
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.core.units import format_count, format_duration, format_percent, format_rate
from gpu_studio.engine.check.heat import is_steady
from gpu_studio.engine.check.link import Copies
from gpu_studio.engine.device import accelerator_of, free_bytes

if TYPE_CHECKING:
    from collections.abc import Generator

    from torch import Tensor

    from gpu_studio.engine.check.stage_run import StageRun

_SIDE, _CPU_SIDE = 2048, 256
_LARGEST_STEP_SIDE, _SMALLEST_SIDE = 1024, 128
_LONGEST_CALL_S = 0.001
_MOST_CALLS = 20_000
_LONGEST_DELAY_S = 0.7  # more than planned; other programs may take the CPU
_MARK = 1_000_003  # times a burst's number: the sums of two bursts are never the same
_COPY_BYTES, _COPIES = 8 << 20, 4
_BURST_S = 0.3
_FEWEST_BURSTS = 8
_STEPS_SHARE = 0.28  # of the stage's time
PERIODS_S = (1.0, 0.2, 0.03, 0.005)
DUTIES_PERCENT = (20, 100, 40, 80, 60)
"""Not in their order, so that the load changes by much from step to step."""
STEPS = tuple((duty, period_s) for period_s in PERIODS_S for duty in DUTIES_PERCENT)
_SHARES, _LONGEST_STEP_S = 40, 3.0  # the long periods take more than their share
_FULL = 100
_LARGEST_BYTES = 256 << 20  # more than the caches of any card
_SHARE = 8
_ROUNDS, _FEWEST_ROUNDS = 12, 6
_ROUND_S, _WAKE_S = 0.03, 0.3
_WAYS = 2  # a copy reads and writes


class MemoryRate(NamedTuple):
    """The bandwidth of a device's memory, read and written together, and the clocks then."""

    bytes_per_s: float
    sm_clock_mhz: float
    memory_clock_mhz: float


def load(run: StageRun) -> Generator[str, None, bool]:
    """Work until the device is steady, then in bursts; a stage, see `StageRun`."""
    run.vitals(at_once=True)
    first = measured_memory(run, is_hot=False)
    is_whole = yield from _full_load(run)
    hot = measured_memory(run, is_hot=True) if not run.is_stopped else None
    if first is not None and hot is not None:
        run.tested += f", memory at {_speed(first)} first and {_speed(hot)} when hot"
        _report_slow_memory(run, first, hot)
    if not is_whole or run.is_stopped:
        return False
    return (yield from _load_in_steps(run))


class Products:
    """Two products in turns, on the device, and the sums of their columns.

    The first is of whole numbers, and the CPU knows its sums. The second is of real numbers, with
    functions after it, which heat a device more: its sums have to be those of the first time.

    Args:
        run: has the device and the numbers, and gets the findings.
        side: of the square matrices.

    Attributes:
        done: the products of the last burst; fewer than asked for if they took too long.
        call_s: the seconds of one of them.
    """

    def __init__(self, run: StageRun, side: int) -> None:
        # Every sum of the product is less than 2^24: exact in float32, and in TF32.
        largest = math.isqrt(((1 << 24) - 1) // side)
        left, right = (
            torch.randint(-largest, largest + 1, (side, side), generator=run.generator).float()
            for _ in range(2)
        )
        self._run, self.side = run, side
        self._whole = left.to(run.device), right.to(run.device)
        self._real = torch.randn(side, side, generator=run.generator).to(run.device)
        self._result = torch.empty_like(self._real)
        self._sums = torch.zeros(2, side, dtype=torch.int64, device=run.device)
        self._number = self.done = 0
        self.call_s = 0.0
        self._multiply(1)
        self._exact = self._sums.to("cpu", copy=True)
        self._exact[0] = _sums((left.double() @ right.double()).float())

    def calls_in(self, seconds: float) -> int:
        """Return how many products take so long."""
        wanted = seconds / self.call_s if self.call_s > 0 else 1.0
        return max(1, min(round(wanted), _MOST_CALLS))

    def burst(self, calls: int, when: str, *, after_rest: bool = False) -> int:
        """Do so many products at once, and return and report how many sums are wrong.

        Args:
            calls: fewer are done if other programs delay them.
            when: begins the sentence of the finding.
            after_rest: whether the device has rested before, for a fault made on purpose.
        """
        run, begun_s = self._run, self._run.elapsed_s
        end_s = begun_s + calls * self.call_s + _LONGEST_DELAY_S
        self._number += 1
        self._sums.fill_(self._number * _MARK)
        self.done = 0
        while self.done < calls and (not self.done or run.elapsed_s <= end_s):
            self._multiply(self.done % 2)
            self.done += 1
        wrong = self._wrong_sums(after_rest=after_rest)
        self.call_s = (run.elapsed_s - begun_s) / self.done
        if wrong:
            run.report(
                "wrong_result", "error",
                f"{when}, a burst of products was wrong: {format_count(wrong)} of "
                f"{format_count(2 * self.side)} sums of their columns.",
                count=wrong,
            )  # fmt: skip
        return wrong

    def _wrong_sums(self, *, after_rest: bool) -> int:
        seen = self._sums.to("cpu", copy=True)
        self._run.plant.corrupt(seen, self.side, after_rest=after_rest)
        counts = np.array([[(self.done + 1) // 2], [self.done // 2]])
        return int(
            np.count_nonzero(seen.numpy() != self._exact.numpy() * counts + self._number * _MARK)
        )

    def _multiply(self, which: int) -> None:
        factors = (self._real, self._real) if which else self._whole
        torch.mm(*factors, out=self._result)
        self._sums[which].add_(_sums(self._result))
        if which:  # small enough that tanh does not make all of them 1
            self._result.mul_(self.side**-0.5).add_(self._real).tanh_()
            self._sums[which].add_(_sums(self._result))


def _short_products(run: StageRun) -> Products:
    """Return products that are small enough for the shortest burst on this device."""
    side = _LARGEST_STEP_SIDE if run.is_card else _SMALLEST_SIDE
    while True:
        work = Products(run, side)
        work.burst(4, "At part load")
        if work.call_s <= _LONGEST_CALL_S or side <= _SMALLEST_SIDE:
            return work
        side //= 2


def _sums(product: Tensor) -> Tensor:
    """Return the sums of a product's columns, of its bits as whole numbers: exact in any order."""
    return product.view(torch.int32).sum(0, dtype=torch.int64)


def _full_load(run: StageRun) -> Generator[str, None, bool]:
    """Work without a rest until the device is steady, or the time is over; return whether it is."""
    work = Products(run, _SIDE if run.is_card else _CPU_SIDE)
    copies = Copies(run, _COPY_BYTES)
    end_s = (1 - _STEPS_SHARE) * run.planned_s
    bursts = products = 0
    work.burst(2, "At first")
    is_over = False
    while not is_over and not run.is_over(has_tested_all=False):
        yield "Matrix products"
        burst_beside_copies(work, copies, run)
        bursts, products = bursts + 1, products + work.done
        is_sensed, is_steady_now = run.last_c is not None, _is_steady(run)
        is_done = is_steady_now if is_sensed else run.elapsed_s >= UNSENSED_LOAD_S
        is_over = bursts >= _FEWEST_BURSTS and (run.elapsed_s >= end_s or is_done)
        words = _heat_words(run, is_over=is_over, is_steady_now=is_steady_now)
        seconds = format_duration(run.elapsed_s)
        run.tested = f"{format_count(products)} products in {seconds}{words}"
    return bursts >= _FEWEST_BURSTS


def burst_beside_copies(work: Products, copies: Copies, run: StageRun) -> None:
    """Do a burst, and copy new numbers to the device and back at the same time."""
    copies.renew()

    def copy() -> None:
        with accelerator_of(run.device).side_stream(run.device) as wait:
            for _ in range(_COPIES):
                copies.send()
                copies.fetch()
            wait()

    with ThreadPoolExecutor(1) as helper:
        copied = helper.submit(copy)
        work.burst(work.calls_in(_BURST_S), "Under full load")
        copied.result()
    copies.compare(" while it computed")


def _heat_words(run: StageRun, *, is_over: bool, is_steady_now: bool) -> str:
    degrees = celsius_text(run.last_c)
    if not degrees:
        return ", no temperature reported" * is_over
    if not is_over:
        return f", now {degrees}"
    return f", steady at {degrees}" if is_steady_now else f", {degrees} at the end, not steady"


def _is_steady(run: StageRun) -> bool:
    """Return whether temperature and clock have settled; False if there is no temperature."""
    if not is_steady(run.readings):
        return False
    since_s = run.readings[-1].at_s - STEADY_CLOCK_S
    clocks = [one.sm_clock_mhz for one in run.readings if one.at_s >= since_s and one.sm_clock_mhz]
    return not clocks or max(clocks) - min(clocks) <= STEADY_CLOCK_SHARE * max(clocks)


def _load_in_steps(run: StageRun) -> Generator[str, None, bool]:
    """Work in bursts of several lengths and shares of the time, each step once at least."""
    yield "Load in steps"
    before, begun_s, done, bursts = run.tested, run.elapsed_s, 0, 0
    work = _short_products(run)
    # A load that was steady early leaves its time to another stage.
    share_s = min(_STEPS_SHARE * run.planned_s, run.planned_s - run.elapsed_s)
    step_s, end_s = min(share_s / _SHARES, _LONGEST_STEP_S), run.elapsed_s + share_s
    while done < len(STEPS) or run.elapsed_s < end_s:
        if run.is_over(has_tested_all=done >= len(STEPS)):
            break
        duty, period_s = STEPS[done % len(STEPS)]
        title = f"{duty}\u202f% load, in periods of {format_duration(period_s)}"
        step_end_s = run.elapsed_s + max(step_s - period_s / 2, 0.0)
        is_last = False
        while not is_last and not run.is_stopped:
            yield title
            calls = work.calls_in(duty / 100 * period_s)
            work.burst(calls, f"At {title}", after_rest=duty != _FULL)
            bursts += 1
            is_last = run.elapsed_s >= step_end_s
            left_s = period_s - work.call_s * work.done
            if left_s > 0 and duty != _FULL:
                run.rest(left_s)
        done += 1
        run.rested = (begun_s, run.elapsed_s)
        steps = f"{len(STEPS)} steps" if done >= len(STEPS) else f"{done} of {len(STEPS)} steps"
        run.tested = (
            f"{before}; {steps} of 20 to 100\u202f% load, {format_count(bursts)} bursts, all "
            "products compared"
        )
    return done >= len(STEPS) and not run.is_stopped


def measured_memory(run: StageRun, *, is_hot: bool) -> MemoryRate | None:
    """Return the bandwidth of a card's memory, with its clocks up; None for a CPU."""
    if not run.is_card:
        return None
    size = min(_LARGEST_BYTES, free_bytes(run.device) // _SHARE)
    source = torch.zeros(max(size, 1), dtype=torch.uint8, device=run.device)
    target = torch.empty_like(source)

    def copies(count: int) -> float:
        def work() -> None:
            for _ in range(count):
                target.copy_(source)

        return run.plant.copy_s(run.timed(work), is_hot=is_hot)

    begun_s, one_s = run.elapsed_s, copies(1)
    while run.elapsed_s - begun_s < _WAKE_S:
        one_s = copies(1)
    count = max(1, int(_ROUND_S / one_s)) if one_s > 0 else 1
    rounds = _ROUNDS if count > 1 else _FEWEST_ROUNDS
    # The fastest round: no other program has slowed that one down.
    fastest_s = max(min(copies(count) for _ in range(rounds)), 1e-9)
    now = run.vitals(at_once=True) or Telemetry()
    return MemoryRate(
        _WAYS * source.nbytes * count / fastest_s, now.sm_clock_mhz or 0.0,
        now.memory_clock_mhz or 0.0,
    )  # fmt: skip


def _speed(rate: MemoryRate) -> str:
    return format_rate(rate.bytes_per_s, "B/s")


def _report_slow_memory(run: StageRun, first: MemoryRate, hot: MemoryRate) -> None:
    """Report memory that is slower when hot; not where a clock fell, or none is reported."""
    loss = 1 - hot.bytes_per_s / first.bytes_per_s
    has_clock = hot.memory_clock_mhz >= (1 - SAME_CLOCK_SHARE) * first.memory_clock_mhz > 0
    has_chips_clock = hot.sm_clock_mhz >= SLOWER_CORE_SHARE * first.sm_clock_mhz
    if loss >= SLOW_MEMORY_SHARE and has_clock and has_chips_clock:
        run.report(
            "slow_memory", "doubt",
            f"The memory moves {_speed(hot)} when hot, {format_percent(loss)} less than at first, "
            "at the same clock: newer memory sends damaged data again, which makes it slower "
            "instead of wrong.",
        )  # fmt: skip
