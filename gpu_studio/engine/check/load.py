"""Warm up: full load until temperature and clock are steady, with every result compared.

Heat comes first: a card that fails only when it is hot is then hot in all stages after it. The
bandwidth of the memory is measured before and after: GDDR6 and newer memory sends again what
arrived damaged, so a hot or weak chip is slower, not wrong. A CPU's is not measured: other programs
use the same RAM.
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
from gpu_studio.core.messages.check_messages import MemoryRate, MemoryRates
from gpu_studio.core.statistics import median_interval
from gpu_studio.core.units import format_count, format_duration, format_percent, format_rate
from gpu_studio.engine.check.detectors import SlowSteps, mismatched_bits, steady
from gpu_studio.engine.check.stage import StageBench, Step
from gpu_studio.engine.device import free_bytes

if TYPE_CHECKING:
    from collections.abc import Generator

    from torch import Tensor

    from gpu_studio.core.messages.check_messages import Severity, StageName

_SIDE, _CPU_SIDE = 2048, 256
_STEP_S = 0.3  # the card rests while its result is compared
_LONGEST_STEP_S = 1.0  # other programs may take the CPU in the middle of a step
_MOST_CALLS = 4096
_INPUTS = 2  # in turn, so that a stale result is seen
_FEWEST_STEPS = 8  # so many that a step that is always slow stands out
_LARGEST_BYTES = 256 << 20  # more than the caches of any card
_SHARE = 8
_ROUNDS, _FEWEST_ROUNDS = 12, 6
_ROUND_S, _WAKE_S = 0.03, 0.3
_WAYS = 2  # a copy reads and writes


class WarmUp:
    """Products and element-wise work at full load."""

    name: StageName = "load"

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Work until the card is steady or the time is over; see `stage.Stage`."""
        bench.vitals(at_once=True)
        bandwidth = MemoryBandwidth(bench)
        bandwidth.measure_first()
        side = _SIDE if bench.is_card else _CPU_SIDE
        sources = [torch.randn(side, side, generator=bench.generator) for _ in range(_INPUTS)]
        inputs = [source.to(bench.device) for source in sources]
        results = [torch.empty_like(inputs[0]) for _ in inputs]
        firsts: list[Tensor] = []
        calls, step, done = _calls_in_a_step(bench, inputs[0], results[0]), 0, 0
        slow, before = SlowSteps(), None
        while not bench.is_over(has_tested_all=step >= _FEWEST_STEPS):
            which = step % _INPUTS
            work = _Work(bench, inputs[which], results[which], calls)
            _time(bench, slow, work, step)
            done += work.done
            seen = results[which].to("cpu", copy=True)
            if step < _INPUTS:
                firsts.append(seen)
            else:
                bench.plant.corrupt(seen, before)
                _compare(bench, seen, firsts[which])
            before, step = seen, step + 1
            bench.vitals()
            yield Step(doing="Matrix products", tested=_tested(done, bench))
            if step >= _FEWEST_STEPS and _is_done(bench):
                break
        bandwidth.measure_hot()
        if _has_temperature(bench):
            bench.is_steady = _is_steady(bench)
        if not bench.is_stopped:
            yield Step(doing="", tested=_tested(done, bench, is_over=True))
        return step >= _FEWEST_STEPS and not bench.is_stopped


class _Work:
    """Some calls of the same work, on a tensor of its own: each call has the same result.

    Args:
        bench: has the clock.
        source: the input.
        result: gets the result.
        calls: how many at most.

    Attributes:
        done: the calls of the last step; fewer if they took too long.
    """

    def __init__(self, bench: StageBench, source: Tensor, result: Tensor, calls: int) -> None:
        self._bench, self._source, self._result = bench, source, result
        self._calls = calls
        self.done = 0

    def __call__(self) -> None:
        end_s, self.done = self._bench.elapsed_s + _LONGEST_STEP_S, 0
        while self.done < self._calls and self._bench.elapsed_s < end_s:
            torch.mm(self._source, self._source, out=self._result)
            self._result.mul_(1.5).add_(self._source).tanh_()
            self.done += 1


def _time(bench: StageBench, slow: SlowSteps, work: _Work, step: int) -> None:
    """Time a step by its calls, because a busy PC gets fewer of them done."""

    def seconds_of(number: int) -> float:
        return bench.timed(work, number) / max(1, work.done)

    def again() -> float:
        return seconds_of(step)

    slowness = slow.slowness(again(), again, lambda: seconds_of(0))
    if slowness is not None:
        _report_slow(bench, slowness)


def _calls_in_a_step(bench: StageBench, source: Tensor, result: Tensor) -> int:
    once = _Work(bench, source, result, 1)
    bench.timed(once, 0)  # loads the kernels
    one_s = bench.timed(once, 0)
    return max(1, min(int(_STEP_S / one_s) if one_s > 0 else 1, _MOST_CALLS))


def _compare(bench: StageBench, seen: Tensor, first: Tensor) -> None:
    found = mismatched_bits(seen, first)
    if found is not None:
        bench.report(
            "unstable_result", "error",
            f"A product under load differs from the first time in {format_count(found.count)} of "
            f"{format_count(found.total)} elements.",
            count=found.count,
        )  # fmt: skip


def _report_slow(bench: StageBench, slowness: float) -> None:
    bench.report(
        "slow_sample", "doubt",
        f"One step under load takes {slowness:.0f} times as long as the others, each time.",
    )  # fmt: skip


def _tested(products: int, bench: StageBench, *, is_over: bool = False) -> str:
    text = f"{format_count(products)} products in {format_duration(bench.elapsed_s)}"
    degrees = celsius_text(bench.readings[-1].degrees) if bench.readings else None
    if not degrees:
        return f"{text}, no temperature reported" if is_over else text
    if not is_over:
        return f"{text}, now {degrees}"
    if bench.is_steady:
        return f"{text}, steady at {degrees}"
    return f"{text}, {degrees} at the end, not steady{_change_words(bench)}"


def _change_words(bench: StageBench) -> str:
    log = bench.readings
    change_c = change_in_last_minute_c(log)
    if not change_c:
        return ""
    seconds = min(log[-1].at_s - log[0].at_s, 60.0)
    return f" ({change_c:+.0f}\u202f°C in the last {format_duration(seconds)})"


def _is_done(bench: StageBench) -> bool:
    if _has_temperature(bench):
        return _is_steady(bench)
    return bench.elapsed_s >= UNSENSED_LOAD_S


def _is_steady(bench: StageBench) -> bool:
    """Return whether temperature and clock have settled; False if the card reports neither."""
    log = bench.readings
    if not is_steady(log):
        return False
    since_s = log[-1].at_s - STEADY_CLOCK_S
    clocks = [
        one.vitals.sm_clock_mhz
        for one in log
        if one.at_s >= since_s and one.vitals.sm_clock_mhz is not None
    ]
    return not clocks or steady(clocks, STEADY_CLOCK_SHARE * max(clocks))


def _has_temperature(bench: StageBench) -> bool:
    return any(one.degrees is not None for one in bench.readings)


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
