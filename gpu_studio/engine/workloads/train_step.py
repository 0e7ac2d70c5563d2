"""A training step: forward, backward and optimizer, with or without automatic mixed precision.

The loop is that of "Chapter 17: Using torch with CUDA" (section 17.8), with today's names:
``torch.cuda.amp`` is now ``torch.amp``.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.benchmark.workloads import TRAIN_STEP
from gpu_studio.core.device_name import wait_line
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.call import Call
from gpu_studio.engine.workloads.case import Case, Work, dtype_eps, product_dtype
from gpu_studio.engine.workloads.train_network import (
    CHECKED_STEPS,
    CLASSES,
    HIDDEN,
    INPUTS,
    LEARNING_RATE,
    LONGEST_PRODUCT,
    MOMENTUM,
    NETWORK_LINES,
    Training,
    make_batch,
    parameters_count,
    step_operations,
)
from gpu_studio.engine.workloads.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    # A parameter before a step, and the step's change.
    _Change: TypeAlias = tuple[torch.Tensor, torch.Tensor]

_CURVE_STEPS = 100
_LONGEST_CURVE_S = 1.5
_FEWEST_CURVE_STEPS = 3
# A step is skipped if its scaled gradients overflow; the scale is then halved.
_MOST_LEFT_OUT = 8
# The allowed scale error of all changes of a step together: in eps of the products' dtype, and
# never less than this. The rounding errors of single numbers have random signs and cancel here.
# Measured on the CPU, from 1 to 1024 samples: up to 0.4 eps in the 16-bit dtypes, 0.5 eps in
# float32.
_SCALE_EPS, _LEAST_SCALE = 1.0, 1e-3
_COMPARED = ("all weights and biases in each of two steps",)
# The allowed error of a change's norm. If rounding carries a sum across zero, its ReLU switches.
# That happens to a share of about eps of the sums, and the norm changes by the root of that share.
# Measured on the CPU, from 1 to 4096 samples: up to 0.8 roots of eps in float32, float16 and
# bfloat16.
_TOLERANCE_ROOTS = 3.0


class TrainStep(Workload):
    """A step of a network with three layers; see `workload.Workload`."""

    has_products = True
    description = TRAIN_STEP

    def work(self, case: Case) -> Work:
        """Count the products of a step; each weight and activation is moved as often as needed."""
        weights = parameters_count()
        operations = step_operations(case.size)
        activations = case.size * (INPUTS + 2 * HIDDEN + CLASSES)
        # Forward reads each weight, and so does backward beyond the first layer. Gradient,
        # momentum and weight are then read and written. Forward and backward each write and read
        # every activation.
        moved = (2 + 6) * weights - INPUTS * HIDDEN + 4 * activations
        return Work(
            operations=operations,
            bytes_moved=float(moved * case.item_bytes),
            throughput_work=operations,
            # Weights, gradients, momentum and their 16-bit copies; activations and their gradients.
            memory_bytes=(4 * weights + 4 * activations) * case.item_bytes,
            longest_kernel=LONGEST_PRODUCT,
        )

    def prepare(self, case: Case) -> Call:
        return TrainStepCall(case)

    def computes_in(self, case: Case) -> str:
        """Return the dtype of the products: AMP's dtype, or that of the weights."""
        autocast_dtype = _autocast_dtype(case)
        if autocast_dtype is None:
            return product_dtype(case)
        return str(autocast_dtype).removeprefix("torch.")

    def verify(self, case: Case) -> Verification:
        """Compare the changes of two steps with the same steps in float64 on the CPU."""
        autocast_dtype = _autocast_dtype(case)
        training = Training(case.device, case.dtype, autocast_dtype)
        products: list[torch.dtype] = []
        hook = training.network[0].register_forward_hook(
            lambda _layer, _inputs, output: products.append(output.dtype)
        )
        batch, cpu = make_batch(case.size), torch.device("cpu")
        found = _changes(training, case.device, batch)
        hook.remove()
        if products and products[0] != (autocast_dtype or case.dtype):
            computed_in = str(products[0]).removeprefix("torch.")
            return Verification(False, f"products were computed in {computed_in}", _COMPARED)
        expected = _changes(Training(cpu, torch.float64, None), cpu, batch)
        return _compared(found, expected, dtype_eps(self.computes_in(case)))

    def snippet(self, case: Case) -> str:
        autocast_dtype = _autocast_dtype(case)
        return _SNIPPET.format(
            size=case.size,
            device=case.address,
            kind=case.device.type,
            dtype=autocast_dtype or torch.get_autocast_dtype(case.device.type),
            amp=autocast_dtype is not None,
            network=NETWORK_LINES,
            inputs=INPUTS,
            classes=CLASSES,
            rate=LEARNING_RATE,
            momentum=MOMENTUM,
            wait=wait_line(case.address),
        )


class TrainStepCall(Call):
    """Steps with one batch; a separate network shows the loss curve.

    Args:
        case: the device, the batch size, and AMP.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self._begin: Callable[[], Training] = partial(
            Training, case.device, case.dtype, _autocast_dtype(case)
        )
        self._training = self._begin()
        self._batch = tuple(part.to(case.device) for part in make_batch(case.size))
        self._step = partial(self._training.step, *self._batch)
        self._losses: tuple[float, ...] = ()

    def __call__(self) -> object:
        return self._step()

    @property
    def function(self) -> Callable[[], object]:
        return self._step

    def curves(self) -> dict[str, tuple[float, ...]]:
        self._losses = self._learn()
        return {"loss": self._losses}

    def findings(self) -> tuple[str, ...]:
        first, last = self._losses[0], self._losses[-1]
        learned = (
            f"In {len(self._losses)} steps with the same batch, the loss went from "
            f"{first:.3g} to {last:.3g}."
        )
        autocast_dtype = _autocast_dtype(self._case)
        if autocast_dtype is None:
            return (learned,)
        name = str(autocast_dtype).removeprefix("torch.")
        precision = f"AMP multiplied in {name}, and kept the weights in float32"
        if autocast_dtype is not torch.float16:
            return (learned, f"{precision}. Only float16 needs GradScaler.")
        scale = f"{self._training.scale:.0f}"
        return (
            learned,
            f"{precision}; GradScaler multiplied the loss by {scale} at the end of the run.",
        )

    def _learn(self) -> tuple[float, ...]:
        training = self._begin()
        losses: list[float] = []
        until_s = time.perf_counter() + _LONGEST_CURVE_S
        while len(losses) < _CURVE_STEPS:
            losses.append(float(training.step(*self._batch)))
            if len(losses) >= _FEWEST_CURVE_STEPS and time.perf_counter() >= until_s:
                break
        return tuple(losses)


def _autocast_dtype(case: Case) -> torch.dtype | None:
    """Return AMP's dtype; None means no AMP."""
    if case.options["amp"] == "off":
        return None
    if case.options["amp_dtype"] == "default":
        return torch.get_autocast_dtype(case.device.type)
    dtype: torch.dtype = getattr(torch, case.options["amp_dtype"])
    return dtype


def _changes(
    training: Training, device: torch.device, batch: tuple[torch.Tensor, torch.Tensor]
) -> list[list[_Change]]:
    """Return, for each checked step, every parameter before the step and its change."""
    return [_next_change(training, device, batch) for _ in range(CHECKED_STEPS)]


def _next_change(
    training: Training, device: torch.device, batch: tuple[torch.Tensor, torch.Tensor]
) -> list[_Change]:
    """Return every parameter before the next step that is not skipped, and its change: float64."""
    parameters = list(training.network.parameters())
    before = [one.detach().cpu().double().clone() for one in parameters]
    inputs, targets = batch
    for _ in range(_MOST_LEFT_OUT):
        scale = training.scale
        training.step(inputs.to(device, parameters[0].dtype), targets.to(device))
        if training.scale >= scale:
            break
    after = [one.detach().cpu().double() for one in parameters]
    return [(old, new - old) for old, new in zip(before, after, strict=True)]


def _compared(
    found: list[list[_Change]], expected: list[list[_Change]], eps: float
) -> Verification:
    """Return whether the steps are correct, for products with precision ``eps``."""
    steps = list(zip(found, expected, strict=True))
    tolerance = _TOLERANCE_ROOTS * eps**0.5
    errors = [
        _excess(tolerance, one, other) for step in steps for one, other in zip(*step, strict=True)
    ]
    if not all(error <= 1.0 for error in errors):  # not a number, too
        finding = f"a step's changes are off by {max(errors):.1e} times the allowed {tolerance:.1e}"
        return Verification(False, finding, _COMPARED)
    allowed = max(_SCALE_EPS * eps, _LEAST_SCALE)
    scales = [_scale(*step) for step in steps]
    if not all(abs(scale - 1.0) <= allowed for scale in scales):
        shown = " and ".join(f"{scale:.4f}" for scale in scales)
        return Verification(False, f"the steps are {shown} times the correct ones", _COMPARED)
    finding = f"a step's changes are within {tolerance:.1e} of float64"
    return Verification(True, finding, _COMPARED)


def _scale(found: list[_Change], expected: list[_Change]) -> float:
    """Return the size of all changes of a step together, as a share of the expected size."""
    one, other = (torch.cat([change.flatten() for _, change in step]) for step in (found, expected))
    return float(one.dot(other) / other.dot(other))


def _excess(
    tolerance: float,
    found: _Change,
    expected: _Change,
) -> float:
    """Return the error of a change, over the allowed error; the weights are rounded as well."""
    weights, change = expected
    allowed = tolerance * change.norm() + torch.finfo(torch.float32).eps * weights.norm()
    return float(((found[1] - change).norm() / allowed).nan_to_num(torch.inf))


_SNIPPET = """\
import time
import torch

size, device, amp = {size}, "{device}", {amp}
{network}optimizer = torch.optim.SGD(model.parameters(), lr={rate}, momentum={momentum})
# only float16 needs its gradients scaled
scaler = torch.amp.GradScaler("{kind}", enabled=amp and {dtype} is torch.float16)
inputs = torch.randn(size, {inputs}, device=device)
targets = torch.randint({classes}, (size,), device=device)


def step():
    optimizer.zero_grad()
    with torch.autocast("{kind}", dtype={dtype}, enabled=amp):
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return loss


first = step()  # the first step is slower
{wait}start = time.perf_counter()
for _ in range(10):
    last = step()
{wait}print(f"{{(time.perf_counter() - start) / 10:.6f}} s a call")
print(f"loss {{first.item():.3f}} -> {{last.item():.3f}}")
"""
