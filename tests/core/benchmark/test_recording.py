import math
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_studio.core.benchmark import recording
from gpu_studio.core.benchmark.recording import (
    RecordedPc,
    RecordedRun,
    Recording,
    decode_recording,
    described_for_others,
    header_of,
    is_recording,
    read_recording,
    recording_of,
    recording_sentences,
)
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import Failure, FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import (
    EngineDescribed,
    EngineEnded,
    RequestFailed,
    TorchCard,
)
from gpu_studio.core.messages.message import Event, Message
from gpu_studio.core.messages.pitfall_messages import PitfallDescription
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunPhaseChanged,
    RunStarted,
    RunStopped,
    RunWorkload,
    SamplesMeasured,
    WorkloadDescription,
)
from gpu_studio.core.packed_frame import MOST_FRAMES_OF_RUN, PackedFrame
from gpu_studio.core.protocol import encode, encode_all
from gpu_studio.core.race.side import RaceTrack
from gpu_studio.engine.recorded_engine import RecordedEngine
from tests.core.race.racing import CARD as RACING
from tests.core.race.racing import request as race_request
from tests.core.race.racing import result as race_result
from tests.core.race.racing import samples
from tests.fakes.descriptions import described_with_cuda, elementwise, matmul
from tests.fakes.hostile_files import SIDE, race_recording
from tests.fakes.recording_header import recording_header
from tests.fakes.run_answers import batch, call_time_s, run_events, samples_of, started

HEADER = recording_header(pc="Ryzen 7 5700G, Linux")
REQUEST = RunWorkload(
    run_id="run-1", workload="matmul", device="cuda:0", size=64, dtype="float32", budget_s=2.0
)
EVENTS = list(run_events(REQUEST))


def decoded(*messages: Message) -> Recording:
    return decode_recording(encode_all(messages))


def refusal(content: bytes) -> str:
    with pytest.raises(StudioError) as caught:
        decode_recording(content)
    assert caught.value.kind is FailureKind.FILE_REFUSED
    return str(caught.value)


def other_run(**changes: Any) -> list[Message]:
    return list(run_events(msgspec.structs.replace(REQUEST, run_id="run-2", **changes)))


def test_a_recording_has_its_runs_with_all_their_samples(tmp_path: Path) -> None:
    path = tmp_path / "theirs.jsonl"
    described = EngineDescribed(pid=1, torch_version="2.13.0")
    path.write_bytes(encode_all([HEADER, described, *EVENTS, *other_run(device="cpu")]))
    found = read_recording(path)
    assert (found.header, found.is_cut_off) == (HEADER, False)
    assert found.described == msgspec.structs.replace(described, pid=0)  # the process of another PC
    card, cpu = found.runs
    assert card.request == REQUEST
    assert card.samples_s == list(samples_of(REQUEST))
    assert card.result == EVENTS[-1]
    assert (card.device_name, cpu.device_name) == ("NVIDIA GeForce GT 1030", "Ryzen 7 5700G")
    assert found.spent_s == 4.0
    assert found.label == HEADER.title


def test_no_code_of_a_file_is_shown() -> None:
    assert isinstance(EVENTS[0], RunStarted)
    assert EVENTS[0].snippet
    (run,) = decoded(HEADER, *EVENTS).runs
    assert isinstance(run.events[0], RunStarted)
    assert run.events[0].snippet == ""


@pytest.mark.parametrize(
    ("header", "label"),
    [
        ({"title": "Lab 3"}, "NVIDIA GeForce GT 1030: Lab 3"),
        ({"is_simulated": True}, "simulated card: NVIDIA GeForce GT 1030, 2026-01-02"),
        ({"title": "GT\n1030", "device_name": "GT 1030"}, "GT 1030"),
    ],
)
def test_a_label_names_the_device(header: dict[str, Any], label: str) -> None:
    assert decoded(msgspec.structs.replace(HEADER, **header), *EVENTS).label == label


def test_what_windows_powershell_writes_is_read() -> None:
    text = encode_all([HEADER, *EVENTS]).decode()
    for content in (text.encode("utf-16"), text.encode("utf-8-sig")):
        assert is_recording(content)
        assert decode_recording(content).label == HEADER.title
    assert "damaged" in refusal(b"\xff\xfe\x00")


@pytest.mark.parametrize("cut", [2, 400])
def test_a_run_that_was_cut_off_keeps_its_samples(cut: int) -> None:
    content = encode_all([HEADER, *EVENTS, *other_run(device="cpu")])[:-cut]
    found = decode_recording(content)
    assert found.is_cut_off
    whole, part = found.runs
    assert whole.result is not None
    assert part.result is None
    assert len(part.samples_s) == 40
    assert isinstance(part.events[-1], RunFailed)
    assert "ends in the middle" in part.events[-1].failure.message
    assert "Its end is missing" in " ".join(recording_sentences(found))


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (EngineEnded(exit_code=-9), "signal 9"),
        (
            RunFailed(
                run_id="run-1",
                failure=Failure(FailureKind.ENGINE_ENDED, "Dead.", "/home/me/x.py", fatal=True),
            ),
            "Dead.",
        ),
    ],
)
def test_how_a_recorded_engine_died_ends_no_engine_here(last: Message, message: str) -> None:
    (run,) = decoded(HEADER, *EVENTS[:-1], last).runs
    end = run.events[-1]
    assert isinstance(end, RunFailed)
    assert message in end.failure.message
    assert end.failure.kind is not FailureKind.ENGINE_ENDED
    assert (end.failure.fatal, end.failure.traceback_text) == (False, "")


GOOD = encode_all([HEADER, *EVENTS])


def lines_with(number: int, line: bytes) -> bytes:
    lines = GOOD.split(b"\n")
    lines[number - 1] = line
    return b"\n".join(lines)


def changed(number: int, **changes: Any) -> bytes:
    message = [HEADER, *EVENTS][number - 1]
    return lines_with(number, encode(msgspec.structs.replace(message, **changes)).rstrip(b"\n"))


def described(**changes: Any) -> bytes:
    return encode_all([HEADER, EngineDescribed(pid=1, torch_version="2.13.0", **changes), *EVENTS])


def workload(**changes: Any) -> WorkloadDescription:
    return msgspec.structs.replace(matmul(), **changes)


LAST = len(EVENTS) + 1
BATCH = LAST - 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a GPU Studio recording"),
        (encode_all(EVENTS), "not a GPU Studio recording"),
        (b"\x00\x01\xfe\x89PNG" * 99, "not a GPU Studio recording"),
        (b"[" * 100_000, "not a GPU Studio recording"),
        (encode(HEADER), "no run"),
        (lines_with(1, b'{"type":"recording_header"}'), "does not say where it comes from"),
        (changed(1, schema=2), "newer GPU Studio wrote it (schema 2)"),
        (changed(1, schema=0), "schema number is invalid"),
        (changed(1, device_name=" "), "does not name its device"),
        (lines_with(3, b"{"), "its line 3 is damaged"),
        (
            lines_with(3, b'{"type":"run_dreamt"}'),
            "line 3 is “run_dreamt”, unknown to this version",
        ),
        (lines_with(3, b'{"type":"run_phase_changed"}'), "an invalid form"),
        (lines_with(4, encode(HEADER).strip()), "another recording begins in its line 4"),
        (
            lines_with(
                BATCH,
                b'{"type":"samples_measured","run_id":"run-1","samples_s":[NaN],'
                b'"calls_per_sample":1,"spent_s":2.0}',
            ),
            "is damaged",
        ),
        (changed(BATCH, samples_s=(0.0,)), "out of range"),
        (changed(BATCH, spent_s=0.5), "out of order"),
        (changed(LAST, calls_per_sample=2**63 - 1), "out of range"),
        (changed(4, expected_call_s=-1.0), "out of range"),
        (described(cpu_capability="x" * 3000), "text that is too long"),
        (described(arch_list=("sm_61",) * 1000), "list that is too long"),
        (described(workloads=(workload(sizes=(0,)),)), "workload with an invalid size"),
        (changed(BATCH, samples_s=(1.0,)), "samples instead of 40"),
        (changed(BATCH, run_id="run-9"), "belongs to a run that did not begin"),
        (changed(LAST, size=128), "to another run"),
        (changed(LAST, device_name=""), "without its device"),
        (changed(LAST, median_s=1.0, ci95_s=(1.0, 1.0)), "contradict its median"),
        (changed(LAST, verification="x" * 3000), "text that is too long"),
        (changed(2, device="cuda:../.."), "invalid address"),
        (changed(2, dtype="x" * 3000), "text that is too long"),
        (
            lines_with(3, b'{"type":"run\\n\\u001bdreamt' + b"x" * 3000 + b'"}'),
            f"line 3 is “run dreamt{'x' * 30}”, unknown",
        ),
        (changed(2, size=1 << 40), "invalid size or time budget"),
        (changed(2, budget_s=0.0), "invalid size or time budget"),
    ],
)
def test_a_bad_file_is_refused_with_one_sentence(content: bytes, words: str) -> None:
    message = refusal(content)
    assert message.startswith("This file is refused: ")
    assert words in message
    assert message.count(". ") == 0


def test_an_engines_description_is_shown_without_what_no_replay_needs() -> None:
    content = described(
        workloads=(workload(title="Matrix\nproduct\x1b[2J"), elementwise()),
        cuda_reason="No\tcard\x00",
        snippet="import os\n" * 1000,
        pitfalls=(PitfallDescription(name="a", title="", sentence="", why="x" * 3000, remedy=""),),
        cards=(TorchCard(torch_index=-1, name="x" * 3000),),
    )
    shown = decode_recording(content).described
    assert shown is not None
    assert [one.name for one in shown.workloads] == ["matmul"]
    texts = (shown.workloads[0].title, shown.cuda_reason or "")
    assert texts == ("Matrix product [2J", "No card ")
    assert (shown.snippet, shown.pitfalls, shown.cards) == ("", (), ())


@given(st.binary(max_size=400), st.integers(0, len(GOOD)), st.integers(0, 400))
def test_a_damaged_file_is_refused_or_makes_sense(junk: bytes, at: int, length: int) -> None:
    content = GOOD[:at] + junk + GOOD[at + length :]
    try:
        found = decode_recording(content)
    except StudioError:
        return
    for run in found.runs:
        assert all(sample_s > 0 for sample_s in run.samples_s)
        assert isinstance(run.events[-1], (RunFinished, RunStopped, RunFailed))


def test_what_a_recording_is_in_words() -> None:
    found = decoded(HEADER, *EVENTS, *other_run(device="cpu", size=128))
    origin, contents = (each.replace("\u202f", " ") for each in recording_sentences(found))
    assert origin == (
        "Recorded 2026-01-02 at 03:04 on NVIDIA GeForce GT 1030 (Ryzen 7 5700G, Linux), PyTorch "
        "2.13.0, driver 580.95."
    )
    assert contents == (
        "2 runs on NVIDIA GeForce GT 1030, Ryzen 7 5700G, 4.00 s at the original speed: matmul at "
        "64 × 64 and 128 × 128."
    )
    simulated = decoded(msgspec.structs.replace(HEADER, is_simulated=True), *EVENTS)
    assert "simulated: the times do not belong to a real card" in recording_sentences(simulated)[2]


# A sustained run as this program wrote it before its messages shared their parameters: the start
# does not tell ``sustained``, and the fields stand in another order.
OLD_LINES = (
    b'{"type":"run_started","run_id":"run-1","workload":"train_step","device":"cpu","size":64,'
    b'"dtype":"float32","budget_s":0.5,"options":{"amp":"off"},"cache":"cold",'
    b'"transfers":true,"size_text":"batch of {size}","snippet":"",'
    b'"device_name":"Ryzen 7 5700G","recording":null}'
    b"\n"
    b'{"type":"samples_measured","run_id":"run-1","samples_s":[0.25,0.25,0.5],'
    b'"calls_per_sample":1,"spent_s":1.0}'
    b"\n"
    b'{"type":"run_finished","run_id":"run-1","workload":"train_step","size":64,'
    b'"dtype":"float32","device":"cpu","device_name":"Ryzen 7 5700G","median_s":0.25,'
    b'"iqr_s":0.125,"ci95_s":[0.25,0.5],"p99_s":0.5,"samples":3,"calls_per_sample":1,'
    b'"throughput":4.0,"throughput_unit":"FLOP/s","operations_per_call":1.0,'
    b'"bytes_per_call":2.0,"first_call_s":0.5,"warm_up_s":1.0,"elapsed_s":3.0,"timed_s":null,'
    b'"verified":null,"verification":"","throttled":null,"power_capped":null,'
    b'"other_processes":null,"share_of_ceiling":null,"ceiling":"","options":{"amp":"off"},'
    b'"parts_s":{},"curves":{},"findings":[],"doubts":{},"peak_allocated_bytes":null,'
    b'"naive":null,"cache":"cold","transfers":true,"size_text":"batch of {size}","tf32":null,'
    b'"computed_in":"","loaded_s":null,"sustained":true,"cpu_threads":8,'
    b'"in_window_process":false,"torch_version":"2.13.0","recording":null}'
    b"\n"
)


def test_the_lines_of_an_older_version_are_read() -> None:
    (run,) = decode_recording(encode(HEADER) + OLD_LINES).runs
    asked = RunWorkload(
        run_id="run-1", workload="train_step", device="cpu", size=64, dtype="float32",
        budget_s=0.5, options={"amp": "off"}, cache="cold", transfers=True, sustained=True,
    )  # fmt: skip
    assert run.request == asked
    assert run.samples_s == [0.25, 0.25, 0.5]
    assert run.result is not None
    assert run.result.parameters == asked.parameters
    assert (run.result.median_s, run.result.conditions.cpu_threads) == (0.25, 8)


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
    header = header_of(pc, DESCRIBED, "2026-01-02T03:04:05+00:00")
    return recording_of(header, DESCRIBED, runs)


def test_what_is_replayed_is_what_was_run() -> None:
    received = list(run_events(REQUEST))
    content = written(run_with(*received))
    engine = RecordedEngine(decode_recording(content), speed=math.inf)
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
    header = decode_recording(content).header
    assert header.device_name == "NVIDIA GeForce GT 1030"
    assert (header.driver_version, header.torch_version) == ("580.95", DESCRIBED.torch_version)
    assert (header.pc, header.recorded_at[:10]) == ("Ryzen 7 5700G, Linux 6", "2026-01-02")
    assert b"GPU-secret" not in content
    assert b"import torch" not in content
    shown = described_for_others(DESCRIBED, {"matmul"})
    assert [workload.name for workload in shown.workloads] == ["matmul"]
    assert (shown.pid, shown.models, shown.pitfalls) == (0, (), ())


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
    (run,) = decode_recording(content).runs
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
    assert len(decode_recording(content).runs) == 1


# ── frames of races ──────────────────────────────────────────────────────────────────────────────


BEGIN, *REST = EVENTS
OPENED = FramesOpened(run_id="run-1", width=2, height=3)
PACKED = PackedFrame.of(np.zeros((3, 2, 3), np.uint8)).packed


def ready(**changes: Any) -> FrameReady:
    plain = FrameReady(
        run_id="run-1", number=0, elapsed_s=0.0, steps=0, measure=0.0, progress=0.0, picture=PACKED
    )
    return msgspec.structs.replace(plain, **changes)


def read(*frames: Message) -> RecordedRun:
    (run,) = decode_recording(encode_all([recording_header(), BEGIN, *frames, *REST])).runs
    return run


def frames_of(run: RecordedRun) -> list[object]:
    return [event for event in run.events if isinstance(event, (FramesOpened, FrameReady))]


def test_frames_are_read_in_their_order() -> None:
    frames = [OPENED, ready(), ready(number=1, elapsed_s=0.5), ready(number=2, elapsed_s=0.5)]
    run = read(*frames)
    assert frames_of(run) == frames
    assert run.result is not None


@pytest.mark.parametrize(
    "frames",
    [
        [ready()],
        [OPENED, ready(picture=PACKED[:-2])],
        [OPENED, ready(picture=b"")],
        [OPENED, ready(picture=PackedFrame.of(np.zeros((3, 3, 3), np.uint8)).packed)],
        [OPENED, OPENED],
        [OPENED, ready(elapsed_s=1.0), ready(elapsed_s=0.5)],
        [msgspec.structs.replace(OPENED, width=513)],
        [msgspec.structs.replace(OPENED, height=0)],
        [OPENED, ready(progress=1.5)],
        [OPENED, ready(run_id="run-2")],
    ],
    ids=["no size", "cut", "empty", "another size", "two sizes", "out of order", "too large",
         "no height", "beyond the line", "another run"],
)  # fmt: skip
def test_anything_else_is_refused_in_a_sentence(frames: list[Message]) -> None:
    with pytest.raises(StudioError) as caught:
        read(*frames)
    assert str(caught.value).endswith(".")


def test_there_are_never_more_frames_than_can_be_read_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recording, "MOST_FRAMES", 3)
    assert len(frames_of(read(OPENED, *[ready()] * 3))) == 4
    with pytest.raises(StudioError, match="more than 3 frames"):
        read(OPENED, *[ready()] * 4)


@pytest.mark.parametrize("elapsed_s", [0.1, 9.0])
def test_frames_that_end_at_another_time_than_their_race_are_refused(elapsed_s: float) -> None:
    asked = msgspec.structs.replace(race_request(RACING), run_id="run-1")
    began = started(asked, race=asked.race, device_name="GT 1030")
    ended = msgspec.structs.replace(race_result(RACING, 0.01), run_id="run-1")
    done = batch(asked, samples(0.01), 2.0)
    frames = [OPENED, ready(), ready(number=1, elapsed_s=elapsed_s)]
    lines = encode_all([recording_header(), began, *frames, done, ended])
    with pytest.raises(StudioError, match="contradicts the seconds of its race"):
        decode_recording(lines)


def test_a_thousand_frames_of_one_color_cost_no_more_than_their_file() -> None:
    """Unpacked, 2.4 MB of them are 1.5 GB."""
    one_color = PackedFrame.of(np.zeros((SIDE, SIDE, 3), np.uint8)).packed
    content = race_recording([one_color] * 1000)
    tracemalloc.start()
    tracks = [RaceTrack(run.events) for run in decode_recording(content).runs]
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak_bytes < 8 * len(content)
    for track in tracks:
        assert len(track.frames) == MOST_FRAMES_OF_RUN
        assert (track.frames[0].steps, track.frames[-1].steps) == (0, 200)
