"""Swarm in two streams: whirls carry many bodies, and every whirl moves every body.

The sheet between two streams rolls up into whirls, as in Krasny ("Desingularization of Periodic
Vortex Sheet Roll-up", Journal of Computational Physics 65, 1986): point vortices on a line that
repeats at the picture's edges, with his smoothing. The bodies around them are only carried; the
whirls are the first bodies and carry one another. Every step computes all pairs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from gpu_studio.core.device_name import wait_line
from gpu_studio.core.packed_frame import LARGEST_FRAME_SIDE
from gpu_studio.core.race.pictures import SWARM, WIDE, wide_height
from gpu_studio.engine.verification import Verification, within_rounding
from gpu_studio.engine.workloads.case import Case, Work
from gpu_studio.engine.workloads.drawing import Picture, TensorDrawing, gradient, steps_of_both

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHIRLS = 64
_WAVES, _SWING = 3, 0.01
_SMOOTHING = 0.15
_TIME_STEP = 0.03
# The fluid reaches beyond the picture, so that whirls leave no gaps at its edges.
_DEEP = 0.9
# One pair more than this is another slice of the bodies: the memory of a step stays small, and a
# slice fits into the cache of a CPU.
PAIRS_AT_ONCE = 1 << 20
_TENSORS = 8
# Of a pair, twice in a step: two differences, four functions of them, and eight operations.
_OPERATIONS = 60
_PASSES = 28
# That PyTorch reads and writes for a pair in a step, counted; the whirls' and bodies' rows are few.
_NUMBERS_MOVED = 55
CHECKED_STEPS = 4
_STEPS_OF_LARGE = 1
# The largest speed is about 1, so a step moves a body by 0.02 with the rounding of its place and of
# a sum over all whirls. Measured on the CPU: up to 0.6 eps a step.
_EPS_PER_STEP = 4.0
_SEED = 20251122
# Of more bodies, a picture leaves some out: nobody could tell them apart.
_MOST_DRAWN = 150_000
# Squares of light and shade, so that one sees the streams move.
_SQUARES = 12


class Swarm(Picture):
    """Bodies between two streams; see `workload.Workload`."""

    description = SWARM
    size_range = (WHIRLS, 10_000_000)
    small_up_to = 10_000

    def work(self, case: Case) -> Work:
        pairs = float(case.size * WHIRLS)
        at_once = min(pairs, PAIRS_AT_ONCE)
        return Work(
            operations=_OPERATIONS * pairs,
            bytes_moved=_NUMBERS_MOVED * pairs * case.item_bytes,
            throughput_work=_OPERATIONS * pairs,
            memory_bytes=int(_TENSORS * (at_once + case.size) * case.item_bytes),
            longest_kernel=at_once / pairs / _PASSES,
        )

    def prepare(self, case: Case) -> TensorDrawing:
        return SwarmDrawing(case)

    def verify(self, case: Case) -> Verification:
        """Compare all places after some steps with the same steps in float64 on the CPU."""
        steps = CHECKED_STEPS if case.size <= self.small_up_to else _STEPS_OF_LARGE
        compared = (f"the places of all {case.size} bodies after {steps} steps",)
        allowed = _EPS_PER_STEP * steps * float(torch.finfo(case.dtype).eps)
        return within_rounding(difference(case, steps), allowed, compared)

    def snippet(self, case: Case) -> str:
        return _SNIPPET.format(
            bodies=case.size,
            whirls=WHIRLS,
            device=case.address,
            dtype=case.dtype_name,
            smoothing=_SMOOTHING**2,
            time_step=_TIME_STEP,
            at_once=max(1, PAIRS_AT_ONCE // WHIRLS),
            wait=wait_line(case.address),
        )


class SwarmDrawing(TensorDrawing):
    """The places of the bodies, shape (bodies, 1): across from 0 to 1, down from the middle.

    Args:
        case: the device, the dtype and the number of bodies.
    """

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._at_once = max(1, PAIRS_AT_ONCE // WHIRLS)
        self._shape = wide_height(LARGEST_FRAME_SIDE), LARGEST_FRAME_SIDE
        self.restart()

    def restart(self) -> None:
        x, y = placed(self._case.size)
        self._ink = _ink(x, y).to(self._case.device)
        self.x = x.to(self._case.dtype).to(self._case.device)
        self.y = y.to(self._case.dtype).to(self._case.device)
        self._steps = 0

    def __call__(self) -> object:
        # With the speed at the middle of the step, a body in a whirl stays there.
        middle = self._moved_from(self.x, self.y, _TIME_STEP / 2)
        self.x, self.y = self._moved_from(*middle, _TIME_STEP)
        self._steps += 1
        return self.y

    def _moved_from(
        self, x: torch.Tensor, y: torch.Tensor, time_step: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return where the bodies come to with the speeds of some other places."""
        whirls_x, whirls_y = x[:WHIRLS].T.clone(), y[:WHIRLS].T.clone()
        parts = zip(x.split(self._at_once), y.split(self._at_once), strict=True)
        speeds = [_speeds(*part, whirls_x, whirls_y) for part in parts]
        moved_x = self.x + time_step * torch.cat([speed for speed, _ in speeds])
        moved_y = self.y + time_step * torch.cat([speed for _, speed in speeds])
        return moved_x - torch.floor(moved_x), moved_y

    def measure(self) -> float:
        return float(self._steps)

    def pixels(self) -> NDArray[np.uint8]:
        """Return the bodies as light: each pixel has the mean color of the bodies around it."""
        height, width = self._shape
        pixels = height * width
        stride = -(-self._case.size // _MOST_DRAWN)
        x = self.x[::stride, 0].float().nan_to_num(0.0)
        y = self.y[::stride, 0].float().nan_to_num(0.0)
        bodies = len(x)
        column = (x * width).long().clamp(0, width - 1)
        row = torch.floor((y / _HIGH + 0.5) * height).long()
        is_seen = ((row >= 0) & (row < height)).float()[:, None]
        sums = torch.zeros(pixels, 3, device=x.device)
        sums.index_add_(0, row.clamp(0, height - 1) * width + column, self._ink[::stride] * is_seen)
        # Few bodies glow wide: some of them light each pixel.
        beyond = min(round(math.sqrt(24 * pixels / bodies) / 2), height // 2 - 1)
        planes = sums.T.reshape(1, 3, height, width)
        planes = torch.nn.functional.pad(planes, (beyond, beyond, 0, 0), mode="circular")
        planes = torch.nn.functional.pad(planes, (0, 0, beyond, beyond), mode="replicate")
        count, level, shade = _windows(_windows(planes, beyond, 2), beyond, 3)[0]
        there = count.clamp(min=1e-6)
        levels = (level / there * (len(_PALETTE) - 1)).clamp(0, len(_PALETTE) - 1).long()
        glow = (4 * count * pixels / bodies).clamp(0, 1).sqrt() * (shade / there)
        colors = _PALETTE[levels.cpu().numpy()] * glow.clamp(0, 1)[..., None].cpu().numpy()
        shown: NDArray[np.uint8] = colors.astype(np.uint8)
        return shown

    def _proof(self) -> torch.Tensor:
        return self.y[:1]


def placed(bodies: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the places before the first step: float64 on the CPU, each of shape (bodies, 1).

    The whirls are the first ones; they lie on a line with slight waves.
    """
    generator = torch.Generator().manual_seed(_SEED)
    turns = (torch.arange(WHIRLS, dtype=torch.float64) + 0.5) / WHIRLS
    wave = _SWING * torch.sin(2 * math.pi * _WAVES * turns)
    # Without another wave, the whirls would stay alike and never pair.
    other = _SWING * torch.sin(2 * math.pi * turns + 1)
    around = torch.rand(bodies - WHIRLS, 2, generator=generator, dtype=torch.float64)
    x = torch.cat([turns + wave, around[:, 0]]) % 1.0
    y = torch.cat([other / 2 - wave, (around[:, 1] - 0.5) * _DEEP])
    return x[:, None], y[:, None]


def difference(case: Case, steps: int) -> float:
    """Return how far a body is from its place in float64 on the CPU at most, after some steps."""
    found, expected = steps_of_both(SwarmDrawing, case, steps)
    across = (found.x.cpu().double() - expected.x).abs()
    down = (found.y.cpu().double() - expected.y).abs()
    # The left edge is the right one.
    return float(torch.maximum(torch.minimum(across, 1 - across), down).max())


def _speeds(
    x: torch.Tensor, y: torch.Tensor, whirls_x: torch.Tensor, whirls_y: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the speeds of bodies, shape (n, 1), between whirls of shape (1, `WHIRLS`)."""
    across, down = 2 * math.pi * (x - whirls_x), 2 * math.pi * (y - whirls_y)
    near = torch.cosh(down) - torch.cos(across) + _SMOOTHING**2
    speed_x = -(torch.sinh(down) / near).mean(1, keepdim=True) / 2
    speed_y = (torch.sin(across) / near).mean(1, keepdim=True) / 2
    return speed_x, speed_y


def _windows(planes: torch.Tensor, beyond: int, axis: int) -> torch.Tensor:
    """Return the mean of each number and its neighbors along an axis, however many these are.

    Args:
        planes: the numbers, with ``beyond`` more at both ends of the axis.
        beyond: the neighbors on each side.
        axis: the axis.
    """
    sums = torch.cumsum(planes, axis)
    sums = torch.cat([torch.zeros_like(sums.narrow(axis, 0, 1)), sums], axis)
    reach = 2 * beyond + 1
    length = sums.shape[axis] - reach
    return (sums.narrow(axis, reach, length) - sums.narrow(axis, 0, length)) / reach


def _ink(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return what each body adds to its pixel, shape (bodies, 3): 1, its color, and its light."""
    squares = torch.floor(x * _SQUARES) + torch.floor(y * _SQUARES)
    shade = torch.where(squares % 2 == 0, 1.0, 0.8)
    return torch.cat([torch.ones_like(x), y / _HIGH + 0.5, shade], dim=1).float()


_HIGH = WIDE[1] / WIDE[0]
# From the upper stream over the line between both to the lower one.
_PALETTE = gradient(
    (
        (24, 40, 110), (38, 92, 200), (72, 170, 240), (176, 228, 250), (255, 248, 226),
        (255, 214, 110), (245, 150, 54), (214, 84, 48), (120, 30, 62),
    ),
    np.linspace(0, 1, 256),
).astype(np.float64)  # fmt: skip

_SNIPPET = """\
import math
import time
import torch

bodies, whirls, device, dtype = {bodies}, {whirls}, "{device}", torch.{dtype}
x = torch.rand(bodies, 1, device=device, dtype=dtype)
y = (torch.rand(bodies, 1, device=device, dtype=dtype) - 0.5) * 9 / 16
y[:whirls] *= 0.02


def speeds(x, y, whirls_x, whirls_y):
    across, down = 2 * math.pi * (x - whirls_x), 2 * math.pi * (y - whirls_y)
    near = torch.cosh(down) - torch.cos(across) + {smoothing:.4f}
    speed_x = -(torch.sinh(down) / near).mean(1, keepdim=True) / 2
    speed_y = (torch.sin(across) / near).mean(1, keepdim=True) / 2
    return speed_x, speed_y


def moved(x, y, at_x, at_y, time_step):
    # Some bodies at a time: all pairs at once would need gigabytes.
    whirls_x, whirls_y = at_x[:whirls].T.clone(), at_y[:whirls].T.clone()
    parts = zip(at_x.split({at_once}), at_y.split({at_once}))
    parts = [speeds(*part, whirls_x, whirls_y) for part in parts]
    return (
        x + time_step * torch.cat([speed for speed, _ in parts]),
        y + time_step * torch.cat([speed for _, speed in parts]),
    )


def step(x, y):
    middle_x, middle_y = moved(x, y, x, y, {time_step} / 2)
    return moved(x, y, middle_x, middle_y, {time_step})


x, y = step(x, y)  # the first step is slower
{wait}start = time.perf_counter()
for _ in range(20):
    x, y = step(x, y)
{wait}print(f"{{20 / (time.perf_counter() - start):.1f}} steps a second")
"""
