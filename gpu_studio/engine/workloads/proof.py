"""Verify a device's results with PyTorch: the same operands on every device, compared by parts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gpu_studio.engine.verification import Verification, numbers_compared

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpu_studio.engine.workloads.case import Case

WHOLE_UP_TO = 512
# A large operand repeats a block of this side. A device's tiles have sides that are powers of two.
# A prime does not align with them, so a swapped tile is noticed.
BLOCK_SIDE = 509
_ROWS_CHECKED = 16
_SEED = 20250301
# Up to this value, the dtype represents every whole number exactly.
EXACT_UP_TO = {
    torch.float16: 1 << 11,
    torch.bfloat16: 1 << 8,
    torch.float32: 1 << 24,
    torch.float64: 1 << 53,
}
# The largest left factor, by the dtype of the products. It has as many bits as that dtype keeps, so
# factors that were rounded to a shorter dtype give other products: TF32 keeps eleven bits, float32
# more. In 16 bits, the factors are small, so that the sums exceed bfloat16's range.
_LARGEST_LEFT = {
    "float16": 64,
    "bfloat16": 8,
    "tf32": (1 << 11) - 1,
    "float32": (1 << 12) - 1,
    "float64": 1 << 26,
}
_LARGEST_RIGHT = 1023


def misplaced(result: torch.Tensor, device: torch.device) -> str:
    """Return an error if a result is on the wrong device; otherwise empty."""
    if result.device == device:
        return ""
    return f"the result is on {result.device.type}, not on {device}"


def is_coarser(result: torch.Tensor) -> bool:
    """Return whether every number of a result fits a shorter dtype, so it was rounded to it."""
    shorter = {
        torch.float64: (torch.float32,),
        torch.float32: (torch.float16, torch.bfloat16),
        torch.float16: (torch.bfloat16,),
    }
    return any(
        bool((result == result.to(dtype).to(result.dtype)).all())
        for dtype in shorter.get(result.dtype, ())
    )


def seeded() -> torch.Generator:
    """Return a random generator, for operands that are the same on every device."""
    return torch.Generator().manual_seed(_SEED)


def tiled(block: torch.Tensor, size: int, device: torch.device) -> torch.Tensor:
    """Return a matrix made of copies of a small CPU block, shape (size, size).

    The reference for a large result is then a small computation, while the device computes the
    large one with the timed shape.
    """
    on_device = block.to(device)
    side = block.shape[0]
    if side == size:
        return on_device
    index = torch.arange(size, device=device) % side
    return on_device[index][:, index]


def rows_to_check(size: int) -> NDArray[np.int64]:
    """Return all rows of a small result; of a large one, rows from the first to the last."""
    if size <= WHOLE_UP_TO:
        return np.arange(size)
    return np.unique(np.linspace(0, size - 1, _ROWS_CHECKED).astype(np.int64))


def fetch_rows(result: torch.Tensor, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return rows of a device's result as float64 on the CPU; the device only copies."""
    if len(rows) == result.shape[0]:
        fetched = result.cpu()
    else:
        fetched = torch.stack([result[int(row)].cpu() for row in rows])
    array: NDArray[np.float64] = fetched.double().numpy()
    return array


def tiled_rows(block: NDArray[Any], size: int, rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return these rows of the large matrix that repeats ``block``."""
    side = block.shape[0]
    chosen: NDArray[Any] = block[rows % side][:, np.arange(size) % side]
    return chosen


def describe_rows(shape: Sequence[int], rows: NDArray[np.int64]) -> str:
    """Return the compared rows in words: ``all of 512 × 512`` or ``16 rows of 2048 × 2048``."""
    size, *others = shape
    is_all = len(rows) == size
    if others == [size]:
        square = f"{size} × {size}"
        return f"all of {square}" if is_all else f"{len(rows)} rows of {square}"
    noun = f"{'row' if others else 'number'}{'' if size == 1 else 's'}"
    return f"{'all' if is_all else len(rows)} of {size} {noun}"


def verify_rows(
    case: Case,
    shapes: Sequence[tuple[int, ...]],
    compute: Callable[..., torch.Tensor],
    reference: Callable[..., NDArray[np.float64]],
    allowed: float,
) -> Verification:
    """Compare rows of a result that come from the same rows of its operands.

    The operands are random numbers from 0 to 1, the same on every device. A single number may be
    off by ``allowed``, and the norm of all of them by the rounding of the result's dtype.

    Args:
        case: the device, the dtype and the size, which is the number of rows.
        shapes: of the operands.
        compute: the function of the operands on the device.
        reference: the same for float64 rows in NumPy.
        allowed: the largest difference of a number that rounding explains.
    """
    generator = seeded()
    blocks = [
        torch.rand(min(shape[0], BLOCK_SIDE), *shape[1:], dtype=case.dtype, generator=generator)
        for shape in shapes
    ]
    index = torch.arange(case.size, device=case.device) % BLOCK_SIDE
    result = compute(*(block.to(case.device)[index] for block in blocks))
    rows = rows_to_check(case.size)
    compared = (describe_rows(result.shape, rows),)
    if wrong_place := misplaced(result, case.device):
        return Verification(False, wrong_place, compared)
    expected = reference(*(block.double().numpy()[rows % len(block)] for block in blocks))
    found = fetch_rows(result, rows)
    # Only a device that computes in float64 meets the reference's rounding.
    eps = torch.finfo(case.dtype).eps + torch.finfo(torch.float64).eps
    return numbers_compared(found, expected, eps, allowed, compared)


def whole_number_factors(
    rows: int,
    inner: int,
    columns: int,
    exact_up_to: int,
    *,
    computed_in: str = "float32",
    copies: int = 1,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two int64 matrices, shapes (rows, inner) and (inner, columns), on the CPU.

    In any order of additions, every partial sum stays in the dtype's exact range, so results are
    compared bit for bit. The factors use all bits that the dtype keeps, which detects a device that
    computes in a shorter dtype.

    If a full row could exceed ``exact_up_to``, every row of the left matrix has a band of values
    between zeros. The band moves with the row, so that every column is used if there are enough
    rows.

    Args:
        rows: rows of the left matrix.
        inner: columns of the left matrix and rows of the right one.
        columns: columns of the right matrix.
        exact_up_to: the upper bound of every sum of terms.
        computed_in: the dtype of the products, or ``tf32``.
        copies: how often each term occurs in the computed sums.
    """
    range_of_sums = max(1, exact_up_to // copies)
    left = min(_LARGEST_LEFT[computed_in], range_of_sums)
    band = min(inner, range_of_sums // left)
    right = min(_LARGEST_RIGHT, range_of_sums // (left * band))
    generator = seeded()
    a = _nonzero(left, (rows, inner), generator)
    b = _nonzero(right, (inner, columns), generator)
    step = math.ceil(inner / rows)
    shifted = torch.arange(rows)[:, None] * step + torch.arange(inner)[None, :]
    a[shifted % inner >= band] = 0
    return a, b


def _nonzero(largest: int, shape: tuple[int, int], generator: torch.Generator) -> torch.Tensor:
    """Return int64 whole numbers from -largest to largest, without zero."""
    signs = 2 * torch.randint(0, 2, shape, generator=generator) - 1
    return signs * torch.randint(1, largest + 1, shape, generator=generator)
