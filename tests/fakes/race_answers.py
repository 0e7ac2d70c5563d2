"""The events of a race, with frames, in an invented time."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened, RaceOutcome
from gpu_studio.core.messages.run_messages import (
    RunInTurns,
    RunPhaseChanged,
    RunsEnded,
    RunWorkload,
)
from gpu_studio.core.packed_frame import PackedFrame
from gpu_studio.core.race.pictures import lake
from tests.fakes.run_answers import batch, changed, finished, samples_of, started
from tests.fakes.scripted_engine import Pause

FRAMES = 9
STEPS = 800
_ACHIEVED = {"learn": 30.0, "paint": 24.0}


def race_seconds(request: RunWorkload) -> float:
    """Return the invented time to the finish line.

    A card starts slowly and is fast: it wins from a size of 64 on.
    """
    work_s = request.size / 8
    if request.device != "cpu":
        return 4.0 + work_s / 4
    threads = request.race.threads if request.race else None
    return work_s * (2 if threads == 1 else 1)


def pictures_of(count: int = FRAMES) -> list[NDArray[np.uint8]]:
    whole = lake().pixels[::8, ::8].astype(float)
    gray = np.full_like(whole, 128.0)
    shares = [number / (count - 1) for number in range(count)]
    return [(gray + (whole - gray) * share).astype(np.uint8) for share in shares]


def race_run(
    request: RunWorkload,
    *,
    pause_after: int | None = None,
    pictures: Sequence[NDArray[np.uint8]] | None = None,
    **changes: Any,
) -> Iterator[Event | Pause]:
    """Yield a whole run of a race.

    Args:
        request: with ``race``.
        pause_after: the number of the frame after which the engine waits.
        pictures: of the frames; by default a picture that becomes sharper.
        changes: of the result.
    """
    seconds = race_seconds(request)
    steps = request.calls or STEPS
    finish = _ACHIEVED.get(request.workload, float(steps))
    power_w = None if request.device == "cpu" else 31.0
    yield started(request, race=request.race)
    shown = pictures if pictures is not None else pictures_of()
    height, width, _ = shown[0].shape
    yield FramesOpened(run_id=request.run_id, width=width, height=height)
    for phase in ("set-up", "warm-up", "timing"):
        line = steps if phase == "timing" else None
        yield RunPhaseChanged(run_id=request.run_id, phase=phase, finish_steps=line)
    for number in range(FRAMES):
        share = number / (FRAMES - 1)
        yield FrameReady(
            run_id=request.run_id, number=number, elapsed_s=share * seconds,
            steps=round(share * steps), measure=share * finish, progress=share, power_w=power_w,
            energy_j=None if power_w is None else share * seconds * power_w,
            picture=PackedFrame.of(shown[number]).packed,
        )  # fmt: skip
        if number == pause_after:
            yield Pause()
    outcome = RaceOutcome(
        reached=True,
        steps=steps,
        seconds=seconds,
        measure=finish,
        progress=1.0,
        finish_steps=steps,
        power_w=power_w,
        energy_j=None if power_w is None else seconds * power_w,
    )
    step_s = seconds / steps
    samples_s = tuple(step_s * sample / samples_of(request)[0] for sample in samples_of(request))
    yield batch(request, samples_s, seconds)
    threads = request.race.threads if request.race else None
    shares = [number / (FRAMES - 1) for number in range(FRAMES)]
    curves = {
        "steps": tuple(steps * share for share in shares),
        "seconds": tuple(seconds * share for share in shares),
        "sharpness": tuple(finish * share for share in shares),
    }
    plain = finished(
        request, samples_s, race=request.race, outcome=outcome, cpu_threads=threads or 4,
        curves=curves,
    )  # fmt: skip
    yield changed(plain, **changes)


def race_in_turns(request: RunInTurns) -> Iterator[Event | Pause]:
    """Yield the events of several runs, a few of each in turns."""
    runs = [race_run(one) for one in request.runs]
    for events in itertools.zip_longest(*runs):
        yield from (event for event in events if event is not None)
    yield RunsEnded()
