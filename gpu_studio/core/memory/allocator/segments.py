"""The segments of PyTorch's CUDA allocator: how it gets them from the driver and gives them back.

The rules are those of torch 2.13's c10/cuda/CUDACachingAllocator.cpp. Comments name its functions.

With ``expandable_segments:True`` a segment is a reservation of addresses for 1⅛ times the card's
memory. Memory is mapped into it in pages, of 2 MiB (small pool) or the size of a large segment,
20 MiB (large pool), at the lowest address with enough room. It is unmapped page by page. So
adjacent free blocks merge, whatever they were made for. Linux only. See "Note [Expandable
Segments]" in the same file.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.memory.allocator.blocks import (
    FREE,
    IN_USE,
    SMALL_BYTES,
    UNMAPPED,
    Block,
    Pool,
    rejected,
)
from gpu_studio.core.memory.allocator.options import (
    MIN_BLOCK_BYTES,
    SMALL_SEGMENT_BYTES,
    UNLIMITED,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.memory.allocator.options import AllocatorConfiguration


_OWN_SEGMENT_BYTES = 10 << 20
_STEP_BYTES = 2 << 20


class Statistics:
    """The counters of a card's allocator, as ``torch.cuda.memory_stats()`` has them.

    Only those that something shows or decides by: the sums of both pools. See DeviceStats in
    PyTorch's c10/core/CachingDeviceAllocator.h.

    Attributes:
        blocks, allocated_bytes, allocated_peak_bytes: of the blocks in use.
        splits, split_bytes: free blocks that are only a part of their segment, so that the driver
            cannot have them back (``inactive_split``). Expandable segments do not count: the
            driver gets their pages.
        segments, reserved_bytes, reserved_peak_bytes: from the driver.
    """

    def __init__(self) -> None:
        self.blocks = self.allocated_bytes = self.allocated_peak_bytes = 0
        self.splits = self.split_bytes = 0
        self.segments = self.reserved_bytes = self.reserved_peak_bytes = 0
        self.num_alloc_retries = self.num_ooms = self.num_oom_rejections = 0

    def count_allocation(self, size_bytes: int) -> None:
        """Count a block that is handed out."""
        self.blocks += 1
        self.allocated_bytes += size_bytes
        if self.allocated_bytes > self.allocated_peak_bytes:
            self.allocated_peak_bytes = self.allocated_bytes

    def count_free(self, size_bytes: int) -> None:
        """Count a block that comes back."""
        self.blocks -= 1
        self.allocated_bytes -= size_bytes

    def count_splits(self, blocks: int, size_bytes: int) -> None:
        """Count a net change of the free parts of segments."""
        self.splits += blocks
        self.split_bytes += size_bytes

    def count_reserved(self, size_bytes: int, *, segments: int) -> None:
        """Count memory from the driver, or back to it: segments, or pages of one (0 segments)."""
        self.segments += segments
        self.reserved_bytes += size_bytes
        self.reserved_peak_bytes = max(self.reserved_peak_bytes, self.reserved_bytes)

    def reset_peaks(self) -> None:
        """Restart the peaks."""
        self.allocated_peak_bytes = self.allocated_bytes
        self.reserved_peak_bytes = self.reserved_bytes

    def values(self) -> dict[str, int]:
        """Return the counters by PyTorch's names.

        A block is active as long as it is allocated: none waits for another stream here.
        """
        return {
            "active_bytes.all.current": self.allocated_bytes,
            "allocated_bytes.all.current": self.allocated_bytes,
            "allocated_bytes.all.peak": self.allocated_peak_bytes,
            "allocation.all.current": self.blocks,
            "inactive_split.all.current": self.splits,
            "inactive_split_bytes.all.current": self.split_bytes,
            "num_alloc_retries": self.num_alloc_retries,
            "num_oom_rejections": self.num_oom_rejections,
            "num_ooms": self.num_ooms,
            "reserved_bytes.all.current": self.reserved_bytes,
            "reserved_bytes.all.peak": self.reserved_peak_bytes,
            "segment.all.current": self.segments,
        }


class FoundBlock(NamedTuple):
    """A block of a segment that another allocator made; ``state`` as in `Block`."""

    address: int
    size_bytes: int
    requested_bytes: int
    state: int


class FoundSegment(NamedTuple):
    """A segment that another allocator made; its blocks fill it from its address on."""

    stream: int
    is_small: bool
    blocks: tuple[FoundBlock, ...]


class Segments:
    """The segments of a card's allocator.

    Args:
        fraction: the share of the card that this process may reserve; 1 is no limit.

    Attributes:
        expandable: the expandable segments of each pool; empty if segments are not expandable.
    """

    def __init__(
        self,
        options: AllocatorConfiguration,
        fraction: float,
        card: ModelledCard,
        statistics: Statistics,
    ) -> None:
        self._options = options
        self._card = card
        self._statistics = statistics
        self.is_expandable = options.expandable_segments
        self._streams: dict[int, tuple[Pool, Pool]] = {}
        # The large ones, then the small ones: the order in which they give memory back.
        self._pools: list[Pool] = []
        self._heads: dict[int, Block] = {}
        self.limit_bytes: int | None = None
        self.collects_garbage = False
        self.set_fraction(fraction)
        self._reject_beyond_bytes = UNLIMITED
        if options.throw_on_cudamalloc_oom:
            share = options.per_process_memory_fraction * card.capacity_bytes
            self._reject_beyond_bytes = int(share)
        self.expandable: dict[Pool, ExpandableSegments] = {}

    def pools_of(self, stream: int) -> tuple[Pool, Pool]:
        """Return the small and the large pool of a stream."""
        if stream in self._streams:
            return self._streams[stream]
        # should_split: what is cut off an expandable segment grows together with it again.
        of_large_bytes = MIN_BLOCK_BYTES + (0 if self.is_expandable else SMALL_BYTES)
        small = Pool(is_small=True, least_rest_bytes=MIN_BLOCK_BYTES)
        large = Pool(is_small=False, least_rest_bytes=of_large_bytes)
        self._streams[stream] = (small, large)
        streams = [self._streams[name] for name in sorted(self._streams)]
        self._pools = [pools[1] for pools in streams] + [pools[0] for pools in streams]
        for pool in (small, large) if self.is_expandable else ():
            page_bytes = self._options.page_bytes(is_small=pool.is_small)
            self.expandable[pool] = ExpandableSegments(
                pool, page_bytes, self._card, self._statistics
            )
        return small, large

    def advance_clock(self, pool: Pool) -> None:
        """Count a search for a free block; the pools of all streams have one clock."""
        clock = pool.clock + 1
        for other in self._pools:
            if other.is_small == pool.is_small:
                other.clock = clock

    def restore(self, pool: Pool, segment: FoundSegment) -> list[Block]:
        """Add a segment that is not expandable as it was found, and return its blocks."""
        blocks: list[Block] = []
        for found in segment.blocks:
            before = blocks[-1] if blocks else None
            block = Block(found.address, found.size_bytes, pool, before, None)
            block.requested_bytes, block.state = found.requested_bytes, found.state
            if before is not None:
                before.next = block
            blocks.append(block)
        for block in blocks:
            if block.state == FREE:
                pool.insert(block)
        size_bytes = sum(block.size_bytes for block in blocks)
        self._card.reserve(size_bytes)
        self._card.avoid(blocks[-1].address + blocks[-1].size_bytes)
        self._statistics.count_reserved(size_bytes, segments=1)
        self._heads[blocks[0].address] = blocks[0]
        return blocks

    def set_fraction(self, fraction: float) -> None:
        """Limit reserved memory to a share of the card; 1 is no limit (setMemoryFraction)."""
        # This rounds to the nearest byte; the garbage collector's shares are rounded down.
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
        """Return the size of the driver's segment for a rounded request (get_allocation_size)."""
        if size_bytes <= SMALL_BYTES:
            return SMALL_SEGMENT_BYTES
        if size_bytes < _OWN_SEGMENT_BYTES:
            return self._options.large_segment_bytes
        return -(-size_bytes // _STEP_BYTES) * _STEP_BYTES

    def ask(self, pool: Pool, size_bytes: int, requested_bytes: int) -> Block | None:
        """Ask the driver for memory; None if the driver or the limit refuses (alloc_block).

        Args:
            pool: the pool that needs it.
            size_bytes: the request, rounded.
            requested_bytes: the original request, for the error's text.

        Raises:
            ModelledOutOfMemory: with ``throw_on_cudamalloc_oom``, before the driver is asked.
        """
        segment_bytes = self.segment_bytes(size_bytes)
        wanted_bytes = self._statistics.reserved_bytes + segment_bytes
        if self.limit_bytes is not None and wanted_bytes > self.limit_bytes:
            return None
        if wanted_bytes > self._reject_beyond_bytes:
            self._statistics.num_oom_rejections += 1
            raise rejected(requested_bytes)
        if self.is_expandable:
            return self.expandable[pool].allocate(size_bytes)
        if not self._card.reserve(segment_bytes):
            return None
        block = Block(self._card.addresses(segment_bytes), segment_bytes, pool, None, None)
        self._heads[block.address] = block
        self._card.note("segment_alloc", block.address, segment_bytes)
        self._statistics.count_reserved(segment_bytes, segments=1)
        return block

    def release_cached(self) -> None:
        """Give back every segment, or page of an expandable segment, without a tensor.

        See release_cached_blocks, and torch.cuda.empty_cache.
        """
        for pool in self._pools:
            for block in pool.blocks():
                if self.is_expandable:
                    self.expandable[pool].release(block)
                elif not block.is_split:
                    self._release(block)

    def release_oversize(self, pool: Pool, size_bytes: int) -> bool:
        """Give back just enough of the blocks that may not be split, if that size has a limit.

        A single sufficient block, otherwise from the largest block down. Return whether it is
        enough (release_available_cached_blocks).
        """
        least_bytes = self._options.max_split_bytes
        if least_bytes == UNLIMITED or self.is_expandable:
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
        """Give back large segments that have been free for long, once too much is reserved.

        Too much is ``garbage_collection_threshold`` of the limit. Segments of at least average age
        go, even beyond the need, and again until it is enough (garbage_collect_cached_blocks).
        """
        if self.limit_bytes is None:
            return
        threshold_bytes = int(self._options.garbage_collection_threshold * self.limit_bytes)
        excess_bytes = self._statistics.reserved_bytes - threshold_bytes
        large = [pool for pool in self._pools if not pool.is_small]
        clock = large[0].clock
        idle = [block for pool in large for block in pool.blocks() if not block.is_split]
        total_age = sum(clock - block.idle_since for block in idle)
        while idle and excess_bytes > 0:
            average_age = total_age / len(idle)
            old = [block for block in idle if clock - block.idle_since >= average_age]
            idle = [block for block in idle if clock - block.idle_since < average_age]
            for block in old:
                excess_bytes -= block.size_bytes
                total_age -= clock - block.idle_since
                self._release(block)

    def _release(self, block: Block) -> None:
        """Give a whole segment back to the driver (release_block)."""
        block.pool.remove(block)
        del self._heads[block.address]
        self._card.give(block.size_bytes)
        self._card.note("segment_free", block.address, block.size_bytes)
        self._statistics.count_reserved(-block.size_bytes, segments=-1)


class ExpandableSegments:
    """The expandable segments of one pool."""

    def __init__(
        self, pool: Pool, page_bytes: int, card: ModelledCard, statistics: Statistics
    ) -> None:
        self._pool = pool
        self._page_bytes = page_bytes
        self._card = card
        self._statistics = statistics
        room_bytes = card.capacity_bytes + card.capacity_bytes // 8
        self._room_bytes = -(-room_bytes // page_bytes) * page_bytes
        # The first block of each segment, by address; it stays the first block while it exists.
        self._heads: list[Block] = []

    def heads(self) -> list[Block]:
        """Return the first block of every segment, mapped or not."""
        return list(self._heads)

    def best_fit(self, place: int) -> int:
        """Return the index of the block to take; ``place`` is the smallest block that fits.

        A block counts with the addresses after it, because it can grow into them. So a larger block
        with less room to grow is the better fit.
        """
        room_bytes = _room_of(self._pool[place])
        for behind in range(place + 1, len(self._pool)):
            other_bytes = _room_of(self._pool[behind])
            if other_bytes >= room_bytes:
                break
            place, room_bytes = behind, other_bytes
        return place

    def allocate(self, size_bytes: int) -> Block | None:
        """Map memory for a block and return it; None if the card has too little.

        Gaps are filled one after another. Those that were filled before the card was full stay
        filled (try_allocate_expandable_block).
        """
        block: Block | None = self._lowest_room(size_bytes)
        assert block is not None
        if block.state == UNMAPPED:
            block = self._map(block, min(size_bytes, block.size_bytes))
        while block is not None and block.size_bytes < size_bytes:
            gap = block.next
            assert gap is not None
            block = self._map(gap, min(size_bytes - block.size_bytes, gap.size_bytes))
        if block is not None:
            self._pool.remove(block)
        return block

    def release(self, block: Block) -> None:
        """Unmap the pages that are completely inside a free block, and drop an empty segment.

        The remainders of the block before and after the pages stay free (unmap_block).
        """
        base = self._base_of(block)
        first = base + -(-(block.address - base) // self._page_bytes) * self._page_bytes
        end = block.address + block.size_bytes
        end -= (end - base) % self._page_bytes
        if first >= end:
            return
        self._pool.remove(block)
        requested_bytes = block.requested_bytes
        if block.address < first:
            pages = block.cut(first - block.address)
            block.requested_bytes = 0
            self._pool.insert(block)
        else:
            pages = block
        if pages.size_bytes > end - first:
            behind = pages.cut(end - first)
            behind.requested_bytes = 0
            self._pool.insert(behind)
        pages.requested_bytes = requested_bytes
        self._card.give(end - first)
        self._card.note("segment_unmap", first, end - first)
        self._statistics.count_reserved(first - end, segments=0)
        whole = self._unmap(pages)
        if not whole.is_split:
            self._pool.unmapped.remove(whole)
            self._heads.remove(whole)

    def _unmap(self, block: Block) -> Block:
        """Turn a block that is in no pool into unmapped addresses, merged with its neighbors."""
        block.state = UNMAPPED
        before = block.prev
        if before is not None and before.state == UNMAPPED:
            self._pool.unmapped.remove(before)
            before.requested_bytes = block.requested_bytes
            before.absorb_next()
            block = before
        after = block.next
        if after is not None and after.state == UNMAPPED:
            self._pool.unmapped.remove(after)
            block.absorb_next()
        insort(self._pool.unmapped, block, key=_address)
        return block

    def _map(self, block: Block, size_bytes: int) -> Block | None:
        """Map whole pages at the start of an unmapped range; return the free block with them."""
        mapped_bytes = -(-size_bytes // self._page_bytes) * self._page_bytes
        if not self._card.reserve(mapped_bytes):
            return None
        self._card.note("segment_map", block.address, mapped_bytes)
        self._pool.unmapped.remove(block)
        block.state = FREE
        if mapped_bytes < block.size_bytes:
            rest = block.cut(mapped_bytes)
            rest.requested_bytes = 0
            rest.state = UNMAPPED
            insort(self._pool.unmapped, rest, key=_address)
        block, _, _ = self._pool.insert_merged(block)
        self._statistics.count_reserved(mapped_bytes, segments=0)
        return block

    def _lowest_room(self, size_bytes: int) -> Block:
        """Return the lowest free or unmapped block with enough addresses from its start.

        If no segment has room, a new segment without memory is created (find_expandable_block).
        """
        for gap in self._pool.unmapped:
            before = gap.prev
            start = before if before is not None and before.state != IN_USE else gap
            last = _end_of_room(start, size_bytes)
            if last is not None:
                return start
        head = Block(
            self._card.addresses(self._room_bytes), self._room_bytes, self._pool, None, None
        )
        head.state = UNMAPPED
        insort(self._pool.unmapped, head, key=_address)
        insort(self._heads, head, key=_address)
        return head

    def _base_of(self, block: Block) -> int:
        place = bisect_right(self._heads, block.address, key=_address)
        return self._heads[place - 1].address


def _address(block: Block) -> int:
    return block.address


def _room_of(block: Block) -> int:
    behind = block.next
    if behind is not None and behind.state == UNMAPPED:
        return block.size_bytes + behind.size_bytes
    return block.size_bytes


def _end_of_room(start: Block, size_bytes: int) -> Block | None:
    """Return the block in which so many bytes from the start end; None if they do not fit."""
    block: Block | None = start
    room_bytes = 0
    while block is not None and block.state != IN_USE:
        room_bytes += block.size_bytes
        if room_bytes >= size_bytes:
            return block
        block = block.next
    return None


PAGE_BYTES = 2 << 20
"""The unit of the driver's memory since Pascal (cuMemGetAllocationGranularity)."""

_FIRST_ADDRESS = 1 << 44


class ModelledCard:
    """A card's memory according to CUDA.

    Addresses are given in ascending order and never reused. A real driver may reuse them. That
    only affects which of two equally large free blocks is taken first.

    Attributes:
        capacity_bytes: all of it, as in ``torch.cuda.mem_get_info()``.
        other_bytes: used by other processes and this process's CUDA context.
        watch: called with PyTorch's name of an action (``segment_alloc``, ``segment_free``,
            ``segment_map``, ``segment_unmap``), an address and a size in bytes; None for no calls.
    """

    def __init__(self, capacity_bytes: int, other_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.other_bytes = other_bytes
        self.watch: Callable[[str, int, int], None] | None = None
        self._held_bytes = 0
        self._next_address = _FIRST_ADDRESS

    @property
    def free_bytes(self) -> int:
        """The free memory according to ``torch.cuda.mem_get_info()``."""
        return max(0, self.capacity_bytes - self.other_bytes - self._held_bytes)

    def reserve(self, size_bytes: int) -> bool:
        """Take memory in whole pages; return whether there was enough."""
        paged_bytes = _whole_pages(size_bytes)
        if paged_bytes > self.free_bytes:
            return False
        self._held_bytes += paged_bytes
        return True

    def give(self, size_bytes: int) -> None:
        """Give memory back."""
        self._held_bytes -= _whole_pages(size_bytes)

    def avoid(self, end_address: int) -> None:
        """Give no addresses below this one from now on."""
        self._next_address = max(self._next_address, _whole_pages(end_address))

    def note(self, action: str, address: int, size_bytes: int) -> None:
        """Report an action on this card's memory to the watcher."""
        if self.watch is not None:
            self.watch(action, address, size_bytes)

    def addresses(self, size_bytes: int) -> int:
        """Return the start of an unused range of addresses."""
        address = self._next_address
        self._next_address += _whole_pages(size_bytes)
        return address


def _whole_pages(size_bytes: int) -> int:
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES
