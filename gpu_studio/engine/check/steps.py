"""Load in steps: bursts of exact products with rests between them.

Weak power delivery and unstable clocks show when the load changes, and less under a full one. Each
product is summed by columns on the device, as whole numbers, and the CPU knows what all sums of a
burst have to be. So no product of a burst goes unseen, and only a few KiB are copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gpu_studio.core.messages.check_messages import LoadStep
from gpu_studio.core.units import format_count, format_duration
from gpu_studio.engine.check.detectors import mismatched_bits
from gpu_studio.engine.check.stage import StageBench, Step

if TYPE_CHECKING:
    from collections.abc import Generator

    from torch import Tensor

    from gpu_studio.core.messages.check_messages import StageName, Vitals

PERIODS_S = (1.0, 0.2, 0.03, 0.005)
DUTIES_PERCENT = (20, 100, 40, 80, 60)
"""Not in their order, so that the load changes by much from step to step."""
STEPS = tuple((duty, period_s) for period_s in PERIODS_S for duty in DUTIES_PERCENT)
_LONGEST_STEP_S = 3.0
_LARGEST_SIDE, _SMALLEST_SIDE, _CPU_SIDE = 1024, 128, 128
_LARGEST = 127  # 1024 × 127² is less than 2^24: each sum is exact in float32, and in TF32
_LONGEST_CALL_S = 0.001
_MOST_CALLS = 20_000
_LONGEST_BURST_S = 0.5  # more than planned; other programs may take the CPU
_MARK = 1_000_003  # times a burst's number: the sums of two bursts are never the same
_FULL = 100


class LoadInSteps:
    """Part load of all kinds, one after the other, again and again."""

    name: StageName = "steps"

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Work in bursts; see `stage.Stage`."""
        work = _Products.fitting(bench)
        rows = {step: _Row(bench, *step) for step in STEPS}
        done = 0
        step_s = _step_s(bench.budget_s - bench.elapsed_s)
        while not bench.is_over(has_tested_all=done >= len(STEPS)):
            row = rows[STEPS[done % len(STEPS)]]
            begun_s = bench.elapsed_s
            while not bench.is_stopped:
                row.burst(work)
                is_last = bench.elapsed_s - begun_s >= max(step_s - row.period_s / 2, 0.0)
                if is_last:
                    row.read(bench.vitals(at_once=True))
                row.rest()
                yield Step(doing=row.title, tested=_tested(done, rows))
                if is_last:
                    break
            else:
                break
            done += 1
            bench.load_steps = tuple(one.result() for one in rows.values() if one.bursts)
        yield Step(doing="", tested=_tested(done, rows))
        return done >= len(STEPS) and not bench.is_stopped


def _step_s(budget_s: float) -> float:
    """Return how long a step lasts beside its one period at least, so that all fit the time."""
    left = budget_s
    for number, period_s in enumerate(PERIODS_S):
        share_s = left / (len(DUTIES_PERCENT) * (len(PERIODS_S) - number))
        if share_s >= period_s:
            return min(share_s, _LONGEST_STEP_S)
        left -= period_s * len(DUTIES_PERCENT)
    return 0.0


class _Products:
    """Two exact products in turns, on the device, and the sums of their columns.

    Args:
        bench: has the device and the numbers.
        side: of the square matrices.
    """

    def __init__(self, bench: StageBench, side: int) -> None:
        self.side = side
        first, second = (
            torch.randint(-_LARGEST, _LARGEST + 1, (side, side), generator=bench.generator).float()
            for _ in range(2)
        )
        self._pairs = [
            (one.to(bench.device), two.to(bench.device))
            for one, two in ((first, second), (second, first))
        ]
        self._exact = [
            _sums((one.double() @ two.double()).float())
            for one, two in ((first, second), (second, first))
        ]
        self._result = torch.empty(side, side, device=bench.device)
        self._sums = torch.zeros(side, dtype=torch.int64, device=bench.device)
        self._bench = bench
        self._before: Tensor | None = None
        self._number = 0
        self.call_s = 0.0

    @classmethod
    def fitting(cls, bench: StageBench) -> _Products:
        """Return products that are small enough for the shortest burst on this device."""
        side = _LARGEST_SIDE if bench.is_card else _CPU_SIDE
        while True:
            work = cls(bench, side)
            work.burst(1)  # loads the kernels
            work.burst(4)
            if work.call_s <= _LONGEST_CALL_S or side <= _SMALLEST_SIDE:
                return work
            side //= 2

    def calls_in(self, seconds: float) -> int:
        """Return how many calls take so long."""
        wanted = seconds / self.call_s if self.call_s > 0 else 1.0
        return max(1, min(round(wanted), _MOST_CALLS))

    def burst(self, calls: int, *, after_rest: bool = False) -> tuple[int, float]:
        """Do so many products at once; return how many sums are wrong, and the seconds.

        Args:
            calls: fewer are done if other programs delay them.
            after_rest: whether the device has rested before, for a fault made on purpose.
        """
        bench = self._bench
        self._number += 1
        begun_s = bench.elapsed_s
        end_s, counts = begun_s + calls * self.call_s + _LONGEST_BURST_S, [0, 0]
        self._sums.fill_(self._number * _MARK)
        for number in range(calls):
            which = number % 2
            torch.mm(*self._pairs[which], out=self._result)
            self._sums.add_(_sums(self._result))
            counts[which] += 1
            if bench.elapsed_s > end_s:
                break
        seen = self._sums.to("cpu", copy=True)
        seconds = bench.elapsed_s - begun_s
        self.call_s = seconds / sum(counts)
        expected = self._exact[0] * counts[0] + self._exact[1] * counts[1]
        expected += self._number * _MARK
        bench.plant.corrupt(seen, self._before)
        if after_rest:
            bench.plant.corrupt_after_rest(seen)
        self._before = seen
        found = mismatched_bits(seen, expected)
        return (found.count if found else 0), seconds


def _sums(product: Tensor) -> Tensor:
    """Return the sums of a product's columns, of its bits as whole numbers: exact in any order."""
    return product.view(torch.int32).sum(0, dtype=torch.int64)


class _Row:
    """One step and what came of it."""

    def __init__(self, bench: StageBench, duty_percent: int, period_s: float) -> None:
        self._bench = bench
        self.duty_percent, self.period_s = duty_percent, period_s
        self.bursts = self._errors = 0
        self._busy_s = self._whole_s = self._last_s = 0.0
        self._readings: list[Vitals] = []

    @property
    def title(self) -> str:
        """The step in words: ``40 % load, in periods of 30 ms``."""
        return f"{self.duty_percent}\u202f% load, in periods of {format_duration(self.period_s)}"

    def burst(self, work: _Products) -> None:
        """Work for the step's part of a period, and compare all of it."""
        is_full = self.duty_percent == _FULL
        calls = work.calls_in(self.duty_percent / 100 * self.period_s)
        wrong, self._last_s = work.burst(calls, after_rest=not is_full)
        self.bursts += 1
        self._busy_s += self._last_s
        self._whole_s += self._last_s
        if wrong:
            self._errors += 1
            self._bench.report(
                "wrong_result", "error",
                f"At {self.title}, a burst of exact products was wrong: "
                f"{format_count(wrong)} of {format_count(work.side)} sums.",
                count=wrong,
            )  # fmt: skip

    def rest(self) -> None:
        """Rest for the rest of the period."""
        left_s = 0.0 if self.duty_percent == _FULL else self.period_s - self._last_s
        if left_s > 0:
            begun_s = self._bench.elapsed_s
            self._bench.rest(left_s)
            self._whole_s += self._bench.elapsed_s - begun_s

    def read(self, vitals: Vitals | None) -> None:
        """Keep a reading at the end of a burst."""
        if vitals is not None:
            self._readings.append(vitals)

    def result(self) -> LoadStep:
        """Return the step so far."""
        clocks, memory, power = (
            [value for value in map(get, self._readings) if value is not None]
            for get in (_sm_clock, _memory_clock, _power)
        )
        busy = 100 * self._busy_s / self._whole_s if self._whole_s > 0 else None
        return LoadStep(
            duty_percent=self.duty_percent, period_s=self.period_s, bursts=self.bursts,
            errors=self._errors, busy_percent=None if busy is None else min(round(busy, 1), 100.0),
            sm_clock_mhz=min(clocks, default=None), memory_clock_mhz=min(memory, default=None),
            power_w=max(power, default=None),
        )  # fmt: skip


def _sm_clock(vitals: Vitals) -> float | None:
    return vitals.sm_clock_mhz


def _memory_clock(vitals: Vitals) -> float | None:
    return vitals.memory_clock_mhz


def _power(vitals: Vitals) -> float | None:
    return vitals.power_w


def _tested(done: int, rows: dict[tuple[int, float], _Row]) -> str:
    bursts = sum(row.bursts for row in rows.values())
    if not bursts:
        return ""
    steps = f"{len(STEPS)} steps" if done >= len(STEPS) else f"{done} of {len(STEPS)} steps"
    return f"{steps} of 20 to 100\u202f% load, {format_count(bursts)} bursts, all products compared"
