"""The workload of a home PC owner's question: is my old graphics card faster than my CPU?

The ten statements are quoted from "How can I run any code on my GPU, instead on CPU?" by Radosław
Śmigielski (blog post of 2025-03-01), where a GT 1030 loses to a Ryzen 7 5700G. One call is the
ten statements once.
"""

from __future__ import annotations

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

    from numpy.typing import NDArray

_OPERATIONS = 14
# PyTorch runs each operation as a pass of its own: of the 14, eleven combine two matrices (two
# read, one written) and three multiply one by a number (one read, one written).
_MATRICES_MOVED = 11 * 3 + 3 * 2
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


class Elementwise:
    """Additions and multiplications of whole matrices; see `workload.Workload`."""

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
    # a, b, c; five results; three temporaries of the sixth statement.
    matrices = 11

    def operations(self, size: int) -> float:
        """Return the floating-point operations of one call."""
        return float(_OPERATIONS * size * size)

    def bytes_moved(self, size: int, item_bytes: int) -> float:
        """Return the bytes that one call reads and writes, one pass an operation."""
        return float(_MATRICES_MOVED * size * size * item_bytes)

    def throughput_work(self, size: int, item_bytes: int) -> float:
        """Return the bytes of one call."""
        return self.bytes_moved(size, item_bytes)

    def prepare(self, device: torch.device, size: int, dtype: torch.dtype) -> Callable[[], object]:
        """Make three random matrices as the post does and return one call."""
        a, b, c = (torch.rand(size, size, device=device, dtype=dtype) for _ in range(3))
        return partial(crunch_the_numbers, a, b, c)

    def verify(self, device: torch.device, size: int, dtype: torch.dtype) -> Verification:
        """Compare with the same statements in NumPy's float64, within the rounding's bound."""
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

    def snippet(self, device: str, size: int, dtype: str) -> str:
        """Return lines of PyTorch that do and time this work as they stand."""
        wait = f'torch.cuda.synchronize("{device}")\n' if device != "cpu" else ""
        return _SNIPPET.format(device=device, size=size, dtype=dtype, wait=wait)


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
