"""The counters of PyTorch's CUDA allocator, under the names of ``torch.cuda.memory_stats()``.

Only those that something shows or decides by: the sums of both pools. See DeviceStats in PyTorch
2.13's c10/core/CachingDeviceAllocator.h and the docstring of ``torch.cuda.memory_stats``.
"""

from __future__ import annotations


class Statistics:
    """The counters of a card's allocator.

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
