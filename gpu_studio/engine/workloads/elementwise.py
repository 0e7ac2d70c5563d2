"""The workload of a home PC owner's question: is my old graphics card faster than my CPU?

The ten statements are quoted from "How can I run any code on my GPU, instead on CPU?" by Radosław
Śmigielski (blog post of 2025-03-01), where a GT 1030 loses to a Ryzen 7 5700G. One call is the
ten statements once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from gpu_studio.core.protocol import WorkloadDescription
from gpu_studio.core.sizes import DTYPES
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.proof import (
    WHOLE_UP_TO,
    Verification,
    describe_rows,
    fetch_rows,
    rows_to_check,
    seeded,
    tiled,
    tiled_rows,
)
from gpu_studio.engine.workloads.workload import TensorWorkload, wait_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_OPERATIONS = 14
# PyTorch runs each operation as a pass of its own: of the 14, eleven combine two matrices (two
# read, one written) and three multiply one by a number (one read, one written).
_MATRICES_MOVED = 11 * 3 + 3 * 2
# a, b, c; five results; three temporaries of the sixth statement.
_MATRICES_AT_ONCE = 11
# The rounding errors of the ten statements added up for operands in [0, 1): each operation and each
# constant is off by at most half an eps of the largest it can be. They come to 39.6 halves.
_TOLERANCE_EPS = 20.0


def crunch_the_numbers(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Run the ten statements, quoted as they stand in the post's loop."""
    y0 = a + b
    y1 = y0 + c
    y2 = y1 * a
    y3 = y2 - b
    y4 = y2 + y3
    y5 = 0.33 * a + 0.66 * b + c * 0.9
    y = y1 + y2
    y = y2 + y3
    y = y3 + y4
    y = y4 + y5
    return y  # noqa: RET504 - the statements stay as they are


class Elementwise(TensorWorkload):
    """Additions and multiplications of whole matrices; see `workload.TensorWorkload`."""

    description = WorkloadDescription(
        name="elementwise",
        title="Element by element",
        sentence=(
            "Ten lines of additions and multiplications on whole matrices: hardly any computing, "
            "so the speed of the memory decides."
        ),
        dtypes=DTYPES,
        sizes=(64, 128, 256, 512, 1024, 2048, 4096),
        throughput_unit="B/s",
        source="How can I run any code on my GPU, instead on CPU? by Radosław Śmigielski",
    )

    def work(self, case: Case) -> Work:
        """Count the operations and their passes over memory."""
        matrix_bytes = case.size**2 * case.item_bytes
        bytes_moved = float(_MATRICES_MOVED * matrix_bytes)
        return Work(
            operations=float(_OPERATIONS * case.size**2),
            bytes_moved=bytes_moved,
            throughput_work=bytes_moved,
            memory_bytes=_MATRICES_AT_ONCE * matrix_bytes,
            host_bytes=case.crossing(4 * matrix_bytes),
            link_bytes=case.crossing(3 * matrix_bytes),
        )

    def operands(self, case: Case) -> tuple[torch.Tensor, ...]:
        """Make three random matrices as the post does, shape (size, size)."""
        shape = (case.size, case.size)
        return tuple(torch.rand(shape, device=case.device, dtype=case.dtype) for _ in range(3))

    def compute(self, case: Case) -> Callable[..., torch.Tensor]:
        """Return the ten statements."""
        return crunch_the_numbers

    def verify(self, case: Case) -> Verification:
        """Compare with the same statements in NumPy's float64, within the rounding's bound."""
        device, size, dtype = case.device, case.size, case.dtype
        generator = seeded()
        side = min(size, WHOLE_UP_TO)
        blocks = [torch.rand(side, side, dtype=dtype, generator=generator) for _ in range(3)]
        result = crunch_the_numbers(*(tiled(block, size, device) for block in blocks))
        rows = rows_to_check(size)
        expected = tiled_rows(_reference(*(block.double().numpy() for block in blocks)), size, rows)
        # The reference rounds as well, which only counts where the device has float64, too.
        tolerance = _TOLERANCE_EPS * (torch.finfo(dtype).eps + torch.finfo(torch.float64).eps)
        difference = float(np.abs(fetch_rows(result, rows) - expected).max())
        verified = difference <= tolerance  # false for NaN
        finding = f"within rounding ({tolerance:.1e}) of float64"
        if not verified:
            finding = f"off by up to {difference:.1e}, where rounding explains {tolerance:.1e}"
        return Verification(verified, finding, (describe_rows(size, rows),))

    def snippet(self, case: Case) -> str:
        """Return lines of PyTorch that do and time this work as they stand."""
        return _SNIPPET.format(
            device=case.address,
            size=case.size,
            dtype=case.dtype_name,
            wait=wait_lines(case.address),
        )


def _reference(
    a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the last result, simplified by hand: y4 + y5 with y4 = 2·y2 − b."""
    result: NDArray[np.float64] = 2 * (a + b + c) * a - b + (0.33 * a + 0.66 * b + 0.9 * c)
    return result


_SNIPPET = """\
import time
import torch

size, device, dtype = {size}, "{device}", torch.{dtype}
a = torch.rand(size, size, device=device, dtype=dtype)
b = torch.rand(size, size, device=device, dtype=dtype)
c = torch.rand(size, size, device=device, dtype=dtype)


def crunch_the_numbers():
    y0 = a + b
    y1 = y0 + c
    y2 = y1 * a
    y3 = y2 - b
    y4 = y2 + y3
    y5 = 0.33 * a + 0.66 * b + c * 0.9
    y = y1 + y2
    y = y2 + y3
    y = y3 + y4
    y = y4 + y5


crunch_the_numbers()  # the first call is slower
{wait}start = time.perf_counter()
for _ in range(10):
    crunch_the_numbers()
{wait}print(f"{{(time.perf_counter() - start) / 10:.6f}} s a call")
"""
