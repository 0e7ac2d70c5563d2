from typing import Any

import numpy as np
import pytest
import torch

from gpu_studio.core.benchmark.standard import STANDARD_1, StandardItem
from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.tensors import DTYPES, ITEM_BYTES
from gpu_studio.engine.workloads import launch, parts
from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.elementwise import Elementwise
from gpu_studio.engine.workloads.launch import Launch
from gpu_studio.engine.workloads.linear import Linear, LinearLayer, TinyLinear
from gpu_studio.engine.workloads.matmul import Matmul
from gpu_studio.engine.workloads.parts import PARTS, card_parts_s
from gpu_studio.engine.workloads.proof import (
    EXACT_UP_TO,
    tiled,
    tiled_rows,
    whole_number_factors,
)
from gpu_studio.engine.workloads.registry import WORKLOADS, find_workload
from tests.engine.answers import ask, run_request

CPU, CARD = torch.device("cpu"), torch.device("cuda", 0)
_CARD_BYTES = 2 << 30
_DESKTOP_BYTES = 1 << 30


def case_of(size: int, dtype: str = "float32", **options: str) -> Case:
    return Case(device=CPU, size=size, dtype=getattr(torch, dtype), options=options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 7, 600])
@pytest.mark.parametrize("workload", [Elementwise(), Matmul()], ids=["elementwise", "matmul"])
def test_a_device_that_computes_right_is_verified(workload: Any, dtype: str, size: int):
    verification = workload.verify(case_of(size, dtype))
    assert verification.verified, verification.sentence
    where = "16 rows of 600 × 600" if size == 600 else f"all of {size} × {size}"
    assert verification.compared == (where,)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("side", "copies"), [(1, 1), (300, 1), (512, 2), (512, 32), (512, 128)])
def test_no_partial_sum_of_whole_numbers_leaves_the_exact_range(dtype: str, side: int, copies: int):
    exact_up_to = EXACT_UP_TO[getattr(torch, dtype)]
    a, b = whole_number_factors(side, side, side, exact_up_to, computed_in=dtype, copies=copies)
    # The largest that any selection of terms of a sum can reach, in any order.
    assert int((a.abs() @ b.abs()).max()) * copies <= exact_up_to
    assert int(a.abs().sum()) > 0
    assert int(b.abs().sum()) > 0
    if side > 1:
        assert bool((a != 0).any(dim=0).all()) or copies > 2  # every column is used


def test_tiles_repeat_and_rows_of_them_are_those_of_the_whole():
    block = torch.arange(9.0).view(3, 3)
    whole = tiled(block, 7, CPU)
    assert whole.shape == (7, 7)
    assert torch.equal(whole[3:6, 3:6], block)
    assert torch.equal(whole[6, :], whole[0, :])
    rows = np.array([0, 4, 6])
    assert np.array_equal(tiled_rows(block.numpy(), 7, rows), whole.numpy()[rows])


def test_workloads_are_found_by_name():
    for workload in WORKLOADS:
        assert find_workload(workload.description.name) is workload
        assert set(workload.description.dtypes) <= set(ITEM_BYTES)
    with pytest.raises(StudioError, match="elementwise, matmul"):
        find_workload("x" * 1000)


def test_the_layers_are_those_of_their_sources():
    assert Linear().features(make_case(Linear.description, CPU, 1)) == (1000, 500)
    assert TinyLinear().features(make_case(TinyLinear.description, CPU, 1)) == (10, 10)
    assert TinyLinear().features(
        make_case(TinyLinear.description, CPU, 1, options={"outputs": "1"})
    ) == (10, 1)
    assert 1000 in Linear.description.sizes


def test_a_call_is_the_layer_and_records_nothing_for_gradients():
    call = Linear().prepare(make_case(Linear.description, CPU, 3))
    result = call.function()
    assert result.shape == (3, 500)
    assert not result.requires_grad


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1), ("float16", 512), ("float64", 700)])
@pytest.mark.parametrize("workload", [TinyLinear(), Linear()], ids=["tiny_linear", "linear"])
def test_a_layer_that_computes_right_is_verified(workload: LinearLayer, dtype: str, size: int):
    verification = workload.verify(make_case(workload.description, CPU, size, dtype))
    assert verification.verified, verification.sentence
    wanted = {1: "all of 1 row", 700: "16 of 700 rows"}.get(size, f"all of {size} rows")
    assert verification.compared == (wanted,)


def test_asking_runs_and_is_verified():
    result = ask(run_request(workload="launch", size=1))[-1]
    assert isinstance(result, RunFinished)
    assert result.verified is True
    assert result.verification.endswith("all of 1 number")
    assert result.calls_per_sample > 1
    assert result.details.findings == ()  # no launch is asked of the CPU


def test_on_a_card_asking_and_waiting_are_told_apart(monkeypatch: pytest.MonkeyPatch):
    now_s = [0.0]

    def asked() -> None:
        now_s[0] += 4e-6

    def waited(device: torch.device) -> None:
        now_s[0] += 8e-6

    monkeypatch.setattr(launch.time, "perf_counter", lambda: now_s[0])
    monkeypatch.setattr(torch.cuda, "synchronize", waited)
    (finding,) = Launch().findings(Case(device=CARD, size=1), asked)
    text = finding.replace("\u202f", " ")
    assert text.index("4.00 µs of the CPU's time") < text.index("12.0 µs")


_CARD_BYTES = 2 << 30


_DESKTOP_BYTES = 1 << 30


@pytest.mark.parametrize("item", STANDARD_1, ids=lambda item: item.key)
def test_an_item_is_as_much_work_as_its_standard_says_and_fits_a_card_of_2_gib(
    item: StandardItem,
):
    workload = find_workload(item.workload)
    case = make_case(workload.description, CPU, item.size, item.dtype, options=item.options)
    assert dict(case.options) == item.options
    assert workload.description.throughput_unit == item.unit
    assert workload.work(case).throughput_work == item.work
    assert workload.work(case).memory_bytes <= _CARD_BYTES - _DESKTOP_BYTES


def test_operands_that_the_cpus_memory_has_no_room_for_are_left_where_they_are(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(parts, "free_bytes", lambda device: 4 * 1000 - 1)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: pytest.fail("measured"))
    assert card_parts_s(CARD, [torch.zeros(250)], torch.neg) == {}


@pytest.mark.parametrize("compute_s", [3.0, 5.0])
def test_the_parts_add_up_to_the_whole_call(monkeypatch: pytest.MonkeyPatch, compute_s: float):
    rounds = iter([(1.0, 4.0, compute_s, 2.0), (1.5, 4.5, compute_s, 2.5), (9.0, 9.0, 9.0, 9.0)])
    monkeypatch.setattr(parts, "_one_round", lambda *arguments: next(rounds))
    monkeypatch.setattr(parts, "_MOST_CALLS", 3)
    monkeypatch.setattr(parts, "_BUDGET_S", 60.0)
    result = card_parts_s(CARD, [torch.zeros(1)], torch.neg)
    assert tuple(result) == PARTS
    assert sum(result.values()) == pytest.approx(1.5 + 4.5 + 2.5)
    # The card's own time is never more than the call that waits for it.
    assert result["compute"] == min(compute_s, 4.5)
    assert result["launch"] >= 0


class Clock:
    """Moves only when something takes its time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        monkeypatch.setattr(parts.time, "perf_counter", lambda: self.now_s)

    def passing(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.mark.parametrize(("call_s", "calls"), [(4.0, 1), (0.02, 2)])
def test_a_call_that_takes_long_is_made_once(
    monkeypatch: pytest.MonkeyPatch, call_s: float, calls: int
):
    clock = Clock(monkeypatch)
    collected = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: clock.passing(call_s))
    monkeypatch.setattr(parts, "_queued_s", lambda *arguments: collected.append("queued") or 0.25)
    monkeypatch.setattr(parts, "_BUDGET_S", call_s)

    def compute(operand: torch.Tensor) -> torch.Tensor:
        collected.append("called")
        clock.passing(0.001)
        return operand

    result = card_parts_s(CARD, [torch.zeros(1)], compute)
    assert len(collected) == calls
    if calls == 1:
        assert result["launch"] == pytest.approx(0.001)
        assert result["compute"] == pytest.approx(4.0)
