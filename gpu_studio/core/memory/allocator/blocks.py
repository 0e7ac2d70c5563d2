"""The blocks of a CUDA allocator, the pools of the free ones, and its out-of-memory errors.

A segment is one piece of memory from the driver. It is cut into contiguous blocks. Each block is in
use by one tensor, free, or (in an expandable segment) only a range of addresses without memory. See
Block and BlockPool in PyTorch 2.13's c10/cuda/CUDACachingAllocator.cpp.

The errors are word for word: see malloc and alloc_block there, format_size in
c10/core/Allocator.h. The sentences about processes ("this process has … memory in use") are left
out, as on Windows: they come from NVML, not from the allocator.
"""

from __future__ import annotations

from bisect import bisect_left, insort

SMALL_BYTES = 1 << 20
"""The largest small request (kSmallSize)."""

IN_USE = 0
FREE = 1
UNMAPPED = 2

_ADDRESS_BITS = 56


class Block:
    """A part of a segment, linked to its neighbors.

    ``allocate`` returns a block; you may read its ``address`` and ``size_bytes`` (after rounding).
    ``free`` gives it back to the allocator, which may return the same object again.

    Attributes:
        requested_bytes: the size of the request; for a free block, of its last user.
        idle_since: the pool's clock when the block became free; the collector uses its age.
        state: IN_USE, FREE or UNMAPPED.
    """

    __slots__ = (
        "address", "idle_since", "next", "pool", "prev", "requested_bytes", "size_bytes", "state",
    )  # fmt: skip
    idle_since: int

    def __init__(
        self, address: int, size_bytes: int, pool: Pool, prev: Block | None, next_: Block | None
    ) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self.requested_bytes = 0
        self.pool = pool
        self.prev = prev
        self.next = next_
        self.state = FREE

    @property
    def is_split(self) -> bool:
        """Whether it shares its segment with other blocks."""
        return self.prev is not None or self.next is not None

    def cut(self, size_bytes: int) -> Block:
        """Keep the front of that size; return the rest as a new block, which is in no pool yet."""
        rest = Block(
            self.address + size_bytes, self.size_bytes - size_bytes, self.pool, self, self.next
        )
        rest.requested_bytes = self.requested_bytes
        if rest.next is not None:
            rest.next.prev = rest
        self.next = rest
        self.size_bytes = size_bytes
        return rest

    def absorb_next(self) -> None:
        """Merge with the next block, which is no longer a block afterwards."""
        gone = self.next
        assert gone is not None
        self.size_bytes += gone.size_bytes
        self.next = gone.next
        if self.next is not None:
            self.next.prev = self


class Pool:
    """The free blocks of the small or of the large pool.

    They are in PyTorch's order, by size and then by address. So the first block that is large
    enough is the best fit, and the lowest of equal ones. An entry combines both in one number.

    Attributes:
        least_rest_bytes: a block is split only if at least this much is left over.
        clock: the number of searches for a free block, while garbage is collected.
        unmapped: the address ranges without memory in expandable segments, by address.
    """

    def __init__(self, *, is_small: bool, least_rest_bytes: int) -> None:
        self.is_small = is_small
        self.least_rest_bytes = least_rest_bytes
        self.clock = 0
        self.unmapped: list[Block] = []
        self._order: list[int] = []
        self._blocks: dict[int, Block] = {}

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, place: int) -> Block:
        return self._blocks[self._order[place]]

    def blocks(self) -> list[Block]:
        """Return the free blocks in order; the pool may change afterwards."""
        return [self._blocks[entry] for entry in self._order]

    def place_of(self, size_bytes: int) -> int:
        """Return the index of the smallest block of at least that size; if none, the count."""
        return bisect_left(self._order, size_bytes << _ADDRESS_BITS)

    def pop(self, place: int) -> Block:
        """Remove and return the block at an index."""
        return self._blocks.pop(self._order.pop(place))

    def insert(self, block: Block) -> None:
        """Add a free block."""
        block.idle_since = self.clock
        entry = block.size_bytes << _ADDRESS_BITS | block.address
        insort(self._order, entry)
        self._blocks[entry] = block

    def remove(self, block: Block) -> None:
        """Remove a free block."""
        entry = block.size_bytes << _ADDRESS_BITS | block.address
        del self._order[bisect_left(self._order, entry)]
        del self._blocks[entry]

    def insert_merged(self, block: Block) -> tuple[Block, int, int]:
        """Add a free block, merged with the free blocks on both sides of it.

        Returns:
            The block in the pool, the number of merged neighbors, and their bytes.
        """
        neighbours = neighbours_bytes = 0
        before = block.prev
        if before is not None and before.state == FREE:
            self.remove(before)
            neighbours = 1
            neighbours_bytes = before.size_bytes
            before.requested_bytes = block.requested_bytes
            before.absorb_next()
            block = before
        after = block.next
        if after is not None and after.state == FREE:
            self.remove(after)
            neighbours += 1
            neighbours_bytes += after.size_bytes
            block.absorb_next()
        self.insert(block)
        return block, neighbours, neighbours_bytes


KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_HINT = (
    " If reserved but unallocated memory is large try setting"
    " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
    "  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/"
    "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)


class ModelledOutOfMemory(RuntimeError):  # noqa: N818 - the name that users of the model know
    """A failed allocation, with PyTorch's text and its exact numbers.

    Attributes:
        tried_bytes: the request to the driver, which is a segment; the original request if the
            driver was not asked; None beyond 1 EiB.
        free_bytes: the card's free memory; None if the driver was not asked.
    """

    def __init__(
        self,
        text: str,
        *,
        tried_bytes: int | None = None,
        free_bytes: int | None = None,
    ) -> None:
        super().__init__(text)
        self.tried_bytes = tried_bytes
        self.free_bytes = free_bytes


def card_full(
    *,
    tried_bytes: int,
    total_bytes: int,
    free_bytes: int,
    limit_bytes: int | None,
    allocated_bytes: int,
    reserved_bytes: int,
) -> ModelledOutOfMemory:
    """Return the error of a request that neither the cache nor the driver can serve."""
    limit = "" if limit_bytes is None else f"{format_size(limit_bytes)} allowed; "
    return ModelledOutOfMemory(
        f"CUDA out of memory. Tried to allocate {format_size(tried_bytes)}. "
        f"GPU 0 has a total capacity of {format_size(total_bytes)} "
        f"of which {format_size(free_bytes)} is free. {limit}"
        f"Of the allocated memory {format_size(allocated_bytes)} is allocated by PyTorch, "
        f"and {format_size(reserved_bytes - allocated_bytes)} is reserved by PyTorch but "
        f"unallocated.{_HINT}",
        tried_bytes=tried_bytes,
        free_bytes=free_bytes,
    )


def rejected(requested_bytes: int) -> ModelledOutOfMemory:
    """Return the error of ``throw_on_cudamalloc_oom``, for which the driver is not asked."""
    return ModelledOutOfMemory(
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed "
        f"per_process_memory_fraction limit. Requested size: {format_size(requested_bytes)}",
        tried_bytes=requested_bytes,
    )


def beyond_an_exbibyte() -> ModelledOutOfMemory:
    """Return the error of a request of 1 EiB or more."""
    return ModelledOutOfMemory("CUDA out of memory. Tried to allocate more than 1EB memory.")


def format_size(size_bytes: int) -> str:
    """Return a size in the form of PyTorch's errors: bytes, or two decimals of KiB, MiB or GiB."""
    if size_bytes <= KIB:
        return f"{size_bytes} bytes"
    if size_bytes <= MIB:
        return f"{size_bytes / KIB:.2f} KiB"
    if size_bytes <= GIB:
        return f"{size_bytes / MIB:.2f} MiB"
    return f"{size_bytes / GIB:.2f} GiB"
