"""The method on a real card: the same numbers as others get, by other ways, in turns.

Each comparison takes both sides in turns and looks at the median of the ratios, so that a clock
that changes slowly moves both.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest
import torch

from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.engine.device import resolve
from gpu_studio.engine.workloads.case import make_case
from gpu_studio.engine.workloads.registry import find_workload
from tests.engine.answers import run_request
from tests.gpu.conftest import Ask

pytestmark = pytest.mark.real_kernels

_ROUNDS = 5
_SAME = 0.02
_NEARLY_AS_FAST = 0.95


def median_s(ask: Ask, card: str, **changes: Any) -> float:
    result = run_on(ask, card, **changes)
    return result.median_s


def run_on(ask: Ask, card: str, **changes: Any) -> RunFinished:
    last = ask(run_request(device=card, **{"budget_s": 0.5, **changes}))[-1]
    assert isinstance(last, RunFinished), last
    return last


def loop_s(function: Callable[[], object], seconds: float = 0.5) -> float:
    """Return the median seconds of a call by two events around loops of calls: no code of ours."""
    for _ in range(20):
        function()
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(20):
        function()
    end.record()
    end.synchronize()
    calls = max(1, round(0.02 / (start.elapsed_time(end) / 20 * 1e-3)))
    times_s: list[float] = []
    until_s = time.perf_counter() + seconds
    while time.perf_counter() < until_s or len(times_s) < 5:
        start.record()
        for _ in range(calls):
            function()
        end.record()
        end.synchronize()
        times_s.append(start.elapsed_time(end) * 1e-3 / calls)
    return median(times_s)


def ratio(ours: Callable[[], float], theirs: Callable[[], float]) -> float:
    """Return the median of ours over theirs, taken in turns."""
    pairs = []
    for number in range(_ROUNDS):
        if number % 2:
            first = ours()
            pairs.append(first / theirs())
        else:
            second = theirs()
            pairs.append(ours() / second)
    return median(pairs)


def operands_of(workload: str, card: str, size: int, dtype: str = "float32") -> Any:
    one = find_workload(workload)
    return one.operands(make_case(one.description, resolve(card), size, dtype))


@pytest.mark.parametrize("size", [64, 1024, 4096])
def test_a_product_takes_what_an_independent_script_says(card: str, size: int, ask: Ask) -> None:
    with torch.cuda.device(resolve(card)):
        a, b = operands_of("matmul", card, size)
        measured = ratio(
            lambda: median_s(ask, card, workload="matmul", size=size),
            lambda: loop_s(lambda: torch.matmul(a, b)),
        )
    assert measured == pytest.approx(1, abs=_SAME)


@pytest.mark.parametrize("size", [64, 2048])
def test_the_ten_statements_take_what_an_independent_script_says(
    card: str, size: int, ask: Ask
) -> None:
    from gpu_studio.engine.workloads.elementwise import crunch_the_numbers

    with torch.cuda.device(resolve(card)):
        a, b, c = operands_of("elementwise", card, size, "float16")
        measured = ratio(
            lambda: median_s(ask, card, workload="elementwise", size=size, dtype="float16"),
            lambda: loop_s(lambda: crunch_the_numbers(a, b, c)),
        )
    assert measured == pytest.approx(1, abs=_SAME)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_product_is_as_fast_as_a_bare_loop_of_cublas(card: str, dtype: str, ask: Ask) -> None:
    """The bare loop writes each product to the same place: cuBLAS and nothing else."""
    if dtype == "bfloat16" and torch.cuda.get_device_capability(resolve(card)) < (8, 0):
        pytest.skip("this card has no arithmetic for bfloat16")
    with torch.cuda.device(resolve(card)):
        a, b = operands_of("matmul", card, 4096, dtype)
        result = torch.empty_like(a)
        slower = ratio(
            lambda: median_s(ask, card, workload="matmul", size=4096, dtype=dtype),
            lambda: loop_s(lambda: torch.mm(a, b, out=result)),
        )
    assert 1 / slower >= _NEARLY_AS_FAST


def test_a_copy_is_as_fast_as_a_bare_loop(card: str, ask: Ask) -> None:
    with torch.cuda.device(resolve(card)):
        source = torch.zeros(256 << 18, device=card)
        target = torch.empty_like(source)
        slower = ratio(
            lambda: median_s(ask, card, workload="copy", size=256),
            lambda: loop_s(lambda: target.copy_(source)),
        )
    assert 1 / slower >= _NEARLY_AS_FAST


def test_a_cold_cache_is_that_of_tritons_do_bench(card: str, ask: Ask) -> None:
    do_bench = pytest.importorskip("triton.testing").do_bench
    with torch.cuda.device(resolve(card)):
        a, b = operands_of("matmul", card, 1024, "float16")
        measured = ratio(
            lambda: median_s(
                ask, card, workload="matmul", size=1024, dtype="float16", cache="cold"
            ),
            lambda: 1e-3 * do_bench(lambda: torch.matmul(a, b), rep=500, return_mode="median"),
        )
    assert measured == pytest.approx(1, abs=_SAME)


def test_a_cold_cache_is_slower_than_a_hot_one(card: str, ask: Ask) -> None:
    """Operands of a quarter of the cache stay in it from call to call, unless it is overwritten."""
    cache_bytes = torch.cuda.get_device_properties(resolve(card)).L2_cache_size
    size = int((cache_bytes / 4 / 3 / 4) ** 0.5) // 64 * 64
    if size < 512:
        pytest.skip(f"the cache of {cache_bytes} bytes is too small to time")
    changes = {"workload": "elementwise", "size": size, "options": {"form": "fused"}}
    slower = ratio(
        lambda: median_s(ask, card, cache="cold", **changes),
        lambda: median_s(ask, card, **changes),
    )
    assert slower > 1.05


@pytest.mark.parametrize(("form", "kernels"), [("statements", 14), ("fused", 6)])
def test_the_kernels_are_as_many_as_the_finding_says(
    card: str, form: str, kernels: int, ask: Ask
) -> None:
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    result = run_on(ask, card, workload="elementwise", size=512, options={"form": form})
    assert f"runs {kernels} kernels" in result.details.findings[0]
    one = find_workload("elementwise")
    case = make_case(one.description, resolve(card), 512, options={"form": form})
    call = one.prepare(case)
    call()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        call()
        torch.cuda.synchronize(resolve(card))
    ran = [event for event in profiled.events() if event.device_type == DeviceType.CUDA]
    if not ran:
        pytest.skip("the driver does not let this user profile")
    assert len(ran) == kernels


def test_the_parts_of_a_call_are_its_time(card: str, ask: Ask) -> None:
    """A large product is computing alone; nearly all of the copying is the slot's speed."""
    result = run_on(ask, card, workload="matmul", size=4096)
    parts_s = result.details.parts_s
    assert parts_s["compute"] == pytest.approx(result.median_s, rel=0.1)
    assert parts_s["launch"] < 0.1 * parts_s["compute"] + 1e-4
    with_copies = run_on(ask, card, workload="matmul", size=4096, transfers=True)
    assert sum(parts_s.values()) == pytest.approx(with_copies.median_s, rel=0.25)


def test_the_launch_of_tiny_kernels_is_not_taken_for_computing(card: str, ask: Ask) -> None:
    """The ten statements at 64 × 64 take a card less time than Python takes to ask for them."""
    parts_s = run_on(ask, card, workload="elementwise", size=64).parts_s
    assert parts_s["launch"] > parts_s["compute"] / 2


def test_pinned_memory_is_copied_no_slower(card: str, ask: Ask) -> None:
    for direction in ("h2d", "d2h"):
        slower = ratio(
            lambda way=direction: median_s(
                ask, card, workload="copy", size=64, options={"direction": way, "memory": "pinned"}
            ),
            lambda way=direction: median_s(
                ask, card, workload="copy", size=64, options={"direction": way}
            ),
        )
        assert slower < 1.05


def test_nothing_is_faster_than_its_ceiling(card: str, ask: Ask) -> None:
    for workload, size in (("matmul", 4096), ("copy", 256)):
        result = run_on(ask, card, workload=workload, size=size)
        if result.reached is None:
            pytest.skip("this card's ceilings are not known")
        assert 0.2 < result.reached.share <= 1.02, result.reached.ceiling


def test_the_naive_stopwatch_stops_before_the_card_has(card: str, ask: Ask) -> None:
    result = run_on(ask, card, workload="matmul", size=8192, naive=True)
    assert result.details.naive is not None
    assert result.details.naive.finished_s - result.details.naive.printed_s > 0.5 * result.median_s
