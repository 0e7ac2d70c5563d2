"""Matrix products and convolutions of numbers whose results are known exactly.

A product of whole numbers is exact in every dtype and in any order of the sum while no partial sum
needs more bits than the dtype has. With small factors, most of the bits of a factor are zero, so
other products have all of them: each row of one side has a single power of two, or two short
factors whose product fills the dtype.

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

from gpu_studio.engine.check.detectors import Mismatch, mismatch_at, values_of
from gpu_studio.engine.check.known_answers import differing, tensor_of, ulp_of
from gpu_studio.engine.check.part import Part
from gpu_studio.engine.device import refuse_bfloat16_products

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from gpu_studio.engine.check.stage import StageBench

    Array = NDArray[Any]

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
_FULL_SIDE = 192


@contextmanager
def full_precision() -> Iterator[None]:
    """Let float32 products keep all their bits: no TF32, no bfloat16 inside."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _refuse(bench: StageBench, dtype: str) -> None:
    if dtype == "bfloat16":
        refuse_bfloat16_products(bench.device)


class ExactProduct(Part):
    """A product of small whole numbers, through each of PyTorch's operations for it.

    Args:
        dtype: the name of the dtype.
        inner: the inner size.
        largest: the largest absolute value of an element.
    """

    def __init__(self, dtype: str, inner: int, largest: int) -> None:
        self.title = f"Exact products in {dtype}"
        self.dtype = dtype
        self._inner, self._largest = inner, largest
        self._left = self._right = torch.empty(0)
        self._exact: Array = np.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Make new matrices; float64 holds their product exactly."""
        _refuse(bench, self.dtype)
        left = self._numbers(bench, _ROWS, self._inner)
        right = self._numbers(bench, self._inner, _ROWS)
        whole = left @ right
        self._exact = np.concatenate([
            whole.reshape(-1), whole.reshape(-1), whole[:64].reshape(-1) + 1, whole[:, 0],
            whole[:3, :3].reshape(-1), whole[:32].reshape(-1), whole.T[:17].reshape(-1),
        ])  # fmt: skip
        self._left, self._right = (
            tensor_of(one.astype(_carrier(self.dtype)), self.dtype).to(bench.device)
            for one in (left, right)
        )

    def result(self, _bench: StageBench) -> Tensor:
        """Multiply on the device."""
        left, right = self._left, self._right
        ones = torch.ones(_ROWS, dtype=left.dtype, device=left.device)
        with full_precision():
            results = [
                left @ right,
                torch.bmm(left.view(4, -1, self._inner), right.expand(4, -1, -1)),
                torch.addmm(ones, left[:64], right),
                left.mv(right[:, 0].contiguous()),
                torch.stack([
                    left[row].dot(right[:, column].contiguous())
                    for row in range(3) for column in range(3)
                ]),
                F.linear(left[:32], right.t()),
                right.t()[:17] @ left.t(),
            ]  # fmt: skip
        return torch.cat([one.cpu().reshape(-1) for one in results])

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with the exact product."""
        return _mismatch(seen, self._exact, None)

    def release(self) -> None:
        """Drop the matrices."""
        self._left = self._right = torch.empty(0)
        self._exact = np.empty(0)

    def _numbers(self, bench: StageBench, rows: int, columns: int) -> Array:
        """Return whole numbers without zero, so that each counts."""
        limit = self._largest // 2 if self.dtype.startswith("complex") else self._largest

        def part() -> Array:
            size = bench.numbers.integers(1, limit + 1, (rows, columns))
            sign = bench.numbers.integers(0, 2, (rows, columns)) * 2 - 1
            return (size * sign).astype(np.float64)

        return part() + 1j * part() if self.dtype.startswith("complex") else part()


class FullProduct(Part):
    """A product of numbers with all significant bits of the dtype.

    Args:
        dtype: the name of the dtype.
        bits: its significant bits.
    """

    def __init__(self, dtype: str, bits: int) -> None:
        self.title = f"Products of all {bits} bits in {dtype}"
        self.dtype = dtype
        self._bits = bits
        self._pairs: list[tuple[Tensor, Tensor]] = []
        self._exact: Array = np.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Make three pairs: all bits left, all bits right, and half of them on either side."""
        _refuse(bench, self.dtype)
        numbers, side, bits = bench.numbers, _FULL_SIDE, self._bits
        full = self._whole(numbers, (side, side), bits)
        single = np.zeros((side, side))
        signs = numbers.integers(0, 2, side) * 2.0 - 1
        single[np.arange(side), numbers.permutation(side)] = signs * 2.0 ** numbers.integers(
            -2, 3, side
        )
        # Two short factors in each row: their sum of products has at most all the bits.
        left_bits = (bits - 1) // 2
        short = np.zeros((side, side))
        for _ in range(2):
            short[np.arange(side), numbers.permutation(side)] = self._whole(
                numbers, side, left_bits
            )
        long = self._whole(numbers, (side, side), bits - 1 - left_bits)
        unit = 2.0**-4 if self.dtype != "float16" else 2.0**-6
        pairs = [(full * unit, single), (single, full.T * unit), (short, long)]
        self._exact = np.concatenate([(left @ right).reshape(-1) for left, right in pairs])
        carrier = _carrier(self.dtype)
        self._pairs = [
            (tensor_of(left.astype(carrier), self.dtype).to(bench.device),
             tensor_of(right.astype(carrier), self.dtype).to(bench.device))
            for left, right in pairs
        ]  # fmt: skip

    def result(self, _bench: StageBench) -> Tensor:
        """Multiply on the device."""
        with full_precision():
            results = [left @ right for left, right in self._pairs]
        return torch.cat([one.cpu().reshape(-1) for one in results])

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare every element with the exact product."""
        return _mismatch(seen, self._exact, None)

    def release(self) -> None:
        """Drop the matrices."""
        self._pairs, self._exact = [], np.empty(0)

    @staticmethod
    def _whole(numbers: np.random.Generator, shape: int | tuple[int, int], bits: int) -> Array:
        """Return whole numbers of exactly so many bits, with a sign."""
        size = numbers.integers(1 << (bits - 1), 1 << bits, shape)
        return (size * (numbers.integers(0, 2, shape) * 2 - 1)).astype(np.float64)


class TensorCoreProduct(ExactProduct):
    """A product of small whole numbers in TF32, which has 11 of the 24 bits of float32."""

    def __init__(self) -> None:
        super().__init__("float32", 256, 127)
        self.title = "Exact products in TF32"

    def result(self, bench: StageBench) -> Tensor:
        """Multiply on the device's tensor cores."""
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            product = self._left @ self._right
        finally:
            torch.set_float32_matmul_precision(before)
        rest = super().result(bench)
        return torch.cat([product.cpu().reshape(-1), rest[product.numel() :]])


class DenseProduct(Part):
    """A product of random real numbers, within the bound for any order of its sums.

    Every order of K products is within K·u of the sum of the magnitudes (N. J. Higham, "Accuracy
    and stability of numerical algorithms", 2nd edition, section 3.1).

    Args:
        dtype: the name of the dtype.
    """

    _INNER = 257

    def __init__(self, dtype: str) -> None:
        self.title = f"Products of real numbers in {dtype}"
        self.dtype = dtype
        self._left = self._right = torch.empty(0)
        self._exact: Array = np.empty(0)
        self._slack: Array = np.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Make new matrices, their product in float64, and the bound."""
        _refuse(bench, self.dtype)
        sides = ((131, self._INNER), (self._INNER, 197))
        factors = [bench.numbers.standard_normal(shape) for shape in sides]
        self._left, self._right = (
            tensor_of(one.astype(_carrier(self.dtype)), self.dtype).to(bench.device)
            for one in factors
        )
        left, right = values_of(self._left), values_of(self._right)
        self._exact = (left @ right).reshape(-1)
        magnitudes = (np.abs(left) @ np.abs(right)).reshape(-1)
        # The small dtypes sum in float32, or in parts that are rounded once each.
        steps = 8 if self.dtype in ("float16", "bfloat16") else self._INNER
        self._slack = steps * ulp_of(magnitudes, self.dtype)

    def result(self, _bench: StageBench) -> Tensor:
        """Multiply on the device."""
        with full_precision():
            return (self._left @ self._right).cpu().reshape(-1)

    def wrong(self, seen: Tensor) -> Mismatch | None:
        """Compare with the product in float64."""
        return _mismatch(seen, self._exact, self._slack)

    def release(self) -> None:
        """Drop the matrices."""
        self._left = self._right = torch.empty(0)
        self._exact = self._slack = np.empty(0)


@dataclass(frozen=True, slots=True)
class ConvolutionShape:
    """The shape of a convolution in two dimensions.

    Attributes:
        name: in words.
        kernel: height and width of the weights.
        groups: independent parts of the channels.
    """

    name: str
    kernel: int = 3
    stride: int = 1
    padding: int = 1
    dilation: int = 1
    groups: int = 1
    is_transposed: bool = False


SHAPES: tuple[ConvolutionShape, ...] = (
    ConvolutionShape("3 × 3"),
    ConvolutionShape("1 × 1", kernel=1, padding=0),
    ConvolutionShape("with stride", stride=2),
    ConvolutionShape("dilated", dilation=2, padding=2),
    ConvolutionShape("in groups", groups=4),
    ConvolutionShape("transposed", is_transposed=True),
)
_PICTURES, _IN, _OUT, _SIDE = 2, 8, 12, 10
_LARGEST = {"float32": 31, "float64": 1 << 12, "float16": 1, "bfloat16": 1}
_WINOGRAD_ULPS = 64


class ExactConvolution(Part):
    """A convolution of whole numbers with both gradients, with and without the library.

    Args:
        shape: the kind of convolution.
        dtype: the name of the dtype.
    """

    def __init__(self, shape: ConvolutionShape, dtype: str) -> None:
        self.title = f"Convolution {shape.name}, forward and backward, in {dtype}"
        self.dtype = dtype
        self._shape = shape
        self._inputs: list[Tensor] = []
        self._exact: Array = np.empty(0)
        self._slack: Array = np.empty(0)

    def prepare(self, bench: StageBench) -> None:
        """Make pictures, weights and a gradient, and their exact results."""
        _refuse(bench, self.dtype)
        shape = self._shape
        ends = (_IN, _OUT // shape.groups) if shape.is_transposed else (_OUT, _IN // shape.groups)
        pictures = self._numbers(bench, (_PICTURES, _IN, _SIDE, _SIDE))
        weights = self._numbers(bench, (*ends, shape.kernel, shape.kernel))
        side = (_SIDE + 2 * shape.padding - shape.dilation * (shape.kernel - 1) - 1) // shape.stride
        gradient = self._numbers(bench, (_PICTURES, _OUT, side + 1, side + 1))
        factors = [pictures, weights, gradient]
        exact = np.concatenate([one.reshape(-1) for one in _convolved(shape, *factors)])
        magnitudes = _convolved(shape, *(np.abs(one) for one in factors))
        slack = _WINOGRAD_ULPS * ulp_of(
            np.concatenate([one.reshape(-1) for one in magnitudes]), self.dtype
        ) / 2  # fmt: skip
        self._exact = np.concatenate([exact, exact])
        self._slack = np.concatenate([slack, np.zeros_like(slack)])
        carrier = _carrier(self.dtype)
        self._inputs = [
            tensor_of(one.astype(carrier), self.dtype).to(bench.device) for one in factors
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
        return _mismatch(seen, self._exact, self._slack)

    def release(self) -> None:
        """Drop the pictures and the results."""
        self._inputs = []
        self._exact = self._slack = np.empty(0)

    def _convolve(self) -> Tensor:
        shape = self._shape
        pictures, weights = (one.detach().requires_grad_() for one in self._inputs[:2])
        with torch.enable_grad(), full_precision():
            work = F.conv_transpose2d if shape.is_transposed else F.conv2d
            output = work(
                pictures, weights, stride=shape.stride, padding=shape.padding,
                dilation=shape.dilation, groups=shape.groups,
            )  # fmt: skip
            gradients = torch.autograd.grad(output, (pictures, weights), self._inputs[2])
        parts = (output.detach(), *gradients)
        return torch.cat([part.cpu().reshape(-1) for part in parts])

    def _numbers(self, bench: StageBench, shape: tuple[int, ...]) -> Array:
        largest = _LARGEST[self.dtype]
        return bench.numbers.integers(-largest, largest + 1, shape).astype(np.float64)


def _convolved(
    shape: ConvolutionShape, pictures: Array, weights: Array, gradient: Array
) -> tuple[Array, Array, Array]:
    """Return the output of a convolution and the gradients of pictures and weights."""
    if shape.is_transposed:  # the same three, in other places
        of_gradient, output, of_weights = _correlated(shape, gradient, weights, pictures)
        return output, of_gradient, of_weights
    return _correlated(shape, pictures, weights, gradient)


def _correlated(
    shape: ConvolutionShape, pictures: Array, weights: Array, gradient: Array
) -> tuple[Array, Array, Array]:
    groups, pad = shape.groups, shape.padding
    count, channels, height, width = pictures.shape
    outs, side = len(weights), gradient.shape[-1]
    padded = np.pad(pictures, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    split = padded.reshape(count, groups, channels // groups, *padded.shape[2:])
    kernels = weights.reshape(groups, outs // groups, channels // groups, *weights.shape[2:])
    coming = gradient.reshape(count, groups, outs // groups, side, side)
    output, of_kernels, of_split = (
        np.zeros_like(coming),
        np.zeros_like(kernels),
        np.zeros_like(split),
    )
    for row in range(shape.kernel):
        for column in range(shape.kernel):
            down, right = row * shape.dilation, column * shape.dilation
            at = (
                ..., slice(down, down + side * shape.stride, shape.stride),
                slice(right, right + side * shape.stride, shape.stride),
            )  # fmt: skip
            window, kernel = split[at][..., :side, :side], kernels[..., row, column]
            output += np.einsum("ngchw,goc->ngohw", window, kernel)
            of_kernels[..., row, column] = np.einsum("ngchw,ngohw->goc", window, coming)
            of_split[at] += np.einsum("ngohw,goc->ngchw", coming, kernel)
    of_pictures = of_split.reshape(padded.shape)[..., pad : pad + height, pad : pad + width]
    return output.reshape(gradient.shape), of_pictures, of_kernels.reshape(weights.shape)


def _carrier(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype


def _mismatch(seen: Tensor, exact: Array, slack: Array | None) -> Mismatch | None:
    values = values_of(seen)
    if values.shape != exact.shape:
        return Mismatch(exact.size, exact.size, 0, exact.size - 1)
    return mismatch_at(differing(values, exact, slack))


def product_parts(bench: StageBench) -> list[Part]:
    """Return every product and convolution that a device may have."""
    parts: list[Part] = [ExactProduct(*row) for row in EXACT]
    if bench.has_tf32:
        parts.append(TensorCoreProduct())
    parts += [FullProduct(*row) for row in FULL]
    parts += [DenseProduct(dtype) for dtype, _ in FULL]
    parts += [ExactConvolution(shape, dtype) for shape in SHAPES for dtype, _ in FULL]
    return parts
