"""How a device's answers are proven: the same operands everywhere, and what is compared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHOLE_UP_TO = 512
# A large operand repeats a block of this side. A device's own tiles have sides that are powers of
# two: a prime lies across them, so a tile in place of another is seen.
BLOCK_SIDE = 509
# How far a result may be off in the norm, in eps: each of its roundings counts half an eps at most,
# and they point anywhere. Measured on the CPU: up to 0.6 for the ten statements, in every dtype.
_NORM_EPS = 1.0
# With few numbers chance has no room: a single one may be off by all its roundings together.
_CHANCE = 8.0
_ROWS_CHECKED = 16
_SEED = 20250301


class Verification(msgspec.Struct, frozen=True):
    """Whether a device computes what the CPU reference says, how close, and what was compared.

    ``verified`` is None where the work itself was not checked.
    """

    verified: bool | None
    finding: str
    compared: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The whole of it: ``exact for whole numbers: all of 512 × 512``."""
        return f"{self.finding}: {' and '.join(self.compared)}"


def misplaced(result: torch.Tensor, device: torch.device) -> str:
    """Return what is wrong with where a result is; empty where it is on its device."""
    if result.device == device:
        return ""
    return f"the result is on {result.device.type}, and not on {device}"


def is_coarser(result: torch.Tensor) -> bool:
    """Return whether every number of a result has room in a shorter dtype: it was rounded there."""
    shorter = {
        torch.float64: (torch.float32,),
        torch.float32: (torch.float16, torch.bfloat16),
        torch.float16: (torch.bfloat16,),
    }
    return any(
        bool((result == result.to(dtype).to(result.dtype)).all())
        for dtype in shorter.get(result.dtype, ())
    )


def norm_error(found: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    """Return how far numbers are off in their norm, as a share of it; NaN where one is none."""
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def norm_tolerance(eps: float, count: int) -> float:
    """Return how far so many numbers may be off in their norm, as a share of it."""
    return eps * (_NORM_EPS + _CHANCE / math.sqrt(count))


def seeded() -> torch.Generator:
    """Return a random generator for operands that are the same on every device."""
    return torch.Generator().manual_seed(_SEED)


def tiled(block: torch.Tensor, size: int, device: torch.device) -> torch.Tensor:
    """Return a square matrix made of copies of a small one from the CPU, shape (size, size).

    The reference of a large result is then a small computation, while the device does the large
    one with the very shape that is timed.
    """
    on_device = block.to(device)
    side = block.shape[0]
    if side == size:
        return on_device
    index = torch.arange(size, device=device) % side
    return on_device[index][:, index]


def rows_to_check(size: int) -> NDArray[np.int64]:
    """Return all rows of a small result, and rows spread over a large one, ends included."""
    if size <= WHOLE_UP_TO:
        return np.arange(size)
    return np.unique(np.linspace(0, size - 1, _ROWS_CHECKED).astype(np.int64))


def fetch_rows(result: torch.Tensor, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return rows of a device's result as float64 on the CPU, by copies alone."""
    if len(rows) == result.shape[0]:
        fetched = result.cpu()
    else:
        fetched = torch.stack([result[int(row)].cpu() for row in rows])
    array: NDArray[np.float64] = fetched.double().numpy()
    return array


def tiled_rows(block: NDArray[Any], size: int, rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return the same rows of the large matrix whose copies of ``block`` repeat."""
    side = block.shape[0]
    chosen: NDArray[Any] = block[rows % side][:, np.arange(size) % side]
    return chosen


def describe_rows(size: int, rows: NDArray[np.int64]) -> str:
    """Return what was compared: ``all of 512 × 512`` or ``16 rows of 2048 × 2048``."""
    shape = f"{size} × {size}"
    return f"all of {shape}" if len(rows) == size else f"{len(rows)} rows of {shape}"
