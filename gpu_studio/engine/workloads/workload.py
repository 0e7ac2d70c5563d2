"""What a workload is, and how its answers are proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
import torch

from gpu_studio.core.sizes import ITEM_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpu_studio.core.protocol import WorkloadDescription

WHOLE_UP_TO = 512
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


class Workload(Protocol):
    """One kind of work on square matrices. All methods take ``size``, the length of a side."""

    description: WorkloadDescription
    # How many matrices exist at once in a call, operands and results.
    matrices: int

    def operations(self, size: int) -> float:
        """Return the floating-point operations of one call."""

    def bytes_moved(self, size: int, item_bytes: int) -> float:
        """Return the bytes that one call reads and writes, as its operations are written."""

    def throughput_work(self, size: int, item_bytes: int) -> float:
        """Return what one call does in the unit of its throughput."""

    def prepare(self, device: torch.device, size: int, dtype: torch.dtype) -> Callable[[], object]:
        """Make the operands and return one call. They are free when the call is."""

    def verify(self, device: torch.device, size: int, dtype: torch.dtype) -> Verification:
        """Compare a device's result with an independent one of the CPU."""

    def snippet(self, device: str, size: int, dtype: str) -> str:
        """Return lines of PyTorch that do and time this work as they stand."""


def bytes_needed(workload: Workload, size: int, dtype: str) -> int:
    """Return the memory that one call takes at its peak."""
    return workload.matrices * size * size * ITEM_BYTES[dtype]


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
