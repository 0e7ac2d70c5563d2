from typing import Any

import pytest
import torch

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages import run_messages
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, SamplesMeasured
from gpu_studio.engine.benchmark.admission import LONGEST_KERNEL_S, kernel_time_s
from gpu_studio.engine.device import resolve, uuid_of
from gpu_studio.engine.workloads.case import make_case
from gpu_studio.engine.workloads.registry import find_workload
from gpu_studio.hardware.engine_sensor import EngineSensor
from tests.engine.answers import only, run_request
from tests.gpu.conftest import Ask

_LOAD_S = 0.5


def run_on(ask: Ask, card: str, **changes: Any) -> list[Event]:
    return ask(run_request(device=card, **{"budget_s": 0.1, **changes}))


def finished(events: list[Event]) -> RunFinished:
    assert isinstance(events[-1], RunFinished), events[-1]
    return events[-1]


def has_bfloat16_products(card: str) -> bool:
    return torch.cuda.get_device_capability(resolve(card)) >= (7, 0)


@pytest.mark.parametrize("workload", ["matmul", "tiny_linear", "conv2d"])
def test_products_in_bfloat16_run_or_are_refused_with_a_sentence(
    card: str, workload: str, ask: Ask
) -> None:
    size = min(find_workload(workload).description.sizes)
    events = run_on(ask, card, workload=workload, size=size, dtype="bfloat16")
    if has_bfloat16_products(card):
        finished(events)
        return
    assert isinstance(events[-1], RunFailed)
    assert events[-1].failure.kind is FailureKind.DTYPE_UNSUPPORTED
    assert "bfloat16" in events[-1].failure.message


@pytest.mark.real_kernels
def test_a_card_that_is_refused_products_in_bfloat16_has_none(card: str) -> None:
    """cuBLAS itself: the border of the refusal is where it is."""
    matrix = torch.ones(64, 64, device=card, dtype=torch.bfloat16)
    if has_bfloat16_products(card):
        assert float((matrix @ matrix)[0, 0]) == 64.0
    else:
        with pytest.raises(RuntimeError, match="CUBLAS_STATUS_NOT_SUPPORTED"):
            matrix @ matrix


def test_a_kernel_of_seconds_is_refused_before_it_is_launched(card: str, ask: Ask) -> None:
    workload = find_workload("matmul")
    case = make_case(workload.description, resolve(card), 4096, "float64")
    kernel_s = kernel_time_s(workload, case, EngineSensor().device(uuid_of(case.device) or ""))
    if kernel_s is None or kernel_s <= LONGEST_KERNEL_S:
        pytest.skip("this card is fast enough in float64, or its peaks are not known")
    events = run_on(ask, card, workload="matmul", size=4096, dtype="float64")
    assert isinstance(events[-1], RunFailed)
    assert events[-1].failure.kind is FailureKind.TOO_LARGE
    assert not only(SamplesMeasured, events)


@pytest.mark.real_kernels
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("cudnn", ["default", "benchmark"])
def test_a_convolution_is_within_its_bound_whatever_way_cudnn_takes(
    card: str, cudnn: str, dtype: str, ask: Ask
) -> None:
    """Winograd rounds more than a plain sum; which way it is, cuDNN chooses by card and size."""
    for size in (1, 2, 8, 64):
        events = run_on(
            ask, card, workload="conv2d", size=size, dtype=dtype, options={"cudnn": cudnn}
        )
        assert finished(events).verified is True, finished(events).verification


def test_a_sustained_run_loads_the_card_first(
    card: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_messages, "SUSTAINED_LOAD_S", _LOAD_S)
    result = finished(run_on(ask, card, size=256, sustained=True, rest_s=0.04))
    assert result.sustained
    assert result.conditions.loaded_s is not None
    assert result.conditions.loaded_s >= _LOAD_S
    assert result.times.warm_up_s >= _LOAD_S


def test_a_careless_script_pays_for_the_start_of_cuda(card: str, ask: Ask) -> None:
    result = finished(run_on(ask, card, size=256, naive=True))
    assert result.details.naive is not None, result.details.findings
    assert result.details.naive.printed_s <= result.details.naive.finished_s
    assert result.details.naive.printed_s > result.median_s
    assert "starting CUDA" in result.details.naive.sentence


@pytest.mark.real_kernels
def test_a_cold_cache_times_no_launches(card: str, ask: Ask) -> None:
    """Tiny kernels take less time than asking for them: a queue of them is as fast as they are."""
    hot = finished(run_on(ask, card, size=64, budget_s=0.5))
    cold = finished(run_on(ask, card, size=64, budget_s=0.5, cache="cold"))
    assert cold.median_s < 1.1 * hot.median_s
