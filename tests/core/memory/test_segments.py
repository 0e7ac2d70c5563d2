import contextlib
import copy
import random

import numpy as np
import pytest

from gpu_studio.core.memory.allocator.blocks import ModelledOutOfMemory
from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.segments import (
    ALLOCATED,
    SegmentMap,
    largest_block_bytes,
    map_of_segments,
    map_of_snapshot,
    segments_read,
)
from tests.fakes.memory_answers import memory_read

MIB = 1 << 20


def used_model(seed, conf="", **options):
    """A simulated card after some hundred random calls."""
    chance = random.Random(seed)
    model = AllocatorModel(chance.randrange(200, 2000) * MIB, conf=conf, **options)
    living = []
    for _ in range(chance.randrange(5, 150)):
        if living and chance.random() < 0.4:
            model.free(living.pop(chance.randrange(len(living))))
            continue
        with contextlib.suppress(ModelledOutOfMemory):
            living.append(model.allocate(int(2 ** chance.uniform(9, 27))))
    return model


def map_of(model):
    return map_of_snapshot(model.segments())


def two_segments(**changes):
    """20 MiB of three blocks at 0x2000 and 2 MiB of two at 0x1000."""
    columns = {
        "addresses": [0x1000, 0x2000],
        "sizes": [2 * MIB, 20 * MIB],
        "is_small": [True, False],
        "is_expandable": [False, False],
        "block_counts": [2, 3],
        "block_sizes": [MIB, MIB, 5 * MIB, 5 * MIB, 10 * MIB],
        "block_states": [0, 2, 0, 1, 2],
    }
    return SegmentMap(**{**columns, **changes})


def test_segments_come_the_largest_first_with_their_own_blocks():
    blocks = two_segments()
    assert blocks.addresses.tolist() == [0x2000, 0x1000]
    assert blocks.block_sizes.tolist() == [5 * MIB, 5 * MIB, 10 * MIB, MIB, MIB]
    assert blocks.block_offsets.tolist() == [0, 5 * MIB, 10 * MIB, 0, MIB]
    assert blocks.block_states.tolist() == [0, 1, 2, 0, 2]
    assert blocks.blocks_of(1) == slice(3, 5)
    assert [blocks.segment_of(block) for block in range(5)] == [0, 0, 0, 1, 1]
    assert (blocks.reserved_bytes, blocks.allocated_bytes) == (22 * MIB, 6 * MIB)
    assert (blocks.holes_bytes, blocks.largest_hole_bytes) == (11 * MIB, 10 * MIB)


def test_a_place_belongs_to_the_block_that_holds_it():
    blocks = two_segments()
    assert blocks.block_at(0, 0) == 0
    assert blocks.block_at(0, 5 * MIB - 1) == 0
    assert blocks.block_at(0, 5 * MIB) == 1
    assert blocks.block_at(0, 20 * MIB) == 2
    assert blocks.block_at(1, -1) == 3


@pytest.mark.parametrize(
    "changes", [{"block_counts": [3, 3]}, {"sizes": [2 * MIB, 21 * MIB]}, {"block_states": [0]}]
)
def test_blocks_that_do_not_fill_their_segments_are_refused(changes):
    with pytest.raises(ValueError, match="blocks"):
        two_segments(**changes)


@pytest.mark.parametrize("conf", ["", "expandable_segments:True"])
@pytest.mark.parametrize("seed", range(6))
def test_the_sums_are_the_allocators_own(seed, conf):
    model = used_model(seed, conf)
    blocks, stats = map_of(model), model.stats()
    assert blocks.allocated_bytes == stats["allocated_bytes.all.current"]
    assert blocks.reserved_bytes == stats["reserved_bytes.all.current"]
    assert np.count_nonzero(blocks.block_states == ALLOCATED) == stats["allocation.all.current"]
    model.empty_cache()
    left = model.stats()["reserved_bytes.all.current"]
    assert blocks.releasable_bytes == stats["reserved_bytes.all.current"] - left


@pytest.mark.parametrize("conf", ["", "expandable_segments:True"])
@pytest.mark.parametrize("fraction", [1.0, 0.5])
@pytest.mark.parametrize("seed", [2, 3, 5, 8, 11, 13])
def test_the_largest_block_can_be_had_and_no_larger_one(seed, fraction, conf):
    model = used_model(seed, conf, fraction=fraction)
    limit_bytes = round(fraction * model.card.capacity_bytes) if fraction < 1 else None
    largest = largest_block_bytes(map_of(model), model.card.free_bytes, limit_bytes)
    copy.deepcopy(model).allocate(largest)
    nearly_bytes = 40 * MIB if conf else 0  # half-used pages of expandable segments
    with pytest.raises(ModelledOutOfMemory):
        copy.deepcopy(model).allocate(largest + nearly_bytes + 512)


@pytest.mark.parametrize(
    ("free_mib", "largest_mib"), [(0, 0), (5, 1), (12, 12), (19, 18), (21, 20)]
)
def test_a_nearly_full_card_serves_small_requests_and_whole_segments_only(free_mib, largest_mib):
    model = AllocatorModel(100 * MIB, (100 - free_mib) * MIB)
    assert largest_block_bytes(map_of(model), free_mib * MIB) == largest_mib * MIB
    copy.deepcopy(model).allocate(largest_mib * MIB)
    with pytest.raises(ModelledOutOfMemory):
        copy.deepcopy(model).allocate(largest_mib * MIB + 512)


def test_a_hole_may_be_larger_than_what_the_driver_has_left():
    model = AllocatorModel(100 * MIB)
    model.free(model.allocate(60 * MIB))
    pin = model.allocate(8 * MIB)  # takes the front of what was freed
    assert largest_block_bytes(map_of(model), model.card.free_bytes) == 52 * MIB
    model.free(pin)


def test_a_block_that_waits_for_a_stream_is_neither_a_tensor_nor_a_hole_in_the_message():
    states = ("active_allocated", "active_pending_free", "active_awaiting_free", "inactive")
    blocks = [{"size": MIB, "state": state} for state in states]
    segment = {"device": 0, "address": 0, "total_size": 4 * MIB, "segment_type": "large"}
    told = segments_read(memory_read(), [{**segment, "blocks": blocks}])
    assert map_of_segments(told).block_states.tolist() == [0, 1, 1, 2]
