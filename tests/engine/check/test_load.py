"""Load and heat: every product is compared, and the load ends when the card is steady."""

from __future__ import annotations

import pytest
import torch

from gpu_studio.core.clock_reasons import ClockReason
from gpu_studio.core.messages.check_messages import CheckedDevice
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.engine.check import bursts
from gpu_studio.engine.check.bursts import CopiesBeside, Products
from gpu_studio.engine.check.load import STEPS, Load, MemoryBandwidth
from tests.engine.check.benches import TickingClock, bench_for, card_bench, run, sensor_of

BUSY = Telemetry(sm_clock_mhz=1468.0, memory_clock_mhz=3004.0, power_w=19.0)
STEADY = Telemetry(temperature_c=63.0, sm_clock_mhz=1468.0, clock_event_reasons=ClockReason(0))


def wrong_in_one_call(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let one product of all have one wrong bit in one element."""
    real, calls = torch.mm, []

    def multiply(left: torch.Tensor, right: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        result = real(left, right, out=out)
        if len(calls) == number:
            result.view(torch.int32)[3, 7] ^= 1 << 12
        return result

    monkeypatch.setattr(torch, "mm", multiply)


@pytest.mark.parametrize("number", [60, 61])
def test_one_wrong_product_of_all_is_found_under_full_load(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """One of whole numbers, or one of real numbers; neither is the last of its burst."""
    wrong_in_one_call(monkeypatch, number)
    bench = bench_for("load", clock=TickingClock(0.003), budget_s=3.0)
    run(Load(), bench)
    assert [(one.kind, one.count) for one in bench.findings] == [("wrong_result", 1)]
    assert "Under full load" in bench.findings[0].sentence


def test_the_bursts_of_full_load_are_longer_than_the_place_of_that_product() -> None:
    bench = bench_for("load", clock=TickingClock(0.0001))
    work = Products(bench, 128)
    work.burst(200)
    assert work.done == 200
    assert work.wrong_sums() == 0


def test_a_first_result_of_whole_numbers_that_is_wrong_each_time_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = torch.mm

    def multiply(left: torch.Tensor, right: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        result = real(left, right, out=out)
        result[5, 5] += 1
        return result

    monkeypatch.setattr(torch, "mm", multiply)
    assert Products(bench_for("load"), 128).burst(3) == 1


@pytest.mark.parametrize("side", [128, 256, 1024, 2048])
def test_the_largest_product_of_whole_numbers_is_exact(
    monkeypatch: pytest.MonkeyPatch, side: int
) -> None:
    limits: list[int] = []
    real = torch.randint

    def watched(low: int, high: int, *rest: object, **options: object) -> torch.Tensor:
        limits.append(high - 1)
        return real(low, high, *rest, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(torch, "randint", watched)
    monkeypatch.setattr(torch, "mm", lambda *_, out: out.zero_())
    monkeypatch.setattr(torch.Tensor, "double", lambda self: self)
    Products(bench_for("load"), side)
    assert side * limits[0] ** 2 < 1 << 24
    assert limits[0] < 1 << 10, "TF32 has 11 bits"


def test_numbers_that_a_copy_beside_the_work_changes_are_found() -> None:
    bench = bench_for("load")
    copies = CopiesBeside(bench)
    copies.beside(lambda: None)
    assert bench.findings == []
    real = copies._copy

    def changed() -> None:
        real()
        copies._back[1000] ^= 1

    copies._copy = changed  # type: ignore[method-assign]
    copies.beside(lambda: None)
    assert [(one.kind, one.count) for one in bench.findings] == [("wrong_copy", 1)]
    assert copies.count == 2 * bursts._COPIES


def test_every_step_has_its_row_with_clock_and_power() -> None:
    bench = bench_for("load", read=lambda: BUSY)
    seen, is_whole = run(Load(), bench)
    assert is_whole
    assert {(one.duty_percent, one.period_s) for one in bench.load_steps} == set(STEPS)
    for row in bench.load_steps:
        assert row.bursts > 0
        assert (row.errors, row.sm_clock_mhz, row.power_w) == (0, 1468.0, 19.0)
    assert "20 steps" in seen[-1].tested


def test_a_wrong_product_of_part_load_stands_in_its_row() -> None:
    bench = bench_for("load", "edge")
    run(Load(), bench)
    assert {one.kind for one in bench.findings} == {"wrong_result"}
    assert all(
        one.errors == (one.bursts if one.duty_percent < 100 else 0) for one in bench.load_steps
    )


@pytest.mark.parametrize(
    ("first_mhz", "hot_mhz", "severity"),
    [(3004.0, 3004.0, "doubt"), (3004.0, 2500.0, "note"), (None, None, "note")],
)
def test_slower_memory_counts_only_at_the_same_clock(
    first_mhz: float | None, hot_mhz: float | None, severity: str
) -> None:
    clocks = [first_mhz, hot_mhz]
    bench = card_bench(
        "load", "slow_memory", read=lambda: Telemetry(memory_clock_mhz=clocks.pop(0))
    )
    bandwidth = MemoryBandwidth(bench)
    bandwidth.measure_first()
    bandwidth.measure_hot()
    assert [(one.kind, one.severity) for one in bench.findings] == [("slow_memory", severity)]
    assert bench.memory_rates is not None
    assert bench.memory_rates.change == pytest.approx(-0.2)


def test_the_full_load_ends_when_the_card_is_steady() -> None:
    warming = [
        Telemetry(temperature_c=40.0 + 2 * number, sm_clock_mhz=1468.0) for number in range(6)
    ]
    bench = bench_for("load", budget_s=119.0, read=sensor_of(*warming, STEADY))
    steps, is_whole = run(Load(), bench)
    assert is_whole
    # Some seconds of warming up, then a minute of the same temperature.
    assert 66 + 0.28 * 119 <= bench.elapsed_s <= 82 + 0.28 * 119
    assert bench.is_steady
    assert "steady at 63" in steps[-1].tested
    assert not bench.findings


def test_a_clock_that_changes_is_not_steady() -> None:
    clocks = [
        Telemetry(temperature_c=60.0, sm_clock_mhz=1400.0 + 100 * (n % 2)) for n in range(199)
    ]
    bench = bench_for("load", budget_s=119.0, read=sensor_of(*clocks))
    run(Load(), bench)
    assert bench.is_steady is False
    assert bench.elapsed_s >= 119.0


def test_a_clock_under_the_base_clock_without_a_reason_is_reported() -> None:
    card = CheckedDevice(address="cuda:0", name="GT 1030", base_clock_mhz=1227.0)
    slow = Telemetry(temperature_c=50.0, sm_clock_mhz=900.0, clock_event_reasons=ClockReason(0))
    bench = bench_for("load", budget_s=12.0, read=lambda: slow, facts=card)
    run(Load(), bench)
    (finding,) = bench.findings
    assert (finding.kind, finding.severity) == ("low_clock", "doubt")
    assert "900" in finding.sentence
    assert "1227" in finding.sentence
    assert "s after the start of the load" in finding.sentence


def test_on_a_busy_pc_a_step_of_the_load_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs take the CPU after the first steps: each call takes a tenth of a second."""
    clock = TickingClock(0.0)
    real = torch.mm

    def slow_mm(*operands: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        clock.now_s += 0.1 if len(calls) > 2 else 0.001
        calls.append(1)
        return real(*operands, out=out)

    calls: list[int] = []
    monkeypatch.setattr(torch, "mm", slow_mm)
    bench = bench_for("load", budget_s=12.0, clock=clock)
    steps, is_whole = run(Load(), bench)
    assert is_whole
    assert len(steps) >= 8
    assert bench.elapsed_s < 18.0
    assert bench.findings == []
