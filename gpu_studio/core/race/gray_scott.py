"""The pattern that grows in a race: two substances react and spread (Gray–Scott).

Feed and kill rates are those of Pearson ("Complex Patterns in a Simple System", Science 261, 1993)
in the range of growing spots; the time step is 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_studio.core.race.pictures import wide_height

if TYPE_CHECKING:
    from numpy.typing import NDArray

SPREAD_U, SPREAD_V = 0.16, 0.08
FEED, KILL = 0.035, 0.06
CHECKED_STEPS = 10
# A step rounds each number about 12 times by half an eps, and the spreading keeps errors at their
# size. Measured on the CPU: up to 1.4 eps a step in every dtype.
EPS_PER_STEP = 6.0
DEFAULT_SEEDS = ((0.5, 0.5), (0.28, 0.35), (0.7, 0.3), (0.35, 0.72), (0.72, 0.7))
# The side of a seed as a share of the picture's height.
_SEED_SHARE = 1 / 20
BRIGHTEST = 0.4
"""The second substance stays below this."""
_STOPS = ((10, 26, 34), (0, 96, 92), (0, 158, 115), (240, 228, 66), (255, 255, 240))
_PALETTE = np.stack(
    [np.interp(np.linspace(0, 4, 256), range(5), channel) for channel in zip(*_STOPS, strict=True)],
    axis=1,
).astype(np.uint8)


def planted(width: int) -> NDArray[np.float64]:
    """Return both substances before the first step, shape (height, width, 2)."""
    height = wide_height(width)
    state = np.zeros((height, width, 2))
    state[..., 0] = 1.0
    half = max(2, round(height * _SEED_SHARE / 2))
    for across, down in DEFAULT_SEEDS:
        column, row = int(across * (width - 1)), int(down * (height - 1))
        rows = slice(max(0, row - half), row + half)
        state[rows, max(0, column - half) : column + half] = 0.5, 0.25
    return state


def step(now: NDArray[Any], new: NDArray[Any], first: int) -> None:
    """Write the next step of some rows.

    Args:
        now: the rows with one more above and below, and a column more at each side.
        new: the whole picture, with such a margin.
        first: the first row.
    """
    cells = now[1:-1, 1:-1]
    around = now[:-2, 1:-1] + now[2:, 1:-1]
    around += now[1:-1, :-2]
    around += now[1:-1, 2:]
    around -= 4 * cells
    u, v = cells[..., 0], cells[..., 1]
    reaction = u * v * v
    target = new[first + 1 : first + 1 + len(cells), 1:-1]
    kind = cells.dtype.type
    target[..., 0] = u + (kind(SPREAD_U) * around[..., 0] - reaction + kind(FEED) * (1 - u))
    target[..., 1] = v + (kind(SPREAD_V) * around[..., 1] + reaction - kind(FEED + KILL) * v)


def colors(second: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the second substance in colors, shape (height, width, 3)."""
    shown = np.clip(np.nan_to_num(second.astype(np.float32), nan=0.0), 0, BRIGHTEST)
    found: NDArray[np.uint8] = _PALETTE[(shown * (255 / BRIGHTEST)).astype(np.uint8)]
    return found
