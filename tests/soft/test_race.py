"""Races on soft cards: their kernels compute nothing, so a race ends, and claims nothing."""

import msgspec

from gpu_studio.core.failure import FailureKind
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.race_messages import FrameReady, Showing
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunFinished,
    RunInTurns,
    RunWorkload,
    SamplesMeasured,
    WorkloadDescription,
)
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.pictures import GROW, LEARN
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
