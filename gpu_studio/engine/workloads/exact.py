"""Products of small whole numbers, which every device computes exactly, in any order.

No partial sum of any order of additions leaves the range where the dtype (and TF32, whose 10 bits
hold the factors) is exact, so results are compared bit for bit and no tolerance is needed.
"""

from __future__ import annotations

import math

import torch

from gpu_studio.engine.workloads.proof import seeded

# Up to here every whole number has an exact value in the dtype.
EXACT_UP_TO = {
    torch.float16: 1 << 11,
    torch.bfloat16: 1 << 8,
    torch.float32: 1 << 24,
    torch.float64: 1 << 53,
}
_LARGEST_VALUE = 8


def whole_number_factors(
    rows: int, inner: int, columns: int, exact_up_to: int, *, copies: int = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two int64 matrices, shapes (rows, inner) and (inner, columns), on the CPU.

    Every row of the left one has a band of values and zeros beside it where a full row could
    exceed ``exact_up_to``; the band moves with the row, so that every column is used where there
    are rows enough.

    Args:
        rows: of the left matrix.
        inner: columns of the left and rows of the right one.
        columns: of the right one.
        exact_up_to: no sum of terms is larger.
        copies: how often each term occurs in the sums that are really computed.
    """
    largest = min(_LARGEST_VALUE, max(1, math.isqrt(exact_up_to // (inner * copies))))
    band = min(inner, exact_up_to // (copies * largest * largest))
    generator = seeded()
    a = torch.randint(-largest, largest + 1, (rows, inner), generator=generator)
    b = torch.randint(-largest, largest + 1, (inner, columns), generator=generator)
    step = math.ceil(inner / rows)
    shifted = torch.arange(rows)[:, None] * step + torch.arange(inner)[None, :]
    a[shifted % inner >= band] = 0
    return a, b
