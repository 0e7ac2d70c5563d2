from typing import Any

import psutil
import pytest

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    CacheEmptied,
    EmptyCache,
    MemoryRead,
    OomFinished,
    ReadMemory,
    RunMemoryExperiment,
)
from gpu_studio.core.messages.placement_messages import PlaceModel
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished
from gpu_studio.engine.client import ProcessEngine
from tests.engine.answers import only, run_request
from tests.soft.conftest import MakePc, StartEngine
from tests.softcards.cards import MIB
from tests.softcards.catalogue import MODERN_1996_MIB


def breaking(**changes: Any) -> RunMemoryExperiment:
    plan: dict[str, Any] = {"size": 8192, "count": 8, "dtype": "float32"}
    plan.update((name, changes.pop(name)) for name in plan.keys() & changes)
    parameters: dict[str, Any] = {"device": "cuda:0", "budget_bytes": 1 << 40, **changes}
    return RunMemoryExperiment(preset="custom", plan=AllocationPlan(**plan), **parameters)


def run_of(size: int) -> Any:
    return run_request(device="cuda:0", size=size, budget_s=0.2)


def test_what_cannot_fit_the_card_is_refused(soft_pc: MakePc, engine: StartEngine) -> None:
    one = engine(soft_pc(MODERN_1996_MIB))
    failed = one.ask(run_of(8192))[-1]
    assert isinstance(failed, RunFailed)
    assert failed.failure.kind is FailureKind.TOO_LARGE
    assert "needs 2.75\u202fGiB" in failed.failure.message


def test_what_pytorch_holds_and_does_not_use_counts_as_free(
    soft_pc: MakePc, engine: StartEngine
) -> None:
    one = engine(soft_pc(MODERN_1996_MIB))
    one.ask(breaking(size=4096, count=24))  # 1.5 GiB stay reserved
    (read,) = one.ask(ReadMemory(device="cuda:0"))
    assert read.reserved_bytes > 1500 * MIB
    assert isinstance(one.ask(run_of(4096))[-1], RunFinished)


def test_the_posts_out_of_memory_error(soft_pc: MakePc, engine: StartEngine) -> None:
    """8192 × 8192 float32 on 1.95 GiB: 256 MiB more are refused with 1.75 GiB allocated."""
    events = engine(soft_pc(MODERN_1996_MIB)).ask(breaking())
    finished = events[-1]
    assert isinstance(finished, OomFinished)
    assert (finished.outcome, finished.tensors) == ("card_full", 7)
    assert finished.tensor_bytes == finished.tried_bytes == 256 * MIB
    assert finished.allocated_bytes == finished.reserved_bytes == 7 * 256 * MIB
    assert finished.free_bytes < 256 * MIB
    assert finished.limit_bytes is None or finished.limit_bytes >= 1.94 * 1024 * MIB
    assert "Tried to allocate 256.00 MiB" in finished.error_text
    reads = only(MemoryRead, events)
    assert reads[0].mark == "start"
    assert [read.mark for read in reads[-2:]] == ["oom", "freed"]
    assert reads[-2].allocated_bytes == 7 * 256 * MIB
    assert reads[-1].allocated_bytes == 0


def test_a_budget_ends_it_with_the_card_not_full(soft_pc: MakePc, engine: StartEngine) -> None:
    one = engine(soft_pc(MODERN_1996_MIB))
    finished = one.ask(breaking(size=2048, budget_bytes=64 * MIB))[-1]
    assert (finished.outcome, finished.tensors) == ("over_budget", 4)
    assert finished.limit_bytes == 64 * MIB
    assert finished.reserved_bytes == 64 * MIB
    # Afterwards the budget is gone: this takes 176 MiB.
    assert isinstance(one.ask(run_of(2048))[-1], RunFinished)


def test_an_engine_killed_in_the_middle_is_an_end_and_a_fresh_one_fills_the_card(
    soft_pc: MakePc, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in soft_pc(MODERN_1996_MIB).env.items():
        monkeypatch.setenv(name, value)
    one, marks = ProcessEngine(), []
    try:
        for event in one.run(breaking(size=16, count=None, watch_s=600.0)):
            if isinstance(event, MemoryRead):
                marks.append(event.mark)
                if event.mark == "allocated":
                    killed = psutil.Process(one.pid)
                    killed.kill()
        assert event == EngineEnded(exit_code=-9)
        assert marks[0] == "start"
        finished = list(one.run(breaking()))[-1]
        assert isinstance(finished, OomFinished)
        # Nothing of the killed one is left on the card.
        assert (finished.outcome, finished.tensors) == ("card_full", 7)
        assert one.pid != killed.pid
    finally:
        one.close()


def test_the_end_of_memory_is_known_without_nvml(soft_pc: MakePc, engine: StartEngine) -> None:
    """PyTorch then fails inside its own report and raises an assertion instead."""
    pc = soft_pc(MODERN_1996_MIB)
    one = engine(pc)
    one.ask(DescribeEngine())
    pc.fault("nvmlInit*", 18)
    finished = one.ask(breaking())[-1]
    assert isinstance(finished, OomFinished)
    assert (finished.outcome, finished.tensors) == ("card_full", 7)
    assert finished.tried_bytes is None
    assert one.ask(breaking(count=2))[-1].outcome == "fits"


@pytest.mark.parametrize("settings", [None, "expandable_segments:True"])
def test_empty_cache_frees_what_was_predicted(
    soft_pc: MakePc, engine: StartEngine, settings: str | None
) -> None:
    one = engine(soft_pc(MODERN_1996_MIB), EngineEnvironment(allocator_configuration=settings))
    one.ask(PlaceModel(model="mlp", device="cuda:0"))  # something that stays
    for size in (300, 1000, 5000):
        one.ask(breaking(size=size, count=3))
    (emptied,) = one.ask(EmptyCache(device="cuda:0"))
    assert isinstance(emptied, CacheEmptied)
    assert emptied.before.releasable_bytes == emptied.freed_bytes > 256 * MIB
    assert emptied.before.reserved_bytes - emptied.after.reserved_bytes == emptied.freed_bytes
    assert emptied.after.free_bytes - emptied.before.free_bytes == emptied.freed_bytes
    assert emptied.after.releasable_bytes == 0
    assert emptied.after.allocated_bytes > 0
