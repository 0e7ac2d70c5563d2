"""A contestant of a race, and the run that it makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.run import RunState
from gpu_studio.core.device_name import is_cpu, name_at, pc_of
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.messages.race_messages import ContestantResult, RaceParameters
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.race_messages import Showing
    from gpu_studio.core.messages.run_messages import OwnCode, RunFinished, WorkloadDescription


class Contestant(msgspec.Struct, frozen=True, kw_only=True):
    """A device with its precision; ``threads`` is None for a card, and for all CPU threads."""

    device: str
    threads: int | None = None
    dtype: str = "float32"


def usual_contestants(
    cards: Sequence[str], cpu_threads: int, cpu: str = "cpu"
) -> tuple[Contestant, ...]:
    """Return the contestants of a first race: the CPU against the first card.

    Without a card, one thread races all threads. On a single core, that race has one contestant.

    Args:
        cards: the addresses of the cards that PyTorch can use.
        cpu_threads: the number of threads that PyTorch uses by default.
        cpu: the CPU's address.
    """
    if cards:
        return Contestant(device=cpu), Contestant(device=cards[0])
    one = Contestant(device=cpu, threads=1)
    return (one, Contestant(device=cpu)) if cpu_threads > 1 else (one,)


def race_requests(
    picture: WorkloadDescription,
    size: int,
    contestants: Sequence[Contestant],
    timed_s: float,
    *,
    photo: str = "",
    code: OwnCode | None = None,
    showing: Showing | None = None,
    rest_s: float = 0.0,
    steps: int | None = None,
    longest_s: float | None = None,
    first_number: int = 1,
) -> list[RunWorkload]:
    """Return the runs of a race, for one `RunInTurns`.

    Args:
        picture: the workload.
        size: its size.
        contestants: in the order of their first turns.
        timed_s: the seconds of the fastest one, about.
        photo: as in `RaceParameters`.
        code: the user's own, if that is the picture.
        showing: how the runs show their pictures; None shows none.
        rest_s: the pause after each frame, so that the window draws while nothing is timed.
        steps: the finish line; None lets the engine choose it from the warm-up.
        longest_s: the race's clock at which the runs end at the latest; None for the usual.
        first_number: the number of the first run's id.
    """
    return [
        RunWorkload(
            run_id=f"race-{number}",
            workload=picture.name,
            device=contestant.device,
            size=size,
            dtype=contestant.dtype,
            race=RaceParameters(threads=contestant.threads, photo=photo),
            budget_s=timed_s,
            showing=showing,
            rest_s=rest_s,
            calls=steps,
            longest_s=longest_s,
            code=code,
        )
        for number, contestant in enumerate(contestants, first_number)
    ]


def contestant_result(run: Run) -> ContestantResult:
    """Return a contestant's result; a run that is not over has its state so far."""
    request, result, last = run.request, run.result, run.last_frame
    outcome = result.outcome if result is not None else None
    if result is None or outcome is None:
        return ContestantResult(
            device=request.device,
            threads=request.race.threads if request.race is not None else None,
            dtype=request.dtype,
            steps=last.steps if last else len(run.series) * run.calls_per_sample,
            seconds=last.elapsed_s if last else run.spent_s,
            step_median_s=None,
            reached=False,
            verified=None,
            device_name=run.device_name,
            failure=_failure_of(run),
            recording=run.recording,
            finish_steps=run.finish_steps,
            power_w=last.power_w if last else None,
        )
    return ContestantResult(
        device=request.device,
        threads=result.conditions.cpu_threads if is_cpu(request.device) else None,
        dtype=request.dtype,
        steps=outcome.steps,
        seconds=outcome.seconds,
        step_median_s=result.median_s,
        reached=outcome.reached,
        verified=result.verified,
        device_name=result.device_name,
        finish_steps=outcome.finish_steps,
        power_w=outcome.power_w,
        energy_j=outcome.energy_j,
        recording=result.recording,
    )


def label_of(result: RunFinished) -> str:
    """Return the name of a contestant from elsewhere as in a list: ``CPU, 4 threads``."""
    name = short_name(result.device_name)
    if is_cpu(result.device):
        name = f"CPU, {counted(result.conditions.cpu_threads or 0, 'thread')}"
    name = name_at(pc_of(result.device), name)
    return name if result.dtype == "float32" else f"{name}, {result.dtype}"


def contestant_name(run: Run, others: Sequence[Run] = ()) -> str:
    """Return a contestant in words: ``your GT 1030``, ``one CPU thread``, ``all 4 CPU threads``.

    Its precision and recording are named if they differ from those of the others.
    """
    request, result = run.request, run.result
    owner = "the" if run.recording else "your"
    if not is_cpu(request.device):
        name = result.device_name if result else run.device_name
        text = f"{owner} {short_name(name) if name else request.device}{_of_pc(request.device)}"
    else:
        text = f"{_threads_words(run, owner)}{_of_pc(request.device)}"
    if any(other.request.dtype != request.dtype for other in others):
        text += f" in {request.dtype}"
    if run.recording and any(other.recording != run.recording for other in others):
        text += f" (recording: {run.recording})"
    return text


def _of_pc(address: str) -> str:
    return f" of {pc_of(address)}" if pc_of(address) else ""


def _threads_words(run: Run, owner: str) -> str:
    threads = run.request.race.threads if run.request.race else None
    if threads == 1:
        return "one CPU thread"
    if threads is not None:
        return f"{threads} CPU threads"
    known = run.result.conditions.cpu_threads if run.result else None
    if not known or known == 1:
        return f"{owner} CPU"
    return "both CPU threads" if known == 2 else f"all {known} CPU threads"


def _failure_of(run: Run) -> str:
    if run.failure is not None:
        return run.failure.message
    if run.state is RunState.WAITING:
        return "did not run"
    return "stopped" if run.state is RunState.STOPPED else "did not finish"
