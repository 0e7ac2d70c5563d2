from typing import Any

import pytest
import torch

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import Stop
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    CacheEmptied,
    EmptyCache,
    MemoryRead,
    OomFinished,
    ReadMemory,
    RunMemoryExperiment,
)
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.placement_messages import PlaceModel
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.protocol import encode
from gpu_studio.engine.device import resolve
from tests.engine.answers import only, run_request
from tests.engine.engine_child import EngineChild
from tests.gpu.conftest import StartEngine

MIB = 1 << 20
TENSOR = 16 * MIB  # 2048 × 2048 of float32
# Other programs may use the card at the same time.
_OTHERS_BYTES = 64 * MIB


def breaking(card: str, **changes: Any) -> RunMemoryExperiment:
    plan: dict[str, Any] = {"size": 2048, "count": 1000, "dtype": "float32"}
    plan.update((name, changes.pop(name)) for name in plan.keys() & changes)
    parameters: dict[str, Any] = {"device": card, "budget_bytes": 8 * TENSOR, **changes}
    return RunMemoryExperiment(preset="custom", plan=AllocationPlan(**plan), **parameters)


def test_a_budget_ends_in_pytorchs_own_error(card: str, start_engine: StartEngine) -> None:
    one = start_engine()
    events = one.ask(breaking(card))
    end = events[-1]
    assert isinstance(end, OomFinished)
    assert (end.outcome, end.tensors, end.tensor_bytes) == ("over_budget", 8, TENSOR)
    assert end.allocated_bytes == end.reserved_bytes == 8 * TENSOR
    assert "out of memory" in end.error_text
    # The error's own numbers, where this version's text has them.
    assert end.tried_bytes == TENSOR
    assert end.limit_bytes in (None, 8 * TENSOR)
    total_bytes = torch.cuda.get_device_properties(resolve(card)).total_memory
    assert end.total_bytes == pytest.approx(total_bytes, rel=0.01)
    reads = only(MemoryRead, events)
    assert [read.mark for read in (reads[0], *reads[-2:])] == ["start", "oom", "freed"]
    assert reads[-1].allocated_bytes == 0
    # Afterwards the card is as usable as before, and the budget is gone.
    run = one.ask(run_request(device=card, size=2048, budget_s=0.05))[-1]
    assert isinstance(run, RunFinished)


def test_what_fits_is_freed_again(card: str, engine: EngineChild) -> None:
    end = engine.ask(breaking(card, count=3))[-1]
    assert isinstance(end, OomFinished)
    assert (end.outcome, end.tensors) == ("fits", 3)


def test_an_experiment_is_stopped_in_the_middle(card: str, engine: EngineChild) -> None:
    def stop_at_first_tensor(event: Event) -> None:
        if isinstance(event, MemoryRead) and event.mark == "allocated":
            engine.send(encode(Stop()))

    events = engine.ask(breaking(card, size=16, count=1_000_000), stop_at_first_tensor)
    assert events[-1].outcome == "stopped"
    assert 0 < events[-1].tensors < 1_000_000
    assert only(MemoryRead, events)[-1].allocated_bytes == 0


@pytest.mark.parametrize("settings", [None, "expandable_segments:True"])
def test_empty_cache_frees_what_was_predicted(
    card: str, start_engine: StartEngine, settings: str | None
) -> None:
    one = start_engine(EngineEnvironment(allocator_configuration=settings))
    one.ask(PlaceModel(model="mlp", device=card))  # something that stays
    for size in (300, 1000, 4000):
        one.ask(breaking(card, size=size, count=3, budget_bytes=512 * MIB))
    (emptied,) = one.ask(EmptyCache(device=card))
    assert isinstance(emptied, CacheEmptied)
    assert emptied.before.releasable_bytes == emptied.freed_bytes > 2 * 4000 * 4000 * 4
    assert emptied.before.reserved_bytes - emptied.after.reserved_bytes == emptied.freed_bytes
    grown = emptied.after.free_bytes - emptied.before.free_bytes
    assert grown == pytest.approx(emptied.freed_bytes, abs=_OTHERS_BYTES)
    assert emptied.after.releasable_bytes == 0
    assert emptied.after.allocated_bytes > 0


def test_a_reading_is_the_allocators_and_the_drivers(card: str, start_engine: StartEngine) -> None:
    one = start_engine()
    one.ask(breaking(card, count=2))
    (read,) = one.ask(ReadMemory(device=card))
    assert isinstance(read, MemoryRead)
    assert (read.device, read.allocated_bytes, read.reserved_bytes) == (card, 0, 2 * TENSOR)
    free_bytes, total_bytes = torch.cuda.mem_get_info(resolve(card))
    assert read.total_bytes == total_bytes
    # Two processes ask one after the other.
    assert read.free_bytes == pytest.approx(free_bytes, abs=_OTHERS_BYTES)
