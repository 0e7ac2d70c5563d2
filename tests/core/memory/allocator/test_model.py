import json
from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.memory.allocator.blocks import ModelledOutOfMemory
from gpu_studio.core.memory.allocator.model import AllocatorModel
from tests.core.memory.allocator.allocator_trace import EDGES, RECORD, SETTINGS, follow, reserved_at

if TYPE_CHECKING:
    from gpu_studio.core.memory.allocator.blocks import Block

MIB = 1 << 20
CONTEXT_MIB = 60  # what a soft card gives a CUDA context


def model_of() -> AllocatorModel:
    return AllocatorModel(1996 * MIB, CONTEXT_MIB * MIB)


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
