"""Load in steps: every burst is compared, and each step has its row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.messages.check_messages import Vitals
from gpu_studio.engine.check import steps
from gpu_studio.engine.check.load import MemoryBandwidth
from gpu_studio.engine.check.steps import STEPS, LoadInSteps
from tests.engine.check.benches import bench_for, card_bench, run

if TYPE_CHECKING:
    import torch

BUSY = Vitals(sm_clock_mhz=1468.0, memory_clock_mhz=3004.0, power_w=19.0)


def test_every_step_has_its_row_with_clock_and_power() -> None:
    bench = bench_for("steps", read=lambda: BUSY)
    seen, is_whole = run(LoadInSteps(), bench)
    assert is_whole
    assert {(one.duty_percent, one.period_s) for one in bench.load_steps} == set(STEPS)
    for row in bench.load_steps:
        assert row.bursts > 0
        assert (row.errors, row.sm_clock_mhz, row.power_w) == (0, 1468.0, 19.0)
    assert "20 steps" in seen[-1].tested


def test_one_wrong_product_in_one_burst_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = steps._sums, []

    def wrong_once(product: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        if len(calls) == 60:
            product[3, 7] += 1
        return real(product)

    monkeypatch.setattr(steps, "_sums", wrong_once)
    bench = bench_for("steps")
    run(LoadInSteps(), bench)
    assert [(one.kind, one.count) for one in bench.findings] == [("wrong_result", 1)]
    assert sum(row.errors for row in bench.load_steps) == 1


@pytest.mark.parametrize(
    ("first_mhz", "hot_mhz", "severity"),
    [(3004.0, 3004.0, "doubt"), (3004.0, 2500.0, "note"), (None, None, "note")],
)
def test_slower_memory_counts_only_at_the_same_clock(
    first_mhz: float | None, hot_mhz: float | None, severity: str
) -> None:
    clocks = [first_mhz, hot_mhz]
    bench = card_bench("load", "slow_memory", read=lambda: Vitals(memory_clock_mhz=clocks.pop(0)))
    bandwidth = MemoryBandwidth(bench)
    bandwidth.measure_first()
    bandwidth.measure_hot()
    assert [(one.kind, one.severity) for one in bench.findings] == [("slow_memory", severity)]
    assert bench.memory_rates is not None
    assert bench.memory_rates.change == pytest.approx(-0.2)
