"""Matrix products and convolutions of numbers whose results are known exactly.

A product of whole numbers is exact in every dtype and in any order of the sum while no partial sum
needs more bits than the dtype has. With small factors, most of the bits of a factor are zero, so
other products have all of them: each row of one side has a single power of two.

A convolution's algorithm may round in the middle (Winograd's divides by 6 and 24), so it has a
tolerance of some ULPs of the sum of the magnitudes; without cuDNN it has none. PyTorch asks oneDNN
for the direct algorithm, which is exact.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # as PyTorch's own documents call it

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.check.known_work import KnownWork, compared, significant_bits, ulp_of
from gpu_studio.engine.faults import failure_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from gpu_studio.engine.check.known_work import Array
    from gpu_studio.engine.check.stage_run import StageRun

_ROWS = 512
# (dtype, inner size K, largest absolute value a): every partial sum is at most K·a². float32 and
# TF32: below 2^24, and a has at most 10 bits. float16: below 2048. bfloat16: below 256. float64:
# below 2^53.
EXACT: tuple[tuple[str, int, int], ...] = (
    ("float32", 256, 127), ("float16", 128, 3), ("bfloat16", 128, 1), ("float64", 256, 1 << 20),
    ("complex64", 64, 127), ("complex128", 64, 1 << 20),
)  # fmt: skip
_FULL_SIDE = 192
# (name, side of the weights, stride, padding)
_SHAPES = (("3 × 3", 3, 1, 1), ("1 × 1", 1, 1, 0), ("with stride", 3, 2, 1))
# The largest whole number of a convolution, by dtype: its sums are exact.
_LARGEST = {"float32": 31, "float64": 1 << 12, "float16": 1, "bfloat16": 1}
_PICTURES, _IN, _OUT, _SIDE = 2, 8, 12, 10
_WINOGRAD_ULPS = 64


def product_works(run: StageRun) -> list[KnownWork]:
    """Return every product and convolution that a device may have."""
    works = [
        _products(f"Exact products in {dtype}", dtype, partial(_small, dtype, inner, largest))
        for dtype, inner, largest in EXACT
    ]
    if run.has_tf32:
        small = partial(_small, *EXACT[0])
        works.append(_products("Exact products in TF32", "float32", small, "high"))
    for dtype in _LARGEST:
        bits = significant_bits(dtype)
        title = f"Products of all {bits} bits in {dtype}"
        works.append(_products(title, dtype, partial(_full, bits)))
    int8 = compared(_int8_factors, _int8_product, lambda a, b: a.astype(float) @ b.astype(float))
    works.append(KnownWork("Products in int8", "int8", int8))
    return [*works, *(_convolution(*shape, dtype) for shape in _SHAPES for dtype in _LARGEST)]


@contextmanager
def _precision(name: str = "highest") -> Iterator[None]:
    """Let float32 products keep all their bits, or with "high" those of TF32."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(name)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _products(
    title: str, dtype: str, make: partial[list[Array]], bits: str = "highest"
) -> KnownWork:
    """Return products of pairs of factors, by each of PyTorch's operations for them."""

    def multiply(*factors: Tensor) -> Tensor:
        results: list[Tensor] = []
        with _precision(bits):
            for left, right in zip(factors[::2], factors[1::2], strict=True):
                results += [
                    left @ right, torch.bmm(left[None], right[None]),
                    F.linear(right.t(), left).t(), left.mv(right[:, 0].contiguous()),
                ]  # fmt: skip
        return torch.cat([one.cpu().reshape(-1) for one in results])

    def answer(*factors: Array) -> Array:
        every = [left @ right for left, right in zip(factors[::2], factors[1::2], strict=True)]
        return np.concatenate([part for one in every for part in (*(one.ravel(),) * 3, one[:, 0])])

    prepare = compared(make, multiply, answer, dtype=dtype)
    return KnownWork(title, dtype, prepare, has_products=True)


def _whole(run: StageRun, low: int, high: int, *shape: int) -> Array:
    """Return whole numbers of these magnitudes with both signs, as float64."""
    signs = run.numbers.integers(0, 2, shape) * 2 - 1
    return (signs * run.numbers.integers(low, high, shape)).astype(np.float64)


def _small(dtype: str, inner: int, largest: int, run: StageRun) -> list[Array]:
    """Return whole numbers without zero, so that each counts."""
    shapes = ((_ROWS, inner), (inner, _ROWS))
    if not dtype.startswith("complex"):
        return [_whole(run, 1, largest + 1, *shape) for shape in shapes]
    half = largest // 2 + 1
    return [_whole(run, 1, half, *shape) + 1j * _whole(run, 1, half, *shape) for shape in shapes]


def _full(bits: int, run: StageRun) -> list[Array]:
    """Return two pairs of factors: all bits left, then all bits right."""
    numbers, side = run.numbers, _FULL_SIDE
    single = np.zeros((side, side))
    powers = 2.0 ** numbers.integers(-2, 3, side) * (numbers.integers(0, 2, side) * 2 - 1)
    single[np.arange(side), numbers.permutation(side)] = powers
    full = _whole(run, 1 << (bits - 1), 1 << bits, side, side) / (1 << (bits - 1))
    return [full, single, single, full.T]


def _int8_factors(run: StageRun) -> list[Array]:
    shapes = ((_ROWS, 256), (256, _ROWS))
    return [run.numbers.integers(-128, 128, shape).astype(np.int8) for shape in shapes]


def _int8_product(left: Tensor, right: Tensor) -> Tensor:
    """Return a product with sums in int32, as quantized models have it."""
    try:
        return torch._int_mm(left, right)
    except Exception as error:
        failure = failure_of(error)
        if failure.fatal:
            raise
        message = f"No int8 products here: {failure.cause or failure.message}"
        raise StudioError(FailureKind.DTYPE_UNSUPPORTED, message) from error


def _convolution(name: str, kernel: int, stride: int, padding: int, dtype: str) -> KnownWork:
    """Return a convolution of whole numbers with both gradients, with cuDNN and without."""
    side = (_SIDE + 2 * padding - kernel) // stride + 1
    sizes = (
        (_PICTURES, _IN, _SIDE, _SIDE), (_PICTURES, _OUT, side, side), (_OUT, _IN, kernel, kernel),
    )  # fmt: skip
    largest = _LARGEST[dtype]

    def factors(run: StageRun) -> list[Array]:
        return [
            run.numbers.integers(-largest, largest + 1, size).astype(np.float64) for size in sizes
        ]

    def once(pictures: Tensor, gradient: Tensor, weights: Tensor) -> Tensor:
        pictures, weights = (one.detach().requires_grad_() for one in (pictures, weights))
        with torch.enable_grad(), _precision():
            output = F.conv2d(pictures, weights, stride=stride, padding=padding)
            gradients = torch.autograd.grad(output, (pictures, weights), gradient)
        return torch.cat([one.detach().cpu().reshape(-1) for one in (output, *gradients)])

    def convolve(*factors: Tensor) -> Tensor:
        cudnn = torch.backends.cudnn
        with cudnn.flags(
            enabled=cudnn.enabled, benchmark=False, deterministic=True, allow_tf32=False
        ):
            first = once(*factors)
        with cudnn.flags(enabled=False):
            return torch.cat([first, once(*factors)])

    def answer(*factors: Array) -> Array:
        return np.tile(_convolved(stride, padding, *factors), 2)

    def slack(*factors: Array) -> Array:
        magnitudes = _convolved(stride, padding, *(np.abs(one) for one in factors))
        allowed = _WINOGRAD_ULPS * ulp_of(magnitudes, dtype) / 2
        return np.concatenate([allowed, np.zeros_like(allowed)])

    title = f"Convolution {name}, forward and backward, in {dtype}"
    prepare = compared(factors, convolve, answer, slack, dtype=dtype)
    return KnownWork(title, dtype, prepare, has_products=True)


def _convolved(stride: int, pad: int, pictures: Array, gradient: Array, weights: Array) -> Array:
    """Return the output of a convolution and the gradients of pictures and weights, in a row."""
    padded = np.pad(pictures, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    output, of_padded, of_weights = (np.zeros_like(one) for one in (gradient, padded, weights))
    reach = (gradient.shape[-1] - 1) * stride + 1
    for row, column in np.ndindex(*weights.shape[2:]):
        at = (..., slice(row, row + reach, stride), slice(column, column + reach, stride))
        weight = weights[..., row, column]
        output += np.einsum("nchw,oc->nohw", padded[at], weight)
        of_weights[..., row, column] = np.einsum("nchw,nohw->oc", padded[at], gradient)
        of_padded[at] += np.einsum("nohw,oc->nchw", gradient, weight)
    of_pictures = of_padded[..., pad : pad + _SIDE, pad : pad + _SIDE]
    return np.concatenate([one.reshape(-1) for one in (output, of_pictures, of_weights)])
