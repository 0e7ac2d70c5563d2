import subprocess
import sys
import threading
from typing import Any

import pytest
from torch.cuda import _memory_viz

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.memory.allocator.model import AllocatorModel
from gpu_studio.core.messages.engine_messages import (
    DescribeEngine,
    EngineDescribed,
    EngineEnded,
    RequestFailed,
)
from gpu_studio.core.messages.memory_messages import (
    CacheEmptied,
    EmptyCache,
    MemoryRead,
    OomFinished,
    ReadMemory,
    ReadSegments,
    RunMemoryExperiment,
    SegmentsRead,
)
from gpu_studio.core.messages.placement_messages import UseDevice
from gpu_studio.core.protocol import decode_event, encode
from gpu_studio.engine.memory.modelled_engine import ModelledEngine
from tests.engine.answers import only, run_request

MIB = 1 << 20
CARD = "model:1996"


def engine(conf: str | None = None) -> ModelledEngine:
    return ModelledEngine(EngineEnvironment(allocator_configuration=conf))


def experiment(preset: str, **changes: Any) -> RunMemoryExperiment:
    return RunMemoryExperiment(preset=preset, device=CARD, **changes)


REQUESTS = [
    DescribeEngine(),
    ReadMemory(device=CARD),
    ReadSegments(device=CARD),
    EmptyCache(device=CARD),
    experiment("gt1030"),
    experiment("gt1031"),
    ReadMemory(device="cuda:0"),
    ReadMemory(device="cpu"),
    run_request(),
    UseDevice(device="cuda:0"),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda r: type(r).__name__)
def test_every_request_is_answered_with_one_last_event(request_: Any):
    events = list(engine().run(request_))
    assert [event.ends(request_) for event in events] == [False] * (len(events) - 1) + [True]
    for event in events:
        assert decode_event(encode(event)) == event
        if not isinstance(event, (EngineDescribed, RequestFailed)):
            assert event.modelled


def test_a_wrong_configuration_is_refused_by_its_option():
    (failed,) = engine("max_split_size_mb:3").run(ReadMemory(device=CARD))
    assert failed.failure.kind is FailureKind.BAD_REQUEST
    assert "max_split_size_mb:3" in failed.failure.message


def test_memory_stays_reserved_until_the_cache_is_emptied():
    one = engine()
    finished = list(one.run(experiment("gt1030")))[-1]
    assert isinstance(finished, OomFinished)
    (read,) = one.run(ReadMemory(device=CARD))
    assert (read.allocated_bytes, read.reserved_bytes) == (0, finished.reserved_bytes)
    (segments,) = one.run(ReadSegments(device=CARD))
    assert isinstance(segments, SegmentsRead)
    assert segments.block_states == "2" * 5
    (emptied,) = one.run(EmptyCache(device=CARD))
    assert isinstance(emptied, CacheEmptied)
    assert emptied.before.releasable_bytes == emptied.freed_bytes == finished.reserved_bytes
    assert emptied.after.free_bytes == 1936 * MIB


def test_another_card_is_empty():
    one = engine()
    list(one.run(experiment("gt1030")))
    (read,) = one.run(ReadMemory(device="model:8000"))
    assert (read.reserved_bytes, read.total_bytes) == (0, 8000 * MIB)
    (read,) = one.run(ReadMemory(device=CARD))
    assert read.reserved_bytes == 0


def test_stopping_from_another_thread():
    one = engine()
    events = one.run(experiment("many_small", watch_s=100.0, reads_every_step=True))
    seen = []
    for event in events:
        seen.append(event)
        if len(seen) == 5:
            thread = threading.Thread(target=one.stop)
            thread.start()
            thread.join()
    assert seen[-1].outcome == "stopped"
    assert only(MemoryRead, seen)[-1].allocated_bytes == 0
    assert list(one.run(experiment("gt1030")))[-1].outcome == "over_budget", "a stop is for one"


def test_a_closed_engine_runs_nothing():
    one = engine()
    one.close()
    assert list(one.run(DescribeEngine())) == [EngineEnded(exit_code=None, stopped=True)]


def test_no_torch_is_needed():
    code = """
import sys
sys.modules["torch"] = None  # to import it is an error
from gpu_studio.core.messages.memory_messages import RunMemoryExperiment
from gpu_studio.engine.memory.modelled_engine import ModelledEngine
request = RunMemoryExperiment(preset="gt1030", device="model:1996")
print(list(ModelledEngine().run(request))[-1].outcome)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (ran.stdout.strip(), ran.stderr) == ("over_budget", "")


def test_pytorchs_viewer_opens_a_snapshot_of_the_model():
    model = AllocatorModel(1 << 31)
    kept = [model.allocate(size) for size in (1, 3 * MIB, 40 * MIB)]
    model.free(kept[1])
    snapshot = model.snapshot()
    assert "[aa] 40.0MiB allocated" in _memory_viz.segsum(snapshot)
    assert "<!DOCTYPE html>" in _memory_viz.segment_plot(snapshot)
