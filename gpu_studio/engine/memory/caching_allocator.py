"""Read a device's memory usage at one moment, and give unused memory back."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import psutil

from gpu_studio.core.device_name import CPU, is_cpu, torch_module
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.segments import map_of_snapshot, segments_read
from gpu_studio.core.messages.memory_messages import MemoryRead, SegmentsRead, cache_emptied
from gpu_studio.engine.device import accelerator_of, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from gpu_studio.core.messages.memory_messages import CacheEmptied

# The allocator of Intel's cards does not count it.
_INACTIVE = "inactive_split_bytes.all.current"


def read_memory(
    device: torch.device, mark: str | None = None, step: int | None = None
) -> MemoryRead:
    """Return one reading; all numbers are None on a card that this process does not use yet.

    Args:
        device: the CPU or a card.
        mark: the name of the moment.
        step: the number of an experiment's allocation.
    """
    if is_cpu(device.type):
        return _read_ram(mark)
    card = accelerator_of(device)
    if not card.has_context(device):
        return MemoryRead(device=str(device), taken_at_s=time.monotonic(), mark=mark, step=step)
    stats = card.statistics(device)
    free_bytes, total_bytes = card.free_and_total(device)
    share = card.limit_share(device)  # 1.0 where PyTorch does not tell (2.6)
    return MemoryRead(
        device=str(device),
        taken_at_s=time.monotonic(),
        allocated_bytes=stats.get("allocated_bytes.all.current"),
        reserved_bytes=stats.get("reserved_bytes.all.current"),
        releasable_bytes=_releasable_bytes(device, stats),
        total_bytes=total_bytes,
        free_bytes=free_bytes,
        limit_bytes=int(share * total_bytes + 0.5) if share < 1 else None,
        mark=mark,
        step=step,
    )


def read_segments(address: str) -> SegmentsRead:
    """Return the segments of a card; none without a context.

    Raises:
        StudioError: the device does not exist, or is the CPU, which has no segments.
    """
    device = resolve(address)
    card = accelerator_of(device)
    if reason := card.lacks("segments"):
        raise StudioError(FailureKind.BAD_REQUEST, reason)
    read = read_memory(device)
    segments = card.segments() if card.has_context(device) else []
    return segments_read(read, segments, device.index)


def empty_cache(address: str) -> CacheEmptied:
    """Give PyTorch's free segments back to the driver; return the effect.

    Raises:
        StudioError: the device does not exist, or is the CPU, which has no cache.
    """
    device = resolve(address)
    if is_cpu(device.type):
        raise StudioError(
            FailureKind.BAD_REQUEST,
            "On the CPU, there is no cache to empty: PyTorch keeps no free memory there.",
        )
    before = read_memory(device, "empty_cache")
    card = accelerator_of(device)
    if card.has_context(device):
        card.synchronize(device)
        card.empty_cache()
    return cache_emptied(
        before, read_memory(device), _SNIPPET.format(device=address, module=torch_module(address))
    )


def _read_ram(mark: str | None) -> MemoryRead:
    memory = psutil.virtual_memory()
    return MemoryRead(
        device=CPU,
        taken_at_s=time.monotonic(),
        total_bytes=memory.total,
        free_bytes=memory.available,
        process_bytes=psutil.Process().memory_info().rss,
        mark=mark,
    )


def _releasable_bytes(device: torch.device, stats: Mapping[str, int]) -> int | None:
    """Return the bytes that empty_cache can give back now; None if PyTorch does not tell."""
    if _has_expandable_segments() or _INACTIVE not in stats:
        if accelerator_of(device).lacks("segments"):
            return None
        return map_of_snapshot(accelerator_of(device).segments(), device.index).releasable_bytes
    # Free and alone in a segment: neither used nor next to a used block.
    return (
        stats["reserved_bytes.all.current"] - stats["active_bytes.all.current"] - stats[_INACTIVE]
    )


def _has_expandable_segments() -> bool:
    """Return whether this process uses expandable segments; Windows does not have them."""
    settings = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") + os.environ.get(
        "PYTORCH_ALLOC_CONF", ""
    )
    return "expandable_segments:True" in settings.replace(" ", "")


_SNIPPET = """\
import torch

device = "{device}"
{module}.init()
print("reserved before:", {module}.memory_reserved(device), "bytes")
{module}.empty_cache()
print("reserved after: ", {module}.memory_reserved(device), "bytes")
"""


class PeakMemory:
    """The peak of PyTorch's allocator on a card from now on; unknown on the CPU.

    Args:
        device: the device; memory that is already allocated there does not count.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._card = accelerator_of(device)
        self._ignored_bytes = self._card.allocated_bytes(device) or 0
        self._card.reset_peak(device)

    def ignore(self, size_bytes: int) -> None:
        """Subtract memory that the measurement itself allocated and keeps."""
        self._ignored_bytes += size_bytes

    def peak_bytes(self) -> int | None:
        """Return the peak of allocated bytes; None on the CPU, where PyTorch does not count."""
        peak_bytes = self._card.peak_bytes(self._device)
        return None if peak_bytes is None else peak_bytes - self._ignored_bytes
