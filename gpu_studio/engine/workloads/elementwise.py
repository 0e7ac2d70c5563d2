"""The workload for a home user's question: is my old graphics card faster than my CPU?

The ten statements are quoted from "How can I run any code on my GPU, instead on CPU?" by Radosław
Śmigielski (blog post of 2025-03-01). There, a GT 1030 loses to a Ryzen 7 5700G. One call runs the
ten statements once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.benchmark.workloads import ELEMENTWISE
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.workload import TensorWorkload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import torch
    from numpy.typing import NDArray


class Form(NamedTuple):
    """One way to write the work: its cost for each number of the matrices, and its accuracy.

    ``passes`` counts PyTorch's operations; each is a separate kernel and a separate pass over
    memory. ``matrices_at_once`` includes the three operands.
    """

    compute: Callable[..., torch.Tensor]
    operations: int
    passes: int
    matrices_moved: int
    matrices_at_once: int


def crunch_the_numbers(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Run the ten statements, quoted literally from the post's loop."""
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


def in_few_passes(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Return only the result of the last statement, with six PyTorch operations.

    y4 + y5 = 2·(a + b + c)·a − b + 0.33·a + 0.66·b + 0.9·c.
    """
    total = a + b
    total += c
    result = 0.33 * a
    result.add_(b, alpha=-0.34)
    result.add_(c, alpha=0.9)
    return result.addcmul_(total, a, value=2)


FORMS = {
    # Of the 14 operations, eleven combine two matrices (two read, one written) and three multiply
    # one by a number (one read, one written). At the peak there are a, b, c, five results and three
    # temporaries of the sixth statement.
    "statements": Form(crunch_the_numbers, 14, 14, 11 * 3 + 3 * 2, 11),
    # The last three operations do two, two and three operations in one pass, and the last one reads
    # three matrices.
    "fused": Form(in_few_passes, 10, 6, 4 * 3 + 2 + 4, 5),
}


class Elementwise(TensorWorkload):
    """Additions and multiplications of whole matrices; see `workload.TensorWorkload`."""

    # For operands in [0, 1): each operation and each constant is off by at most half an eps of its
    # largest possible value. The statements add up to 39.6 halves, the fused form to under 26.
    tolerance_eps = 20.0
    description = ELEMENTWISE

    def work(self, case: Case) -> Work:
        form = _form(case)
        matrix_bytes = case.size**2 * case.item_bytes
        bytes_moved = float(form.matrices_moved * matrix_bytes)
        return Work(
            operations=float(form.operations * case.size**2),
            bytes_moved=bytes_moved,
            throughput_work=bytes_moved,
            memory_bytes=form.matrices_at_once * matrix_bytes,
            host_bytes=case.crossing(4 * matrix_bytes),
            link_bytes=case.crossing(3 * matrix_bytes),
        )

    def shapes(self, case: Case) -> tuple[tuple[int, ...], ...]:
        return ((case.size, case.size),) * 3

    def compute(self, case: Case) -> Callable[..., torch.Tensor]:
        return _form(case).compute

    def findings(self, case: Case, function: Callable[[], object]) -> tuple[str, ...]:
        if case.transfers:
            return ()
        noun = "kernels" if case.is_on_card else "operations"
        moved = format_bytes(self.work(case).bytes_moved)
        return (
            f"One call runs {_form(case).passes} {noun}; each of them reads and writes whole "
            "matrices.",
            f"Together, all {noun} of a call move {moved}.",
        )

    def reference(self, *rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the last result, simplified by hand: y4 + y5 with y4 = 2·y2 − b."""
        a, b, c = rows
        result: NDArray[np.float64] = 2 * (a + b + c) * a - b + (0.33 * a + 0.66 * b + 0.9 * c)
        return result

    def lines(self, case: Case) -> tuple[str, str]:
        body = _FUSED if case.options.get("form") == "fused" else _STATEMENTS
        return _MATRICES + body, "crunch_the_numbers()"


def _form(case: Case) -> Form:
    return FORMS[case.options.get("form", "statements")]


_MATRICES = """
a = torch.rand(size, size, device=device, dtype=dtype)
b = torch.rand(size, size, device=device, dtype=dtype)
c = torch.rand(size, size, device=device, dtype=dtype)


"""

_STATEMENTS = """\
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
    y = y4 + y5"""

_FUSED = """\
def crunch_the_numbers():
    total = a + b
    total += c
    result = 0.33 * a
    result.add_(b, alpha=-0.34)
    result.add_(c, alpha=0.9)
    return result.addcmul_(total, a, value=2)"""
