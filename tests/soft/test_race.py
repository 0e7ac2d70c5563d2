"""Races on soft cards: their kernels compute nothing, so a race ends, and claims nothing."""

from dataclasses import replace

import msgspec
import pytest

from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.race_messages import FrameReady, RaceParameters, Showing
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunInTurns,
    RunWorkload,
    SamplesMeasured,
    WorkloadDescription,
)
from gpu_studio.core.notice import Tone
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.pictures import GROW, LEARN, PICTURES
from gpu_studio.core.race.side import RaceTrack
from gpu_studio.core.race.verdict import judge
from tests.engine.answers import only
from tests.soft.conftest import MakePc, StartEngine
from tests.softcards.catalogue import GTX_1650


def race_of(
    picture: WorkloadDescription, device: str = "cuda:0", budget_s: float = 0.3
) -> RunWorkload:
    (request,) = race_requests(
        picture, picture.sizes[1], [Contestant(device=device)], budget_s, showing=Showing()
    )
    return request


@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.name)
def test_a_race_ends_with_wrong_results_and_its_frames(
    soft_pc: MakePc, engine: StartEngine, picture: WorkloadDescription
) -> None:
    one = engine(soft_pc(GTX_1650))
    events = one.ask(race_of(picture))
    result = events[-1]
    assert isinstance(result, RunFinished), result
    assert result.verified is False
    assert not result.outcome.reached
    assert result.outcome.progress == 0.0
    assert result.outcome.steps > 0
    track = RaceTrack(events)
    assert len(track.frames) >= 2
    assert track.picture_at(1e9).rows


def test_the_cpu_does_not_win_against_wrong_results(soft_pc: MakePc, engine: StartEngine) -> None:
    one = engine(soft_pc(GTX_1650))
    runs = []
    for device in ("cpu", "cuda:0"):
        run = Run(race_of(LEARN, device, budget_s=5.0 if device == "cpu" else 0.3))
        for event in one.ask(run.request):
            run.apply(event)
        runs.append(run)
    verdict = judge(LEARN, runs)
    assert (verdict.finished.leader, verdict.finished.undecided) == (None, True)
    assert [one.verified for one in verdict.finished.contestants] == [True, False]
    assert verdict.trust.tone is Tone.FAILURE


def test_a_card_that_is_lost_in_the_middle_leaves_its_frames(
    soft_pc: MakePc, engine: StartEngine
) -> None:
    pc = soft_pc(GTX_1650)
    one = engine(pc)

    def break_the_card(event: Event) -> None:
        if isinstance(event, SamplesMeasured):
            pc.clear_faults()
            pc.fault("launch", 719, sticky=True)

    events = one.ask(race_of(LEARN, budget_s=3600.0), break_the_card)
    assert isinstance(events[-1], RunFailed)
    assert events[-1].failure.kind is FailureKind.CUDA_ERROR
    assert only(FrameReady, events)


def test_a_card_that_is_lost_leaves_the_contestant_beside_it(
    soft_pc: MakePc, engine: StartEngine
) -> None:
    """The lost card ends the engine, but not before the CPU is at its own end.

    PyTorch's backward pass asks CUDA even on the CPU: a picture that learns is lost with the card.
    """
    pc = soft_pc(GTX_1650)
    one = engine(pc)
    contestants = [Contestant(device="cpu", threads=1), Contestant(device="cuda:0")]
    cpu, card = (
        msgspec.structs.replace(one, calls=400)
        for one in race_requests(GROW, 64, contestants, 3600.0)
    )
    request = RunInTurns(runs=(cpu, card))

    def break_the_card(event: Event) -> None:
        if isinstance(event, SamplesMeasured) and event.run_id == card.run_id:
            pc.clear_faults()
            pc.fault("launch", 719, sticky=True)

    events = one.ask(request, break_the_card)
    (result,) = only(RunFinished, events)
    assert result.run_id == cpu.run_id
    assert result.verified
    assert isinstance(events[-1], RunFailed)
    assert (events[-1].run_id, events[-1].failure.fatal) == (card.run_id, True)


def test_a_size_that_does_not_fit_is_refused_before_it_is_allocated(
    soft_pc: MakePc, engine: StartEngine
) -> None:
    one = engine(soft_pc(replace(GTX_1650, mib=256)))
    request = RunWorkload(
        run_id="r", workload="grow", device="cuda:0", size=4096, dtype="float32",
        race=RaceParameters(), budget_s=1.0,
    )  # fmt: skip
    failed = one.ask(request)[-1]
    assert isinstance(failed, RunFailed), failed
    assert failed.failure.kind is FailureKind.TOO_LARGE
