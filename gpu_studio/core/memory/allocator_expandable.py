"""Expandable segments: one long range of addresses a pool, with memory mapped in where needed.

With ``expandable_segments:True`` a segment is a reservation of addresses for 1⅛ times the card's
memory. Memory is mapped into it in pages of 2 MiB (small pool) or of a large segment, 20 MiB (large
pool), at the lowest address where a request fits, and unmapped page by page. So blocks that end up
side by side become one again whatever they were made for. Linux only. See "Note [Expandable
Segments]" in PyTorch 2.13's c10/cuda/CUDACachingAllocator.cpp.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import TYPE_CHECKING

from gpu_studio.core.memory.allocator_blocks import FREE, IN_USE, UNMAPPED, Block, Pool

if TYPE_CHECKING:
    from gpu_studio.core.memory.allocator_card import ModelledCard
    from gpu_studio.core.memory.allocator_statistics import Statistics


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
        # The first block of each segment, by address; it stays first as long as the segment lives.
        self._heads: list[Block] = []

    def heads(self) -> list[Block]:
        """Return the first block of every segment, mapped or not."""
        return list(self._heads)

    def best_fit(self, place: int) -> int:
        """Return the place of the block to take, the one at ``place`` being the smallest that fits.

        A block counts with the addresses behind it, as it can grow into them; so a larger one that
        cannot grow as far is the better fit.
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

        Where gaps are filled one after another, those filled before the card was full stay so
        (try_allocate_expandable_block).
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
        """Unmap the pages that lie wholly inside a free block, and drop a segment with none left.

        What is left of the block before and behind them stays free (unmap_block).
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
        self._statistics.count_device_free(self._pool.counters, end - first, segments=0)
        self._drop_if_whole(self._unmap(pages))

    def _unmap(self, block: Block) -> Block:
        """Turn a block that is in no pool into mere addresses, one with those on its sides."""
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

    def _drop_if_whole(self, block: Block) -> None:
        if not block.is_split:
            self._pool.unmapped.remove(block)
            self._heads.remove(block)

    def _map(self, block: Block, size_bytes: int) -> Block | None:
        """Map whole pages at the start of an unmapped range; returns the free block they are in."""
        mapped_bytes = -(-size_bytes // self._page_bytes) * self._page_bytes
        if not self._card.take(mapped_bytes):
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
        self._statistics.count_device_alloc(self._pool.counters, mapped_bytes, segments=0)
        return block

    def _lowest_room(self, size_bytes: int) -> Block:
        """Return the lowest free or unmapped block from which on there are enough addresses.

        Where no segment has room a new one is begun, which has no memory yet
        (find_expandable_block).
        """
        for gap in self._pool.unmapped:
            before = gap.prev
            start = before if before is not None and before.state != IN_USE else gap
            if _has_room(start, size_bytes):
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


def _has_room(start: Block, size_bytes: int) -> bool:
    block: Block | None = start
    room_bytes = 0
    while block is not None and room_bytes < size_bytes and block.state != IN_USE:
        room_bytes += block.size_bytes
        block = block.next
    return room_bytes >= size_bytes
