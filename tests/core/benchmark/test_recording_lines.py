import math

import msgspec
import pytest

from gpu_studio.core.benchmark.recording import (
    RecordedPc,
    decode_recording,
    described_for_others,
    header_of,
    recording_of,
)
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import RequestFailed, TorchCard
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
)
from gpu_studio.engine.recorded_engine import RecordedEngine
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.run_answers import call_time_s, run_events, started

REQUEST = RunWorkload(
    run_id="run-1", workload="matmul", device="cuda:0", size=64, dtype="float32", budget_s=2.0
)
PC = RecordedPc(
    processor="Ryzen 7 5700G", system="Linux 6", cards=("NVIDIA GeForce GT 1030",),
    driver_version="580.95",
)  # fmt: skip
CARD = TorchCard(torch_index=0, name="NVIDIA GeForce GT 1030", uuid="GPU-secret")
DESCRIBED = described_with_cuda(cards=(CARD,), visible_devices="GPU-secret", snippet="import torch")


def run_with(*events: Event, **changes: object) -> Run:
    run = Run(msgspec.structs.replace(REQUEST, **changes))
    for event in events:
        run.apply(event)
    return run


def written(*runs: Run, pc: RecordedPc = PC) -> bytes:
    header = header_of(pc, DESCRIBED, "2026-01-02T03:04:05+00:00", "GPU Studio 1")
    return recording_of(header, DESCRIBED, runs)


def test_what_is_replayed_is_what_was_run() -> None:
    received = list(run_events(REQUEST))
    content = written(run_with(*received))
    engine = RecordedEngine(decode_recording(content, "a.jsonl"), speed=math.inf)
    label = "GT 1030 with Ryzen 7 5700G, 2026-01-02 03:04"
    *begun, end = received
    timing = RunPhaseChanged(
        run_id=REQUEST.run_id, phase="timing", expected_call_s=call_time_s(REQUEST)
    )
    first = msgspec.structs.replace(
        begun[0], snippet="", device_name="NVIDIA GeForce GT 1030", recording=label
    )
    batches = [event for event in begun if isinstance(event, SamplesMeasured)]
    assert len(batches) == 2
    assert list(engine.run(REQUEST)) == [
        first, timing, *batches, msgspec.structs.replace(end, recording=label),
    ]  # fmt: skip


def test_a_recording_names_the_pc_and_no_person() -> None:
    content = written(run_with(*run_events(REQUEST)))
    header = decode_recording(content, "a.jsonl").header
    assert header.device_name == "NVIDIA GeForce GT 1030"
    assert (header.driver_version, header.torch_version) == ("580.95", DESCRIBED.torch_version)
    assert (header.pc, header.recorded_at[:10]) == ("Ryzen 7 5700G, Linux 6", "2026-01-02")
    assert b"GPU-secret" not in content
    assert b"import torch" not in content
    shown = described_for_others(DESCRIBED, {"matmul"})
    assert [workload.name for workload in shown.workloads] == ["matmul"]
    assert (shown.pid, shown.models, shown.pitfalls) == (0, (), ())


def test_without_a_card_the_processor_is_the_device() -> None:
    pc = RecordedPc(processor="Ryzen 7 5700G", system="Linux 6")
    content = written(run_with(*run_events(REQUEST)), pc=pc)
    found = decode_recording(content, "a.jsonl")
    assert found.header.device_name == "Ryzen 7 5700G"
    assert found.label == "Ryzen 7 5700G, 2026-01-02 03:04"


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        (RunStopped(run_id="run-1", samples=20), RunStopped),
        (
            RunFailed(
                run_id="run-1",
                failure=Failure(FailureKind.OUT_OF_MEMORY, "Too much.", "/home/me/x.py"),
            ),
            RunFailed,
        ),
    ],
)
def test_a_run_that_did_not_finish_is_there_without_a_traceback(
    end: Event, kind: type[Event]
) -> None:
    received = [event for event in run_events(REQUEST) if not isinstance(event, RunPhaseChanged)]
    content = written(run_with(*received[:2], end))
    assert b"/home/me" not in content
    (run,) = decode_recording(content, "a.jsonl").runs
    assert len(run.samples_s) == 20
    assert isinstance(run.events[-1], kind)


def test_what_never_began_or_is_a_recording_is_left_out() -> None:
    refused = RequestFailed(failure=Failure(FailureKind.TOO_LARGE, "Too large."))
    theirs = started(REQUEST, recording="Theirs")
    assert isinstance(theirs, RunStarted)
    content = written(
        run_with(refused), run_with(theirs, *list(run_events(REQUEST))[1:]),
        run_with(*run_events(REQUEST)),
    )  # fmt: skip
    assert len(decode_recording(content, "a.jsonl").runs) == 1
