import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from gpu_studio.cli.command import DONE, DOUBTFUL
from gpu_studio.cli.output import painted
from gpu_studio.core.benchmark.recording import read_recording
from gpu_studio.core.failure import Failure, FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.race_messages import RaceOutcome
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunWorkload,
)
from gpu_studio.core.race.pictures import DEFAULT_BUDGET_S, LEARN, PICTURES
from gpu_studio.core.race.side import RaceTrack
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.race_answers import pictures_of, race_run
from tests.fakes.run_answers import batch, finished, samples_of, started
from tests.hostile_pictures import HOSTILE, png_bomb
from tests.own_home import own_home

ROOT = Path(__file__).resolve().parent.parent.parent


def raced(_engine, request):
    """Answer like an engine whose card learns twice as fast per pixel."""
    samples_s = samples_of(request)
    outcome = RaceOutcome(
        reached=True, steps=100, seconds=100 * samples_s[0], measure=30.0, progress=1.0
    )
    yield started(request, race=request.race)
    yield batch(request, samples_s, 100 * samples_s[0])
    yield finished(request, samples_s, race=request.race, outcome=outcome, cpu_threads=4)


@pytest.fixture
def engines(engines_of):
    """A PC with a card."""
    return engines_of(
        {
            DescribeEngine: [described_with_cuda(pictures=PICTURES, cpu_threads=4)],
            RunWorkload: raced,
        }
    )


@pytest.fixture
def type_in(engines, typed):
    return partial(typed, "race")


def asked(engines):
    return [request for request in engines.requests if isinstance(request, RunWorkload)]


def contestants(engines):
    return [(one.device, one.race.threads, one.dtype) for one in asked(engines)]


def test_a_picture_beside_you_is_learned(type_in, engines, tmp_path, monkeypatch):
    """The decoder's process works in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "me.png").write_bytes(png_bomb(40, 20, 8, 2))
    status, _, _ = type_in("learn", "--device", "cpu", "--picture", "me.png")

    (request,) = asked(engines)
    assert status == 0
    assert request.showing.photo.pixels.shape == (20, 40, 3)
    assert request.race.photo == request.showing.photo.identity
    assert not request.showing.frames


@pytest.mark.parametrize("name", ["bomb.png", "another computer.png", "missing.png"])
def test_a_picture_that_cannot_be_learned_is_one_sentence(type_in, engines, tmp_path, name):
    if name in HOSTILE:
        (tmp_path / name).write_bytes(HOSTILE[name]())
    status, output, errors = type_in("learn", "--picture", str(tmp_path / name))

    assert (status, output) == (1, "")
    assert f"{name} cannot be learned: it" in errors
    assert errors.count("\n") == 1
    assert not asked(engines)


def test_by_default_the_cpu_races_the_first_card(type_in, engines):
    status, output, _ = type_in("learn")
    assert status == 0
    assert contestants(engines) == [("cpu", None, "float32"), ("cuda:0", None, "float32")]
    (size, budget_s) = {(one.size, one.budget_s) for one in asked(engines)}.pop()
    assert (size, budget_s) == (LEARN.race.default_size, DEFAULT_BUDGET_S)
    assert "GT 1030" in output


def test_without_a_card_one_thread_races_all(type_in, engines):
    engines.scripts[DescribeEngine] = [described(pictures=PICTURES, cpu_threads=4)]
    assert type_in("grow")[0] == 0
    assert contestants(engines) == [("cpu", 1, "float32"), ("cpu", None, "float32")]


def test_the_last_line_of_json_is_the_verdict(type_in):
    status, output, errors = type_in("learn", "--size", "64", "--json")
    assert (status, errors) == (0, "")
    lines = [json.loads(line) for line in output.splitlines()]
    assert [line["type"] for line in lines].count("race_finished") == 1
    last = lines[-1]
    assert (last["type"], last["picture"], last["size"]) == ("race_finished", "learn", 64)
    assert [one["device"] for one in last["contestants"]] == ["cpu", "cuda:0"]
    assert [one["threads"] for one in last["contestants"]] == [4, None]
    fields = {"dtype", "steps", "seconds", "step_median_s", "reached", "verified"}
    assert fields <= set(last["contestants"][0])
    assert last["leader"] == 0  # the fake card starts slowly
    assert last["ratio"] > 1
    assert last["undecided"] is False
    assert last["sentence"]


@pytest.fixture
def shown(engines, tmp_path):
    """An engine that shows frames if it is asked to."""
    engines.scripts[RunWorkload] = lambda _engine, request: race_run(request)
    return engines


def test_a_recorded_race_leaves_its_frames_out(type_in, shown, tmp_path):
    path = tmp_path / "race.jsonl"
    assert type_in("learn", "--size", "64", "--save", str(path))[0] == 0
    recording = read_recording(path)
    assert [run.request.device for run in recording.runs] == ["cpu", "cuda:0"]
    assert all(run.result is not None for run in recording.runs)
    assert not any(RaceTrack(run.events).frames for run in recording.runs)
    assert not any(one.showing for one in asked(shown))


def test_a_recorded_race_keeps_its_frames_on_request(type_in, shown, tmp_path):
    path = tmp_path / "race.jsonl"
    assert type_in("learn", "--size", "64", "--save", str(path), "--frames")[0] == 0
    for run in read_recording(path).runs:
        track = RaceTrack(run.events)
        for frame, picture in zip(track.frames, pictures_of(), strict=True):
            assert (track.picture_at(frame.elapsed_s).pixels == picture).all()


def test_a_contestant_that_failed_fails_the_race(type_in, engines):
    def lost(engine, request):
        if request.device == "cpu":
            yield from raced(engine, request)
            return
        failure = Failure(FailureKind.CUDA_ERROR, "The card is gone.")
        yield started(request, race=request.race)
        yield RunFailed(run_id=request.run_id, failure=failure)

    engines.scripts[RunWorkload] = lost
    status, output, errors = type_in("learn", "--json")
    assert status == 1
    last = json.loads(output.splitlines()[-1])
    assert (last["leader"], last["contestants"][1]["reached"]) == (None, False)
    assert "The card is gone." in errors


@pytest.mark.parametrize(
    "arguments",
    [(), ("sing",), ("learn", "--threads", "0"), ("learn", "--threads", "two"),
     ("learn", "--threads", "2", "--device", "cuda:0"), ("learn", "--dtype", "float64"),
     ("learn", "--size", "16,32"), ("learn", "--size", "x"), ("learn", "--time", "0"),
     ("learn", "--save", "no/such/folder/race.jsonl", "--frames"),
     ("learn", "--save", "a.jsonl", "--save", "b.jsonl", "--frames"),
     ("learn", "--save", "no/such/folder/race.jsonl"),
     ("learn", "--device", ","), ("learn", "--save", "race.jpg"),
     ("learn", "--save", "no/such/folder/race.png")],
    ids=" ".join,
)  # fmt: skip
def test_wrong_use_is_one_line(arguments, type_in, engines):
    status, output, errors = type_in(*arguments)
    assert (status, output) == (2, "")
    assert errors.startswith("gpu-studio: ")
    assert errors.count("\n") == 1
    assert not asked(engines)


def test_a_painter_that_failed_leaves_no_picture():
    with pytest.raises(StudioError, match="The picture could not be painted"):
        painted("tests.no_painter", b"")


def test_a_real_race_ends_with_a_picture(tmp_path):
    """One CPU thread learns 16 × 16 pixels and saves the picture, in a child without a screen."""
    path = tmp_path / "race.png"
    hidden = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    done = subprocess.run(
        [sys.executable, "-m", "gpu_studio", "race", "learn", "--device", "cpu", "--threads", "1",
         "--size", "16", "--time", "1", "--json", "--save", str(path)],
        capture_output=True, encoding="utf-8", timeout=240, cwd=ROOT,
        env=hidden | {
            **own_home(tmp_path), "CUDA_VISIBLE_DEVICES": "", "QT_QPA_PLATFORM": "offscreen",
            "PYTHONIOENCODING": "utf-8",
        },
    )  # fmt: skip
    assert done.returncode in (DONE, DOUBTFUL), done.stderr
    (contestant,) = json.loads(done.stdout.splitlines()[-1])["contestants"]
    assert (contestant["threads"], contestant["reached"], contestant["verified"]) == (1, True, True)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert b"gpu-studio-race" in content
