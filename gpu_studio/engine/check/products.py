"""Matrix products and convolutions of numbers whose results are known exactly.

A product of whole numbers is exact in every dtype and in any order of the sum while no partial sum
needs more bits than the dtype has. With small factors, most of the bits of a factor are zero, so
other products have all of them: each row of one side has a single power of two, or two short
factors whose product fills the dtype. Products of real numbers are within the bound for any order
of their sums, K·u of the sum of the magnitudes (N. J. Higham, "Accuracy and stability of numerical
algorithms", 2nd edition, section 3.1).

A convolution's algorithm may round in the middle (Winograd's divides by 6 and 24), so it has a
tolerance of some ULPs of the sum of the magnitudes; without cuDNN it has none. PyTorch asks oneDNN
for the direct algorithm, which is exact.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # as PyTorch's own documents call it

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.check.detectors import Mismatch, mismatch_at
from gpu_studio.engine.check.formats import carrier, differing, tensor_of, ulp_of, values_of
from gpu_studio.engine.check.parts import Part
from gpu_studio.engine.device import refuse_bfloat16_products
from gpu_studio.engine.faults import failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from gpu_studio.engine.check.stage import StageBench

    Array = NDArray[Any]
    Pairs = list[tuple[Array, Array]]

_ROWS = 512
# (dtype, inner size K, largest absolute value a): every partial sum is at most K·a². float32 and
# TF32: below 2^24, and a has at most 10 bits. float16: below 2048. bfloat16: below 256. float64:
# below 2^53.
EXACT: tuple[tuple[str, int, int], ...] = (
    ("float32", 256, 127), ("float16", 128, 3), ("bfloat16", 128, 1), ("float64", 256, 1 << 20),
    ("complex64", 64, 127), ("complex128", 64, 1 << 20),
)  # fmt: skip
# (dtype, significant bits)
FULL: tuple[tuple[str, int], ...] = (
    ("float32", 24), ("float64", 53), ("float16", 11), ("bfloat16", 8),
)  # fmt: skip
_FULL_SIDE, _REAL_INNER = 192, 257


@contextmanager
def precision(name: str = "highest") -> Iterator[None]:
    """Let float32 products keep all their bits, or with "high" those of TF32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


class Product(Part):
    """Products through PyTorch's operations for them.

    Args:
        title: in words.
        dtype: the name of the dtype.
        pairs: makes the factors; float64 has to hold their products.
        steps: how many roundings a sum may have; None if it is exact.
        bits: the precision of float32 products, in PyTorch's words.
    """

    def __init__(
        self,
        title: str,
        dtype: str,
        pairs: Callable[[np.random.Generator], Pairs],
        steps: int | None = None,
        bits: str = "highest",
    ) -> None:
        self.title, self.dtype = title, dtype
        self._make, self._steps, self._bits = pairs, steps, bits
        self._pairs: list[tuple[Tensor, Tensor]] = []
        self._exact: Array = np.empty(0)
        self._slack: Array | None = None

    def prepare(self, bench: StageBench) -> None:
        """Make new factors, their products, and how far a result may be away."""
        if self.dtype == "bfloat16":
            refuse_bfloat16_products(bench.device)
        here = [
            tuple(tensor_of(one.astype(carrier(self.dtype)), self.dtype) for one in pair)
            for pair in self._make(bench.numbers)
        ]
        factors = [(values_of(left), values_of(right)) for left, right in here]
        self._exact = np.concatenate([_each_way(left @ right) for left, right in factors])
        if self._steps is not None:
            magnitudes = [_each_way(np.abs(left) @ np.abs(right)) for left, right in factors]
            self._slack = self._steps * ulp_of(np.concatenate(magnitudes), self.dtype)
        self._pairs = [(left.to(bench.device), right.to(bench.device)) for left, right in here]

    def result(self, _bench: StageBench) -> Tensor:
        """Multiply on the device."""
        results: list[Tensor] = []
        with precision(self._bits):
            for left, right in self._pairs:
                results += [
                    left @ right, torch.bmm(left[None], right[None]),
                    F.linear(right.t(), left).t(), left.mv(right[:, 0].contiguous()),
                ]  # fmt: skip
        return torch.cat([one.cpu().reshape(-1) for one in results])

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with the exact product."""
        return mismatch_at(differing(values_of(seen), self._exact, self._slack))


def _each_way(product: Array) -> Array:
    return np.concatenate([*(product.reshape(-1),) * 3, product[:, 0]])


def _small(dtype: str, inner: int, largest: int) -> Callable[[np.random.Generator], Pairs]:
    """Return what makes whole numbers without zero, so that each counts."""
    limit = largest // 2 if dtype.startswith("complex") else largest

    def part(numbers: np.random.Generator, shape: tuple[int, int]) -> Array:
        size = numbers.integers(1, limit + 1, shape)
        return (size * (numbers.integers(0, 2, shape) * 2 - 1)).astype(np.float64)

    def matrix(numbers: np.random.Generator, shape: tuple[int, int]) -> Array:
        real = part(numbers, shape)
        return real + 1j * part(numbers, shape) if dtype.startswith("complex") else real

    return lambda numbers: [(matrix(numbers, (_ROWS, inner)), matrix(numbers, (inner, _ROWS)))]


def _full(dtype: str, bits: int) -> Callable[[np.random.Generator], Pairs]:
    """Return what makes three pairs: all bits left, all bits right, half of them on either side."""
    side, short_bits = _FULL_SIDE, (bits - 1) // 2

    def whole(numbers: np.random.Generator, shape: int | tuple[int, int], width: int) -> Array:
        size = numbers.integers(1 << (width - 1), 1 << width, shape)
        return (size * (numbers.integers(0, 2, shape) * 2 - 1)).astype(np.float64)

    def pairs(numbers: np.random.Generator) -> Pairs:
        full, single, short = whole(numbers, (side, side), bits), *np.zeros((2, side, side))
        signs = numbers.integers(0, 2, side) * 2.0 - 1
        powers = signs * 2.0 ** numbers.integers(-2, 3, side)
        single[np.arange(side), numbers.permutation(side)] = powers
        for _ in range(2):
            short[np.arange(side), numbers.permutation(side)] = whole(numbers, side, short_bits)
        long = whole(numbers, (side, side), bits - 1 - short_bits)
        unit = 2.0**-4 if dtype != "float16" else 2.0**-6
        return [(full * unit, single), (single, full.T * unit), (short, long)]

    return pairs


def _real(numbers: np.random.Generator) -> Pairs:
    sides = (131, _REAL_INNER), (_REAL_INNER, 197)
    left, right = (numbers.standard_normal(shape) for shape in sides)
    return [(left, right)]


class Int8Product(Part):
    """A product of int8 with sums in int32, as quantized models have it."""

    title = "Products in int8"
    dtype = "int8"

    def __init__(self) -> None:
        self._left = self._right = torch.empty(0)
        self._exact: Array = np.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Make new factors of all int8, and their product in float64."""
        left, right = (
            bench.numbers.integers(-128, 128, shape).astype(np.int8)
            for shape in ((_ROWS, 256), (256, _ROWS))
        )
        self._exact = (left.astype(np.float64) @ right.astype(np.float64)).astype(np.int32)
        self._left, self._right = (torch.from_numpy(one).to(bench.device) for one in (left, right))

    def result(self, _bench: StageBench) -> Tensor:
        """Multiply on the device.

        Raises:
            StudioError: the device has no such product.
        """
        try:
            return torch._int_mm(self._left, self._right).cpu()
        except Exception as error:
            failure = failure_of(error)
            if failure.fatal:
                raise
            message = f"No int8 products here: {failure.cause or failure.message}"
            raise StudioError(FailureKind.DTYPE_UNSUPPORTED, message) from error

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with the exact product."""
        return mismatch_at(differing(seen.numpy(), self._exact))


@dataclass(frozen=True, slots=True)
class ConvolutionShape:
    """The shape of a convolution: height and width of the weights, and groups of channels."""

    name: str
    kernel: int = 3
    stride: int = 1
    padding: int = 1
    groups: int = 1


SHAPES: tuple[ConvolutionShape, ...] = (
    ConvolutionShape("3 × 3"), ConvolutionShape("1 × 1", kernel=1, padding=0),
    ConvolutionShape("with stride", stride=2), ConvolutionShape("in groups", groups=4),
)  # fmt: skip
_PICTURES, _IN, _OUT, _SIDE = 2, 8, 12, 10
_LARGEST = {"float32": 31, "float64": 1 << 12, "float16": 1, "bfloat16": 1}
_WINOGRAD_ULPS = 64


class ExactConvolution(Part):
    """A convolution of whole numbers with both gradients, with and without the library."""

    def __init__(self, shape: ConvolutionShape, dtype: str) -> None:
        self.title = f"Convolution {shape.name}, forward and backward, in {dtype}"
        self.dtype = dtype
        self._shape = shape
        self._inputs: list[Tensor] = []
        self._exact = self._slack = np.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Make pictures, weights and a gradient, and their exact results."""
        if self.dtype == "bfloat16":
            refuse_bfloat16_products(bench.device)
        shape, largest = self._shape, _LARGEST[self.dtype]
        side = (_SIDE + 2 * shape.padding - shape.kernel) // shape.stride + 1
        factors = [
            bench.numbers.integers(-largest, largest + 1, size).astype(np.float64)
            for size in (
                (_PICTURES, _IN, _SIDE, _SIDE), (_PICTURES, _OUT, side, side),
                (_OUT, _IN // shape.groups, shape.kernel, shape.kernel),
            )
        ]  # fmt: skip
        exact = _convolved(shape, *factors)
        magnitudes = _convolved(shape, *(np.abs(one) for one in factors))
        slack = _WINOGRAD_ULPS * ulp_of(magnitudes, self.dtype) / 2
        self._exact = np.concatenate([exact, exact])
        self._slack = np.concatenate([slack, np.zeros_like(slack)])
        self._inputs = [
            tensor_of(one.astype(carrier(self.dtype)), self.dtype).to(bench.device)
            for one in factors
        ]

    def result(self, _bench: StageBench) -> Tensor:
        """Convolve on the device: with the library as it is, then without any."""
        cudnn = torch.backends.cudnn
        with cudnn.flags(
            enabled=cudnn.enabled, benchmark=False, deterministic=True, allow_tf32=False
        ):
            first = self._convolve()
        with cudnn.flags(enabled=False):
            second = self._convolve()
        return torch.cat([first, second])

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare with the exact results."""
        return mismatch_at(differing(values_of(seen), self._exact, self._slack))

    def _convolve(self) -> Tensor:
        shape, (pictures, gradient, weights) = self._shape, self._inputs
        pictures, weights = (one.detach().requires_grad_() for one in (pictures, weights))
        with torch.enable_grad(), precision():
            output = F.conv2d(
                pictures, weights, stride=shape.stride, padding=shape.padding, groups=shape.groups
            )
            gradients = torch.autograd.grad(output, (pictures, weights), gradient)
        parts = (output.detach(), *gradients)
        return torch.cat([part.cpu().reshape(-1) for part in parts])


def _convolved(shape: ConvolutionShape, pictures: Array, gradient: Array, weights: Array) -> Array:
    """Return the output of a convolution and the gradients of pictures and weights, in a row."""
    groups, pad, side = shape.groups, shape.padding, gradient.shape[-1]
    padded = np.pad(pictures, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    split = padded.reshape(_PICTURES, groups, _IN // groups, *padded.shape[2:])
    kernels = weights.reshape(groups, _OUT // groups, *weights.shape[1:])
    coming = gradient.reshape(_PICTURES, groups, _OUT // groups, side, side)
    output, of_kernels, of_split = (np.zeros_like(one) for one in (coming, kernels, split))
    reach = (side - 1) * shape.stride + 1
    for row in range(shape.kernel):
        for column in range(shape.kernel):
            at = (..., slice(row, row + reach, shape.stride),
                  slice(column, column + reach, shape.stride))  # fmt: skip
            kernel = kernels[..., row, column]
            output += np.einsum("ngchw,goc->ngohw", split[at], kernel)
            of_kernels[..., row, column] = np.einsum("ngchw,ngohw->goc", split[at], coming)
            of_split[at] += np.einsum("ngohw,goc->ngchw", coming, kernel)
    of_pictures = of_split.reshape(padded.shape)[..., pad : pad + _SIDE, pad : pad + _SIDE]
    return np.concatenate([one.reshape(-1) for one in (output, of_pictures, of_kernels)])


def product_parts(bench: StageBench) -> list[Part]:
    """Return every product and convolution that a device may have."""
    parts: list[Part] = [
        Product(f"Exact products in {dtype}", dtype, _small(dtype, inner, largest))
        for dtype, inner, largest in EXACT
    ]
    if bench.has_tf32:
        small = _small(*EXACT[0])
        parts.append(Product("Exact products in TF32", "float32", small, bits="high"))
    for dtype, bits in FULL:
        title = f"Products of all {bits} bits in {dtype}"
        parts.append(Product(title, dtype, _full(dtype, bits)))
        # The small dtypes sum in float32, or in parts that are rounded once each.
        steps = 8 if bits < 24 else _REAL_INNER
        parts.append(Product(f"Products of real numbers in {dtype}", dtype, _real, steps))
    parts.append(Int8Product())
    parts += [ExactConvolution(shape, dtype) for shape in SHAPES for dtype, _ in FULL]
    return parts
