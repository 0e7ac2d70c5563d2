"""What holds of the allocator's model whatever is asked of it."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_studio.core.memory.allocator.errors import ModelledOutOfMemory
from gpu_studio.core.memory.allocator.model import AllocatorModel

if TYPE_CHECKING:
    from gpu_studio.core.memory.allocator.blocks import Block

MIB = 1 << 20
CARD_BYTES = 256 * MIB
OTHER_BYTES = 30 * MIB

CONFS = st.sampled_from(
    [
        "",
        "max_split_size_mb:20",
        "max_split_size_mb:32,max_non_split_rounding_mb:40,garbage_collection_threshold:0.4",
        "roundup_power2_divisions:4",
        "roundup_power2_divisions:[1:2,8:0,>:16]",
        "large_segment_size_mb:13",
        "expandable_segments:True",
        "expandable_segments:True,large_segment_size_mb:32,roundup_power2_divisions:2",
        "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.5",
    ]
)
FRACTIONS = st.sampled_from([1.0, 0.9, 0.4])
SIZES = st.one_of(
    st.integers(0, 4 * MIB),
    st.integers(0, CARD_BYTES // 4),
    st.sampled_from([1, 512, MIB, MIB + 1, 2 * MIB, 10 * MIB - 1, 10 * MIB, 20 * MIB, 64 * MIB]),
)
# An integer frees the living block of that number, counted around; None empties the cache.
CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("malloc"), SIZES),
        st.tuples(st.just("free"), st.integers(0, 100)),
        st.tuples(st.just("empty_cache"), st.just(0)),
    ),
    max_size=60,
)


def after(model: AllocatorModel, calls: list[tuple[str, int]]) -> list[Block]:
    """Make the calls and return the living blocks."""
    living: list[Block] = []
    for verb, number in calls:
        if verb == "malloc":
            try:
                living.append(model.allocate(number))
            except ModelledOutOfMemory:
                continue
        elif verb == "free" and living:
            model.free(living.pop(number % len(living)))
        elif verb == "empty_cache":
            model.empty_cache()
    return living


def check_segments(model: AllocatorModel, *, is_expandable: bool) -> None:
    """Check that segments lie apart and are tiled by their blocks, and the counters agree."""
    stats, segments = model.stats(), model.snapshot()["segments"]
    for segment, following in pairwise(segments):
        assert segment["address"] + segment["total_size"] <= following["address"]
    blocks = [block for segment in segments for block in segment["blocks"]]
    for segment in segments:
        place = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == place
            assert block["size"] > 0
            assert block["size"] % 512 == 0
            place += block["size"]
        assert place == segment["address"] + segment["total_size"]
        for block, following in pairwise(segment["blocks"]):
            assert "active_allocated" in (block["state"], following["state"]), "unmerged"
    active = [block for block in blocks if block["state"] == "active_allocated"]
    assert stats["allocated_bytes.all.current"] == sum(block["size"] for block in active)
    assert stats["requested_bytes.all.current"] == sum(block["requested_size"] for block in active)
    assert stats["allocation.all.current"] == len(active)
    assert stats["reserved_bytes.all.current"] == sum(s["total_size"] for s in segments)
    if is_expandable:
        assert stats["inactive_split.all.allocated"] == stats["segment.all.allocated"] == 0
    else:
        split = [s["blocks"] for s in segments if len(s["blocks"]) > 1]
        holes = [b["size"] for parts in split for b in parts if b["state"] == "inactive"]
        assert stats["inactive_split.all.current"] == len(holes)
        assert stats["inactive_split_bytes.all.current"] == sum(holes)
        assert stats["segment.all.current"] == len(segments)


def check_counters(stats: dict[str, int]) -> None:
    """Check that pools add up, and that peaks and sums fit the current values."""
    for name in {key.rsplit(".", 1)[0] for key in stats if "." in key}:
        current, peak = stats[f"{name}.current"], stats[f"{name}.peak"]
        assert 0 <= current <= peak <= stats[f"{name}.allocated"]
        assert current == stats[f"{name}.allocated"] - stats[f"{name}.freed"]
    for key, value in stats.items():
        if ".all." in key:
            parts = [stats[key.replace(".all.", f".{pool}_pool.")] for pool in ("small", "large")]
            if key.endswith(".peak"):
                assert max(parts) <= value <= sum(parts)
            else:
                assert value == sum(parts)


@settings(deadline=None, max_examples=200)
@given(conf=CONFS, fraction=FRACTIONS, calls=CALLS)
def test_memory_is_accounted_for(conf, fraction, calls):
    model = AllocatorModel(CARD_BYTES, OTHER_BYTES, conf=conf, fraction=fraction)
    living = after(model, calls)
    check_segments(model, is_expandable="expandable" in conf)
    check_counters(model.stats())
    stats = model.stats()
    reserved = stats["reserved_bytes.all.current"]
    assert stats["requested_bytes.all.current"] <= stats["allocated_bytes.all.current"] <= reserved
    # The limit is held by the request; what is mapped for it may be a page more.
    most = fraction * CARD_BYTES + (32 * MIB if "expandable" in conf else 0.5)
    assert stats["reserved_bytes.all.peak"] <= min(CARD_BYTES - OTHER_BYTES, most)
    assert model.card.free_bytes <= CARD_BYTES - OTHER_BYTES - reserved
    assert all(block.size_bytes >= block.requested_bytes for block in living)
    assert len({block.address for block in living if block.size_bytes}) == sum(
        block.size_bytes > 0 for block in living
    )


@settings(deadline=None)
@given(conf=CONFS, fraction=FRACTIONS, calls=CALLS, order=st.randoms(use_true_random=False))
def test_everything_freed_is_everything_given_back(conf, fraction, calls, order):
    model = AllocatorModel(CARD_BYTES, OTHER_BYTES, conf=conf, fraction=fraction)
    living = after(model, calls)
    order.shuffle(living)
    for block in living:
        model.free(block)
    assert all(segment["active_size"] == 0 for segment in model.snapshot()["segments"])
    model.empty_cache()
    assert model.snapshot()["segments"] == []
    assert model.card.free_bytes == CARD_BYTES - OTHER_BYTES
    assert not any(value for key, value in model.stats().items() if key.endswith(".current"))
