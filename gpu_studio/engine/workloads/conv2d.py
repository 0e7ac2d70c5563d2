"""One convolution layer, forward and backward, with cuDNN's two switches.

The switches are those of "Chapter 17: Using torch with CUDA" (section 17.9). ``benchmark`` tries
cuDNN's algorithms at the first call of each shape and keeps the fastest; ``deterministic`` allows
only algorithms that add in the same order every time.
"""

from __future__ import annotations

import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.benchmark.workloads import CONV2D
from gpu_studio.core.units import format_duration
from gpu_studio.engine.device import accelerator_of, time_once
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.call import Call
from gpu_studio.engine.workloads.case import TF32, Case, Work, dtype_eps, has_tf32
from gpu_studio.engine.workloads.proof import is_coarser, misplaced, seeded
from gpu_studio.engine.workloads.workload import Workload, timed_script

if TYPE_CHECKING:
    from collections.abc import Iterator

CHANNELS = 64
SIDE = 56
KERNEL = 3
# By the option's value: (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic)
CHOICES = {
    "default": (False, False),
    "benchmark": (True, False),
    "deterministic": (False, True),
    "benchmark+deterministic": (True, True),
}
_FEWEST_REPEATS, _MOST_REPEATS = 2, 8
_LONGEST_REPEATING_S = 1.0
# The allowed errors if the results' dtype keeps more bits than the products: of a single result, in
# eps of the sum of its terms' magnitudes; of the norm, in eps. cuDNN's faster algorithms (Winograd)
# add and subtract more: F(4 × 4) is off by up to 25 eps of that sum in float32.
_WIDE_EPS, _WIDE_NORM_EPS = 64.0, 256.0
# Short dtypes are summed in float32 and rounded once: half an eps of the result. The error of a
# single result is in eps of that result plus the usual result. Measured on the CPU: 0.4 in
# bfloat16; 2.3, and 0.6 in the norm, in float16, which a CPU without float16 instructions sums in
# parts.
_SHORT_EPS, _SHORT_NORM_EPS = 8.0, 1.0
# TF32 rounds the factors, not the result.
_TF32_NORM_EPS = 4.0
# The first call's time of each kind in this process: cuDNN chooses once and keeps the choice.
_first_call_s: dict[tuple[str, int, torch.dtype, str], float] = {}


class Conv2d(Workload):
    """A 3 × 3 convolution of images, and its gradients; see `workload.Workload`."""

    has_products = True
    description = CONV2D

    def work(self, case: Case) -> Work:
        """Count one multiplication and addition per term, for the result and both gradients."""
        pictures = case.size * CHANNELS * SIDE * SIDE
        operations = 3 * 2.0 * pictures * CHANNELS * KERNEL * KERNEL
        weights = CHANNELS * CHANNELS * KERNEL * KERNEL
        # Forward reads images and weights; backward reads them and the result's gradient.
        moved = (2 + 3) * pictures + 3 * weights
        return Work(
            operations=operations,
            bytes_moved=float(moved * case.item_bytes),
            throughput_work=operations,
            # Images, result, their gradients, and about as much again for cuDNN's workspace.
            memory_bytes=(2 * 4 * pictures + 2 * weights) * case.item_bytes,
            # Forward, and back for the pictures and for the weights: as much work each.
            longest_kernel=1 / 3,
        )

    def prepare(self, case: Case) -> Call:
        return Conv2dCall(case, *_operands(case))

    def prepare_untried(self, case: Case) -> Call:
        """Make the same and leave cuDNN's choice to the first call."""
        return Conv2dCall(case, *_operands(case), is_tried=False)

    def computes_in(self, case: Case) -> str:
        """Return the dtype, or TF32, which PyTorch allows for convolutions by default."""
        return _computes_in(case)

    def verify(self, case: Case) -> Verification:
        """Compare the first and last image, and the gradients, with float64 on the CPU.

        The whole batch is computed. The incoming gradient is zero except for the two images, so
        that the weights' gradient comes from them alone.
        """
        pictures, weights, above = _operands(case, seeded())
        rows = sorted({0, case.size - 1})
        above = torch.where(_is_in_rows(case, rows), above, torch.zeros_like(above))
        with contextlib.closing(Conv2dCall(case, pictures, weights, above)) as call:
            found = call()
        if wrong_place := next(filter(None, (misplaced(one, case.device) for one in found)), ""):
            return Verification(False, wrong_place, (_compared(case.size),))
        result, input_gradient, weight_gradient = (one.detach().cpu() for one in found)
        found = (result[rows], input_gradient[rows], weight_gradient)
        operands = [one.detach().cpu().double() for one in (pictures[rows], weights, above[rows])]
        expected = _convolved(*operands)
        magnitudes = _convolved(*map(torch.abs, operands))
        wrong = next(filter(None, map(partial(_wrong, case), found, expected, magnitudes)), "")
        finding = wrong or "within rounding of float64"
        return Verification(not wrong, finding, (_compared(case.size),))

    def snippet(self, case: Case) -> str:
        benchmark, deterministic = CHOICES[case.options["cudnn"]]
        setup = _SETUP.format(benchmark=benchmark, deterministic=deterministic)
        return timed_script(case, setup, "forward_and_backward()") + _COMPARE


class Conv2dCall(Call):
    """Forward and backward of one layer. cuDNN's switches stay set until `close`.

    Args:
        case: the device, the number of images, and cuDNN's switches.
        pictures: shape (size, 64, 56, 56).
        weights: shape (64, 64, 3, 3).
        above: the gradient that comes from the next layer, shape of the result.
        is_tried: whether the first call, in which cuDNN chooses its way, is made here.
    """

    is_made_anew = True  # its switches are the process's: another run must not meet them

    def __init__(
        self,
        case: Case,
        pictures: torch.Tensor,
        weights: torch.Tensor,
        above: torch.Tensor,
        *,
        is_tried: bool = True,
    ) -> None:
        self._case = case
        self._pictures = pictures.requires_grad_()
        self._weights = weights.requires_grad_()
        self._above = above
        self._flags = cudnn_flags(case.options["cudnn"])
        self._flags.__enter__()
        if not is_tried:
            return
        try:
            choosing_s = time_once(self, case.device)
        except BaseException:
            self._flags.__exit__(None, None, None)
            raise
        key = (case.address, case.size, case.dtype, case.options["cudnn"])
        self._choosing_s = _first_call_s.setdefault(key, choosing_s)

    def __call__(self) -> tuple[torch.Tensor, ...]:
        result = torch.nn.functional.conv2d(self._pictures, self._weights, padding=1)
        gradients = torch.autograd.grad(result, (self._pictures, self._weights), self._above)
        return (result, *gradients)

    def findings(self) -> tuple[str, ...]:
        return (_repeated(self, self._case.options["cudnn"]), *self._switches())

    def _switches(self) -> tuple[str, ...]:
        card = accelerator_of(self._case.device)
        if reason := card.lacks("convolution switches"):
            return (reason,)
        later_s = time_once(self, self._case.device)
        findings = (
            f"The first call of this kind took {format_duration(self._choosing_s)} in this engine, "
            f"including the time to load {card.convolution_library}'s code and choose an "
            f"algorithm; a call now takes {format_duration(later_s)}.",
        )
        if not torch.backends.cudnn.enabled:
            return (
                *findings,
                f"{card.convolution_library} is switched off here, so its switches have no effect.",
            )
        if _uses_tf32(self._case):
            return (
                *findings,
                "On this card, PyTorch rounds the factors of float32 convolutions to TF32.",
            )
        return findings

    def close(self) -> None:
        self._flags.__exit__(None, None, None)


@contextlib.contextmanager
def cudnn_flags(choice: str) -> Iterator[None]:
    """Set both switches, and restore them on exit.

    Args:
        choice: a key of `CHOICES`.
    """
    cudnn = torch.backends.cudnn
    before = (cudnn.benchmark, cudnn.deterministic)
    cudnn.benchmark, cudnn.deterministic = CHOICES[choice]
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.deterministic = before


def _repeated(call: Conv2dCall, choice: str) -> str:
    """Compare repeated calls bit for bit on the CPU, for about a second."""
    first = _fetched(call)
    repeats, differing, largest = 0, 0, 0.0
    until_s = time.perf_counter() + _LONGEST_REPEATING_S
    while repeats < _FEWEST_REPEATS or (repeats < _MOST_REPEATS and time.perf_counter() < until_s):
        repeats += 1
        pairs = list(zip(first, _fetched(call), strict=True))
        if not all(torch.equal(_bits(one), _bits(other)) for one, other in pairs):
            differing += 1
            largest = max(largest, *(float((one - other).abs().max()) for one, other in pairs))
    if differing:
        return (
            f"With “{choice}”, {differing} of {repeats} repeated calls gave different bits than "
            f"the first call, off by up to {largest:.1e}."
        )
    return (
        f"With “{choice}”, {repeats} repeated calls gave the same bits as the first call: every "
        "number was compared."
    )


def _fetched(call: Conv2dCall) -> list[torch.Tensor]:
    return [one.detach().cpu() for one in call()]


def _bits(numbers: torch.Tensor) -> torch.Tensor:
    # Compared as numbers, two NaNs would differ, and the two zeros would not.
    return numbers.contiguous().view(torch.uint8)


def _operands(
    case: Case, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    shape = (case.size, CHANNELS, SIDE, SIDE)
    shapes = (shape, (CHANNELS, CHANNELS, KERNEL, KERNEL), shape)
    # Drawn as float32, which every device supports, and on the CPU if they must be the same.
    where = torch.device("cpu") if generator else case.device
    pictures, weights, above = (
        torch.randn(one, device=where, generator=generator).to(case.device, case.dtype)
        for one in shapes
    )
    return pictures, weights / (CHANNELS * KERNEL * KERNEL) ** 0.5, above


def _convolved(
    pictures: torch.Tensor, weights: torch.Tensor, above: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    pictures, weights = pictures.requires_grad_(), weights.requires_grad_()
    result = torch.nn.functional.conv2d(pictures, weights, padding=1)
    return (result.detach(), *torch.autograd.grad(result, (pictures, weights), above))


def _wrong(case: Case, found: torch.Tensor, expected: torch.Tensor, magnitude: torch.Tensor) -> str:
    """Return the error in one of the results; empty if it is correct.

    Args:
        case: the computed case.
        found: the device's result, on the CPU.
        expected: the reference in float64.
        magnitude: the sums of the terms' magnitudes.
    """
    if is_coarser(found):
        return "the result was rounded to a shorter dtype"
    computed_in = _computes_in(case)
    eps = dtype_eps(computed_in)
    difference = (found.double() - expected).abs()
    if case.item_bytes == 2 or computed_in == TF32:
        usual = expected.square().mean().sqrt()
        allowed = _SHORT_EPS * eps * (expected.abs() + usual)
        norm_allowed = eps * (_TF32_NORM_EPS if computed_in == TF32 else _SHORT_NORM_EPS)
    else:
        allowed, norm_allowed = _WIDE_EPS * eps * magnitude, _WIDE_NORM_EPS * eps
    largest = float((difference / allowed).nan_to_num(torch.inf).max())
    if not largest <= 1.0:
        return f"off by up to {largest:.1e} times the rounding error"
    share = float(difference.norm() / expected.norm())
    if not share <= norm_allowed:
        return f"off by {share:.1e} in all; rounding explains {norm_allowed:.1e}"
    return ""


def _computes_in(case: Case) -> str:
    return TF32 if _uses_tf32(case) else case.dtype_name


def _uses_tf32(case: Case) -> bool:
    """Return whether float32 convolutions use TF32: PyTorch's default, unlike for products."""
    return (
        case.is_on_card
        and case.dtype == torch.float32
        and bool(torch.backends.cudnn.allow_tf32)
        and has_tf32(case)
    )


def _is_in_rows(case: Case, rows: list[int]) -> torch.Tensor:
    index = torch.arange(case.size, device=case.device)[:, None, None, None]
    return (index == rows[0]) | (index == rows[-1])


def _compared(size: int) -> str:
    pictures = "the image" if size == 1 else f"two of {size} images"
    return f"{pictures} of {SIDE} × {SIDE} and all gradients"


_SETUP = f"""
torch.backends.cudnn.benchmark = {{benchmark}}
torch.backends.cudnn.deterministic = {{deterministic}}
layer = torch.nn.Conv2d({CHANNELS}, {CHANNELS}, {KERNEL}, padding=1, bias=False).to(device, dtype)
shape = (size, {CHANNELS}, {SIDE}, {SIDE})
pictures = torch.randn(shape, device=device).to(dtype).requires_grad_()
above = torch.randn(shape, device=device).to(dtype)


def forward_and_backward():
    return torch.autograd.grad(layer(pictures), (pictures, layer.weight), above)
"""
_COMPARE = """\
pairs = zip(forward_and_backward(), forward_and_backward())
print("same bits:", all(torch.equal(one, other) for one, other in pairs))
"""
