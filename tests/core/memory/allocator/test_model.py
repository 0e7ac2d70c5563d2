import json
import re
from typing import Any

import pytest

from gpu_studio.core.memory.allocator.blocks import Block, ModelledOutOfMemory, format_size
from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.memory.allocator.options import (
    parse_configuration,
)
from tests.core.memory.allocator.allocator_trace import (
    EDGES,
    RECORD,
    SETTINGS,
    follow,
    reserved_at,
)

MIB = 1 << 20
CONTEXT_MIB = 60  # what a soft card gives a CUDA context


def gt_1030() -> AllocatorModel:
    return AllocatorModel(1996 * MIB, CONTEXT_MIB * MIB)


def test_no_bytes_need_no_memory():
    model = gt_1030()
    block = model.allocate(0)
    assert block.size_bytes == 0
    model.free(block)
    assert not any(model.stats().values())


def test_the_large_pool_gives_way_to_the_oldest_first():
    model = AllocatorModel(1000 * MIB, conf="garbage_collection_threshold:0.1", fraction=0.9)
    old, new = model.allocate(100 * MIB), model.allocate(200 * MIB)
    model.free(old)
    for _ in range(5):
        model.free(model.allocate(50 * MIB))
    model.free(new)
    model.allocate(300 * MIB)
    sizes = [segment["total_size"] for segment in model.segments()]
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
        except ModelledOutOfMemory as error:
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


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        ("max_split_size_mb:64,max_split_size_mb:32", "max_split_bytes", 32 * MIB),
        ("per_process_memory_fraction:0", "per_process_memory_fraction", 0.0),
        ("release_lock_on_hipmalloc:True", "release_lock_on_cudamalloc", True),
        ("pinned_num_register_threads:128", "pinned_num_register_threads", 128),
        ("roundup_power2_divisions:[256:1,512:2,>:8]", "roundup_power2_divisions",
         (1,) * 9 + (2,) + (8,) * 6),
        ("roundup_power2_divisions:[>:4]", "roundup_power2_divisions", (0,) + (4,) * 15),
        ("roundup_power2_divisions:[]", "roundup_power2_divisions", (0,) * 16),
    ],
)  # fmt: skip
def test_an_option_is_read(text, option, value):
    assert getattr(parse_configuration(text), option) == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("foo:1", "foo"),
        ("max_split_size_mb=64", "max_split_size_mb=64"),
        *[
            (f"max_split_size_mb:{value}", f"max_split_size_mb:{value}")
            for value in ("19", "64x", "-1", "1e3", "True", "9" * 99)
        ],
        ("large_segment_size_mb:30,max_non_split_rounding_mb:29", "must be 30 or more"),
        *[
            (f"garbage_collection_threshold:{value}", f"garbage_collection_threshold:{value}")
            for value in ("0", "1.0", "nan", "x", "1e999", "True")
        ],
        ("per_process_memory_fraction:1.5", "per_process_memory_fraction:1.5"),
        ("expandable_segments:true", "expandable_segments:true"),
        ("max_split_size_mb:64,throw_on_cudamalloc_oom:1", "throw_on_cudamalloc_oom:1"),
        ("backend:cudaMallocAsync", "backend:cudaMallocAsync"),
        *[
            (f"roundup_power2_divisions:{value}", "power of 2")
            for value in ("3", "0", "-4", "[256:3]", "[3:1]", "[x:1]", "[4]", "[:]", "[>]")
        ],
        ("roundup_power2_divisions:[256:1", "roundup_power2_divisions:[256:1"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(text, words):
    with pytest.raises(ValueError, match=re.escape(words[:60])) as caught:
        AllocatorModel(MIB, conf=text)
    assert len(str(caught.value)) < 250


HINT = (
    " If reserved but unallocated memory is large try setting"
    " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation"
    " for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)


def test_a_full_card_is_reported_in_pytorchs_words():
    model = gt_1030()
    for _ in range(7):
        model.allocate(8192 * 8192 * 4)
    with pytest.raises(ModelledOutOfMemory) as caught:
        model.allocate(8192 * 8192 * 4)
    assert str(caught.value) == (
        "CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 1.95 GiB"
        " of which 144.00 MiB is free. Of the allocated memory 1.75 GiB is allocated by PyTorch,"
        " and 0 bytes is reserved by PyTorch but unallocated." + HINT
    )
    assert (caught.value.tried_bytes, caught.value.free_bytes) == (256 * MIB, 144 * MIB)


def test_a_rejected_request_flushes_nothing():
    model = AllocatorModel(
        1024 * MIB, conf="throw_on_cudamalloc_oom:True,per_process_memory_fraction:1.0"
    )
    model.free(model.allocate(600 * MIB))
    with pytest.raises(ModelledOutOfMemory) as caught:
        model.allocate(601 * MIB)
    assert str(caught.value) == (
        "CUDA out of memory. Allocation was preemptively rejected because it would exceed"
        " per_process_memory_fraction limit. Requested size: 601.00 MiB"
    )
    stats = model.stats()
    assert (stats["num_oom_rejections"], stats["num_ooms"]) == (1, 0)
    assert stats["reserved_bytes.all.current"] == 600 * MIB


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1025, "1.00 KiB"),
        (MIB, "1024.00 KiB"),
        (MIB + 1, "1.00 MiB"),
        ((1 << 30) + 1, "1.00 GiB"),
        (10 << 40, "10240.00 GiB"),
    ],
)
def test_sizes_are_written_as_pytorchs_errors_do(size_bytes, text):
    assert format_size(size_bytes) == text
