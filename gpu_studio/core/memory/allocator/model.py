"""A model of PyTorch's CUDA caching allocator, exact to the byte, without PyTorch or a card.

PyTorch requests memory from the driver in segments and cuts them into blocks, one per tensor. It
does not give a freed block back, but keeps it for the next tensor. That is why there is "reserved"
memory beside "allocated", and free memory that is of no use. The rules are those of
c10/cuda/CUDACachingAllocator.cpp in torch 2.13, for one card. Each stream has pools of its own.
Comments name its functions.

1. A request is rounded up to 512 bytes. Up to 1 MiB it is *small*. Small and large requests have
   separate pools of free blocks.
2. The allocator takes the smallest sufficient free block of the pool, and splits it if enough is
   left over.
3. Without such a block, it requests a segment from the driver: 2 MiB for small requests, 20 MiB for
   those under 10 MiB, and above that the needed size, in steps of 2 MiB.
4. If that fails, it gives back segments without a tensor, and asks the driver again. If that fails,
   too, the card is full.

Not modeled: blocks that wait for another stream (``record_stream``; free them when they are really
free), CUDA graphs, memory pools, other backends.

The snapshot has the form of ``torch.cuda.memory._snapshot()`` (snapshot() in the same file, fields
in torch/csrc/cuda/Module.cpp). As a pickle file, it opens in PyTorch's own viewer
(``torch.cuda._memory_viz``, and pytorch.org/memory_viz).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_studio.core.memory.allocator.blocks import (
    FREE,
    IN_USE,
    SMALL_BYTES,
    UNMAPPED,
    Block,
    Pool,
    beyond_an_exbibyte,
    card_full,
)
from gpu_studio.core.memory.allocator.options import (
    UNLIMITED,
    parse_configuration,
    size_of,
)
from gpu_studio.core.memory.allocator.segments import (
    ModelledCard,
    Segments,
    Statistics,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpu_studio.core.memory.allocator.options import AllocatorConfiguration
    from gpu_studio.core.memory.allocator.segments import FoundSegment


_EXBIBYTE = 1 << 60


class AllocatorModel:
    """The allocator of one process on one card.

    Args:
        capacity_bytes: the card's memory according to CUDA, ``torch.cuda.mem_get_info()[1]``.
        other_bytes: the part that other processes and this process's CUDA context use.
        conf: options, as in ``PYTORCH_CUDA_ALLOC_CONF``.
        fraction: as in ``torch.cuda.set_per_process_memory_fraction``; at 1.0 the option
            ``per_process_memory_fraction`` decides.

    Attributes:
        card: the card's memory; its ``other_bytes`` may change, as other processes come and go.

    Raises:
        ValueError: ``conf`` is wrong; see `parse_configuration`.
    """

    def __init__(
        self, capacity_bytes: int, other_bytes: int = 0, *, conf: str = "", fraction: float = 1.0
    ) -> None:
        self._options = options = parse_configuration(conf)
        self.card = ModelledCard(capacity_bytes, other_bytes)
        self._statistics = statistics = Statistics()
        is_expandable = options.expandable_segments
        self._unsplit_from_bytes = UNLIMITED if is_expandable else options.max_split_bytes
        self.memory_fraction = options.per_process_memory_fraction if fraction == 1 else fraction
        self._segments = Segments(options, self.memory_fraction, self.card, statistics)
        self._counts_splits = not is_expandable

    @property
    def limit_bytes(self) -> int | None:
        """The most that this process may reserve; None without a limit."""
        return self._segments.limit_bytes

    @property
    def is_expandable(self) -> bool:
        """Whether its segments are expandable ones."""
        return self._options.expandable_segments

    def set_memory_fraction(self, fraction: float) -> None:
        """Limit this process to a share of the card (set_per_process_memory_fraction)."""
        self.memory_fraction = fraction
        self._segments.set_fraction(fraction)

    def allocate(self, nbytes: int, stream: int = 0) -> Block:
        """Return a block for a tensor of that many bytes; 0 bytes need no memory.

        Args:
            nbytes: the tensor's size.
            stream: the stream that uses it first; blocks are cached for each stream alone.

        Raises:
            ModelledOutOfMemory: there is no such block; PyTorch's error with exact numbers.
        """
        if nbytes >= _EXBIBYTE:
            raise beyond_an_exbibyte()
        small, large = self._segments.pools_of(stream)
        if nbytes == 0:
            nothing = Block(0, 0, small, None, None)
            nothing.state = IN_USE
            return nothing
        size_bytes = self._options.rounded_bytes(nbytes)
        pool = small if size_bytes <= SMALL_BYTES else large
        block = self._cached_block(pool, size_bytes)
        if block is None:
            block = self._new_block(pool, size_bytes, nbytes)
        was_split = block.next is not None or block.prev is not None
        rest_bytes = block.size_bytes - size_bytes
        if rest_bytes >= pool.least_rest_bytes and size_bytes < self._unsplit_from_bytes:
            pool.insert(block.cut(size_bytes))
            change = (0, -size_bytes) if was_split else (1, rest_bytes)
        else:
            # The remainder belongs to the tensor: "allocated" counts it.
            size_bytes = block.size_bytes
            change = (-1, -size_bytes) if was_split else (0, 0)
        if self._counts_splits:
            self._statistics.count_splits(*change)
        block.state = IN_USE
        block.requested_bytes = nbytes
        self._statistics.count_allocation(size_bytes)
        return block

    def free(self, block: Block) -> None:
        """Free a block, and merge it with the free blocks beside it."""
        pool = block.pool
        block.state = FREE
        if block.size_bytes == 0:
            return
        self._statistics.count_free(block.size_bytes)
        block, neighbours, neighbours_bytes = pool.insert_merged(block)
        if self._counts_splits:
            if block.next is not None or block.prev is not None:
                self._statistics.count_splits(1 - neighbours, block.size_bytes - neighbours_bytes)
            elif neighbours:
                self._statistics.count_splits(-neighbours, -neighbours_bytes)

    def restore(self, segments: Iterable[FoundSegment]) -> dict[int, Block]:
        """Take over the segments of another allocator; this one must not have been used yet.

        Neither may have expandable segments.

        Returns:
            Its blocks in use, by address.
        """
        blocks: dict[int, Block] = {}
        for segment in segments:
            pool = self._segments.pools_of(segment.stream)[not segment.is_small]
            for block in self._segments.restore(pool, segment):
                if block.state == IN_USE:
                    self._statistics.count_allocation(block.size_bytes)
                    blocks[block.address] = block
                elif block.state == FREE and block.is_split and self._counts_splits:
                    self._statistics.count_splits(1, block.size_bytes)
        self._statistics.reset_peaks()
        return blocks

    def empty_cache(self) -> None:
        """Give the driver every segment without a tensor (``torch.cuda.empty_cache``)."""
        self._segments.release_cached()

    def stats(self) -> dict[str, int]:
        """Return some counters under the names of ``torch.cuda.memory_stats()``."""
        return self._statistics.values()

    def segments(self) -> list[dict[str, Any]]:
        """Return the segments by address, in the form of ``torch.cuda.memory_snapshot()``."""
        heads = self._segments.heads()
        stretches = (stretch for head in heads for stretch in _mapped_stretches(head))
        found = (_segment(stretch, self.is_expandable) for stretch in stretches)
        return sorted(found, key=lambda segment: int(segment["address"]))

    def snapshot(self) -> dict[str, Any]:
        """Return it all in the form of ``torch.cuda.memory._snapshot()``, with no history."""
        return {
            "segments": self.segments(),
            "device_traces": [[]],
            "allocator_settings": _settings(self._options),
            "external_annotations": [],
        }

    def _cached_block(self, pool: Pool, size_bytes: int) -> Block | None:
        """Take the smallest sufficient free block out of the pool (get_free_block).

        Only this block is considered: if an option forbids it, no larger block is tried.
        """
        if self._segments.collects_garbage:
            self._segments.advance_clock(pool)
        place = pool.place_of(size_bytes)
        if place == len(pool):
            return None
        if self._segments.expandable:
            place = self._segments.expandable[pool].best_fit(place)
        if not self._may_serve(pool[place].size_bytes, size_bytes):
            return None
        return pool.pop(place)

    def _may_serve(self, block_bytes: int, size_bytes: int) -> bool:
        """Return whether max_split_size allows a request to use a block.

        Blocks from that size on are never split. They are reserved for requests of that kind and
        of similar size.
        """
        if size_bytes < self._options.max_split_bytes:
            return block_bytes < self._options.max_split_bytes
        return block_bytes < size_bytes + self._options.max_non_split_rounding_bytes

    def _new_block(self, pool: Pool, size_bytes: int, nbytes: int) -> Block:
        """Get memory from the driver, at the expense of cached memory (malloc)."""
        segments = self._segments
        if segments.collects_garbage:
            segments.collect_garbage()
        block = segments.ask(pool, size_bytes, nbytes)
        if block is None and segments.release_oversize(pool, size_bytes):
            block = segments.ask(pool, size_bytes, nbytes)
        if block is None:
            segments.release_cached()
            self._statistics.num_alloc_retries += 1
            block = segments.ask(pool, size_bytes, nbytes)
        if block is None:
            self._statistics.num_ooms += 1
            raise card_full(
                tried_bytes=segments.segment_bytes(size_bytes),
                total_bytes=self.card.capacity_bytes,
                free_bytes=self.card.free_bytes,
                limit_bytes=segments.limit_bytes,
                allocated_bytes=self._statistics.allocated_bytes,
                reserved_bytes=self._statistics.reserved_bytes,
            )
        return block


def _mapped_stretches(head: Block) -> Iterator[list[Block]]:
    """Yield contiguous mapped blocks; each such stretch counts as a segment."""
    stretch: list[Block] = []
    block: Block | None = head
    while block is not None:
        if block.state != UNMAPPED:
            stretch.append(block)
        elif stretch:
            yield stretch
            stretch = []
        block = block.next
    if stretch:
        yield stretch


def _segment(blocks: list[Block], is_expandable: bool) -> dict[str, Any]:
    in_use = [block for block in blocks if block.state == IN_USE]
    in_use_bytes = sum(block.size_bytes for block in in_use)
    return {
        "device": 0,
        "address": blocks[0].address,
        "total_size": sum(block.size_bytes for block in blocks),
        "allocated_size": in_use_bytes,
        "active_size": in_use_bytes,
        "requested_size": sum(block.requested_bytes for block in in_use),
        "stream": 0,
        "segment_type": "small" if blocks[0].pool.is_small else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": is_expandable,
        "frames": [],
        "blocks": [
            {
                "address": block.address,
                "size": block.size_bytes,
                "requested_size": block.requested_bytes,
                "state": "active_allocated" if block.state == IN_USE else "inactive",
                "frames": [],
            }
            for block in blocks
        ],
    }


def _settings(configuration: AllocatorConfiguration) -> dict[str, Any]:
    return {
        "PYTORCH_CUDA_ALLOC_CONF": configuration.text,
        "max_split_size": _signed(configuration.max_split_bytes),
        "garbage_collection_threshold": configuration.garbage_collection_threshold,
        "expandable_segments": configuration.expandable_segments,
        "pinned_num_register_threads": configuration.pinned_num_register_threads,
        "release_lock_on_cudamalloc": configuration.release_lock_on_cudamalloc,
        "pinned_use_cuda_host_register": configuration.pinned_use_cuda_host_register,
        "graph_capture_record_stream_reuse": configuration.graph_capture_record_stream_reuse,
        "max_round_threshold": _signed(size_of(configuration.pinned_max_round_threshold_mb)),
        "max_cached_size": _signed(size_of(configuration.pinned_max_cached_size_mb)),
        "roundup_power2_divisions": {
            str(1 << slot): divisions
            for slot, divisions in enumerate(configuration.roundup_power2_divisions)
        },
    }


def _signed(size: int) -> int:
    """Return a size_t in the form of PyTorch's Python, an int64: no limit is −1."""
    return size - (1 << 64) if size >= 1 << 63 else size
