"""The driver's side of a modelled card: how much memory it has left, and at which addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE_BYTES = 2 << 20
"""What the driver gives memory in, since Pascal (cuMemGetAllocationGranularity)."""

_FIRST_ADDRESS = 1 << 44


class ModelledCard:
    """A card's memory as CUDA counts it.

    Addresses are given in ascending order and never twice. A real driver may use one again; it
    then matters only which of two equally large free blocks is taken first.

    Attributes:
        capacity_bytes: all of it, as ``torch.cuda.mem_get_info()`` tells.
        other_bytes: held by others: other processes, and this one's CUDA context.
        watch: called with PyTorch's name for what was done (``segment_alloc``, ``segment_free``,
            ``segment_map``, ``segment_unmap``), an address and a size in bytes; None for nobody.
    """

    def __init__(self, capacity_bytes: int, other_bytes: int) -> None:
        if capacity_bytes <= 0 or other_bytes < 0:
            raise ValueError(
                f"no card has {capacity_bytes} bytes, of which others hold {other_bytes}"
            )
        self.capacity_bytes = capacity_bytes
        self.other_bytes = other_bytes
        self.watch: Callable[[str, int, int], None] | None = None
        self._held_bytes = 0
        self._next_address = _FIRST_ADDRESS

    @property
    def free_bytes(self) -> int:
        """What ``torch.cuda.mem_get_info()`` calls free."""
        return max(0, self.capacity_bytes - self.other_bytes - self._held_bytes)

    def take(self, size_bytes: int) -> bool:
        """Take memory, in whole pages; returns whether there was enough."""
        paged_bytes = _whole_pages(size_bytes)
        if paged_bytes > self.free_bytes:
            return False
        self._held_bytes += paged_bytes
        return True

    def give(self, size_bytes: int) -> None:
        """Give back what was taken."""
        self._held_bytes -= _whole_pages(size_bytes)

    def note(self, action: str, address: int, size_bytes: int) -> None:
        """Tell who watches what was done with memory of this card."""
        if self.watch is not None:
            self.watch(action, address, size_bytes)

    def addresses(self, size_bytes: int) -> int:
        """Return the first of a range of addresses that nothing else has."""
        address = self._next_address
        self._next_address += _whole_pages(size_bytes)
        return address


def _whole_pages(size_bytes: int) -> int:
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES
