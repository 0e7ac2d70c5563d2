"""Load and heat: full load until the device is steady, then bursts with rests between them.

Heat comes first: a card that fails only when it is hot is then hot in all stages after it. Weak
power delivery and unstable clocks show when the load changes. The bandwidth of the memory is
measured before and after the full load: GDDR6 and newer memory sends again what arrived damaged, so
a hot or weak chip is slower, not wrong. A CPU's is not measured: other programs use the same RAM.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.check.heat import change_in_last_minute_c, is_steady
from gpu_studio.core.check.stages import UNSENSED_LOAD_S
from gpu_studio.core.check.thresholds import (
    SAME_CLOCK_SHARE,
    SLOW_MEMORY_SHARE,
    SLOWER_CORE_SHARE,
    STEADY_CLOCK_S,
    STEADY_CLOCK_SHARE,
)
from gpu_studio.core.devices.facts import celsius_text
from gpu_studio.core.messages.check_messages import LoadStep, MemoryRate, MemoryRates
from gpu_studio.core.statistics import median_interval
from gpu_studio.core.units import format_count, format_duration, format_percent, format_rate
from gpu_studio.engine.check.bursts import CopiesBeside, Products
from gpu_studio.engine.check.detectors import SlowSteps, steady
from gpu_studio.engine.check.stage import StageBench, Step
from gpu_studio.engine.device import free_bytes

if TYPE_CHECKING:
    from collections.abc import Generator

    from gpu_studio.core.messages.check_messages import Severity, StageName
    from gpu_studio.core.telemetry import Telemetry

_SIDE, _CPU_SIDE = 2048, 256
_BURST_S = 0.3
_FEWEST_BURSTS = 8  # so many that a burst that is always slow stands out
_STEPS_SHARE = 0.28  # of the stage's time
PERIODS_S = (1.0, 0.2, 0.03, 0.005)
DUTIES_PERCENT = (20, 100, 40, 80, 60)
"""Not in their order, so that the load changes by much from step to step."""
STEPS = tuple((duty, period_s) for period_s in PERIODS_S for duty in DUTIES_PERCENT)
_LONGEST_STEP_S = 3.0
_FULL = 100
_LARGEST_BYTES = 256 << 20  # more than the caches of any card
_SHARE = 8
_ROUNDS, _FEWEST_ROUNDS = 12, 6
_ROUND_S, _WAKE_S = 0.03, 0.3
_WAYS = 2  # a copy reads and writes


class Load:
    """Full load, then part load of all kinds."""

    name: StageName = "load"

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Work until the device is steady, then in bursts; see `stage.Stage`."""
        bench.vitals(at_once=True)
        bandwidth = MemoryBandwidth(bench)
        bandwidth.measure_first()
        full = _FullLoad(bench)
        yield from full.run()
        bandwidth.measure_hot()
        if _has_temperature(bench):
            bench.is_steady = _is_steady(bench)
        whole = full.bursts >= _FEWEST_BURSTS
        full_words = full.words(is_over=True)
        steps = _LoadInSteps(bench) if whole and not bench.is_stopped else None
        if steps is not None:
            begun_s = bench.elapsed_s
            for doing in steps.run():
                bench.part_load = (begun_s, bench.elapsed_s)
                yield Step(doing=doing, tested=f"{full_words}; {steps.words}")
        if not bench.is_stopped:
            rest = f"; {steps.words}" if steps is not None else ""
            yield Step(doing="", tested=f"{full_words}{rest}")
        return steps is not None and steps.is_whole and not bench.is_stopped


class _FullLoad:
    """Bursts without a rest.

    Attributes:
        bursts: how many were done.
    """

    def __init__(self, bench: StageBench) -> None:
        self._bench = bench
        self._slow = SlowSteps()
        self._copies = CopiesBeside(bench)
        self._products = 0
        self.bursts = 0

    def run(self) -> Generator[Step, None, None]:
        """Work until the device is steady, or the time for it is over."""
        bench = self._bench
        work = Products(bench, _SIDE if bench.is_card else _CPU_SIDE)
        work.burst(2)
        end_s = (1 - _STEPS_SHARE) * bench.budget_s
        while not bench.is_over(has_tested_all=False):
            self._burst(work, work.calls_in(_BURST_S))
            self.bursts += 1
            bench.vitals()
            yield Step(doing="Matrix products", tested=self.words())
            is_over = bench.elapsed_s >= end_s or self._is_done()
            if is_over and self.bursts >= _FEWEST_BURSTS:
                return

    def _burst(self, work: Products, calls: int) -> None:
        """Work, and compare times by the product, because a busy PC gets fewer of them done."""
        bench, number = self._bench, self.bursts

        def product_s(step: int) -> float:
            def burst() -> None:
                work.report("Under full load", work.burst(calls))

            seconds = bench.timed(lambda: self._copies.beside(burst), step)
            self._products += work.done
            return seconds / work.done

        slowness = self._slow.slowness(
            product_s(number), lambda: product_s(number), lambda: product_s(0)
        )
        if slowness is not None:
            bench.report(
                "slow_sample", "doubt",
                f"One step under load takes {slowness:.0f} times as long as the others, each time.",
            )  # fmt: skip

    def words(self, *, is_over: bool = False) -> str:
        """What was tested so far, in words; empty if nothing was."""
        bench = self._bench
        if not self._products:
            return ""
        text = f"{format_count(self._products)} products in {format_duration(bench.elapsed_s)}"
        degrees = celsius_text(bench.readings[-1].temperature_c) if bench.readings else None
        if not degrees:
            return f"{text}, no temperature reported" if is_over else text
        if not is_over:
            return f"{text}, now {degrees}"
        if bench.is_steady:
            return f"{text}, steady at {degrees}"
        return f"{text}, {degrees} at the end, not steady{_change_words(bench)}"

    def _is_done(self) -> bool:
        if _has_temperature(self._bench):
            return _is_steady(self._bench)
        return self._bench.elapsed_s >= UNSENSED_LOAD_S


def _change_words(bench: StageBench) -> str:
    log = bench.readings
    change_c = change_in_last_minute_c(log)
    if not change_c:
        return ""
    seconds = min(log[-1].at_s - log[0].at_s, 60.0)
    return f" ({change_c:+.0f}\u202f°C in the last {format_duration(seconds)})"


def _is_steady(bench: StageBench) -> bool:
    """Return whether temperature and clock have settled; False if the card reports neither."""
    log = bench.readings
    if not is_steady(log):
        return False
    since_s = log[-1].at_s - STEADY_CLOCK_S
    clocks = [
        one.sm_clock_mhz for one in log if one.at_s >= since_s and one.sm_clock_mhz is not None
    ]
    return not clocks or steady(clocks, STEADY_CLOCK_SHARE * max(clocks))


def _has_temperature(bench: StageBench) -> bool:
    return any(one.temperature_c is not None for one in bench.readings)


class _LoadInSteps:
    """Bursts in periods of several lengths, for several shares of the time."""

    def __init__(self, bench: StageBench) -> None:
        self._bench = bench
        self._rows = {step: _Row(bench, *step) for step in STEPS}
        self._done = 0

    @property
    def is_whole(self) -> bool:
        """Whether every step was done."""
        return self._done >= len(STEPS)

    def run(self) -> Generator[str, None, None]:
        """Go through the steps, again if there is time; yield the present one in words."""
        bench = self._bench
        yield "Load in steps"
        work = Products.fitting(bench)
        # A load that was steady early leaves its time to another stage.
        share_s = min(_STEPS_SHARE * bench.budget_s, bench.budget_s - bench.elapsed_s)
        step_s, end_s = _step_s(share_s), bench.elapsed_s + share_s
        while not self.is_whole or bench.elapsed_s < end_s:
            if bench.is_over(has_tested_all=self.is_whole):
                return
            row = self._rows[STEPS[self._done % len(STEPS)]]
            step_end_s = bench.elapsed_s + max(step_s - row.period_s / 2, 0.0)
            is_last = False
            while not is_last:
                row.burst(work)
                is_last = bench.elapsed_s >= step_end_s
                if is_last:
                    row.read(bench.vitals(at_once=True))
                row.rest()
                yield row.title
                if bench.is_stopped:
                    return
            self._done += 1
            bench.load_steps = tuple(one.result() for one in self._rows.values() if one.bursts)

    @property
    def words(self) -> str:
        """What was tested so far, in words."""
        bursts = format_count(sum(row.bursts for row in self._rows.values()))
        all_steps = f"{len(STEPS)} steps"
        steps = all_steps if self.is_whole else f"{self._done} of {all_steps}"
        return f"{steps} of 20 to 100\u202f% load, {bursts} bursts, all products compared"


def _step_s(budget_s: float) -> float:
    """Return how long a step lasts beside its one period at least, so that all fit the time."""
    left = budget_s
    for number, period_s in enumerate(PERIODS_S):
        share_s = left / (len(DUTIES_PERCENT) * (len(PERIODS_S) - number))
        if share_s >= period_s:
            return min(share_s, _LONGEST_STEP_S)
        left -= period_s * len(DUTIES_PERCENT)
    return 0.0


class _Row:
    """One step and what came of it."""

    def __init__(self, bench: StageBench, duty_percent: int, period_s: float) -> None:
        self._bench = bench
        self.duty_percent, self.period_s = duty_percent, period_s
        self.bursts = self._errors = 0
        self._busy_s = self._whole_s = self._last_s = 0.0
        self._readings: list[Telemetry] = []

    @property
    def title(self) -> str:
        """The step in words: ``40 % load, in periods of 30 ms``."""
        return f"{self.duty_percent}\u202f% load, in periods of {format_duration(self.period_s)}"

    def burst(self, work: Products) -> None:
        """Work for the step's part of a period, and compare all of it."""
        calls = work.calls_in(self.duty_percent / 100 * self.period_s)
        wrong = work.burst(calls, after_rest=self.duty_percent != _FULL)
        self._last_s = work.call_s * work.done
        self.bursts += 1
        self._busy_s += self._last_s
        self._whole_s += self._last_s
        self._errors += wrong > 0
        work.report(f"At {self.title}", wrong)

    def rest(self) -> None:
        """Rest for the rest of the period."""
        left_s = 0.0 if self.duty_percent == _FULL else self.period_s - self._last_s
        if left_s > 0:
            begun_s = self._bench.elapsed_s
            self._bench.rest(left_s)
            self._whole_s += self._bench.elapsed_s - begun_s

    def read(self, vitals: Telemetry | None) -> None:
        """Keep a reading at the end of a burst."""
        if vitals is not None:
            self._readings.append(vitals)

    def result(self) -> LoadStep:
        """Return the step so far."""
        clocks = [one.sm_clock_mhz for one in self._readings if one.sm_clock_mhz is not None]
        memory = [
            one.memory_clock_mhz for one in self._readings if one.memory_clock_mhz is not None
        ]
        power = [one.power_w for one in self._readings if one.power_w is not None]
        busy = 100 * self._busy_s / self._whole_s if self._whole_s > 0 else None
        return LoadStep(
            duty_percent=self.duty_percent, period_s=self.period_s, bursts=self.bursts,
            errors=self._errors, busy_percent=None if busy is None else min(round(busy, 1), 100.0),
            sm_clock_mhz=min(clocks, default=None), memory_clock_mhz=min(memory, default=None),
            power_w=max(power, default=None),
        )  # fmt: skip


class MemoryBandwidth:
    """Measures a card's memory twice, with the same copies.

    Args:
        bench: of the stage; on a CPU, nothing is measured.
    """

    def __init__(self, bench: StageBench) -> None:
        self._bench = bench
        self._first: MemoryRate | None = None

    def measure_first(self) -> None:
        """Measure at the beginning, with the clocks already up."""
        self._first = self._measured(is_hot=False)

    def measure_hot(self) -> None:
        """Measure again, and report memory that is slower now."""
        if self._first is None or self._bench.is_stopped:
            return
        hot = self._measured(is_hot=True)
        if hot is not None:
            self._bench.memory_rates = MemoryRates(first=self._first, hot=hot)
            _report(self._bench, self._bench.memory_rates)

    def _measured(self, *, is_hot: bool) -> MemoryRate | None:
        bench = self._bench
        if not bench.is_card:
            return None
        size = min(_LARGEST_BYTES, free_bytes(bench.device) // _SHARE)
        source = torch.zeros(max(size, 1), dtype=torch.uint8, device=bench.device)
        target = torch.empty_like(source)

        def copies(count: int) -> float:
            def work() -> None:
                for _ in range(count):
                    target.copy_(source)

            return bench.plant.memory_s(bench.timed(work, 0), is_hot=is_hot)

        begun_s, one_s = bench.elapsed_s, copies(1)
        while bench.elapsed_s - begun_s < _WAKE_S:
            one_s = copies(1)
        count = max(1, int(_ROUND_S / one_s)) if one_s > 0 else 1
        rounds = _ROUNDS if count > 1 else _FEWEST_ROUNDS
        seconds = sorted(copies(count) for _ in range(rounds))
        vitals = bench.vitals(at_once=True)
        low_s, high_s = median_interval(seconds)
        moved = _WAYS * source.nbytes * count
        return MemoryRate(
            median_bytes_per_s=moved / max(median(seconds), 1e-9),
            low_bytes_per_s=moved / max(high_s, 1e-9),
            high_bytes_per_s=moved / max(low_s, 1e-9),
            rounds=rounds,
            temperature_c=vitals.temperature_c if vitals else None,
            sm_clock_mhz=vitals.sm_clock_mhz if vitals else None,
            memory_clock_mhz=vitals.memory_clock_mhz if vitals else None,
        )


def _report(bench: StageBench, rates: MemoryRates) -> None:
    """Report memory that is slower when hot; a doubt only if its clock is the same."""
    first, hot = rates.first, rates.hot
    is_sure = hot.high_bytes_per_s < first.low_bytes_per_s
    if not is_sure or rates.change > -SLOW_MEMORY_SHARE:
        return
    severity, why = _judged(first, hot)
    bench.report(
        "slow_memory", severity,
        f"The memory moves {format_rate(hot.median_bytes_per_s, 'B/s')} when hot, "
        f"{format_percent(-rates.change)} less than at first "
        f"({format_rate(first.median_bytes_per_s, 'B/s')}). {why}",
    )  # fmt: skip


def _judged(first: MemoryRate, hot: MemoryRate) -> tuple[Severity, str]:
    before, now = first.memory_clock_mhz, hot.memory_clock_mhz
    if before is None or now is None:
        return "note", "Its clock is not reported, so this is not judged."
    if now < (1 - SAME_CLOCK_SHARE) * before:
        return "note", f"Its clock fell from {before:.0f} to {now:.0f} MHz."
    core_before, core_now = first.sm_clock_mhz, hot.sm_clock_mhz
    if core_before and core_now and core_now < SLOWER_CORE_SHARE * core_before:
        return "note", f"The clock of the chip fell from {core_before:.0f} to {core_now:.0f} MHz."
    return "doubt", (
        "Its clock is the same: newer memory sends damaged data again, which makes it slower "
        "instead of wrong."
    )
