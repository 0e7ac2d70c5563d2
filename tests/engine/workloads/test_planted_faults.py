import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gpu_studio.engine.workloads import conv2d, copy, custom_kernel, dataloader
from gpu_studio.engine.workloads.case import Case, make_case
from gpu_studio.engine.workloads.conv2d import Conv2d
from gpu_studio.engine.workloads.copy import Copy
from gpu_studio.engine.workloads.custom_kernel import CustomKernel
from gpu_studio.engine.workloads.data_parallel import DataParallel
from gpu_studio.engine.workloads.dataloader import Dataloader
from gpu_studio.engine.workloads.elementwise import Elementwise, crunch_the_numbers
from gpu_studio.engine.workloads.linear import LinearLayer
from gpu_studio.engine.workloads.matmul import Matmul
from gpu_studio.engine.workloads.registry import WORKLOADS
from gpu_studio.engine.workloads.train_network import Training
from gpu_studio.engine.workloads.train_step import TrainStep
from gpu_studio.engine.workloads.workload import TensorWorkload

Fault = Callable[[torch.Tensor], torch.Tensor]


CPU = torch.device("cpu")
TILE = 512  # the side of what one block of threads computes is a power of two


def with_a_nan(result: torch.Tensor) -> torch.Tensor:
    result = result.clone()
    result.view(-1)[-1] = torch.nan
    return result


def with_a_number_off(result: torch.Tensor) -> torch.Tensor:
    result = result.clone()
    result.view(-1)[-1] += 1.0
    return result


def first_tile_alone(result: torch.Tensor) -> torch.Tensor:
    for dimension in range(2):
        if result.shape[dimension] > TILE:
            index = torch.arange(result.shape[dimension]) % TILE
            result = result.index_select(dimension, index)
    return result


def stale(result: torch.Tensor) -> torch.Tensor:
    """Return the stale contents: numbers of the same kind, in another order."""
    return result.flip(0).neg() if result.numel() == 1 else result.view(-1).flip(0).view_as(result)


FAULTS: dict[str, Fault] = {
    "zeros": torch.zeros_like,
    "stale": stale,
    "rolled by a row": lambda result: result.roll(1, 0),
    "rolled by a tile": lambda result: result.roll(TILE, 0),
    "scaled by 1.01": lambda result: result * 1.01,
    "one is not a number": with_a_nan,
    "one is off": with_a_number_off,
    "on another device": lambda result: result.to("meta"),
}
SHORTER = {
    "float64": ("float32", "float16", "bfloat16"),
    "float32": ("float16", "bfloat16"),
    "float16": ("bfloat16",),
    "bfloat16": (),
}


def rounded(to: str) -> Fault:
    return lambda result: result.to(getattr(torch, to)).to(result.dtype)


def faults_of(dtype: str) -> list[tuple[str, Fault]]:
    return [*FAULTS.items(), *((f"rounded to {to}", rounded(to)) for to in SHORTER[dtype])]


def case_of(workload: Any, size: int, dtype: str = "float32", **options: str) -> Case:
    return make_case(workload.description, CPU, size, dtype, options=options)


def options_of(workload: TensorWorkload) -> list[dict[str, str]]:
    """Return every value of every option beside the defaults of the others, which come first."""
    changed = [{one.name: value} for one in workload.description.options for value in one.values]
    return changed or [{}]


# What an option changes does not depend on the dtype.
TENSORS = [
    (workload, dtype, options)
    for workload in WORKLOADS
    if isinstance(workload, TensorWorkload)
    for dtype in ("float64", "float32", "bfloat16")
    if dtype in workload.description.dtypes
    for options in options_of(workload)[: None if dtype == "float32" else 1]
]


@pytest.mark.parametrize(
    ("workload", "dtype", "options"),
    TENSORS,
    ids=lambda one: getattr(getattr(one, "description", None), "name", None),
)
def test_a_wrong_tensor_is_refused(
    workload: TensorWorkload,
    dtype: str,
    options: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
):
    case = case_of(workload, 600, dtype, **options)
    right = workload.verify(case)
    assert right.verified, right.sentence
    refused = {}
    for name, fault in faults_of(dtype):
        with planted(workload, fault, monkeypatch):
            refused[name] = workload.verify(case).verified is False
    assert all(refused.values()), refused


@contextlib.contextmanager
def planted(workload: Any, fault: Fault, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let every computation of a workload return what a fault makes of it."""
    with monkeypatch.context() as patch:
        if isinstance(workload, LinearLayer):
            forward = torch.nn.Linear.forward
            patch.setattr(
                torch.nn.Linear, "forward", lambda layer, batch: fault(forward(layer, batch))
            )
        else:
            compute = type(workload).compute
            patch.setattr(
                type(workload),
                "compute",
                lambda self, case: lambda *operands: fault(compute(self, case)(*operands)),
            )
        yield


@pytest.mark.parametrize("workload", [Elementwise(), Matmul()], ids=["elementwise", "matmul"])
def test_one_of_four_tiles_in_place_of_all_is_refused(
    workload: TensorWorkload, monkeypatch: pytest.MonkeyPatch
):
    case = case_of(workload, 2 * TILE)
    assert workload.verify(case).verified
    with planted(workload, first_tile_alone, monkeypatch):
        assert workload.verify(case).verified is False


@pytest.mark.parametrize(("dtype", "which"), [("float64", 0), ("float32", 1), ("bfloat16", 2)])
def test_a_wrong_convolution_or_gradient_is_refused(
    dtype: str, which: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(conv2d, "SIDE", 8)
    monkeypatch.setattr(conv2d, "CHANNELS", 8)
    right, workload = conv2d.Conv2dCall.__call__, Conv2d()
    case = case_of(workload, 2, dtype)
    assert workload.verify(case).verified
    for name, fault in faults_of(dtype):
        if name == "rolled by a tile":
            continue  # these results are smaller than one

        def broken(self: Any, fault: Fault = fault) -> tuple[torch.Tensor, ...]:
            results = [one.detach() for one in right(self)]
            results[which] = fault(results[which])
            return tuple(results)

        with monkeypatch.context() as patch:
            patch.setattr(conv2d.Conv2dCall, "__call__", broken)
            assert workload.verify(case).verified is False, name


def learning_rate_of(factor: float) -> Callable[[Training], None]:
    def change(training: Training) -> None:
        training._optimizer.param_groups[0]["lr"] *= factor

    return change


def without_momentum(training: Training) -> None:
    training._optimizer.param_groups[0]["momentum"] = 0.0


def forgets_a_step(training: Training) -> None:
    step, taken = training.step, []

    def lazy(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if taken:
            return torch.zeros(())
        taken.append(True)
        return step(inputs, targets)

    training.step = lazy  # type: ignore[method-assign]


def gradient_becomes(factor: float, of: str = "weight") -> Callable[[Training], None]:
    def change(training: Training) -> None:
        getattr(training.network[2], of).register_hook(lambda gradient: gradient * factor)

    return change


def in_another_dtype(training: Training) -> None:
    other = torch.float16 if training._autocast_dtype is torch.bfloat16 else torch.bfloat16
    training._autocast_dtype = other


STEP_FAULTS = {
    "a learning rate 1.01 times as large": learning_rate_of(1.01),
    "no momentum": without_momentum,
    "only one step is taken": forgets_a_step,
    "gradients of zero": gradient_becomes(0.0),
    "gradients that are no numbers": gradient_becomes(float("nan")),
    "a bias's gradients half as large": gradient_becomes(0.5, "bias"),
    "products in another dtype": in_another_dtype,
}


@pytest.mark.parametrize("fault", STEP_FAULTS)
@pytest.mark.parametrize(
    ("workload", "options"),
    [
        (TrainStep(), {"amp": "off"}),
        (TrainStep(), {"amp": "on", "amp_dtype": "bfloat16"}),
        (DataParallel(), {}),
    ],
    ids=["off", "on", "shared"],
)
def test_a_step_that_learns_wrong_is_refused(
    workload: Any, options: dict[str, str], fault: str, monkeypatch: pytest.MonkeyPatch
):
    case = case_of(workload, 8, **options)
    assert workload.verify(case).verified
    build = Training.__init__

    def broken(self: Training, device: Any, dtype: torch.dtype, autocast_dtype: Any) -> None:
        build(self, device, dtype, autocast_dtype)
        if dtype == torch.float32:  # the reference is float64
            STEP_FAULTS[fault](self)

    monkeypatch.setattr(Training, "__init__", broken)
    assert workload.verify(case).verified is False


@pytest.mark.parametrize(("fault", "part"), [("one is off", 0), ("stale", 1)])
def test_samples_that_arrive_wrong_are_refused(
    fault: str, part: int, monkeypatch: pytest.MonkeyPatch
):
    workload, to_device = Dataloader(), dataloader.Feed.to_device

    def broken(self: Any, batch: Any) -> Any:
        parts = list(to_device(self, batch))
        parts[part] = FAULTS[fault](parts[part])
        return tuple(parts)

    monkeypatch.setattr(dataloader.Feed, "to_device", broken)
    assert workload.verify(case_of(workload, 500)).verified is False


@pytest.mark.parametrize("rate", [0.99, float("nan")])
def test_an_epoch_that_teaches_something_else_is_refused(
    rate: float, monkeypatch: pytest.MonkeyPatch
):
    workload, build = Dataloader(), dataloader.Learner.__init__

    def broken(self: Any, data_set: Any, device: Any, dtype: torch.dtype) -> None:
        build(self, data_set, device, dtype)
        if dtype == torch.float32:  # the reference is float64
            self._optimizer.param_groups[0]["lr"] *= rate

    case = case_of(workload, 500)
    assert workload.verify(case).verified
    monkeypatch.setattr(dataloader.Learner, "__init__", broken)
    assert workload.verify(case).verified is False


@pytest.mark.parametrize("fault", ["zeros", "stale", "one is off"])
def test_a_copy_that_brings_something_else_is_refused(fault: str, monkeypatch: pytest.MonkeyPatch):
    workload = Copy()

    class Broken(copy.CopyCall):
        def __init__(self, case: Case, source: torch.Tensor, target: torch.Tensor) -> None:
            super().__init__(case, source, target)
            self._source, self._target = source, target

        def __call__(self) -> object:
            self._target.copy_(FAULTS[fault](self._source))
            return self._target

    case = case_of(workload, 1)
    assert workload.verify(case).verified
    monkeypatch.setattr(copy, "CopyCall", Broken)
    assert workload.verify(case).verified is False


def test_a_wrong_kernel_is_refused(monkeypatch: pytest.MonkeyPatch):
    """Stands in for the card."""
    options = {option.name: option.values[0] for option in CustomKernel.description.options}
    case = Case(device=CPU, size=600, options=options)
    answers: list[Fault] = [lambda result: result]

    class OnCpu:
        def __init__(self, case: Case, operands: Any) -> None:
            self.result = answers[-1](crunch_the_numbers(*operands))

        def __call__(self) -> object:
            return self.result

        def close(self) -> None:
            pass

    monkeypatch.setattr(custom_kernel, "CustomKernelCall", OnCpu)
    workload = CustomKernel()
    assert workload.verify(case).verified
    for name, fault in faults_of("float32"):
        answers.append(fault)
        assert workload.verify(case).verified is False, name
