"""Read a device's memory usage at one moment, and give unused memory back."""

from __future__ import annotations

import inspect
import os
import time
from typing import TYPE_CHECKING, Any

import psutil
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.segments import map_of_snapshot, segments_read
from gpu_studio.core.messages.memory_messages import MemoryRead, SegmentsRead, cache_emptied
from gpu_studio.engine.device import has_context, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpu_studio.core.messages.memory_messages import CacheEmptied


def read_memory(
    device: torch.device, mark: str | None = None, step: int | None = None
) -> MemoryRead:
    """Return one reading; all numbers are None on a card that this process does not use yet.

    Args:
        device: the CPU or a card.
        mark: the name of the moment.
        step: the number of an experiment's allocation.
    """
    if device.type == "cpu":
        return _read_ram(mark)
    if not has_context(device):
        return MemoryRead(device=str(device), taken_at_s=time.monotonic(), mark=mark, step=step)
    stats = torch.cuda.memory_stats(device)
    free_bytes, total_bytes = torch.cuda.mem_get_info(device)
    return MemoryRead(
        device=str(device),
        taken_at_s=time.monotonic(),
        allocated_bytes=stats.get("allocated_bytes.all.current", 0),
        reserved_bytes=stats.get("reserved_bytes.all.current", 0),
        active_bytes=stats.get("active_bytes.all.current", 0),
        inactive_split_bytes=stats.get("inactive_split_bytes.all.current", 0),
        releasable_bytes=_releasable_bytes(device, stats),
        total_bytes=total_bytes,
        free_bytes=free_bytes,
        retries=stats.get("num_alloc_retries", 0),
        ooms=stats.get("num_ooms", 0),
        requested_bytes=stats.get("requested_bytes.all.current"),
        peak_allocated_bytes=stats.get("allocated_bytes.all.peak"),
        segments=stats.get("segment.all.current"),
        limit_bytes=_limit_bytes(device, total_bytes),
        mark=mark,
        step=step,
    )


def read_segments(address: str) -> SegmentsRead:
    """Return the segments of a card; none without a context.

    Raises:
        StudioError: the device does not exist, or is the CPU, which has no segments.
    """
    device = resolve(address)
    if device.type == "cpu":
        raise StudioError(
            FailureKind.BAD_REQUEST,
            "The CPU has no segments: PyTorch allocates its memory directly.",
        )
    read = read_memory(device)
    segments = allocator_segments() if has_context(device) else []
    return segments_read(read, segments, device.index)


def allocator_segments() -> list[dict[str, Any]]:
    """Return the segments of all cards with their blocks, without history."""
    ask: Any = torch.cuda.memory_snapshot
    if "include_traces" in inspect.signature(ask).parameters:
        return list(ask(include_traces=False))
    return list(ask())


def empty_cache(address: str) -> CacheEmptied:
    """Give PyTorch's free segments back to the driver; return the effect.

    Raises:
        StudioError: the device does not exist, or is the CPU, which has no cache.
    """
    device = resolve(address)
    if device.type == "cpu":
        raise StudioError(
            FailureKind.BAD_REQUEST,
            "On the CPU, there is no cache to empty: PyTorch keeps no free memory there.",
        )
    before = read_memory(device, "empty_cache")
    if has_context(device):
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
    return cache_emptied(before, read_memory(device), _SNIPPET.format(device=address))


def _read_ram(mark: str | None) -> MemoryRead:
    memory = psutil.virtual_memory()
    return MemoryRead(
        device="cpu",
        taken_at_s=time.monotonic(),
        total_bytes=memory.total,
        free_bytes=memory.available,
        process_bytes=psutil.Process().memory_info().rss,
        mark=mark,
    )


def _releasable_bytes(device: torch.device, stats: Mapping[str, int]) -> int:
    """Return the bytes that empty_cache can give back now."""
    if _has_expandable_segments():
        return map_of_snapshot(allocator_segments(), device.index).releasable_bytes
    # Free and alone in a segment: neither used nor next to a used block.
    return (
        stats.get("reserved_bytes.all.current", 0)
        - stats.get("active_bytes.all.current", 0)
        - stats.get("inactive_split_bytes.all.current", 0)
    )


def _has_expandable_segments() -> bool:
    """Return whether this process uses expandable segments; Windows does not have them."""
    settings = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") + os.environ.get(
        "PYTORCH_ALLOC_CONF", ""
    )
    return "expandable_segments:True" in settings.replace(" ", "")


def _limit_bytes(device: torch.device, total_bytes: int) -> int | None:
    """Return the bytes that PyTorch may reserve; None without a limit, or if unknown (2.6)."""
    ask: Any = getattr(torch.cuda, "get_per_process_memory_fraction", None)
    fraction = 1.0 if ask is None else float(ask(device))
    return int(fraction * total_bytes + 0.5) if fraction < 1 else None


_SNIPPET = """\
import torch

device = "{device}"
torch.cuda.init()
print("reserved before:", torch.cuda.memory_reserved(device), "bytes")
torch.cuda.empty_cache()
print("reserved after: ", torch.cuda.memory_reserved(device), "bytes")
"""


class PeakMemory:
    """The peak of PyTorch's allocator on a card from now on; unknown on the CPU.

    Args:
        device: the device; memory that is already allocated there does not count.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._ignored_bytes = 0
        if device.type == "cuda":
            self._ignored_bytes = torch.cuda.memory_allocated(device)
            torch.cuda.reset_peak_memory_stats(device)

    def ignore(self, size_bytes: int) -> None:
        """Subtract memory that the measurement itself allocated and keeps."""
        self._ignored_bytes += size_bytes

    def peak_bytes(self) -> int | None:
        """Return the peak of allocated bytes; None on the CPU, where PyTorch does not count."""
        if self._device.type != "cuda":
            return None
        return int(torch.cuda.max_memory_allocated(self._device)) - self._ignored_bytes
