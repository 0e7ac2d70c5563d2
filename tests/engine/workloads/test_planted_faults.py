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
from gpu_studio.engine.workloads.dataloader import Dataloader
from gpu_studio.engine.workloads.elementwise import Elementwise, crunch_the_numbers
from gpu_studio.engine.workloads.launch import Launch
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


def faults_of(dtype: str, *, rolls: bool = True) -> list[tuple[str, Fault]]:
    found = [(name, fault) for name, fault in FAULTS.items() if rolls or "rolled" not in name]
    return [*found, *((f"rounded to {to}", rounded(to)) for to in SHORTER[dtype])]


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
    for dtype in workload.description.dtypes
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


@pytest.mark.parametrize("dtype", SHORTER)
@pytest.mark.parametrize("size", [1, 600])
def test_asking_without_an_effect_is_refused(
    dtype: str, size: int, monkeypatch: pytest.MonkeyPatch
):
    workload = Launch()
    case = case_of(workload, size, dtype)
    assert workload.verify(case).verified
    no_effect: list[tuple[str, Fault]] = [("nothing is done", torch.Tensor.neg)]
    for name, fault in (*faults_of(dtype, rolls=size > 1), *no_effect):
        with planted(workload, fault, monkeypatch):
            assert workload.verify(case).verified is False, name


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("dtype", SHORTER)
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


# Lavin and Gray, Fast algorithms for convolutional neural networks (2016): F(4 × 4, 3 × 3).
OF_INPUT = [
    [4, 0, -5, 0, 1, 0],
    [0, -4, -4, 1, 1, 0],
    [0, 4, -4, -1, 1, 0],
    [0, -2, -1, 2, 1, 0],
    [0, 2, -1, -2, 1, 0],
    [0, 4, 0, -5, 0, 1],
]
OF_FILTER = [
    [1 / 4, 0, 0],
    [-1 / 6, -1 / 6, -1 / 6],
    [-1 / 6, 1 / 6, -1 / 6],
    [1 / 24, 1 / 12, 1 / 6],
    [1 / 24, -1 / 12, 1 / 6],
    [0, 0, 1],
]
OF_RESULT = [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]]


def winograd(pictures: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Convolve as cuDNN's Winograd does, tile by tile of 4 × 4, in the dtype of the operands."""
    of_input, of_filter, of_result = (
        torch.tensor(matrix, dtype=pictures.dtype) for matrix in (OF_INPUT, OF_FILTER, OF_RESULT)
    )
    padded = torch.nn.functional.pad(pictures, (1, 1, 1, 1))
    tiles = padded.unfold(2, 6, 4).unfold(3, 6, 4)
    inputs = of_input @ tiles @ of_input.T
    filters = of_filter @ weights @ of_filter.T
    products = torch.einsum("nchwij,kcij->nkhwij", inputs, filters)
    results = of_result @ products @ of_result.T
    return results.permute(0, 1, 2, 4, 3, 5).reshape(pictures.shape)


def test_winograds_rounding_is_no_wrong_result():
    case = case_of(Conv2d(), 1)
    pictures, weights, _ = (one.detach() for one in conv2d._operands(case, conv2d.seeded()))
    found = winograd(pictures, weights)
    doubles = (pictures.double(), weights.double())
    expected = torch.nn.functional.conv2d(*doubles, padding=1)
    magnitude = torch.nn.functional.conv2d(*map(torch.abs, doubles), padding=1)
    direct = torch.nn.functional.conv2d(pictures, weights, padding=1)
    # It is not the direct way in disguise.
    assert (found - expected).abs().max() > 2 * (direct - expected).abs().max()
    assert conv2d._wrong(case, found, expected, magnitude) == ""
    assert conv2d._wrong(case, found * 1.01, expected, magnitude) != ""


@pytest.mark.parametrize("shorter", ["float16", "bfloat16"])
def test_a_convolution_in_tf32_may_round_its_factors_and_not_its_result(
    shorter: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(conv2d, "_computes_in", lambda _case: conv2d.TF32)
    case = case_of(Conv2d(), 1)
    pictures, weights, _ = (one.detach() for one in conv2d._operands(case, conv2d.seeded()))
    expected = torch.nn.functional.conv2d(pictures.double(), weights.double(), padding=1)
    # float16 has as many digits as TF32: rounded operands stand in for a card's.
    factors = (one.half().float() for one in (pictures, weights))
    found = torch.nn.functional.conv2d(*factors, padding=1)
    assert conv2d._wrong(case, found, expected, expected.abs()) == ""
    assert conv2d._wrong(case, rounded(shorter)(found), expected, expected.abs()) != ""
    assert conv2d._wrong(case, found * 1.01, expected, expected.abs()) != ""


AMPS = [("off", "default"), ("on", "float16"), ("on", "bfloat16")]


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
    "a learning rate 22 % off": learning_rate_of(0.78),
    "no momentum": without_momentum,
    "only one step is taken": forgets_a_step,
    "gradients of zero": gradient_becomes(0.0),
    "gradients that are no numbers": gradient_becomes(float("nan")),
    "gradients half as large": gradient_becomes(0.5),
    "a bias's gradients half as large": gradient_becomes(0.5, "bias"),
    "products in another dtype": in_another_dtype,
}


@pytest.mark.parametrize("fault", STEP_FAULTS)
@pytest.mark.parametrize(("amp", "amp_dtype"), AMPS)
def test_a_step_that_learns_wrong_is_refused(
    amp: str, amp_dtype: str, fault: str, monkeypatch: pytest.MonkeyPatch
):
    workload = TrainStep()
    case = case_of(workload, 8, amp=amp, amp_dtype=amp_dtype)
    build = Training.__init__

    def broken(self: Training, device: Any, dtype: torch.dtype, autocast_dtype: Any) -> None:
        build(self, device, dtype, autocast_dtype)
        if dtype == torch.float32:  # the reference is float64
            STEP_FAULTS[fault](self)

    monkeypatch.setattr(Training, "__init__", broken)
    assert workload.verify(case).verified is False


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("fault", [name for name in FAULTS if name != "on another device"])
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


@pytest.mark.parametrize("rate", [0.0, 0.99, 1.01, float("nan")])
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


@pytest.mark.parametrize("fault", [name for name in FAULTS if name != "on another device"])
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
