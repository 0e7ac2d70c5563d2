"""The columns of a `SegmentsRead`, from segments as ``torch.cuda.memory_snapshot()`` tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_studio.core.memory.segment_map import largest_block_bytes, map_of_snapshot
from gpu_studio.core.messages.memory_messages import MOST_BLOCKS, MemoryRead, SegmentsRead

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_DIGITS = {"active_allocated": "0", "inactive": "2"}  # all else waits for a stream


def segments_read(
    read: MemoryRead, segments: Iterable[Mapping[str, Any]], device_index: int = 0
) -> SegmentsRead:
    """Return a card's segments as a message.

    Args:
        read: the counters of the same moment.
        segments: of all cards, with their blocks.
        device_index: the card's index in the segments.
    """
    told = sorted(
        (segment for segment in segments if segment["device"] == device_index),
        key=lambda segment: int(segment["address"]),
    )
    blocks = map_of_snapshot(told, device_index)
    free_bytes = read.free_bytes or 0
    shown = _shown(told)
    shown_blocks = [block for segment in shown for block in segment["blocks"]]
    return SegmentsRead(
        device=read.device,
        read=read,
        largest_block_bytes=largest_block_bytes(blocks, free_bytes, read.limit_bytes),
        free_total_bytes=free_bytes + blocks.holes_bytes,
        addresses=tuple(segment["address"] for segment in shown),
        sizes=tuple(segment["total_size"] for segment in shown),
        is_small=tuple(segment["segment_type"] == "small" for segment in shown),
        is_expandable=tuple(bool(segment.get("is_expandable")) for segment in shown),
        streams=tuple(segment.get("stream", 0) for segment in shown),
        pools=tuple(_pool_of(segment) for segment in shown),
        block_counts=tuple(len(segment["blocks"]) for segment in shown),
        block_sizes=tuple(block["size"] for block in shown_blocks),
        requested_sizes=tuple(block.get("requested_size", 0) for block in shown_blocks),
        block_states="".join(_DIGITS.get(block["state"], "1") for block in shown_blocks),
        left_out_segments=len(told) - len(shown),
        left_out_blocks=blocks.block_count - len(shown_blocks),
        modelled=read.modelled,
    )


def _pool_of(segment: Mapping[str, Any]) -> tuple[int, int]:
    first, second = segment.get("segment_pool_id", (0, 0))
    return int(first), int(second)


def _shown(segments: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return as many whole segments, from the lowest address on, as may be sent."""
    shown, blocks = [], 0
    for segment in segments:
        blocks += len(segment["blocks"])
        if blocks > MOST_BLOCKS:
            break
        shown.append(segment)
    return shown
