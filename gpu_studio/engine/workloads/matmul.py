"""The product of two matrices: what neural networks spend their time on."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from gpu_studio.core.protocol import WorkloadDescription
from gpu_studio.core.sizes import DTYPES
from gpu_studio.engine.workloads.workload import (
    WHOLE_UP_TO,
    Verification,
    describe_rows,
    fetch_rows,
    rows_to_check,
    seeded,
    tiled,
    tiled_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable

# Up to here every whole number has an exact value in the dtype.
_EXACT_UP_TO = {
    torch.float16: 1 << 11,
    torch.bfloat16: 1 << 8,
    torch.float32: 1 << 24,
    torch.float64: 1 << 53,
}
_LARGEST_VALUE = 8
# Above it the copies of the block alone could exceed bfloat16's exact range.
_LARGEST_CHECKED = 1 << 16


class Matmul:
    """The product of two square matrices; see `workload.Workload`."""

    description = WorkloadDescription(
        name="matmul",
        title="Matrix product",
        sentence=(
            "One matrix times another: each number is used many times, so the speed of the "
            "arithmetic decides. Neural networks are mostly this."
        ),
        dtypes=DTYPES,
        sizes=(64, 128, 256, 512, 1024, 2048, 4096),
        throughput_unit="FLOP/s",
    )
    matrices = 3

    def operations(self, size: int) -> float:
        """Return the floating-point operations: a multiplication and an addition a term."""
        return 2.0 * size**3

    def bytes_moved(self, size: int, item_bytes: int) -> float:
        """Return the least that must move: each operand read once, the result written once."""
        return 3.0 * size * size * item_bytes

    def throughput_work(self, size: int, item_bytes: int) -> float:
        """Return the floating-point operations of one call."""
        return self.operations(size)

    def prepare(self, device: torch.device, size: int, dtype: torch.dtype) -> Callable[[], object]:
        """Make two random matrices and return one call."""
        a, b = (torch.rand(size, size, device=device, dtype=dtype) for _ in range(2))
        return partial(torch.matmul, a, b)

    def verify(self, device: torch.device, size: int, dtype: torch.dtype) -> Verification:
        """Compare products of small whole numbers, which are exact in any order: bit for bit.

        No partial sum of any order of additions leaves the range where the dtype (and TF32, whose
        10 bits hold the factors) is exact, so no tolerance is needed.
        """
        size = min(size, _LARGEST_CHECKED)
        side = min(size, WHOLE_UP_TO)
        copies = math.ceil(size / side)
        a, b = _whole_number_blocks(side, copies, _EXACT_UP_TO[dtype])
        result = tiled(a.to(dtype), size, device) @ tiled(b.to(dtype), size, device)
        rows = rows_to_check(size)
        # How often each term of the small product occurs in the large one.
        weights = torch.bincount(torch.arange(size) % side)
        expected = tiled_rows(((a * weights) @ b).double().numpy(), size, rows)
        wrong = int(np.count_nonzero(fetch_rows(result, rows) != expected))
        finding = "exact for whole numbers"
        if wrong:
            finding = f"{wrong} of {expected.size} products of whole numbers are wrong"
        return Verification(not wrong, finding, (describe_rows(size, rows),))

    def snippet(self, device: str, size: int, dtype: str) -> str:
        """Return lines of PyTorch that do and time this work as they stand."""
        wait = f'torch.cuda.synchronize("{device}")\n' if device != "cpu" else ""
        return _SNIPPET.format(device=device, size=size, dtype=dtype, wait=wait)


def _whole_number_blocks(
    side: int, copies: int, exact_up_to: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two int64 matrices on the CPU, shape (side, side), whose large product is exact.

    Every row of the left one has a band of values and zeros beside it where a full row could
    exceed ``exact_up_to``; the band moves with the row, so that every column is used.
    """
    largest = min(_LARGEST_VALUE, max(1, math.isqrt(exact_up_to // (side * copies))))
    band = min(side, exact_up_to // (copies * largest * largest))
    generator = seeded()
    a, b = (
        torch.randint(-largest, largest + 1, (side, side), generator=generator) for _ in range(2)
    )
    index = torch.arange(side)
    a[(index[:, None] + index[None, :]) % side >= band] = 0
    return a, b


_SNIPPET = """\
import time
import torch

size, device, dtype = {size}, "{device}", torch.{dtype}
a = torch.rand(size, size, device=device, dtype=dtype)
b = torch.rand(size, size, device=device, dtype=dtype)

a @ b  # the first call is slower
{wait}start = time.perf_counter()
for _ in range(10):
    a @ b
{wait}print(f"{{(time.perf_counter() - start) / 10:.6f}} s a call")
"""
