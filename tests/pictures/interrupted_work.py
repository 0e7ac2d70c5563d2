"""Scripts of work that pauses in its middle, gives wrong results, or fails."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from gpu_studio.core.check.check_folder import CutOffCheck
from gpu_studio.core.check.check_run import CheckPlan, CheckRun
from gpu_studio.core.check.check_verdict import Interruption
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import RequestFailed
from gpu_studio.core.messages.memory_messages import RunMemoryExperiment
from gpu_studio.core.messages.pitfall_messages import PitfallFailed, RunPitfall
from gpu_studio.core.messages.placement_messages import PlaceModel
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload
from tests.fakes.check_answers import check_round
from tests.fakes.check_records import STARTED_AT
from tests.fakes.race_answers import race_run
from tests.fakes.race_pictures import drawn_pictures
from tests.fakes.run_answers import run_events
from tests.fakes.scripted_engine import Pause, Script, ScriptedEngine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_studio.core.messages.check_messages import RunCheck


class Racing:
    """A script that pauses in each contestant's run; ``fails`` loses the second card there."""

    pauses = (3, 5)

    def __init__(self) -> None:
        self._runs = 0
        self.fails = False

    def __call__(self, _engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        number = self._runs % 2
        self._runs += 1
        for event in race_run(
            request,
            pause_after=self.pauses[number],
            pictures=drawn_pictures(request.workload),
        ):
            yield event
            if isinstance(event, Pause) and number and self.fails:
                failure = Failure(FailureKind.CUDA_ERROR, "The card dropped off the bus.")
                yield RunFailed(run_id=request.run_id, failure=failure)
                return


def held_check(script: dict[str, Any], _engine: ScriptedEngine, request: RunCheck) -> Iterator[Any]:
    """Answer with a check that waits in its memory stage and hears no stop there."""
    for event in check_round(request, pause_in="memory", **script):
        yield Pause(deaf=True) if isinstance(event, Pause) else event


def lost_card(_engine: ScriptedEngine, request: RunCheck) -> Iterator[Any]:
    """Answer with a check whose card goes away in the middle of the memory stage."""
    yield from check_round(request, end_in="memory")
    message = "CUDA error: the GPU is lost."
    yield RequestFailed(failure=Failure(FailureKind.CUDA_ERROR, message, fatal=True))


def card_without_code(_engine: ScriptedEngine, request: RunCheck) -> Iterator[Any]:
    """Answer with a check whose PyTorch has no code for the card."""
    yield next(iter(check_round(request)))
    message = "This PyTorch has no code for the GeForce GT 1030 (6.1), only for 7.5 and newer."
    yield RequestFailed(failure=Failure(FailureKind.NO_KERNEL, message))


def cut_off_check() -> CutOffCheck:
    """Return an overnight check that a restart of the PC ended."""
    check = CheckRun(CheckPlan(device="cuda:0", minutes=480), STARTED_AT)
    request = check.next_request()
    for event in check_round(request, end_in="memory"):
        check.apply(event)
    return CutOffCheck(check.state(), Interruption(after_s=check.elapsed_s, is_restart=True))


def held(script: Script) -> Script:
    """Return a script that pauses before its end; of runs, those of 512."""

    def answer(engine: ScriptedEngine, request: Any) -> Iterator[Any]:
        events = list(script(engine, request) if callable(script) else script)
        yield from events[:-1]
        if getattr(request, "size", 512) == 512:
            yield Pause()
        yield events[-1]

    return answer


def held_second(script: Script) -> Script:
    """Return a script whose second run pauses before its end."""
    runs = itertools.count(1)

    def answer(engine: ScriptedEngine, request: Any) -> Iterator[Any]:
        events = list(script(engine, request) if callable(script) else script)
        yield from events[:-1]
        if next(runs) == 2:
            yield Pause()
        yield events[-1]

    return answer


def wrong_results(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
    """Answer with results of which the cards' do not match the CPU's."""
    is_right = request.device == "cpu"
    result = "matches" if is_right else "differs from"
    return run_events(request, verified=is_right, verification=f"{result} float64 on the CPU")


_FAILURE = Failure(
    FailureKind.OUT_OF_MEMORY, "CUDA out of memory. Tried to allocate 256.00 MiB.", ""
)
FAILING: dict[type, Any] = {
    RunWorkload: lambda _engine, request: [RunFailed(run_id=request.run_id, failure=_FAILURE)],
    PlaceModel: [RequestFailed(failure=_FAILURE)],
    RunPitfall: lambda _engine, request: [PitfallFailed(name=request.name, failure=_FAILURE)],
    RunMemoryExperiment: [RequestFailed(failure=_FAILURE)],
}
