"""A simulated card for the memory lab: a model of PyTorch's allocator, without card and PyTorch."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gpu_studio.core.memory.allocator.blocks import ModelledOutOfMemory
from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.segments import map_of_snapshot, segments_read
from gpu_studio.core.messages.memory_messages import MemoryRead, SegmentsRead

if TYPE_CHECKING:
    from gpu_studio.core.memory.allocator.blocks import Block
    from gpu_studio.core.memory.modelled_cards import ModelledCardChoice


class ModelledTensor:
    """Holds a block as long as a reference exists, as a tensor does."""

    __slots__ = ("_block", "_memory")

    def __init__(self, memory: ModelledMemory, block: Block) -> None:
        self._memory = memory
        self._block = block

    def __del__(self) -> None:
        self._memory.free(self._block)


class ModelledMemory:
    """Implements `core.memory.presets.LabCard` for a simulated card.

    Args:
        card: the card to model.
        conf: the allocator's options.

    Raises:
        ValueError: ``conf`` is wrong; see `parse_configuration`.
    """

    is_modelled = True

    def __init__(self, card: ModelledCardChoice, conf: str = "") -> None:
        self.device = card.address
        self.conf = conf
        self.allocator = AllocatorModel(card.total_bytes, card.context_bytes, conf=conf)
        self._fraction_before = self.allocator.memory_fraction

    def prepare(self) -> None:
        """Make a first tensor, as a program does to get a context, and empty the cache."""
        self.empty(1)
        self.empty_cache()

    def empty(self, size_bytes: int) -> ModelledTensor:
        """Return a tensor; raise `ModelledOutOfMemory`."""
        return ModelledTensor(self, self.allocator.allocate(size_bytes))

    def free(self, block: Block) -> None:
        """Free a tensor's block."""
        self.allocator.free(block)

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether an error is the allocator's own."""
        return isinstance(error, ModelledOutOfMemory)

    def empty_cache(self) -> None:
        """Give free segments back."""
        self.allocator.empty_cache()

    def limit(self, budget_bytes: int | None) -> None:
        """Limit the reserved memory; None for the limit in ``conf``."""
        fraction = self._fraction_before
        if budget_bytes is not None:
            fraction = budget_fraction(budget_bytes, self.allocator.card.capacity_bytes)
        self.allocator.set_memory_fraction(fraction)

    def read(self, mark: str | None = None, step: int | None = None) -> MemoryRead:
        """Return the counters."""
        stats = self.allocator.stats()
        reserved_bytes = stats["reserved_bytes.all.current"]
        releasable_bytes = (
            reserved_bytes
            - stats["active_bytes.all.current"]
            - stats["inactive_split_bytes.all.current"]
        )
        if self.allocator.is_expandable:
            releasable_bytes = map_of_snapshot(self.allocator.segments()).releasable_bytes
        return MemoryRead(
            device=self.device,
            taken_at_s=time.monotonic(),
            allocated_bytes=stats["allocated_bytes.all.current"],
            reserved_bytes=reserved_bytes,
            releasable_bytes=releasable_bytes,
            total_bytes=self.allocator.card.capacity_bytes,
            free_bytes=self.allocator.card.free_bytes,
            limit_bytes=self.allocator.limit_bytes,
            mark=mark,
            step=step,
            modelled=True,
        )

    def segments(self, read: MemoryRead) -> SegmentsRead:
        return segments_read(read, self.allocator.segments())


def budget_fraction(budget_bytes: int, total_bytes: int) -> float:
    """Return the fraction for ``set_per_process_memory_fraction`` that is exactly the budget.

    PyTorch multiplies it by the total and cuts to whole bytes, or (2.13) rounds to the nearest
    byte. An additional quarter of a byte is right for both.
    """
    return min(1.0, (budget_bytes + 0.25) / total_bytes)
