"""How a device's memory is used, read in one go, and giving the unused part back."""

from __future__ import annotations

import os
import time

import psutil
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.protocol import CacheEmptied, MemoryRead
from gpu_studio.engine.device import has_context, resolve

# Pages of expandable segments: CUDACachingAllocator maps and gives back whole ones.
_SMALL_PAGE_BYTES = 2 << 20
_LARGE_PAGE_BYTES = 20 << 20


def read_memory(device: torch.device, mark: str | None = None) -> MemoryRead:
    """Return one reading; on a card that this process does not use yet all numbers are None."""
    if device.type == "cpu":
        memory = psutil.virtual_memory()
        return MemoryRead(
            device="cpu",
            taken_at_s=time.monotonic(),
            total_bytes=memory.total,
            free_bytes=memory.available,
            process_bytes=psutil.Process().memory_info().rss,
            mark=mark,
        )
    if not has_context(device):
        return MemoryRead(device=str(device), taken_at_s=time.monotonic(), mark=mark)
    stats = torch.cuda.memory_stats(device)
    free_bytes, total_bytes = torch.cuda.mem_get_info(device)
    reserved_bytes = stats.get("reserved_bytes.all.current", 0)
    active_bytes = stats.get("active_bytes.all.current", 0)
    inactive_split_bytes = stats.get("inactive_split_bytes.all.current", 0)
    if _has_expandable_segments():
        releasable_bytes = _releasable_bytes(device)
    else:
        # Free and alone in its segment: what is neither used nor beside something used.
        releasable_bytes = reserved_bytes - active_bytes - inactive_split_bytes
    return MemoryRead(
        device=str(device),
        taken_at_s=time.monotonic(),
        allocated_bytes=stats.get("allocated_bytes.all.current", 0),
        reserved_bytes=reserved_bytes,
        active_bytes=active_bytes,
        inactive_split_bytes=inactive_split_bytes,
        releasable_bytes=releasable_bytes,
        total_bytes=total_bytes,
        free_bytes=free_bytes,
        retries=stats.get("num_alloc_retries", 0),
        ooms=stats.get("num_ooms", 0),
        mark=mark,
    )


def empty_cache(address: str) -> CacheEmptied:
    """Give PyTorch's free segments back to the driver and say what that did.

    Raises:
        StudioError: for the CPU, where PyTorch keeps no such cache, and for no such device.
    """
    device = resolve(address)
    if device.type == "cpu":
        raise StudioError(
            FailureKind.BAD_REQUEST,
            "On the CPU there is nothing to empty: PyTorch keeps no memory there, the system does.",
        )
    before = read_memory(device, "empty_cache")
    if has_context(device):
        torch.cuda.synchronize(device)
        torch.cuda.empty_cache()
    after = read_memory(device)
    return CacheEmptied(
        device=address,
        predicted_bytes=before.releasable_bytes or 0,
        freed_bytes=(before.reserved_bytes or 0) - (after.reserved_bytes or 0),
        before=before,
        after=after,
        snippet=_SNIPPET.format(device=address),
    )


def _has_expandable_segments() -> bool:
    """Return whether this process was started with expandable segments; Windows has none."""
    settings = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "") + os.environ.get(
        "PYTORCH_ALLOC_CONF", ""
    )
    return "expandable_segments:True" in settings.replace(" ", "")


def _releasable_bytes(device: torch.device) -> int:
    """Return what empty_cache gives back, counted from the allocator's snapshot.

    A segment goes when all of it is free; of an expandable one every whole page that is free.
    """
    released = 0
    for segment in torch.cuda.memory_snapshot():
        if segment["device"] != device.index:
            continue
        offset = 0
        page = _LARGE_PAGE_BYTES if segment["segment_type"] == "large" else _SMALL_PAGE_BYTES
        for block in segment["blocks"]:
            end = offset + block["size"]
            if block["state"] == "inactive":
                if segment["is_expandable"]:
                    released += max(0, end // page * page - -(-offset // page) * page)
                elif block["size"] == segment["total_size"]:
                    released += block["size"]
            offset = end
    return released


_SNIPPET = """\
import torch

device = "{device}"
torch.cuda.init()
print("reserved before:", torch.cuda.memory_reserved(device), "bytes")
torch.cuda.empty_cache()
print("reserved after: ", torch.cuda.memory_reserved(device), "bytes")
"""
