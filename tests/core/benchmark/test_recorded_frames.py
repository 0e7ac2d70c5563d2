import tracemalloc
from typing import Any

import msgspec
import numpy as np
import pytest

from gpu_studio.core.benchmark import recording
from gpu_studio.core.benchmark.recording import RecordedRun, decode_recording
from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.message import Message
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.packed_frame import MOST_FRAMES_OF_RUN, PackedFrame
from gpu_studio.core.protocol import encode_all
from gpu_studio.core.race.side import RaceTrack
from tests.core.race.racing import CARD, samples
from tests.core.race.racing import request as race_request
from tests.core.race.racing import result as race_result
from tests.fakes.hostile_files import SIDE, race_recording
from tests.fakes.recording_header import recording_header
from tests.fakes.run_answers import batch, run_events, started

REQUEST = RunWorkload(
    run_id="run-1", workload="matmul", device="cuda:0", size=64, dtype="float32", budget_s=2.0
)
BEGIN, *REST = run_events(REQUEST)
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
    asked = msgspec.structs.replace(race_request(CARD), run_id="run-1")
    began = started(asked, race=asked.race, device_name="GT 1030")
    ended = msgspec.structs.replace(race_result(CARD, 0.01), run_id="run-1")
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
    recording = decode_recording(content)
    tracks = [RaceTrack(run.events) for run in recording.runs]
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak_bytes < 8 * len(content)
    for track in tracks:
        assert len(track.frames) == MOST_FRAMES_OF_RUN
        assert (track.frames[0].steps, track.frames[-1].steps) == (0, 200)
