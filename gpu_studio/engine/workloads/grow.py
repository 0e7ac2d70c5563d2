"""Grow a pattern: the reaction and diffusion of two substances (Gray–Scott).

Every step reads and writes the whole picture several times and does little arithmetic with it, so
memory bandwidth limits it. Feed and kill rates are those of Pearson ("Complex Patterns in a Simple
System", Science 261, 1993) in the range of growing spots; the time step is 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gpu_studio.core.device_name import wait_line
from gpu_studio.core.packed_frame import LARGEST_FRAME_SIDE
from gpu_studio.core.race import gray_scott
from gpu_studio.core.race.pictures import GROW, wide_height
from gpu_studio.engine.verification import Verification, within_rounding
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.drawing import Picture, TensorDrawing, steps_of_both

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SNIPPET_STEPS = 2000
_LOST = gray_scott.FEED + gray_scott.KILL
# The CPU computes the reference in float64, however fast the card is.
_STEPS_OF_LARGE = 2
# Of each substance: four shifted copies, three sums, the reaction; and both results.
_PASSES = 24
# That PyTorch reads and writes for a cell in a step, counted.
_NUMBERS_MOVED = 78
_TENSORS = 10
_OPERATIONS = 22


class Grow(Picture):
    """Gray–Scott on a picture without edges; see `workload.Workload`."""

    description = GROW
    size_range = (8, 4096)
    small_up_to = 256

    def work(self, case: Case) -> Work:
        cells = case.size * wide_height(case.size)
        moved = float(_NUMBERS_MOVED * cells * case.item_bytes)
        return Work(
            operations=float(_OPERATIONS * cells),
            bytes_moved=moved,
            throughput_work=moved,
            memory_bytes=_TENSORS * cells * case.item_bytes,
            longest_kernel=1 / _PASSES,
        )

    def prepare(self, case: Case) -> TensorDrawing:
        return GrowDrawing(case)

    def verify(self, case: Case) -> Verification:
        """Compare both substances after some steps with the same steps in float64 on the CPU."""
        steps = gray_scott.CHECKED_STEPS if case.size <= self.small_up_to else _STEPS_OF_LARGE
        compared = (f"all of {case.size} × {wide_height(case.size)} after {steps} steps",)
        allowed = gray_scott.EPS_PER_STEP * steps * float(torch.finfo(case.dtype).eps)
        return within_rounding(difference(case, steps), allowed, compared)

    def snippet(self, case: Case) -> str:
        return _SNIPPET.format(
            size=case.size,
            device=case.address,
            dtype=case.dtype_name,
            spread_u=gray_scott.SPREAD_U,
            spread_v=gray_scott.SPREAD_V,
            feed=gray_scott.FEED,
            kill=gray_scott.KILL,
            height=wide_height(case.size),
            steps=_SNIPPET_STEPS,
            wait=wait_line(case.address),
        )


class GrowDrawing(TensorDrawing):
    """The two substances, each of shape (9/16 size, size).

    Args:
        case: the device, the dtype and the size.
    """

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.restart()

    def restart(self) -> None:
        u, v = planted(self._case)
        self.u = u.to(self._case.dtype).to(self._case.device)
        self.v = v.to(self._case.dtype).to(self._case.device)
        self._steps = 0

    def __call__(self) -> object:
        u, v = self.u, self.v
        reaction = u * v * v
        self.u = u + (gray_scott.SPREAD_U * _around(u) - reaction + gray_scott.FEED * (1 - u))
        self.v = v + (gray_scott.SPREAD_V * _around(v) + reaction - _LOST * v)
        self._steps += 1
        return self.v

    def measure(self) -> float:
        return float(self._steps)

    def pixels(self) -> NDArray[np.uint8]:
        """Return the second substance in colors; a large picture leaves cells out."""
        stride = -(-self._case.size // LARGEST_FRAME_SIDE)
        return gray_scott.colors(self.v[::stride, ::stride].float().cpu().numpy())

    def _proof(self) -> torch.Tensor:
        return self.v[:1]


def planted(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both substances before the first step: float64 on the CPU, shape (height, width)."""
    state = torch.from_numpy(gray_scott.planted(case.size))
    return state[..., 0].contiguous(), state[..., 1].contiguous()


def difference(case: Case, steps: int) -> float:
    """Return how far both substances are from float64 on the CPU at most, after some steps."""
    found, expected = steps_of_both(GrowDrawing, case, steps)
    return max(
        float((one.cpu().double() - other).abs().max())
        for one, other in ((found.u, expected.u), (found.v, expected.v))
    )


def _around(substance: torch.Tensor) -> torch.Tensor:
    """Return the sum of the four neighbors, less four times the cell itself; no edges."""
    return (
        torch.roll(substance, 1, 0)
        + torch.roll(substance, -1, 0)
        + torch.roll(substance, 1, 1)
        + torch.roll(substance, -1, 1)
        - 4 * substance
    )


_SNIPPET = """\
import time
import torch

width, height, device, dtype = {size}, {height}, "{device}", torch.{dtype}
u = torch.ones(height, width, device=device, dtype=dtype)
v = torch.zeros(height, width, device=device, dtype=dtype)
seed = height // 20
rows = slice(height // 2 - seed, height // 2 + seed)
columns = slice(width // 2 - seed, width // 2 + seed)
u[rows, columns], v[rows, columns] = 0.5, 0.25


def around(substance):
    shifted = (torch.roll(substance, shift, axis) for axis in (0, 1) for shift in (1, -1))
    return sum(shifted) - 4 * substance


def step(u, v):
    reaction = u * v * v
    return (
        u + ({spread_u} * around(u) - reaction + {feed} * (1 - u)),
        v + ({spread_v} * around(v) + reaction - ({feed} + {kill}) * v),
    )


step(u, v)  # the first step is slower
{wait}start = time.perf_counter()
for _ in range({steps}):
    u, v = step(u, v)
{wait}print(f"{{(time.perf_counter() - start) / {steps}:.6f}} s a step")
"""
