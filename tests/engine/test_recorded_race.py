"""A race that was recorded is replayed like every run, and keeps its contestants apart."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.benchmark.kept_run import decode_kept, encode_kept, kept_of, run_of
from gpu_studio.core.benchmark.recording import decode_recording, recording_of
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.protocol import FrameReady, RunFinished
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.pictures import LEARN
from gpu_studio.core.race.verdict import judge
from gpu_studio.engine.devices.description import describe_engine
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.recorded_engine import RecordedEngine
from tests.fakes.recording_header import recording_header

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTESTANTS = (
    Contestant(device="cpu", threads=1),
    Contestant(device="cpu"),
)


@pytest.fixture(scope="module")
def runs() -> Iterator[list[Run]]:
    """Two contestants that take four steps each."""
    dispatcher, made = Dispatcher(), []
    for request in race_requests(LEARN, 16, CONTESTANTS, 60.0):
        run = Run(msgspec.structs.replace(request, calls=4))
        for event in dispatcher.run(run.request, threading.Event()):
            run.apply(event)
        made.append(run)
    yield made
    dispatcher.close()


def recorded(runs: list[Run]):
    header = recording_header(title="a race", device_name="Test", recorded_at="2026-11-22")
    return decode_recording(recording_of(header, describe_engine(), runs), "race.jsonl")


def test_every_contestant_gets_its_own_run_again(runs: list[Run]):
    engine = RecordedEngine(recorded(runs), speed=float("inf"))
    for run in reversed(runs):
        *_, last = engine.run(run.request)
        assert isinstance(last, RunFinished)
        assert last.outcome == run.result.outcome
        assert last.cpu_threads == run.result.cpu_threads
        assert last.recording == "Test: a race"


def test_a_replayed_race_says_that_it_is_one(runs: list[Run]):
    engine = RecordedEngine(recorded(runs), speed=float("inf"))
    replayed = []
    for run in runs:
        ghost = Run(run.request)
        for event in engine.run(run.request):
            assert not isinstance(event, FrameReady)  # a recording leaves the frames out
            ghost.apply(event)
        replayed.append(ghost)
    finished = judge(LEARN, replayed).finished
    assert {one.recording for one in finished.contestants} == {"Test: a race"}


def test_a_contestant_is_kept_with_its_way(runs: list[Run]):
    kept = decode_kept(encode_kept(kept_of(runs[0], "2026-11-22T12:00:00+00:00")))
    again = run_of(kept)
    assert again.request.race == runs[0].request.race
    assert again.result.outcome == runs[0].result.outcome
    assert again.result.curves["sharpness"] == runs[0].result.curves["sharpness"]
