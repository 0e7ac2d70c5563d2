"""The counters of PyTorch's CUDA allocator, under the names of ``torch.cuda.memory_stats()``.

Each counter has four numbers: its ``current`` value, its ``peak``, and the total ever added
(``allocated``) and removed (``freed``), so that current = allocated − freed. Each exists for the
small pool, for the large pool, and for both (``all``). See DeviceStats in PyTorch 2.13's
c10/core/CachingDeviceAllocator.h and the docstring of ``torch.cuda.memory_stats``.
"""

from __future__ import annotations

_UNSIGNED = 1 << 64

StatValues = tuple[int, int, int]
"""A counter: current, peak, freed."""


class Stat:
    """A counter that rarely changes."""

    __slots__ = ("current", "freed", "peak")

    def __init__(self) -> None:
        self.current = self.peak = self.freed = 0

    def increase(self, amount: int) -> None:
        """Add to it."""
        self.current += amount
        self.peak = max(self.peak, self.current)

    def decrease(self, amount: int) -> None:
        """Take from it."""
        self.current -= amount
        self.freed += amount

    def reset_peak(self) -> None:
        """Restart the peak."""
        self.peak = self.current

    @property
    def values(self) -> StatValues:
        """The counter's values."""
        return self.current, self.peak, self.freed


class Counters:
    """The counters of one pool.

    Counters that change with every call are plain numbers, with ``_peak`` and ``_freed`` beside
    them: objects with methods would take longer than the allocator's own work.

    ``blocks``, ``block_bytes``
        blocks in use (``allocation``, ``allocated_bytes``; also ``active`` and ``active_bytes``,
        which differ only while another stream still uses a freed block).
    ``requested_bytes``
        the requests before rounding.
    ``splits``, ``split_bytes``
        free blocks that are only a part of their segment, so that the driver cannot have them
        back (``inactive_split``). Expandable segments do not count: the driver gets their pages.
    """

    __slots__ = (
        "block_bytes", "block_bytes_freed", "block_bytes_peak",
        "blocks", "blocks_freed", "blocks_peak",
        "requested_bytes", "requested_bytes_freed", "requested_bytes_peak",
        "reserved_bytes", "segments",
        "split_bytes", "split_bytes_freed", "split_bytes_peak",
        "splits", "splits_freed", "splits_peak",
    )  # fmt: skip

    def __init__(self) -> None:
        self.blocks = self.blocks_peak = self.blocks_freed = 0
        self.block_bytes = self.block_bytes_peak = self.block_bytes_freed = 0
        self.requested_bytes = self.requested_bytes_peak = self.requested_bytes_freed = 0
        self.splits = self.splits_peak = self.splits_freed = 0
        self.split_bytes = self.split_bytes_peak = self.split_bytes_freed = 0
        self.segments = Stat()
        self.reserved_bytes = Stat()

    def reset_peaks(self) -> None:
        """Restart all peaks."""
        self.blocks_peak, self.block_bytes_peak = self.blocks, self.block_bytes
        self.requested_bytes_peak = self.requested_bytes
        self.splits_peak, self.split_bytes_peak = self.splits, self.split_bytes
        self.segments.reset_peak()
        self.reserved_bytes.reset_peak()

    def values(self) -> dict[str, StatValues]:
        """Return the values by PyTorch's names."""
        blocks = (self.blocks, self.blocks_peak, self.blocks_freed)
        block_bytes = (self.block_bytes, self.block_bytes_peak, self.block_bytes_freed)
        return {
            "allocation": blocks,
            "allocated_bytes": block_bytes,
            "active": blocks,
            "active_bytes": block_bytes,
            "requested_bytes": (
                self.requested_bytes, self.requested_bytes_peak, self.requested_bytes_freed,
            ),
            "inactive_split": (self.splits, self.splits_peak, self.splits_freed),
            "inactive_split_bytes": (
                self.split_bytes, self.split_bytes_peak, self.split_bytes_freed,
            ),
            "segment": self.segments.values,
            "reserved_bytes": self.reserved_bytes.values,
        }  # fmt: skip


class Statistics:
    """All counters of a card's allocator.

    The sums of both pools are computed on demand; only their peaks need tracking.
    """

    def __init__(self, max_split_bytes: int) -> None:
        self.small = Counters()
        self.large = Counters()
        self.segments = Stat()
        self.reserved_bytes = Stat()
        self.oversize_allocations = Stat()
        self.oversize_segments = Stat()
        self.num_alloc_retries = 0
        self.num_ooms = 0
        self.num_oom_rejections = 0
        self.num_sync_all_streams = 0
        self.num_device_alloc = 0
        self.num_device_free = 0
        self._max_split_bytes = max_split_bytes
        self._blocks_peak = self._block_bytes_peak = self._requested_bytes_peak = 0
        self._splits_peak = self._split_bytes_peak = 0

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the blocks in use."""
        return self.small.block_bytes + self.large.block_bytes

    def count_allocation(self, pool: Counters, size_bytes: int, requested_bytes: int) -> None:
        """Count a block that is handed out."""
        pool.blocks += 1
        pool.block_bytes += size_bytes
        pool.requested_bytes += requested_bytes
        if pool.blocks > pool.blocks_peak:
            pool.blocks_peak = pool.blocks
        if pool.block_bytes > pool.block_bytes_peak:
            pool.block_bytes_peak = pool.block_bytes
        if pool.requested_bytes > pool.requested_bytes_peak:
            pool.requested_bytes_peak = pool.requested_bytes
        small, large = self.small, self.large
        if small.blocks + large.blocks > self._blocks_peak:
            self._blocks_peak = small.blocks + large.blocks
        if small.block_bytes + large.block_bytes > self._block_bytes_peak:
            self._block_bytes_peak = small.block_bytes + large.block_bytes
        if small.requested_bytes + large.requested_bytes > self._requested_bytes_peak:
            self._requested_bytes_peak = small.requested_bytes + large.requested_bytes
        if size_bytes >= self._max_split_bytes:
            self.oversize_allocations.increase(1)

    def count_free(self, pool: Counters, size_bytes: int, requested_bytes: int) -> None:
        """Count a block that comes back."""
        pool.blocks -= 1
        pool.blocks_freed += 1
        pool.block_bytes -= size_bytes
        pool.block_bytes_freed += size_bytes
        pool.requested_bytes -= requested_bytes
        pool.requested_bytes_freed += requested_bytes
        if size_bytes >= self._max_split_bytes:
            self.oversize_allocations.decrease(1)

    def count_splits(self, pool: Counters, blocks: int, size_bytes: int) -> None:
        """Count a net change of the free parts of segments."""
        pool.splits += blocks
        if blocks < 0:
            pool.splits_freed -= blocks
        elif blocks:
            pool.splits_peak = max(pool.splits_peak, pool.splits)
            self._splits_peak = max(self._splits_peak, self.small.splits + self.large.splits)
        pool.split_bytes += size_bytes
        if size_bytes < 0:
            pool.split_bytes_freed -= size_bytes
        else:
            if pool.split_bytes > pool.split_bytes_peak:
                pool.split_bytes_peak = pool.split_bytes
            total_bytes = self.small.split_bytes + self.large.split_bytes
            if total_bytes > self._split_bytes_peak:
                self._split_bytes_peak = total_bytes

    def count_device_alloc(self, pool: Counters, size_bytes: int, *, segments: int) -> None:
        """Count memory from the driver: a segment, or pages of one (0 segments)."""
        self.num_device_alloc += 1
        for counters in (pool, self):
            counters.segments.increase(segments)
            counters.reserved_bytes.increase(size_bytes)
        if segments and size_bytes >= self._max_split_bytes:
            self.oversize_segments.increase(1)

    def count_device_free(self, pool: Counters, size_bytes: int, *, segments: int) -> None:
        """Count memory that goes back to the driver."""
        self.num_device_free += 1
        for counters in (pool, self):
            counters.segments.decrease(segments)
            counters.reserved_bytes.decrease(size_bytes)
        if segments and size_bytes >= self._max_split_bytes:
            self.oversize_segments.decrease(1)

    def reset_peaks(self) -> None:
        """Restart all peaks."""
        small, large = self.small, self.large
        for counters in (small, large):
            counters.reset_peaks()
        for stat in (
            self.segments, self.reserved_bytes, self.oversize_allocations, self.oversize_segments,
        ):  # fmt: skip
            stat.reset_peak()
        self._blocks_peak = small.blocks + large.blocks
        self._block_bytes_peak = small.block_bytes + large.block_bytes
        self._requested_bytes_peak = small.requested_bytes + large.requested_bytes
        self._splits_peak = small.splits + large.splits
        self._split_bytes_peak = small.split_bytes + large.split_bytes

    def values(self) -> dict[str, int]:
        """Return every counter by PyTorch's name, in the order of the names."""
        stats = {
            "max_split_size": signed(self._max_split_bytes),
            "num_alloc_retries": self.num_alloc_retries,
            "num_device_alloc": self.num_device_alloc,
            "num_device_free": self.num_device_free,
            "num_oom_rejections": self.num_oom_rejections,
            "num_ooms": self.num_ooms,
            "num_sync_all_streams": self.num_sync_all_streams,
        }
        _add(stats, "oversize_allocations", self.oversize_allocations.values)
        _add(stats, "oversize_segments", self.oversize_segments.values)
        small, large = self.small.values(), self.large.values()
        for name, peak in self._peaks().items():
            current = small[name][0] + large[name][0]
            freed = small[name][2] + large[name][2]
            _add(stats, f"{name}.all", (current, peak, freed))
            _add(stats, f"{name}.large_pool", large[name])
            _add(stats, f"{name}.small_pool", small[name])
        return dict(sorted(stats.items()))

    def _peaks(self) -> dict[str, int]:
        return {
            "allocation": self._blocks_peak,
            "allocated_bytes": self._block_bytes_peak,
            "active": self._blocks_peak,
            "active_bytes": self._block_bytes_peak,
            "requested_bytes": self._requested_bytes_peak,
            "inactive_split": self._splits_peak,
            "inactive_split_bytes": self._split_bytes_peak,
            "segment": self.segments.peak,
            "reserved_bytes": self.reserved_bytes.peak,
        }


def signed(size: int) -> int:
    """Return a size_t in the form of PyTorch's Python, an int64: no limit is −1."""
    return size - _UNSIGNED if size >= _UNSIGNED >> 1 else size


def _add(stats: dict[str, int], name: str, values: StatValues) -> None:
    current, peak, freed = values
    stats[f"{name}.current"] = current
    stats[f"{name}.peak"] = peak
    stats[f"{name}.allocated"] = current + freed
    stats[f"{name}.freed"] = freed
