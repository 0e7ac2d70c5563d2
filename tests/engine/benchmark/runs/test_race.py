from typing import Any

import numpy as np
import pytest
import torch

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened, RaceParameters, Showing
from gpu_studio.core.messages.run_messages import RunFailed, RunFinished, RunInTurns, RunWorkload
from gpu_studio.core.packed_frame import PackedFrame
from gpu_studio.core.race.side import RaceTrack
from gpu_studio.engine.benchmark.race_timing import fitting_steps
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.verification import Verification
from gpu_studio.engine.workloads.learn import LearnDrawing
from gpu_studio.engine.workloads.registry import find_picture
from tests.engine.answers import ask, only, run_request

# A number of steps: in a number of seconds, a busy PC learns too little.
ENOUGH: dict[str, Any] = {"calls": 60, "longest_s": 120.0}


def race(**changes: Any) -> RunWorkload:
    """Return a race that takes a moment: 16 × 16 pixels, one thread."""
    parameters: dict[str, Any] = {
        "workload": "learn",
        "size": 16,
        "race": RaceParameters(threads=1),
        "budget_s": 0.2,
    }
    return run_request(**{**parameters, **changes})


@pytest.fixture
def dispatcher() -> Dispatcher:
    return Dispatcher()


def finished(events: list[Event]) -> RunFinished:
    assert isinstance(events[-1], RunFinished), events[-1]
    return events[-1]


def test_it_ends_at_the_finish_line():
    result = finished(ask(race(longest_s=60.0)))  # a PC that is busy after the warm-up takes longer
    outcome = result.outcome
    assert outcome.reached
    assert outcome.progress == 1.0
    assert outcome.steps == outcome.finish_steps
    assert outcome.measure > result.details.curves["sharpness"][0]
    assert outcome.steps == result.samples * result.calls_per_sample
    assert outcome.seconds == pytest.approx(result.times.timed_s)
    assert result.verified


def test_without_enough_time_it_ends_before_the_line():
    outcome = finished(ask(race(calls=1_000_000, longest_s=1e-6))).outcome
    assert not outcome.reached
    assert outcome.steps > 0
    assert 0.0 <= outcome.progress < 1.0


@pytest.mark.parametrize(
    ("budget_s", "step_s", "steps"),
    [(6.0, 2.44e-3, 2400), (6.0, 0.061, 98), (6.0, 10.0, 1), (6.0, 1e-5, 600_000)],
)
def test_the_steps_take_the_faster_side_about_its_budget(budget_s, step_s, steps):
    assert fitting_steps(budget_s, step_s) == steps


def test_wrong_results_never_reach_the_line(monkeypatch: pytest.MonkeyPatch):
    learn = find_picture("learn")
    wrong = Verification(False, "off by a mile", ("everything",))
    monkeypatch.setattr(type(learn), "verify", lambda *_: wrong)
    result = finished(ask(race(budget_s=0.5, calls=200)))
    assert result.outcome.measure > 30.0  # it would have been there
    assert not result.outcome.reached
    assert result.outcome.progress == 0.0
    assert result.verified is False


def test_the_frames_show_the_way_from_the_first_to_the_last_step(dispatcher: Dispatcher):
    events = ask(race(showing=Showing(), **ENOUGH), dispatcher)
    (opened,) = only(FramesOpened, events)
    ready = only(FrameReady, events)
    assert (opened.width, opened.height) == (16, 9)
    assert [frame.number for frame in ready] == list(range(len(ready)))
    assert (ready[0].steps, ready[0].elapsed_s, ready[0].progress) == (0, 0.0, 0.0)
    outcome = finished(events).outcome
    assert (ready[-1].steps, ready[-1].measure) == (outcome.steps, outcome.measure)
    first, last = (
        RaceTrack([opened, frame]).picture_at(frame.elapsed_s).pixels.astype(float)
        for frame in (ready[0], ready[-1])
    )
    picture = _lake(16).astype(float)
    assert np.abs(last - picture).mean() < np.abs(first - picture).mean() / 3


@pytest.mark.parametrize(
    ("failing", "error", "kind"),
    [
        (16, RuntimeError("a step broke"), FailureKind.INTERNAL),
        (24, torch.OutOfMemoryError("CUDA out of memory."), FailureKind.OUT_OF_MEMORY),
    ],
)
def test_a_side_that_fails_within_a_slice_leaves_the_other_one_its_result(
    monkeypatch: pytest.MonkeyPatch, failing: int, error: Exception, kind: FailureKind
):
    """The sides differ in the width of their picture; one fails some steps after the start."""
    racing: set[int] = set()
    restart, learn = LearnDrawing.restart, LearnDrawing.__call__

    def begin(drawing: LearnDrawing) -> None:
        restart(drawing)
        racing.add(id(drawing))

    def step(drawing: LearnDrawing) -> object:
        if id(drawing) in racing and drawing.pixels().shape[1] == failing:
            raise error
        return learn(drawing)

    monkeypatch.setattr(LearnDrawing, "restart", begin)
    monkeypatch.setattr(LearnDrawing, "__call__", step)
    sides = tuple(race(run_id=str(size), size=size) for size in (16, 24))
    events = ask(RunInTurns(runs=sides))
    (failed,) = only(RunFailed, events)
    (other,) = only(RunFinished, events)
    assert (failed.run_id, failed.failure.kind) == (str(failing), kind)
    assert other.run_id != failed.run_id
    assert other.outcome.steps
    assert events[-1].ends(RunInTurns(runs=sides))


def test_it_uses_its_threads_and_gives_them_back():
    before = torch.get_num_threads()
    assert finished(ask(race(calls=2))).conditions.cpu_threads == 1
    assert torch.get_num_threads() == before
    assert finished(ask(race(calls=2, race=RaceParameters()))).conditions.cpu_threads == before


@pytest.mark.parametrize(
    "changes",
    [
        {"cache": "cold"},
        {"transfers": True},
        {"naive": True},
        {"sustained": True},
        {"workload": "matmul"},
        {"size": 1 << 14},
        {"dtype": "float64"},
        {"race": RaceParameters(photo="0" * 64)},
    ],
    ids=str,
)
def test_what_no_race_can_do_is_refused_with_a_sentence(changes: dict[str, Any]):
    events = ask(race(**changes))
    assert isinstance(events[-1], RunFailed)
    assert events[-1].failure.kind is not FailureKind.INTERNAL
    assert events[-1].failure.message


def test_a_photo_is_learned_in_its_own_shape(dispatcher: Dispatcher):
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, 20:] = 255
    photo = PackedFrame.of(pixels)
    parameters = RaceParameters(threads=1, photo=photo.identity)
    events = ask(race(race=parameters, showing=Showing(photo=photo), **ENOUGH), dispatcher)
    (opened,) = only(FramesOpened, events)
    assert (opened.width, opened.height) == (16, 8)
    assert finished(events).race == parameters
    frame = RaceTrack(events).picture_at(1e9).pixels
    assert frame[:, :6].mean() < 64
    assert frame[:, 10:].mean() > 192


def _lake(side: int) -> Any:
    from gpu_studio.engine.workloads.case import Case
    from gpu_studio.engine.workloads.learn import photo_of

    return photo_of(Case(device=torch.device("cpu"), size=side))
