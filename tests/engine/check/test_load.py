from collections.abc import Callable
from typing import Any

import pytest
import torch

from gpu_studio.core.telemetry import ClockReason, Telemetry
from gpu_studio.engine.check.link import Copies
from gpu_studio.engine.check.load import STEPS, Products, burst_beside_copies, load
from tests.engine.check.stage_runs import TickingClock, card_run, follow, run_for, sensor_of

STEADY = Telemetry(temperature_c=63.0, sm_clock_mhz=1468.0, clock_event_reasons=ClockReason(0))


def multiply_with(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[int, torch.Tensor], None]
) -> None:
    """Let products be changed; ``change`` gets the number of the call and the result."""
    real, calls = torch.mm, []

    def multiply(*operands: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        result = real(*operands, out=out)
        change(len(calls), result)
        return result

    monkeypatch.setattr(torch, "mm", multiply)


@pytest.mark.parametrize("number", [60, 61])
def test_one_wrong_product_of_all_is_found_under_full_load(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """One of whole numbers, or one of real numbers; neither is the last of its burst."""

    def one_bit(call: int, result: torch.Tensor) -> None:
        result.view(torch.int32)[3, 7] ^= (call == number) << 12

    multiply_with(monkeypatch, one_bit)
    run = run_for("load", clock=TickingClock(0.003), planned_s=3.0)
    follow(run)
    assert [(one.kind, one.count) for one in run.findings] == [("wrong_result", 1)]
    assert "Under full load" in run.findings[0].sentence


@pytest.mark.parametrize("side", [128, 2048])
def test_the_largest_product_of_whole_numbers_is_exact(
    monkeypatch: pytest.MonkeyPatch, side: int
) -> None:
    limits: list[int] = []
    real = torch.randint

    def watched(low: int, high: int, *rest: Any, **options: Any) -> torch.Tensor:
        limits.append(high - 1)
        return real(low, high, *rest, **options)

    monkeypatch.setattr(torch, "randint", watched)
    monkeypatch.setattr(torch, "mm", lambda *_, out: out.zero_())
    monkeypatch.setattr(torch.Tensor, "double", lambda self: self)
    Products(run_for("load"), side)
    assert side * limits[0] ** 2 < 1 << 24
    assert limits[0] < 1 << 10, "TF32 has 11 bits"


def test_numbers_that_a_copy_beside_the_work_changes_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = run_for("load")
    work, copies = Products(run, 128), Copies(run, 1 << 16)
    burst_beside_copies(work, copies, run)
    assert run.findings == []
    real = copies.fetch

    def changed() -> None:
        real()
        copies._back[1000] ^= 1

    monkeypatch.setattr(copies, "fetch", changed)
    burst_beside_copies(work, copies, run)
    assert [(one.kind, one.count) for one in run.findings] == [("wrong_copy", 1)]
    assert "while it computed" in run.findings[0].sentence


def test_every_step_is_done_and_each_burst_after_a_rest_is_compared() -> None:
    run = run_for("load", "edge")
    doing: list[str] = []
    steps = load(run)
    for one in steps:
        doing.append(one)
    assert len({one for one in doing if "% load" in one}) == len(STEPS)
    assert "20 steps" in run.tested
    assert run.rested is not None
    assert 0 < run.rested[0] < run.rested[1] <= run.elapsed_s
    assert {one.kind for one in run.findings} == {"wrong_result"}
    rested = [one for one in doing if "% load" in one and not one.startswith("100")]
    assert run.errors == len(rested), "one bit of each burst after a rest"


@pytest.mark.parametrize(
    ("first_mhz", "hot_mhz", "chip_mhz", "is_told"),
    [
        (3004.0, 3004.0, 1400.0, True),
        (3004.0, 3004.0, 900.0, False),
        (3004.0, 2500.0, 1400.0, False),
        (None, None, 1400.0, False),
    ],
)
def test_slower_memory_counts_only_at_the_same_clock(
    first_mhz: float | None, hot_mhz: float | None, chip_mhz: float, is_told: bool
) -> None:
    first = Telemetry(memory_clock_mhz=first_mhz, sm_clock_mhz=1468.0)
    hot = Telemetry(memory_clock_mhz=hot_mhz, sm_clock_mhz=chip_mhz)
    read = sensor_of(first, first, hot)
    run = card_run("load", "slow_memory", read=read, planned_s=6.0)
    follow(run)
    assert [(one.kind, one.severity) for one in run.findings] == [
        ("slow_memory", "doubt")
    ] * is_told
    assert "B/s when hot" in run.tested


def test_the_full_load_ends_when_the_card_is_steady() -> None:
    warming = [
        Telemetry(temperature_c=40.0 + 2 * number, sm_clock_mhz=1468.0) for number in range(6)
    ]
    run = run_for("load", planned_s=119.0, read=sensor_of(*warming, STEADY))
    _, is_whole = follow(run)
    assert is_whole
    # Some seconds of warming up, then a minute of the same temperature.
    assert 66 + 0.28 * 119 <= run.elapsed_s <= 82 + 0.28 * 119
    assert ", steady at 63" in run.tested
    assert not run.findings


def test_on_a_busy_pc_a_step_of_the_load_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs take the CPU after the first steps: each call takes a tenth of a second."""
    clock = TickingClock(0.0)

    def take_time(call: int, _result: torch.Tensor) -> None:
        clock.now_s += 0.1 if call > 3 else 0.001

    multiply_with(monkeypatch, take_time)
    run = run_for("load", planned_s=12.0, clock=clock)
    steps, is_whole = follow(run)
    assert is_whole
    assert steps >= 8
    assert run.elapsed_s < 18.0
    assert run.findings == []


COPYING = Telemetry(pcie_generation=3, pcie_width=4, pcie_replays=7)


@pytest.mark.parametrize(("replays", "severity"), [(8, "note"), (12, "doubt")])
def test_packets_that_were_sent_again_are_reported(replays: int, severity: str) -> None:
    more = Telemetry(pcie_generation=3, pcie_width=4, pcie_replays=replays)
    run = run_for("link", planned_s=4.0, read=sensor_of(COPYING, COPYING, more))
    follow(run)
    assert [(one.kind, one.severity) for one in run.findings] == [("link_errors", severity)]


def test_a_slow_link_is_reported() -> None:
    run = card_run("link", planned_s=9.0, read=lambda: COPYING)
    follow(run)
    assert [(one.kind, one.severity) for one in run.findings] == [("slow_link", "doubt")]
