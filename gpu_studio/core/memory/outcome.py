"""Which outcome an experiment ended in, by comparing what was read before and after.

Nothing is guessed from the preset: the readings, the error's text and the limit decide.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from gpu_studio.core.memory.oom_text import read_oom_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.memory_messages import MemoryRead, SegmentsRead

_LEAST_LEAK_STEPS = 3
_PAGE_BYTES = 2 << 20
# What a reading of the driver may be off by without meaning anything.
_NOISE_BYTES = 16 << 20


def outcome_of(
    start: MemoryRead,
    last: SegmentsRead,
    error_text: str,
    *,
    tensor_bytes: int = 0,
    step_ends: Sequence[int] = (),
) -> str:
    """Return one of `core.messages.memory_messages.OUTCOMES` but ``stopped``.

    Args:
        start: before anything was allocated.
        last: when memory ended; if it did not, at the end, everything being held.
        error_text: the error's text; empty if there was none.
        tensor_bytes: what was asked for last; 0 where only the text knows, to two decimals.
        step_ends: what was allocated after each step that should give back all it took.
    """
    at_end = last.read
    if not error_text:
        return "spilled" if has_spilled(start, at_end) else "fits"
    if is_leak(step_ends):
        return "leak"
    tried_bytes = read_oom_text(error_text).tried_bytes
    if tensor_bytes:
        tried_bytes = segment_bytes(tensor_bytes)
    elif tried_bytes is None:  # NVML did not answer, and the text has no numbers
        tried_bytes = last.free_total_bytes + 1
    free_bytes = at_end.free_bytes or 0
    holes_bytes, allowed_bytes = last.free_total_bytes - free_bytes, _allowed_bytes(at_end)
    if tried_bytes <= allowed_bytes + holes_bytes:
        return "fragmented"
    if allowed_bytes < free_bytes and tried_bytes > allowed_bytes:
        return "over_budget"
    grew_bytes = others_grew_bytes(start, at_end) or 0
    if grew_bytes > _NOISE_BYTES and tried_bytes <= allowed_bytes + holes_bytes + grew_bytes:
        return "taken_by_others"
    return "card_full"


def _allowed_bytes(read: MemoryRead) -> int:
    """Return what is free of the card and within the limit."""
    free_bytes = read.free_bytes or 0
    if read.limit_bytes is None:
        return free_bytes
    return min(free_bytes, max(0, read.limit_bytes - (read.reserved_bytes or 0)))


def free_within(free_total_bytes: int, allocated_bytes: int | None, limit_bytes: int | None) -> int:
    """Return what is free and may be had: what lies beyond a limit may not, in any piece.

    Args:
        free_total_bytes: what is free in all, the holes in what is reserved included.
        allocated_bytes: what tensors hold; None where nobody knows.
        limit_bytes: what the allocator may reserve at most; None without a limit.
    """
    if limit_bytes is None or allocated_bytes is None:
        return free_total_bytes
    return min(free_total_bytes, max(0, limit_bytes - allocated_bytes))


def others_grew_bytes(start: MemoryRead, now: MemoryRead) -> int | None:
    """Return what others took of the card meanwhile; negative if they gave some back.

    What is neither free nor PyTorch's in this process is others', apart from this process's CUDA
    context, which is there at both times.
    """
    before, after = _others_bytes(start), _others_bytes(now)
    return None if before is None or after is None else after - before


def is_leak(step_ends: Sequence[int]) -> bool:
    """Return whether every step left more allocated than the one before."""
    return len(step_ends) >= _LEAST_LEAK_STEPS and all(
        after > before for before, after in pairwise(step_ends)
    )


def segment_bytes(size_bytes: int) -> int:
    """Return what the allocator asks the driver for (CUDACachingAllocator, get_allocation_size).

    Of a tensor that the options do not round otherwise.
    """
    if size_bytes <= 1 << 20:
        return _PAGE_BYTES
    if size_bytes < 10 << 20:
        return 20 << 20
    return -(-size_bytes // _PAGE_BYTES) * _PAGE_BYTES


def has_spilled(start: MemoryRead, now: MemoryRead) -> bool:
    """Return whether more was reserved than the card had left.

    Windows' driver then goes on in the PC's memory, without an error and many times slower
    (“CUDA - Sysmem Fallback Policy”).
    """
    if start.free_bytes is None or start.reserved_bytes is None or now.reserved_bytes is None:
        return False
    return now.reserved_bytes > start.reserved_bytes + start.free_bytes + _NOISE_BYTES


def _others_bytes(read: MemoryRead) -> int | None:
    if read.total_bytes is None or read.free_bytes is None or read.reserved_bytes is None:
        return None
    return read.total_bytes - read.free_bytes - read.reserved_bytes
