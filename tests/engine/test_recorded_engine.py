import math
import threading
from collections.abc import Iterator

import msgspec
import pytest

from gpu_studio.core.benchmark.recording import decode_recording, read_recording, recording_of
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.messages.memory_messages import EmptyCache
from gpu_studio.core.messages.run_messages import (
    RunFinished,
    RunStarted,
    RunStopped,
    RunTimes,
    RunWorkload,
    SamplesMeasured,
    WorkloadDescription,
    WorkloadOption,
)
from gpu_studio.core.protocol import encode_all
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.pictures import LEARN
from gpu_studio.engine.devices.description import describe_engine
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.recorded_engine import RecordedEngine
from tests.fakes.recording_header import recording_header

HEADER = recording_header(title="test card", device_name="Test", recorded_at="2026-11-20")
LABEL = "Test: test card"


def recorded_run(size):
    common = {"workload": "matmul", "device": "cuda:0", "size": size, "dtype": "float32"}
    run_id = f"original-{size}"
    return [
        RunStarted(run_id=run_id, budget_s=2.0, **common),
        SamplesMeasured(run_id=run_id, samples_s=(1.0, 2.0), calls_per_sample=1, spent_s=3.0),
        SamplesMeasured(run_id=run_id, samples_s=(3.0,), calls_per_sample=1, spent_s=6.0),
        RunFinished(
            run_id=run_id, device_name="Test", median_s=2.0, iqr_s=1.0, ci95_s=(1.0, 3.0),
            samples=3, calls_per_sample=1, throughput=1.0, throughput_unit="FLOP/s",
            times=RunTimes(first_call_s=1.0, warm_up_s=0.3, elapsed_s=6.0), **common,
        ),
    ]  # fmt: skip


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "card.jsonl"
    described = EngineDescribed(pid=1, torch_version="2.13.0", cuda_available=True)
    path.write_bytes(encode_all([HEADER, described, *recorded_run(512), *recorded_run(1024)]))
    return path


def request(size, dtype="float32"):
    return RunWorkload(
        run_id="mine", workload="matmul", device="cuda:0", size=size, dtype=dtype, budget_s=2.0
    )


def test_a_replay_is_the_same_run_marked_as_recorded(recording):
    events = list(RecordedEngine(read_recording(recording), speed=math.inf).run(request(1024)))
    assert {event.run_id for event in events} == {"mine"}
    assert [event.size for event in events if isinstance(event, RunStarted)] == [1024]
    assert isinstance(events[-1], RunFinished)
    assert events[0].recording == events[-1].recording == LABEL


def test_what_was_not_recorded_is_named(recording):
    engine = RecordedEngine(read_recording(recording))
    (failed,) = engine.run(request(512, dtype="float16"))
    assert failed.failure.kind is FailureKind.NOT_RECORDED
    assert "matmul 512 float32 on cuda:0" in failed.failure.message
    (failed,) = engine.run(EmptyCache(device="cuda:0"))
    assert failed.failure.kind is FailureKind.NOT_RECORDED


def test_a_run_in_another_mode_is_another_run(recording, tmp_path):
    described = EngineDescribed(
        pid=1,
        torch_version="2.13.0",
        workloads=(
            WorkloadDescription(
                name="matmul", title="", sentence="", dtypes=(), sizes=(), throughput_unit="",
                options=(
                    WorkloadOption(name="way", title="", sentence="", values=("plain", "odd")),
                ),
            ),
        ),
    )  # fmt: skip
    odd = [msgspec.structs.replace(event, run_id="odd") for event in recorded_run(512)]
    odd[0] = msgspec.structs.replace(odd[0], options={"way": "odd"}, budget_s=7.0)
    path = tmp_path / "odd.jsonl"
    path.write_bytes(encode_all([HEADER, described, *odd, *recorded_run(512)]))
    engine = RecordedEngine(read_recording(path), speed=math.inf)

    def budget_s(**changes):
        first = next(engine.run(msgspec.structs.replace(request(512), **changes)))
        return first.budget_s if isinstance(first, RunStarted) else first.failure.kind

    assert budget_s(options={"way": "odd"}) == 7.0
    # What was left out is the default, on either side.
    assert budget_s() == budget_s(options={"way": "plain"}) == 2.0
    assert budget_s(cache="cold") is FailureKind.NOT_RECORDED
    assert budget_s(transfers=True) is FailureKind.NOT_RECORDED


def test_a_stop_ends_the_replay_with_the_samples_so_far(recording):
    engine = RecordedEngine(read_recording(recording), speed=3.0 / 1e-6)
    events = engine.run(request(512))
    assert isinstance(next(events), RunStarted)
    assert isinstance(next(events), SamplesMeasured)
    engine.stop()
    assert list(events) == [RunStopped(run_id="mine", samples=2)]


CONTESTANTS = (
    Contestant(device="cpu", threads=1),
    Contestant(device="cpu"),
)


@pytest.fixture(scope="module")
def runs() -> Iterator[list[Run]]:
    """Two contestants that take four steps each."""
    dispatcher, created = Dispatcher(), []
    for request in race_requests(LEARN, 16, CONTESTANTS, 0.2):
        run = Run(msgspec.structs.replace(request, calls=4))
        for event in dispatcher.run(run.request, threading.Event()):
            run.apply(event)
        created.append(run)
    return created


def recorded(runs: list[Run], frames=None):
    header = recording_header(title="a race", device_name="Test", recorded_at="2026-11-22")
    return decode_recording(recording_of(header, describe_engine(), runs, frames))


def test_every_contestant_gets_its_own_run_again(runs: list[Run]):
    engine = RecordedEngine(recorded(runs), speed=float("inf"))
    for run in reversed(runs):
        *_, last = engine.run(run.request)
        assert isinstance(last, RunFinished)
        assert last.outcome == run.result.outcome
        assert last.conditions.cpu_threads == run.result.conditions.cpu_threads
        assert last.recording == "Test: a race"
