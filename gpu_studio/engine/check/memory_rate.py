"""The bandwidth of a card's memory, first and when it is hot.

GDDR6 and newer memory sends again what arrived damaged: a hot or weak chip is then slower, not
wrong. A CPU is not measured: other programs use the same RAM.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.check.thresholds import (
    SAME_CLOCK_SHARE,
    SLOW_MEMORY_SHARE,
    SLOWER_CORE_SHARE,
)
from gpu_studio.core.messages.check_messages import MemoryRate, MemoryRates
from gpu_studio.core.statistics import median_interval
from gpu_studio.core.units import format_percent, format_rate
from gpu_studio.engine.device import free_bytes

if TYPE_CHECKING:
    from gpu_studio.core.messages.check_messages import Severity
    from gpu_studio.engine.check.stage import StageBench

_LARGEST_BYTES = 256 << 20  # more than the caches of any card
_SHARE = 8
_ROUNDS, _FEWEST_ROUNDS = 12, 6
_ROUND_S, _WAKE_S = 0.03, 0.3
_WAYS = 2  # a copy reads and writes


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
