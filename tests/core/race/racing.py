"""Runs of a race that are over, with invented times."""

from typing import Any

import msgspec

from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.messages.race_messages import RaceOutcome
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.pictures import LEARN
from tests.fakes.run_answers import batch, changed, finished, started

CPU, ONE, CARD = (
    Contestant(device="cpu"),
    Contestant(device="cpu", threads=1),
    Contestant(device="cuda:0"),
)


def request(contestant: Contestant, **changes: Any) -> RunWorkload:
    (made,) = race_requests(LEARN, 64, [contestant], 15.0)
    return msgspec.structs.replace(made, **changes)


def samples(step_s: float, count: int = 40) -> tuple[float, ...]:
    """Return times around a median, all different, within half a percent."""
    return tuple(step_s * (1 + 0.0005 * ((7 * i) % 11 - 5)) for i in range(count))


def result(
    contestant: Contestant, step_s: float, steps: int = 200, *, reached: bool = True, **changes: Any
) -> RunFinished:
    asked = request(contestant)
    threads = contestant.threads or 4
    whole = finished(
        asked,
        samples(step_s),
        race=asked.race,
        cpu_threads=threads,
        outcome=RaceOutcome(
            reached=reached,
            steps=steps,
            seconds=step_s * steps,
            measure=30.0 if reached else 24.0,
            progress=1.0 if reached else 0.6,
            finish_steps=steps if reached else round(steps / 0.6),
        ),
    )
    return changed(whole, **changes)


def over(contestant: Contestant, step_s: float, steps: int = 200, **changes: Any) -> Run:
    asked = request(contestant)
    run = Run(asked)
    run.apply(started(asked, race=asked.race, device_name="NVIDIA GeForce GT 1030"))
    run.apply(batch(asked, samples(step_s), step_s * steps, calls=1))
    run.apply(result(contestant, step_s, steps, **changes))
    return run
