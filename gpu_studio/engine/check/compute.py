"""Compute: results of which every bit is known without PyTorch.

IEEE arithmetic, products, convolutions, whole numbers, indexed access, random numbers, and work
that fills the device: what a chip can get wrong. A card that passes products may still fail indexed
access, and a part of the chip that small work never reaches may be the bad one.

NVIDIA's CUDA programming guide ("Floating-point standard") promises correctly rounded +, −, ×, ÷,
√ and fused multiply-add in float32 and float64, with subnormal numbers, as nvcc compiles by
default. PyTorch computes float16 and bfloat16 in float32 and rounds once more, which gives the same
as rounding once: float32 has 2p + 2 bits or more (S. A. Figueroa, "When is double rounding
innocuous?", 1995). numpy does the same.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

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
from gpu_studio.engine.check.products import product_works
from gpu_studio.engine.device import free_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from torch import Tensor

    from gpu_studio.engine.check.known_work import Array, Mask
    from gpu_studio.engine.check.stage_run import StageRun

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
