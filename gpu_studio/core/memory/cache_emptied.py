"""What ``empty_cache`` gave back, from a reading before it and one after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.messages.memory_messages import CacheEmptied

if TYPE_CHECKING:
    from gpu_studio.core.messages.memory_messages import MemoryRead


def cache_emptied(before: MemoryRead, after: MemoryRead, snippet: str = "") -> CacheEmptied:
    """Return the answer to `EmptyCache`.

    Args:
        before: its ``releasable_bytes`` are what was expected; None counts as nothing.
        after: what it has less of ``reserved_bytes`` was freed.
        snippet: the lines that did it.
    """
    return CacheEmptied(
        device=before.device,
        predicted_bytes=before.releasable_bytes or 0,
        freed_bytes=(before.reserved_bytes or 0) - (after.reserved_bytes or 0),
        before=before,
        after=after,
        snippet=snippet,
        modelled=before.modelled,
    )
