"""One convolution layer, forward and backward, with cuDNN's two switches.

The switches are those of "Chapter 17: Using torch with CUDA" (section 17.9). ``benchmark`` tries
cuDNN's ways at the first call of each shape and keeps the fastest; ``deterministic`` allows only
ways that add in the same order every time.
"""

from __future__ import annotations

import contextlib
import time

import torch

from gpu_studio.core.messages.run_messages import WorkloadDescription, WorkloadOption
from gpu_studio.core.tensors import DTYPES
from gpu_studio.core.units import format_duration
from gpu_studio.engine.stopwatch import time_once
from gpu_studio.engine.workloads.call import Call
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.cudnn_flags import CHOICES, cudnn_flags
from gpu_studio.engine.workloads.proof import Verification, seeded
from gpu_studio.engine.workloads.workload import Workload, wait_lines

CHANNELS = 64
SIDE = 56
KERNEL = 3
_FEWEST_REPEATS, _MOST_REPEATS = 2, 8
_LONGEST_REPEATING_S = 1.0
# A product of TF32 keeps ten bits of each factor.
_TF32_EPS = 2.0**-10
# How many eps of the sum of its terms' sizes a result may be off. The error of a sum of n products
# grows as √n · eps of the result (Higham and Mary, A new approach to probabilistic rounding error
# analysis, 2019), and the sum of the sizes is itself √n times the usual result: so about one eps of
# it, and cuDNN's faster ways (Winograd) add and subtract more. Short types are summed in float32.
_WIDE_EPS, _SHORT_EPS = 8.0, 4.0
# How long the first call of each kind took in this process: cuDNN chooses once, and keeps it.
_first_call_s: dict[tuple[str, int, torch.dtype, str], float] = {}


class Conv2d(Workload):
    """A 3 × 3 convolution of pictures, and its gradients; see `workload.Workload`."""

    description = WorkloadDescription(
        name="conv2d",
        title="Convolution",
        sentence=(
            f"A 3 × 3 filter over pictures of {SIDE} × {SIDE} with {CHANNELS} channels, and what "
            "learning needs of it: where cuDNN may choose among several ways, and not all of them "
            "give the same bits twice."
        ),
        dtypes=DTYPES,
        sizes=(1, 2, 4, 8, 16, 32, 64),
        throughput_unit="FLOP/s",
        source="Chapter 17: Using torch with CUDA (17.9)",
        options=(
            WorkloadOption(
                name="cudnn",
                title="cuDNN",
                sentence=(
                    "benchmark tries the ways at the first call and keeps the fastest; "
                    "deterministic allows only those that repeat to the bit."
                ),
                values=tuple(CHOICES),
            ),
        ),
        size_title="Pictures in a batch",
        size_text="batch of {size}",
    )

    def work(self, case: Case) -> Work:
        """Count a multiplication and an addition a term, for the result and both gradients."""
        pictures = case.size * CHANNELS * SIDE * SIDE
        operations = 3 * 2.0 * pictures * CHANNELS * KERNEL * KERNEL
        weights = CHANNELS * CHANNELS * KERNEL * KERNEL
        # Forward reads pictures and weights; backward reads them and the result's gradient.
        moved = (2 + 3) * pictures + 3 * weights
        return Work(
            operations=operations,
            bytes_moved=float(moved * case.item_bytes),
            throughput_work=operations,
            # Pictures, result, their gradients, and about as much again for cuDNN to work in.
            memory_bytes=(2 * 4 * pictures + 2 * weights) * case.item_bytes,
        )

    def prepare(self, case: Case) -> Call:
        """Make pictures, shape (size, 64, 56, 56), and weights, shape (64, 64, 3, 3)."""
        return Conv2dCall(case, *_operands(case))

    def verify(self, case: Case) -> Verification:
        """Compare the first and the last picture, and the gradients, with float64 on the CPU.

        The whole batch is computed; what comes from above is zero but for the two pictures, so
        that the weights' gradient is theirs alone.
        """
        pictures, weights, above = _operands(case, seeded())
        kept = sorted({0, case.size - 1})
        above = torch.where(_is_kept(case, kept), above, torch.zeros_like(above))
        with contextlib.closing(Conv2dCall(case, pictures, weights, above)) as call:
            found = call()
        result, input_gradient, weight_gradient = (one.detach().cpu() for one in found)
        found = (result[kept], input_gradient[kept], weight_gradient)
        operands = [one.detach().cpu().double() for one in (pictures[kept], weights, above[kept])]
        magnitudes = _convolved(*map(torch.abs, operands))
        allowed = [_allowed_share(case) * magnitude for magnitude in magnitudes]
        largest = max(map(_excess, found, _convolved(*operands), allowed))
        verified = largest <= 1.0  # false for NaN
        finding = "within rounding of float64"
        if not verified:
            finding = f"off by up to {largest:.1e} times what rounding explains"
        return Verification(verified, finding, (_compared(case.size),))

    def snippet(self, case: Case) -> str:
        """Return lines of PyTorch that do and time this work as they stand."""
        benchmark, deterministic = CHOICES[case.options["cudnn"]]
        return _SNIPPET.format(
            size=case.size,
            device=case.address,
            dtype=case.dtype_name,
            benchmark=benchmark,
            deterministic=deterministic,
            channels=CHANNELS,
            side=SIDE,
            kernel=KERNEL,
            wait=wait_lines(case.address),
        )


class Conv2dCall(Call):
    """Forward and backward of one layer. The switches are set as long as it is open.

    Args:
        case: where, how many pictures, and cuDNN's switches.
        pictures: shape (size, 64, 56, 56).
        weights: shape (64, 64, 3, 3).
        above: the gradient that comes from the next layer, shape of the result.
    """

    def __init__(
        self, case: Case, pictures: torch.Tensor, weights: torch.Tensor, above: torch.Tensor
    ) -> None:
        self._case = case
        self._pictures = pictures.requires_grad_()
        self._weights = weights.requires_grad_()
        self._above = above
        self._flags = cudnn_flags(case.options["cudnn"])
        self._flags.__enter__()
        try:
            choosing_s = time_once(self, case.device)
        except BaseException:
            self._flags.__exit__(None, None, None)
            raise
        key = (case.address, case.size, case.dtype, case.options["cudnn"])
        self._choosing_s = _first_call_s.setdefault(key, choosing_s)

    def __call__(self) -> tuple[torch.Tensor, ...]:
        """Return the result and the gradients of pictures and weights."""
        result = torch.nn.functional.conv2d(self._pictures, self._weights, padding=1)
        gradients = torch.autograd.grad(result, (self._pictures, self._weights), self._above)
        return (result, *gradients)

    def findings(self) -> tuple[str, ...]:
        """Say whether repeated results are the same to the bit, and what the switches did."""
        return (_repeated(self, self._case.options["cudnn"]), *self._switches())

    def _switches(self) -> tuple[str, ...]:
        if not self._case.is_on_card:
            return ("These switches are cuDNN's: the CPU's convolutions do not look at them.",)
        later_s = time_once(self, self._case.device)
        told = (
            f"The first call of this kind took {format_duration(self._choosing_s)} in this engine, "
            f"with loading cuDNN's code and choosing a way; one of now "
            f"{format_duration(later_s)}.",
        )
        if not torch.backends.cudnn.enabled:
            return (*told, "cuDNN is switched off here, so its switches changed nothing.")
        if _uses_tf32(self._case):
            return (
                *told,
                "PyTorch lets convolutions of float32 round their factors to TF32 on this card.",
            )
        return told

    def close(self) -> None:
        """Set the switches back."""
        self._flags.__exit__(None, None, None)


def _repeated(call: Conv2dCall, choice: str) -> str:
    """Compare repeated calls bit by bit on the CPU, for about a second."""
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
            f"With “{choice}”, {differing} of {repeats} repeated calls gave other bits than the "
            f"first, off by up to {largest:.1e}."
        )
    return (
        f"With “{choice}”, {repeats} repeated calls gave the same bits as the first: every number "
        "was compared."
    )


def _fetched(call: Conv2dCall) -> list[torch.Tensor]:
    return [one.detach().cpu() for one in call()]


def _bits(numbers: torch.Tensor) -> torch.Tensor:
    # As numbers, two that are none would differ, and the two zeros would not.
    return numbers.contiguous().view(torch.uint8)


def _operands(
    case: Case, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    shape = (case.size, CHANNELS, SIDE, SIDE)
    shapes = (shape, (CHANNELS, CHANNELS, KERNEL, KERNEL), shape)
    # Drawn as float32, which every device can, and on the CPU where they are to be the same.
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


def _excess(found: torch.Tensor, expected: torch.Tensor, allowed: torch.Tensor) -> float:
    """Return the largest error over the allowed one; at most 1 is right."""
    return float(((found.double() - expected).abs() / allowed).nan_to_num(torch.inf).max())


def _allowed_share(case: Case) -> float:
    """Return how far a result may be off, in the sum of its terms' sizes."""
    eps = float(torch.finfo(case.dtype).eps)
    if _uses_tf32(case):
        eps = _TF32_EPS
    return eps * (_WIDE_EPS if eps < _TF32_EPS else _SHORT_EPS)


def _uses_tf32(case: Case) -> bool:
    """Return whether float32 convolutions use TF32: PyTorch's default, other than for products."""
    return (
        case.is_on_card
        and case.dtype == torch.float32
        and bool(torch.backends.cudnn.allow_tf32)
        and torch.cuda.get_device_capability(case.device) >= (8, 0)
    )


def _is_kept(case: Case, kept: list[int]) -> torch.Tensor:
    index = torch.arange(case.size, device=case.device)[:, None, None, None]
    return (index == kept[0]) | (index == kept[-1])


def _compared(size: int) -> str:
    pictures = "the picture" if size == 1 else f"two of {size} pictures"
    return f"{pictures} of {SIDE} × {SIDE} and all gradients"


_SNIPPET = """\
import time
import torch

torch.backends.cudnn.benchmark = {benchmark}
torch.backends.cudnn.deterministic = {deterministic}
size, device, dtype = {size}, "{device}", torch.{dtype}
layer = torch.nn.Conv2d({channels}, {channels}, {kernel}, padding=1, bias=False).to(device, dtype)
pictures = torch.randn(size, {channels}, {side}, {side}, device=device).to(dtype).requires_grad_()
above = torch.randn(size, {channels}, {side}, {side}, device=device).to(dtype)


def forward_and_backward():
    return torch.autograd.grad(layer(pictures), (pictures, layer.weight), above)


first = forward_and_backward()  # the first call is slower
{wait}start = time.perf_counter()
for _ in range(10):
    again = forward_and_backward()
{wait}print(f"{{(time.perf_counter() - start) / 10:.6f}} s a call")
print("same bits:", all(torch.equal(one, other) for one, other in zip(first, again)))
"""
