"""What the allocator's model tells: PyTorch's counters and snapshots, by their names."""

from __future__ import annotations

from gpu_studio.core.memory.allocator.model import AllocatorModel

MIB = 1 << 20
CONTEXT_MIB = 60


def model_of(conf: str = "") -> AllocatorModel:
    """A GT 1030 with a context and nothing else on it."""
    return AllocatorModel(1996 * MIB, CONTEXT_MIB * MIB, conf=conf)


def test_counters_have_pytorchs_names():
    names = AllocatorModel(MIB).stats()
    groups = [
        "allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
        "active_bytes", "inactive_split_bytes", "requested_bytes",
    ]  # fmt: skip
    expected = {
        f"{group}.{pool}.{value}"
        for group in groups
        for pool in ("all", "large_pool", "small_pool")
        for value in ("current", "peak", "allocated", "freed")
    }
    expected |= {
        f"oversize_{kind}.{value}"
        for kind in ("allocations", "segments")
        for value in ("current", "peak", "allocated", "freed")
    }
    expected |= {
        "max_split_size", "num_alloc_retries", "num_device_alloc", "num_device_free",
        "num_oom_rejections", "num_ooms", "num_sync_all_streams",
    }  # fmt: skip
    assert set(names) == expected
    assert list(names) == sorted(names)
    assert names["max_split_size"] == -1


def test_peaks_outlive_what_made_them():
    model = model_of()
    first = model.allocate(100 * MIB)
    model.free(first)
    small = model.allocate(512)
    model.empty_cache()
    stats = model.stats()
    assert stats["allocated_bytes.all.peak"] == 100 * MIB
    assert stats["allocated_bytes.small_pool.peak"] == small.size_bytes
    assert stats["reserved_bytes.all.peak"] == 102 * MIB
    assert stats["reserved_bytes.all.current"] == 2 * MIB
    assert stats["requested_bytes.large_pool.freed"] == 100 * MIB


def test_a_snapshot_has_pytorchs_form():
    model = model_of()
    listed = [model.allocate(size) for size in (300, 3 * MIB, 5 * MIB)]
    model.free(listed[1])
    snapshot = model.snapshot()
    assert set(snapshot) == {
        "segments", "device_traces", "allocator_settings", "external_annotations",
    }  # fmt: skip
    small, large = snapshot["segments"]
    assert large == {
        "device": 0,
        "address": listed[1].address,
        "total_size": 20 * MIB,
        "allocated_size": 5 * MIB,
        "active_size": 5 * MIB,
        "requested_size": 5 * MIB,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [
            {
                "address": listed[1].address + offset,
                "size": size,
                "requested_size": requested,
                "state": state,
                "frames": [],
            }
            for offset, size, requested, state in (
                (0, 3 * MIB, 3 * MIB, "inactive"),
                (3 * MIB, 5 * MIB, 5 * MIB, "active_allocated"),
                (8 * MIB, 12 * MIB, 0, "inactive"),
            )
        ],
    }
    assert (small["segment_type"], small["requested_size"]) == ("small", 300)
    assert snapshot["device_traces"] == [[]]


def test_an_expandable_segment_is_reported_by_its_mapped_stretches():
    model = model_of("expandable_segments:True")
    blocks = [model.allocate(20 * MIB) for _ in range(4)]
    model.free(blocks[1])
    model.empty_cache()
    segments = model.snapshot()["segments"]
    assert [(segment["address"], segment["total_size"]) for segment in segments] == [
        (blocks[0].address, 20 * MIB),
        (blocks[2].address, 40 * MIB),
    ]
    assert all(segment["is_expandable"] for segment in segments)


def test_a_freed_expandable_segment_is_gone():
    model = model_of("expandable_segments:True")
    model.free(model.allocate(30 * MIB))
    model.empty_cache()
    assert model.snapshot()["segments"] == []
    again = model.allocate(30 * MIB)
    assert [s["address"] for s in model.snapshot()["segments"]] == [again.address]
