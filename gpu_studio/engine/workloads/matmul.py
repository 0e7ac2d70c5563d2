"""The product of two matrices: most of a neural network's time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.benchmark.workloads import MATMUL
from gpu_studio.engine.verification import Verification, whole_numbers_compared
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.proof import (
    BLOCK_SIDE,
    EXACT_UP_TO,
    describe_rows,
    fetch_rows,
    misplaced,
    rows_to_check,
    tiled,
    tiled_rows,
    whole_number_factors,
)
from gpu_studio.engine.workloads.workload import TensorWorkload

if TYPE_CHECKING:
    from collections.abc import Callable

# Above it, the copies of the block alone could exceed bfloat16's exact range.
_LARGEST_CHECKED = 1 << 16


class Matmul(TensorWorkload):
    """The product of two square matrices; see `workload.TensorWorkload`."""

    has_products = True

    description = MATMUL

    def work(self, case: Case) -> Work:
        """Count one multiplication and addition per term, and each matrix moved only once."""
        operations = 2.0 * case.size**3
        matrix_bytes = case.size**2 * case.item_bytes
        return Work(
            operations=operations,
            bytes_moved=3.0 * matrix_bytes,
            throughput_work=operations,
            memory_bytes=3 * matrix_bytes,
            host_bytes=case.crossing(3 * matrix_bytes),
            link_bytes=case.crossing(2 * matrix_bytes),
        )

    def shapes(self, case: Case) -> tuple[tuple[int, ...], ...]:
        return ((case.size, case.size),) * 2

    def compute(self, case: Case) -> Callable[..., torch.Tensor]:
        return torch.matmul

    def verify(self, case: Case) -> Verification:
        """Compare bit for bit, with small whole numbers, which are exact in any order."""
        device, dtype = case.device, case.dtype
        size = min(case.size, _LARGEST_CHECKED)
        side = min(size, BLOCK_SIDE)
        copies = math.ceil(size / side)
        a, b = whole_number_factors(
            side, side, side, EXACT_UP_TO[dtype],
            computed_in=self.computes_in(case), copies=copies,
        )  # fmt: skip
        factors = (tiled(a.to(dtype), size, device), tiled(b.to(dtype), size, device))
        result = self.compute(case)(*factors)
        rows = rows_to_check(size)
        compared = describe_rows((size, size), rows)
        if wrong_place := misplaced(result, device):
            return Verification(False, wrong_place, (compared,))
        # The number of times that each term of the small product occurs in the large one.
        weights = torch.bincount(torch.arange(size) % side)
        # float64 is exact here as well, and far faster than integers.
        product = (a * weights).double().numpy() @ b.double().numpy()
        expected = tiled_rows(product, size, rows)
        return whole_numbers_compared(fetch_rows(result, rows), expected, "products", compared)

    def lines(self, case: Case) -> tuple[str, str]:
        return _OPERANDS, "a @ b"


_OPERANDS = """
a = torch.rand(size, size, device=device, dtype=dtype)
b = torch.rand(size, size, device=device, dtype=dtype)
"""
