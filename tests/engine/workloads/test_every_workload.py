import contextlib
import math
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from gpu_studio.core.benchmark import workloads
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, WorkloadDescription
from gpu_studio.core.switcher import pitfalls, placement_words
from gpu_studio.core.tensors import LARGEST_SIZE
from gpu_studio.engine.benchmark import cold_cache, run
from gpu_studio.engine.benchmark.naive_script import NaiveAnswer, time_in_this_process
from gpu_studio.engine.pitfalls.registry import PITFALLS
from gpu_studio.engine.quick.work import QUICK_WORKS
from gpu_studio.engine.switcher.placement import MODELS
from gpu_studio.engine.workloads.case import make_case
from gpu_studio.engine.workloads.drawing import Picture
from gpu_studio.engine.workloads.registry import PICTURES, WORKLOADS
from gpu_studio.engine.workloads.workload import TensorWorkload, Workload
from tests.engine.answers import ask, run_request

CPU = torch.device("cpu")
MODES = {"cold": {"cache": "cold"}, "transfers": {"transfers": True}, "naive": {"naive": True}}
# Processes, cards alone, or seconds a call: their own tests try each mode and the snippet.
ON_THEIR_OWN = {"train_step", "dataloader", "conv2d", "custom_kernel", "data_parallel"}
QUICK = [workload for workload in WORKLOADS if workload.description.name not in ON_THEIR_OWN]
OF_TENSORS = [workload for workload in QUICK if isinstance(workload, TensorWorkload)]
every = pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.description.name)
every_of_tensors = pytest.mark.parametrize(
    "workload", OF_TENSORS, ids=lambda one: one.description.name
)
every_quick = pytest.mark.parametrize("workload", QUICK, ids=lambda one: one.description.name)


@pytest.fixture(autouse=True)
def small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold_cache, "last_level_bytes", lambda: 1 << 20)


def test_what_is_listed_without_pytorch_is_what_there_is() -> None:
    assert [one.description for one in WORKLOADS] == list(workloads.WORKLOADS)
    assert [one.description.name for one in QUICK_WORKS] == list(workloads.WITHOUT_PYTORCH)
    assert [one.description for one in PITFALLS] == list(pitfalls.PITFALLS)
    assert [one.description for one in MODELS] == list(placement_words.MODELS)


def smallest(description: WorkloadDescription, **changes: object) -> RunFinished:
    request = run_request(
        workload=description.name,
        size=min(description.sizes),
        dtype="float32" if "float32" in description.dtypes else description.dtypes[0],
        budget_s=0.01,
        **changes,
    )
    result = ask(request)[-1]
    assert isinstance(result, RunFinished), result
    return result


@every
def test_its_description_can_be_shown(workload: Workload):
    description = workload.description
    assert description.name.islower()
    assert description.sentence.endswith(".")
    assert list(description.sizes) == sorted(set(description.sizes))
    assert description.sizes[-1] <= LARGEST_SIZE
    assert "{size}" in description.size_text
    assert set(description.refuses) <= set(MODES)
    for option in description.options:
        assert len(set(option.values)) == len(option.values) >= 2
        assert option.sentence.endswith(".")


def test_the_engine_says_which_are_skipped_and_why(monkeypatch: pytest.MonkeyPatch):
    skipping = WORKLOADS[-1]
    monkeypatch.setattr(type(skipping), "skipped", lambda workload: "There is no such thing here.")
    (described,) = ask(DescribeEngine())
    assert described.workloads[-1].skipped == "There is no such thing here."
    assert described.workloads[0].skipped == ""
    (failed,) = ask(run_request(workload=skipping.description.name, size=1))
    assert isinstance(failed, RunFailed)
    assert failed.failure.message == "There is no such thing here."


@every_quick
@pytest.mark.parametrize("mode", MODES)
def test_it_runs_in_every_mode_or_says_why_not(
    workload: Workload, mode: str, monkeypatch: pytest.MonkeyPatch
):
    # Its process is tested once, in test_naive; what every workload does in it is tested here.
    monkeypatch.setattr(
        run,
        "time_naively",
        lambda name, case, stop: NaiveAnswer(stopwatch=time_in_this_process(workload, case)),
    )
    description = workload.description
    if mode in description.refuses:
        (failed,) = ask(
            run_request(workload=description.name, size=description.sizes[0], **MODES[mode])
        )
        assert isinstance(failed, RunFailed)
        assert failed.failure.message == description.refuses[mode]
        return
    result = smallest(description, **MODES[mode])
    assert result.verified is True
    assert (result.cache == "cold", result.transfers, result.details.naive is not None) == tuple(
        mode == name for name in MODES
    )


@every_quick
def test_it_says_how_much_it_does_and_where_the_time_goes(workload: Workload):
    result = smallest(workload.description)
    work = workload.work(make_case(workload.description, CPU, result.size))
    assert work.throughput_work > 0
    assert work.memory_bytes > 0
    assert result.throughput == work.throughput_work / result.median_s
    assert all(seconds > 0 for seconds in result.details.parts_s.values())
    assert result.details.parts_s
    assert result.details.peak_allocated_bytes is None  # the CPU's memory has no such counter


class Counted(TorchDispatchMode):
    """Counts what PyTorch's operations do: numbers that they write, and bytes that they move."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = self.bytes_moved = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        result = function(*arguments, **(named or {}))
        if not function.is_view:
            leaves = tree_leaves((arguments, named, result))
            tensors = [one for one in leaves if isinstance(one, torch.Tensor)]
            self.bytes_moved += sum(map(bytes_of, tensors))
            self.numbers += max((one.numel() for one in tensors), default=0)
        return result


def bytes_of(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor's own numbers: an expanded one repeats the same ones."""
    own = (size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
    return math.prod(own) * tensor.element_size()


_MOST_OF_A_NUMBER = 16
"""Operations on each number of an operation that is no product: softmax does five."""


@every
def test_its_operations_are_those_that_pytorch_counts(workload: Workload):
    """PyTorch counts those of products and convolutions; others do a few for each number."""
    description = workload.description
    if description.device_kinds == ("cuda",):
        return  # PyTorch runs none of its operations
    dtype = "float32" if "float32" in description.dtypes else description.dtypes[0]
    case = make_case(description, CPU, 32, dtype)
    with contextlib.closing(workload.prepare(case)) as call:
        with FlopCounterMode(display=False) as products:
            call()
        with Counted() as counted:
            call()
    least, operations = products.get_total_flops(), workload.work(case).operations
    if workload.has_products:
        assert operations == least
    else:
        assert least <= operations <= least + _MOST_OF_A_NUMBER * counted.numbers


@every_of_tensors
def test_its_bytes_are_those_that_pytorch_moves(workload: TensorWorkload):
    case = make_case(workload.description, CPU, min(workload.description.sizes))
    operands, compute = workload.operands(case), workload.compute(case)
    with Counted() as counted:
        result = compute(*operands)
    work = workload.work(case)
    assert work.bytes_moved == counted.bytes_moved
    at_once = {one.data_ptr(): one.nbytes for one in (*operands, result)}  # in place counts once
    assert work.memory_bytes >= sum(at_once.values())


@pytest.mark.parametrize("size", [64, 256])
@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.description.name)
def test_a_pictures_bytes_are_those_that_pytorch_moves(picture: Picture, size: int):
    case = make_case(picture.description, CPU, size)
    with contextlib.closing(picture.prepare(case)) as step:
        step()
        with Counted() as counted:
            step()
    assert picture.work(case).bytes_moved == pytest.approx(counted.bytes_moved, rel=0.03)


@every_quick
def test_its_snippet_runs_as_it_stands(workload: Workload, capsys: pytest.CaptureFixture[str]):
    case = make_case(workload.description, CPU, min(workload.description.sizes))
    exec(compile(workload.snippet(case), "snippet", "exec"), {"__name__": "__main__"})
    assert float(capsys.readouterr().out.removesuffix(" s a call\n")) >= 0


def test_without_anything_to_transfer_a_run_says_so():
    result = smallest(WORKLOADS[0].description, transfers=True)
    assert any("nothing to transfer" in finding for finding in result.details.findings)
