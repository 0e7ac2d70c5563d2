"""The segment map in words, for those who point at it and for those who do not see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from gpu_studio.core.memory.segment_map import SegmentMap


def block_in_words(blocks: SegmentMap, block: int) -> str:
    """Return a block's state, its size, and where it is."""
    from gpu_studio.core.memory.segment_map import STATE_WORDS

    segment = blocks.segment_of(block)
    place = blocks.blocks_of(segment)
    size_bytes = int(blocks.block_sizes[block])
    state = STATE_WORDS[int(blocks.block_states[block])]
    exact = f" ({size_bytes} bytes)" if size_bytes >= 1 << 10 else ""
    pool = "small" if blocks.is_small[segment] else "large"
    return (
        f"Block {block - place.start + 1} of {place.stop - place.start}: {state}, "
        f"{format_bytes(size_bytes)}{exact}, {format_bytes(blocks.block_offsets[block])} "
        f"into the {pool} segment of {format_bytes(blocks.sizes[segment])} at "
        f"{int(blocks.addresses[segment]):#x}."
    )


def map_in_words(blocks: SegmentMap) -> str:
    """Return the whole map in a sentence."""
    return (
        f"{counted(len(blocks), 'segment')} with {counted(blocks.block_count, 'block')}: "
        f"{format_bytes(blocks.allocated_bytes)} allocated, "
        f"{format_bytes(blocks.holes_bytes)} free in between, the largest free block "
        f"{format_bytes(blocks.largest_hole_bytes)}."
    )


def counted(count: int, what: str) -> str:
    """Return so many of something."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
