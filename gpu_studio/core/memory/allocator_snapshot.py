"""An allocator's memory in the form of ``torch.cuda.memory._snapshot()``.

Pickled to a file it opens in PyTorch's own viewer (``torch.cuda._memory_viz``, and
pytorch.org/memory_viz). See snapshot() in torch 2.13's c10/cuda/CUDACachingAllocator.cpp and the
fields in torch/csrc/cuda/Module.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_studio.core.memory.allocator_blocks import IN_USE, UNMAPPED, Block
from gpu_studio.core.memory.allocator_statistics import signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpu_studio.core.memory.allocator_configuration import AllocatorConfiguration


def snapshot_of(heads: Iterable[Block], configuration: AllocatorConfiguration) -> dict[str, Any]:
    """Return the snapshot of one card, with no history.

    Args:
        heads: the first block of every segment.
        configuration: the allocator's options.
    """
    stretches = [stretch for head in heads for stretch in _mapped_stretches(head)]
    segments = [_segment(stretch, configuration.expandable_segments) for stretch in stretches]
    return {
        "segments": sorted(segments, key=lambda segment: segment["address"]),
        "device_traces": [[]],
        "allocator_settings": _settings(configuration),
        "external_annotations": [],
    }


def _mapped_stretches(head: Block) -> Iterator[list[Block]]:
    """Yield the blocks with memory behind them, side by side; each stretch counts as a segment."""
    stretch: list[Block] = []
    block: Block | None = head
    while block is not None:
        if block.state != UNMAPPED:
            stretch.append(block)
        elif stretch:
            yield stretch
            stretch = []
        block = block.next
    if stretch:
        yield stretch


def _segment(blocks: list[Block], is_expandable: bool) -> dict[str, Any]:
    in_use = [block for block in blocks if block.state == IN_USE]
    in_use_bytes = sum(block.size_bytes for block in in_use)
    return {
        "device": 0,
        "address": blocks[0].address,
        "total_size": sum(block.size_bytes for block in blocks),
        "allocated_size": in_use_bytes,
        "active_size": in_use_bytes,
        "requested_size": sum(block.requested_bytes for block in in_use),
        "stream": 0,
        "segment_type": "small" if blocks[0].pool.is_small else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": is_expandable,
        "frames": [],
        "blocks": [
            {
                "address": block.address,
                "size": block.size_bytes,
                "requested_size": block.requested_bytes,
                "state": "active_allocated" if block.state == IN_USE else "inactive",
                "frames": [],
            }
            for block in blocks
        ],
    }


def _settings(configuration: AllocatorConfiguration) -> dict[str, Any]:
    return {
        "PYTORCH_CUDA_ALLOC_CONF": configuration.text,
        "max_split_size": signed(configuration.max_split_bytes),
        "garbage_collection_threshold": configuration.garbage_collection_threshold,
        "expandable_segments": configuration.expandable_segments,
        "pinned_num_register_threads": configuration.pinned_num_register_threads,
        "release_lock_on_cudamalloc": configuration.release_lock_on_cudamalloc,
        "pinned_use_cuda_host_register": configuration.pinned_use_cuda_host_register,
        "graph_capture_record_stream_reuse": configuration.graph_capture_record_stream_reuse,
        "max_round_threshold": signed(configuration.pinned_max_round_threshold_bytes),
        "max_cached_size": signed(configuration.pinned_max_cached_size_bytes),
        "roundup_power2_divisions": {
            str(1 << slot): divisions
            for slot, divisions in enumerate(configuration.roundup_power2_divisions)
        },
    }
