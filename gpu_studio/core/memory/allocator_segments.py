"""What PyTorch's CUDA allocator has from the driver: segments, how it asks and what it gives back.

The rules are those of torch 2.13's c10/cuda/CUDACachingAllocator.cpp, named here by its functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.memory.allocator_blocks import SMALL_BYTES, Block, Pool
from gpu_studio.core.memory.allocator_configuration import UNLIMITED
from gpu_studio.core.memory.allocator_error import rejected
from gpu_studio.core.memory.allocator_expandable import ExpandableSegments

if TYPE_CHECKING:
    from gpu_studio.core.memory.allocator_card import ModelledCard
    from gpu_studio.core.memory.allocator_configuration import AllocatorConfiguration
    from gpu_studio.core.memory.allocator_statistics import Statistics

_SMALL_SEGMENT_BYTES = 2 << 20
_OWN_SEGMENT_BYTES = 10 << 20
_STEP_BYTES = 2 << 20


class Segments:
    """The segments of a card's allocator.

    Args:
        pools: the large pool and the small one, the order in which they give memory back.
        fraction: the share of the card that this process may reserve; 1 is no limit.
    """

    def __init__(
        self,
        options: AllocatorConfiguration,
        fraction: float,
        card: ModelledCard,
        statistics: Statistics,
        pools: tuple[Pool, Pool],
    ) -> None:
        self._options = options
        self._card = card
        self._statistics = statistics
        self._pools = pools
        self._heads: dict[int, Block] = {}
        self.limit_bytes: int | None = None
        self.collects_garbage = False
        self.set_fraction(fraction)
        self._reject_beyond_bytes = UNLIMITED
        if options.throw_on_cudamalloc_oom:
            share = options.per_process_memory_fraction * card.capacity_bytes
            self._reject_beyond_bytes = int(share)
        self.expandable: dict[Pool, ExpandableSegments] = {}
        if options.expandable_segments:
            for pool in pools:
                page_bytes = _SMALL_SEGMENT_BYTES if pool.is_small else options.large_segment_bytes
                self.expandable[pool] = ExpandableSegments(pool, page_bytes, card, statistics)

    def set_fraction(self, fraction: float) -> None:
        """Limit what may be reserved to a share of the card; 1 is no limit (setMemoryFraction)."""
        # It takes the nearest byte; the garbage collector's shares are rounded down.
        share_bytes = int(fraction * self._card.capacity_bytes + 0.5)
        self.limit_bytes = share_bytes if fraction < 1 else None
        self.collects_garbage = (
            self.limit_bytes is not None and self._options.garbage_collection_threshold > 0
        )

    def heads(self) -> list[Block]:
        """Return the first block of every segment."""
        heads = list(self._heads.values())
        for expandable in self.expandable.values():
            heads += expandable.heads()
        return heads

    def segment_bytes(self, size_bytes: int) -> int:
        """Return what the driver is asked for, for a rounded request (get_allocation_size)."""
        if size_bytes <= SMALL_BYTES:
            return _SMALL_SEGMENT_BYTES
        if size_bytes < _OWN_SEGMENT_BYTES:
            return self._options.large_segment_bytes
        return -(-size_bytes // _STEP_BYTES) * _STEP_BYTES

    def ask(self, pool: Pool, size_bytes: int, requested_bytes: int) -> Block | None:
        """Ask the driver for memory; None if it or the limit refuses (alloc_block).

        Args:
            pool: the pool that needs it.
            size_bytes: the request, rounded.
            requested_bytes: the request as it was, for the error's text.

        Raises:
            OutOfMemory: with ``throw_on_cudamalloc_oom``, before the driver is asked.
        """
        segment_bytes = self.segment_bytes(size_bytes)
        wanted_bytes = self._statistics.reserved_bytes.current + segment_bytes
        if self.limit_bytes is not None and wanted_bytes > self.limit_bytes:
            return None
        if wanted_bytes > self._reject_beyond_bytes:
            self._statistics.num_oom_rejections += 1
            raise rejected(requested_bytes)
        if self.expandable:
            return self.expandable[pool].allocate(size_bytes)
        if not self._card.take(segment_bytes):
            return None
        block = Block(self._card.addresses(segment_bytes), segment_bytes, pool, None, None)
        self._heads[block.address] = block
        self._card.note("segment_alloc", block.address, segment_bytes)
        self._statistics.count_device_alloc(pool.counters, segment_bytes, segments=1)
        return block

    def release_cached(self) -> None:
        """Give back every segment without a tensor in it, every such page of an expandable one.

        It first waits for all streams (release_cached_blocks; torch.cuda.empty_cache does this).
        """
        self._statistics.num_sync_all_streams += 1
        for pool in self._pools:
            for block in pool.blocks():
                if self.expandable:
                    self.expandable[pool].release(block)
                elif not block.is_split:
                    self._release(block)

    def release_oversize(self, pool: Pool, size_bytes: int) -> bool:
        """Give back just enough of the blocks that may not be split, if there is a limit of those.

        One that is large enough will do; else from the largest down. Returns whether it is enough
        (release_available_cached_blocks).
        """
        least_bytes = self._options.max_split_bytes
        if least_bytes == UNLIMITED or self.expandable:
            return False
        wanted_bytes = max(size_bytes, least_bytes)
        place = pool.place_of(wanted_bytes)
        if place < len(pool):
            self._release(pool[place])
            return True
        released_bytes = 0
        while released_bytes < wanted_bytes and len(pool) and pool[-1].size_bytes >= least_bytes:
            released_bytes += pool[-1].size_bytes
            self._release(pool[-1])
        return released_bytes >= wanted_bytes

    def collect_garbage(self) -> None:
        """Give back large segments that nobody has used for long, once too much is reserved.

        Too much is ``garbage_collection_threshold`` of the limit. Those of at least average age go,
        even beyond what is needed, and again until it is enough (garbage_collect_cached_blocks).
        """
        if self.limit_bytes is None:
            return
        threshold_bytes = int(self._options.garbage_collection_threshold * self.limit_bytes)
        excess_bytes = self._statistics.reserved_bytes.current - threshold_bytes
        pool = self._pools[0]
        idle = [block for block in pool.blocks() if not block.is_split] if excess_bytes > 0 else []
        total_age = sum(pool.clock - block.idle_since for block in idle)
        while idle and excess_bytes > 0:
            average_age = total_age / len(idle)
            old = [block for block in idle if pool.clock - block.idle_since >= average_age]
            idle = [block for block in idle if pool.clock - block.idle_since < average_age]
            for block in old:
                excess_bytes -= block.size_bytes
                total_age -= pool.clock - block.idle_since
                self._release(block)

    def _release(self, block: Block) -> None:
        """Give a whole segment back to the driver (release_block)."""
        block.pool.remove(block)
        del self._heads[block.address]
        self._card.give(block.size_bytes)
        self._card.note("segment_free", block.address, block.size_bytes)
        self._statistics.count_device_free(block.pool.counters, block.size_bytes, segments=1)
