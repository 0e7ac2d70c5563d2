"""A race that was recorded is replayed like every run, and keeps its contestants apart."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec
import pytest

from gpu_studio.core.benchmark.kept_run import decode_kept, encode_kept, kept_of, run_of
from gpu_studio.core.benchmark.recording import decode_recording
from gpu_studio.core.benchmark.recording_writer import recording_of
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.messages.race_messages import FrameReady, Showing
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.pictures import LEARN
from gpu_studio.core.race.side import RaceSide, RaceTrack, kept_frames
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
def shown() -> Iterator[tuple[Run, RaceTrack]]:
    """A run with its frames, as the engine sends them."""
    dispatcher, track = Dispatcher(), RaceTrack()
    (request,) = race_requests(LEARN, 16, CONTESTANTS[:1], 0.2, showing=Showing())
    run = Run(msgspec.structs.replace(request, calls=4))
    for event in dispatcher.run(run.request, threading.Event()):
        run.apply(event)
        track.add(event)
    return run, track


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
    return decode_recording(recording_of(header, describe_engine(), runs, frames), "race.jsonl")


def test_every_contestant_gets_its_own_run_again(runs: list[Run]):
    engine = RecordedEngine(recorded(runs), speed=float("inf"))
    for run in reversed(runs):
        *_, last = engine.run(run.request)
        assert isinstance(last, RunFinished)
        assert last.outcome == run.result.outcome
        assert last.conditions.cpu_threads == run.result.conditions.cpu_threads
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
    saved = decode_kept(encode_kept(kept_of(runs[0], "2026-11-22T12:00:00+00:00")))
    again = run_of(saved)
    assert again.request.race == runs[0].request.race
    assert again.result.outcome == runs[0].result.outcome
    assert again.result.details.curves["sharpness"] == runs[0].result.details.curves["sharpness"]


def test_a_race_that_kept_its_frames_is_replayed_with_its_pictures(shown: tuple[Run, RaceTrack]):
    run, track = shown
    recording = recorded([run], kept_frames([RaceSide("CPU", run, track)]))
    engine = RecordedEngine(recording, speed=float("inf"))
    events = list(engine.run(run.request))
    replayed = RaceTrack(events)
    assert len(replayed.frames) > 1
    for one, frame in zip(replayed.frames, track.frames, strict=True):
        assert (one.elapsed_s, one.picture) == (frame.elapsed_s, frame.picture)
    assert isinstance(events[-1], RunFinished)
    blind = msgspec.structs.replace(run.request, showing=None)
    assert not RaceTrack(engine.run(blind)).frames


def test_the_frames_are_left_out_unless_they_are_asked_for(shown: tuple[Run, RaceTrack]):
    (again,) = recorded([shown[0]]).runs
    assert not RaceTrack(again.events).frames
