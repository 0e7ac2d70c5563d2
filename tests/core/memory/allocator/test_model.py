"""The allocator's model: PyTorch's own figures, its errors, and what the model refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.memory.allocator.blocks import ModelledOutOfMemory
from gpu_studio.core.memory.allocator.model import AllocatorModel
from tests.core.memory.allocator.allocator_cases import CASES, EXPANDABLE, Case
from tests.core.memory.allocator.allocator_trace import EDGES, RECORD, SETTINGS, follow, reserved_at

if TYPE_CHECKING:
    from gpu_studio.core.memory.allocator.blocks import Block

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
            with pytest.raises(ModelledOutOfMemory):
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


def test_a_block_is_freed_once_and_by_its_own_allocator():
    model, other = model_of(), model_of()
    saved, block, theirs = model.allocate(1000), model.allocate(1000), other.allocate(512)
    model.free(block)
    with pytest.raises(ValueError, match="is not in use"):
        model.free(block)
    with pytest.raises(ValueError, match="is another allocator's"):
        model.free(theirs)
    assert model.stats()["allocated_bytes.all.current"] == saved.size_bytes == 1024


def test_no_bytes_need_no_memory():
    model = model_of()
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
