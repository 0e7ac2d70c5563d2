"""Compute: results of which every bit is known without PyTorch, of what a chip can get wrong.

NVIDIA's CUDA programming guide ("Floating-point standard") promises correctly rounded +, −, ×, ÷,
√ and fused multiply-add in float32 and float64, with subnormal numbers, as nvcc compiles by
default. PyTorch computes float16 and bfloat16 in float32 and rounds once more, which gives the same
as rounding once: float32 has 2p + 2 bits or more (S. A. Figueroa, "When is double rounding
innocuous?", 1995). numpy does the same.

A product of whole numbers is exact in every dtype and in any order of the sum while no partial sum
needs more bits than the dtype has. With small factors, most of the bits of a factor are zero, so
other products have all of them: each row of one side has a single power of two.

A convolution's algorithm may round in the middle (Winograd's divides by 6 and 24), so it has a
tolerance of some ULPs of the sum of the magnitudes; without cuDNN it has none.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # as PyTorch's own documents call it

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.check.known_work import (
    KnownWork,
    Prepared,
    compared,
    differing,
    fitted,
    in_turns,
    significant_bits,
    tensor_of,
    ulp_of,
    values_of,
)
from gpu_studio.engine.device import free_bytes
from gpu_studio.engine.faults import failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from torch import Tensor

    from gpu_studio.engine.check.known_work import Array, Mask
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


_WHOLE = ("uint8", "int8", "int16", "int32", "int64")
_INDEXED = 1 << 18
_FILLING, _FILLING_CPU = (1 << 25) + 4099, (1 << 21) + 4099
"""Elements that give work to all multiprocessors of any card, with a rest at the end."""
_FILLING_SHARE = 16  # of the free memory, for a tensor of them
_MOMENTS = 1 << 16
_RANDOM: dict[str, Callable[..., Tensor]] = {
    "uniform": torch.rand, "normal": torch.randn, "permutation": torch.randperm,
}  # fmt: skip
# Of so many float32 from 0 to 1, which have 24 bits, hardly one in 200 is there twice.
_FEWEST_DISTINCT = 0.99
_FLOATS = ("float32", "float64", "float16", "bfloat16")
_OPERATIONS: dict[str, tuple[str, Callable[..., Array]]] = {
    "add": ("+", np.add), "sub": ("−", np.subtract), "mul": ("×", np.multiply),
    "div": ("÷", np.divide), "sqrt": ("√", np.sqrt),
}  # fmt: skip
_COUNT, _FUSED_COUNT = 12288, 768
_LARGE_TIMES = 24  # 300,000 numbers


def compute(run: StageRun) -> Generator[str, None, bool]:
    """Test what a chip can get wrong; a stage, see `StageRun`."""
    return in_turns(run, every_work(run))


def every_work(run: StageRun) -> list[KnownWork]:
    """Return all kinds of work of a device."""
    gather = compared(_places, lambda x, at: x.gather(0, at), lambda x, at: x[at])
    scatter = compared(
        _places, lambda x, at: torch.full_like(x, -1).scatter_(0, at, x),
        lambda x, at: x[np.argsort(at)],
    )  # fmt: skip
    return [
        KnownWork("Whole numbers that fill the device", "int32", compared(_filling, _scrambled)),
        *product_works(run),
        *(KnownWork(f"Whole numbers in {dtype}", dtype, compared(partial(_all_bits, dtype), _mixed))
          for dtype in _WHOLE),
        KnownWork("Random gather", "int32", gather, "wrong_order"),
        KnownWork("Random scatter", "int32", scatter, "wrong_order"),
        *(KnownWork(f"IEEE {symbol} in {dtype}", dtype, partial(_arithmetic, name, dtype))
          for dtype in _FLOATS for name, (symbol, _) in _OPERATIONS.items()),
        *(KnownWork(f"IEEE multiply-add in {dtype}", dtype, partial(_multiply_add, dtype))
          for dtype in _FLOATS[:2]),
        *(KnownWork(f"Random numbers: {name}", "", partial(_random_numbers, name))
          for name in _RANDOM),
    ]  # fmt: skip


def _filling(run: StageRun) -> list[Array]:
    """Return so many places that each multiprocessor has a share of the work, and a seed."""
    room = free_bytes(run.device) // (_FILLING_SHARE * torch.int32.itemsize)
    count = max(1, min(_FILLING if run.is_card else _FILLING_CPU, room))
    return [np.arange(count, dtype=np.int32), run.numbers.integers(1, 1 << 31, 1, dtype=np.int32)]


def _scrambled(places: Any, seed: Any) -> Any:
    """Return a number for each place that depends on all of its bits; it overflows."""
    return ((places ^ seed) * 0x1E3779B1) ^ (places >> 9)


def _all_bits(dtype: str, run: StageRun) -> list[Array]:
    limits = np.iinfo(dtype)
    return [
        run.numbers.integers(limits.min, limits.max, _INDEXED, dtype=dtype, endpoint=True)
        for _ in range(2)
    ]


def _mixed(left: Any, right: Any) -> Any:
    """Return a number that depends on every bit of both: product, sum, shift, and, xor.

    It overflows, in the same way everywhere.
    """
    return (left * right - (left & right)) ^ (left >> 3) ^ (right + 1)


def _places(run: StageRun) -> list[Array]:
    """Return numbers and places for them; each number and each place occurs once."""
    numbers = run.numbers
    return [numbers.permutation(_INDEXED).astype(kind) for kind in (np.int32, np.int64)]


def _random_numbers(name: str, run: StageRun) -> Prepared:
    """Prepare random numbers: their range, mean and spread, each far from what chance allows."""
    seed, device = int(run.numbers.integers(1, 1 << 31)), run.device

    def draw() -> Tensor:
        generator = torch.Generator(device=device).manual_seed(seed)
        return _RANDOM[name](_MOMENTS, generator=generator, device=device).cpu()

    def differs(seen: Tensor) -> Mask:
        values = seen.numpy().astype(np.float64)
        return np.full(values.shape, not _is_plausible(name, values))

    return Prepared(draw, differs)


def _is_plausible(name: str, values: Array) -> bool:
    """Return whether mean, spread and correlation are within eight standard errors."""
    if name == "permutation":
        return bool(np.array_equal(np.sort(values), np.arange(_MOMENTS)))
    mean, spread, low, high = (0.5, 12**-0.5, 0, 1) if name == "uniform" else (0, 1, -9, 9)
    is_possible = ((values >= low) & (values < high)).all()
    if not is_possible or len(np.unique(values)) < _FEWEST_DISTINCT * _MOMENTS:
        return False
    follows = np.corrcoef(values[:-1], values[1:])[0, 1]
    moments = abs(values.mean() - mean), abs(values.std() - spread), abs(follows)
    return bool(max(moments) < 8 / _MOMENTS**0.5)


def _arithmetic(name: str, dtype: str, run: StageRun) -> Prepared:
    """Prepare one operation on random bits, compared bit for bit."""
    operands = float_operands(dtype, run.numbers, _COUNT)[: 2 - (name == "sqrt")]
    with np.errstate(all="ignore"):
        answer = fitted(_OPERATIONS[name][1](*operands), dtype)
    # √ on the CPU is MKL's, which promises under 0.55 ULP ("high accuracy"), not correct rounding.
    slack = ulp_of(answer, dtype) if name == "sqrt" and not run.is_card else None
    return _bit_for_bit(name, dtype, operands, [answer], run, slack)


def _multiply_add(dtype: str, run: StageRun) -> Prepared:
    """Prepare a + b·c near cancellation, which may round once or twice.

    They are whole numbers, of which Python knows sums and products of any length.
    """
    bits, numbers = significant_bits(dtype), run.numbers
    signs = numbers.integers(0, 2, (2, _FUSED_COUNT)) * 2 - 1
    sizes = numbers.integers(1 << (bits - 1), 1 << bits, (2, _FUSED_COUNT))
    b, c = (signs * sizes).astype(dtype)
    keeps = 2.0 ** -numbers.integers(0, bits, _FUSED_COUNT)
    a = fitted(b.astype(np.float64) * c * (keeps - 1), dtype)
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    once = np.array([float(int(x) + int(y) * int(z)) for x, y, z in rows])
    return _bit_for_bit("addcmul", dtype, [a, b, c], [fitted(once, dtype), a + b * c], run)


def _bit_for_bit(
    name: str, dtype: str, operands: list[Array], answers: list[Array], run: StageRun,
    slack: Array | None = None,
) -> Prepared:  # fmt: skip
    """Prepare an operation on many numbers: the same ones again and again."""
    work = getattr(torch, name)
    there = [tensor_of(np.tile(one, _LARGE_TIMES), dtype).to(run.device) for one in operands]

    def differs(seen: Tensor) -> Mask:
        rows = values_of(seen).reshape(_LARGE_TIMES, -1)
        masks = [differing(rows, np.broadcast_to(one, rows.shape), slack, has_signs=True)
                 for one in answers]  # fmt: skip
        result: Mask = np.logical_and.reduce(masks)
        return result

    return Prepared(lambda: work(*there).cpu(), differs)


def float_operands(dtype: str, numbers: np.random.Generator, count: int) -> list[Array]:
    """Return two operands that reach every kind of rounding.

    They are numbers of every size, numbers near to each other, products and quotients at the edge
    of the subnormal numbers, subnormal numbers, and every pair of special values.
    """
    info, bits = torch.finfo(getattr(torch, dtype)), significant_bits(dtype)
    edge = int(np.log2(info.tiny))
    low, high = edge - bits, 2 - edge
    kinds = numbers.integers(0, 6, count)
    near = numbers.integers(-bits - 3, bits + 4, count)
    first, second = numbers.integers(low, high + 1, (2, count))
    first = np.where(kinds == 0, numbers.integers(low, edge, count), first)
    second = np.select(
        [kinds == 1, kinds == 2, kinds == 3],
        [first + near, edge - first + near, first - edge + near], second,
    )  # fmt: skip
    exponents = np.clip([first, second], low, high)
    signs = numbers.integers(0, 2, (2, count)) * 2 - 1
    with np.errstate(all="ignore"):
        values = signs * np.ldexp(numbers.uniform(1, 2, (2, count)), exponents)
    least = info.tiny * info.eps
    special = np.array([
        0, least, info.tiny - least, info.tiny, info.tiny + least, 1 - info.eps / 2, 1,
        1 + info.eps, 2, info.max, np.inf, np.nan,
    ])  # fmt: skip
    special = np.concatenate([special, -special])
    pairs = np.array([np.tile(special, len(special)), np.repeat(special, len(special))])
    at = min(count, pairs.shape[1])
    values[:, :at] = pairs[:, :at]
    return [fitted(one, dtype) for one in values]
