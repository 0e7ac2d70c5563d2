"""Products of small whole numbers, which every device computes exactly, in any order.

In any order of additions, every partial sum stays in the dtype's exact range. So results are
compared bit for bit and need no tolerance. The factors use all bits that the dtype keeps, which
detects a device that computes in a shorter dtype.
"""

from __future__ import annotations

import math

import torch

from gpu_studio.engine.workloads.proof import seeded

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
