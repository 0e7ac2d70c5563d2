"""The allocator's model: PyTorch's own figures, its errors, and what the model refuses."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from gpu_studio.core.allocator import AllocatorModel, Block, OutOfMemory
from gpu_studio.core.memory.allocator_error import format_size
from tests.core.memory.allocator_trace import EDGES, RECORD, SETTINGS, follow, reserved_at
from tests.soft.test_allocator import CASES, EXPANDABLE, Case

MIB = 1 << 20
CONTEXT_MIB = 60  # what a soft card gives a CUDA context

COUNTERS = {
    "allocated": "allocated_bytes.all.current",
    "reserved": "reserved_bytes.all.current",
    "split_bytes": "inactive_split_bytes.all.current",
    "splits": "inactive_split.all.current",
    "segments": "segment.all.current",
    "retries": "num_alloc_retries",
    "ooms": "num_ooms",
}


class Steps:
    """Runs the steps that PyTorch is held to as well."""

    def __init__(self, model: AllocatorModel) -> None:
        self.model = model
        self._kept: dict[str, Block] = {}

    def take(self, verb: str, *rest: object) -> None:
        if verb == "malloc":
            self._kept[rest[0]] = self.model.allocate(rest[1])
        elif verb == "free":
            self.model.free(self._kept.pop(rest[0]))
        elif verb == "out of memory":
            with pytest.raises(OutOfMemory):
                self.model.allocate(rest[0])
        else:
            assert verb == "empty_cache"
            self.model.empty_cache()

    def found(self) -> dict[str, int]:
        stats = self.model.stats()
        return {name: stats[key] for name, key in COUNTERS.items()}


def model_of(
    case: Case | None = None, *, conf: str = "", total_mib: int = 1996, other_mib: int = 0
) -> AllocatorModel:
    if case is None:
        return AllocatorModel(total_mib * MIB, (other_mib + CONTEXT_MIB) * MIB, conf=conf)
    fraction = next((rest[0] for verb, *rest in case.sequence if verb == "fraction"), 1.0)
    return AllocatorModel(
        case.total_mib * MIB,
        (case.other_mib + CONTEXT_MIB) * MIB,
        conf=case.options,
        fraction=fraction,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_model_gives_pytorchs_figures(case):
    steps = Steps(model_of(case))
    for step in case.sequence:
        if step[0] != "fraction":
            steps.take(*step)
    found = steps.found()
    assert {key: found[key] for key in case.expected} == case.expected


def test_expandable_segments_grow_and_shrink_as_pytorchs():
    steps = Steps(model_of(conf="expandable_segments:True"))
    for number, (step, allocated, reserved) in enumerate(EXPANDABLE):
        steps.take(*step)
        found = steps.found()
        seen = f"after step {number}, {step}"
        assert allocated in (None, found["allocated"]), seen
        assert reserved in (None, found["reserved"]), seen
        assert found["split_bytes"] == found["splits"] == found["segments"] == 0, seen
        assert steps.model.card.free_bytes == (1996 - CONTEXT_MIB) * MIB - found["reserved"], seen


HINT = (
    " If reserved but unallocated memory is large try setting"
    " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation"
    " for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)


def test_a_full_card_is_told_in_pytorchs_words():
    model = model_of()
    for _ in range(7):
        model.allocate(8192 * 8192 * 4)
    with pytest.raises(OutOfMemory) as caught:
        model.allocate(8192 * 8192 * 4)
    assert str(caught.value) == (
        "CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 1.95 GiB"
        " of which 144.00 MiB is free. Of the allocated memory 1.75 GiB is allocated by PyTorch,"
        " and 0 bytes is reserved by PyTorch but unallocated." + HINT
    )
    error = caught.value
    assert (error.tried_bytes, error.free_bytes) == (256 * MIB, 144 * MIB)
    assert (error.total_bytes, error.limit_bytes) == (1996 * MIB, None)
    assert (error.allocated_bytes, error.unallocated_bytes) == (1792 * MIB, 0)


def test_a_limit_and_holes_are_told_in_pytorchs_words():
    model = AllocatorModel(2048 * MIB, fraction=0.25)
    model.allocate(3 * MIB)
    with pytest.raises(OutOfMemory) as caught:
        model.allocate(500 * MIB)
    assert str(caught.value) == (
        "CUDA out of memory. Tried to allocate 500.00 MiB. GPU 0 has a total capacity of 2.00 GiB"
        " of which 1.98 GiB is free. 512.00 MiB allowed; Of the allocated memory 3.00 MiB is"
        " allocated by PyTorch, and 17.00 MiB is reserved by PyTorch but unallocated." + HINT
    )
    assert caught.value.limit_bytes == 512 * MIB
    assert caught.value.unallocated_bytes == 17 * MIB


def test_what_was_tried_is_the_segment():
    model = AllocatorModel(MIB)
    for nbytes, tried in ((1, "2.00 MiB"), (MIB + 1, "20.00 MiB"), (11 * MIB - 1, "12.00 MiB")):
        with pytest.raises(OutOfMemory, match=f"Tried to allocate {tried}. GPU 0"):
            model.allocate(nbytes)
    assert model.stats()["num_ooms"] == model.stats()["num_alloc_retries"] == 3


def test_a_rejected_request_flushes_nothing():
    model = AllocatorModel(
        1024 * MIB, conf="throw_on_cudamalloc_oom:True,per_process_memory_fraction:1.0"
    )
    model.free(model.allocate(600 * MIB))
    with pytest.raises(OutOfMemory) as caught:
        model.allocate(601 * MIB)
    assert str(caught.value) == (
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed"
        " per_process_memory_fraction limit. Requested size: 601.00 MiB"
    )
    stats = model.stats()
    assert (stats["num_oom_rejections"], stats["num_ooms"]) == (1, 0)
    assert stats["reserved_bytes.all.current"] == 600 * MIB


def test_an_exbibyte_is_refused_uncounted():
    model = model_of()
    with pytest.raises(OutOfMemory) as caught:
        model.allocate(1 << 60)
    assert str(caught.value) == ("CUDA out of memory. Tried to allocate more than 1EB memory.")
    assert caught.value.tried_bytes is None
    assert model.stats()["num_ooms"] == 0


def test_the_error_can_be_sent_to_another_process():
    with pytest.raises(OutOfMemory) as caught:
        AllocatorModel(MIB).allocate(1)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert vars(copy) == vars(caught.value)


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1024, "1024 bytes"),
        (1025, "1.00 KiB"),
        (MIB, "1024.00 KiB"),
        (MIB + 1, "1.00 MiB"),
        (1 << 30, "1024.00 MiB"),
        ((1 << 30) + 1, "1.00 GiB"),
        (10 << 40, "10240.00 GiB"),
    ],
)
def test_sizes_are_written_as_pytorchs_errors_do(size_bytes, text):
    assert format_size(size_bytes) == text


def test_no_bytes_need_no_memory():
    model = model_of()
    block = model.allocate(0)
    assert block.size_bytes == 0
    model.free(block)
    assert not any(value for key, value in model.stats().items() if key != "max_split_size")


def test_a_block_is_freed_once():
    model = model_of()
    kept, block = model.allocate(1000), model.allocate(1000)
    model.free(block)
    with pytest.raises(ValueError, match="is not in use"):
        model.free(block)
    assert model.stats()["allocated_bytes.all.current"] == kept.size_bytes == 1024


@pytest.mark.parametrize("nbytes", [-1, -(1 << 60)])
def test_a_negative_size_is_refused(nbytes):
    with pytest.raises(ValueError, match="cannot be allocated"):
        model_of().allocate(nbytes)


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_fraction_beyond_its_range_is_refused(fraction):
    with pytest.raises(ValueError, match=r"Invalid fraction value: .*\. Allowed range: 0~1"):
        AllocatorModel(MIB, fraction=fraction)


@pytest.mark.parametrize(("capacity_bytes", "other_bytes"), [(0, 0), (-1, 0), (MIB, -1)])
def test_an_impossible_card_is_refused(capacity_bytes, other_bytes):
    with pytest.raises(ValueError, match="no card has"):
        AllocatorModel(capacity_bytes, other_bytes)


def test_others_may_hold_more_than_the_card():
    model = AllocatorModel(MIB, 2 * MIB)
    assert model.card.free_bytes == 0
    with pytest.raises(OutOfMemory, match="of which 0 bytes is free"):
        model.allocate(1)


def test_another_process_can_take_what_was_free():
    model = AllocatorModel(100 * MIB)
    kept = model.allocate(40 * MIB)
    model.card.other_bytes = 50 * MIB
    with pytest.raises(OutOfMemory, match=r"of which 10\.00 MiB is free"):
        model.allocate(20 * MIB)
    model.card.other_bytes = 0
    assert model.allocate(20 * MIB).address > kept.address


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
    kept = [model.allocate(size) for size in (300, 3 * MIB, 5 * MIB)]
    model.free(kept[1])
    snapshot = model.snapshot()
    assert set(snapshot) == {
        "segments", "device_traces", "allocator_settings", "external_annotations",
    }  # fmt: skip
    small, large = snapshot["segments"]
    assert large == {
        "device": 0,
        "address": kept[1].address,
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
                "address": kept[1].address + offset,
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


def test_an_expandable_segment_is_told_by_its_mapped_stretches():
    model = model_of(conf="expandable_segments:True")
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
    model = model_of(conf="expandable_segments:True")
    model.free(model.allocate(30 * MIB))
    model.empty_cache()
    assert model.snapshot()["segments"] == []
    again = model.allocate(30 * MIB)
    assert [s["address"] for s in model.snapshot()["segments"]] == [again.address]


def test_the_large_pool_gives_way_to_the_oldest_first():
    model = AllocatorModel(1000 * MIB, conf="garbage_collection_threshold:0.1", fraction=0.9)
    old, new = model.allocate(100 * MIB), model.allocate(200 * MIB)
    model.free(old)
    for _ in range(5):
        model.free(model.allocate(50 * MIB))
    model.free(new)
    model.allocate(300 * MIB)
    sizes = [segment["total_size"] for segment in model.snapshot()["segments"]]
    assert 100 * MIB not in sizes
    assert model.stats()["num_alloc_retries"] == 0


class ModelAlone:
    """The model, for the calls whose outcome PyTorch's allocator left on record."""

    def __init__(self, model: AllocatorModel) -> None:
        self._model = model
        self._blocks: list[Block] = []

    @property
    def living(self) -> int:
        return len(self._blocks)

    def malloc(self, size_bytes: int) -> str | None:
        try:
            self._blocks.append(self._model.allocate(size_bytes))
        except OutOfMemory as error:
            return str(error)
        return None

    def free(self, index: int) -> None:
        self._blocks[index], self._blocks[-1] = self._blocks[-1], self._blocks[index]
        self._model.free(self._blocks.pop())

    def empty_cache(self) -> None:
        self._model.empty_cache()

    def stats(self) -> dict[str, int]:
        return self._model.stats()

    def snapshot(self) -> dict[str, Any]:
        return self._model.snapshot()


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_model_does_what_pytorch_did(setting):
    record = json.loads(RECORD.read_text())[str(setting)]
    assert record["version"].startswith("2.13.")
    model = AllocatorModel(
        setting.total_mib * MIB,
        record["other_bytes"],
        conf=setting.conf,
        fraction=setting.fraction,
    )
    found = follow(ModelAlone(model), setting)
    same = [one == two for one, two in zip(found, record["digests"], strict=True)]
    assert all(same), f"differs before call {250 * (same.index(False) + 1)}"


@pytest.mark.parametrize("edge", EDGES, ids=str)
def test_the_edges_of_rules_are_pytorchs(edge):
    model = AllocatorModel(1996 * MIB, CONTEXT_MIB * MIB, conf=edge.conf, fraction=edge.fraction)
    assert reserved_at(ModelAlone(model), edge) == edge.reserved_mib
