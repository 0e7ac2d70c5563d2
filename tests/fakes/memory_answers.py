"""What an engine says of a card's memory."""

from typing import Any

import msgspec

from gpu_studio.core.memory.outcome import explain_outcome
from gpu_studio.core.messages.memory_messages import (
    CacheEmptied,
    MemoryRead,
    OomFinished,
    SegmentsRead,
)


def memory_read(
    device: str = "cuda:0", *, allocated: int = 0, reserved: int = 0, **changes: Any
) -> MemoryRead:
    """Return a reading in MiB: a GT 1030 of which others hold 338, or a PC with 32 GiB."""
    if device == "cpu":
        plain = MemoryRead(
            device="cpu", taken_at_s=10.0, process_bytes=350 << 20, total_bytes=32 << 30,
            free_bytes=20 << 30,
        )  # fmt: skip
    else:
        plain = MemoryRead(
            device=device, taken_at_s=10.0, allocated_bytes=allocated << 20,
            reserved_bytes=reserved << 20, releasable_bytes=(reserved - allocated) << 20,
            total_bytes=1996 << 20, free_bytes=(1996 - 338 - reserved) << 20,
        )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def segments_read(read: MemoryRead, **changes: Any) -> SegmentsRead:
    """Return one segment of 20 MiB with 15 MiB in use, the largest hole of 5 MiB at its end."""
    mib = 1 << 20
    plain = SegmentsRead(
        device=read.device, read=read, largest_block_bytes=5 * mib, free_total_bytes=20 * mib,
        addresses=(0x7F0000000000,), sizes=(20 * mib,), is_small=(False,),
        is_expandable=(False,), block_counts=(3,),
        block_sizes=(10 * mib, 5 * mib, 5 * mib),
        block_states="002", modelled=read.modelled,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def no_context(device: str = "cuda:0") -> MemoryRead:
    """Return a reading of a card that the engine has not used yet."""
    return MemoryRead(device=device, taken_at_s=10.0)


def oom_finished(outcome: str = "over_budget", **changes: Any) -> OomFinished:
    """Return the end of the GT 1030 experiment with the error's own numbers."""
    plain = OomFinished(
        device="cuda:0", outcome=outcome, tensors=4, tensor_bytes=256 << 20,
        allocated_bytes=1024 << 20, reserved_bytes=1024 << 20, tried_bytes=256 << 20,
        free_bytes=634 << 20, total_bytes=1996 << 20, limit_bytes=1200 << 20, unallocated_bytes=0,
        error_text="CUDA out of memory. Tried to allocate 256.00 MiB.",
    )  # fmt: skip
    return explain_outcome(msgspec.structs.replace(plain, **changes))


def cache_emptied(before: MemoryRead, freed: int, **changes: Any) -> CacheEmptied:
    """Return the outcome of empty_cache: ``freed`` in MiB."""
    after = msgspec.structs.replace(
        before,
        taken_at_s=before.taken_at_s + 0.01,
        reserved_bytes=(before.reserved_bytes or 0) - (freed << 20),
        releasable_bytes=(before.releasable_bytes or 0) - (freed << 20),
        free_bytes=(before.free_bytes or 0) + (freed << 20),
    )
    plain = CacheEmptied(
        device=before.device, freed_bytes=freed << 20,
        before=before, after=after,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)
