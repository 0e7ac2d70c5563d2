"""Runs of a stage on the CPU, in a time that only its own looks at the clock move on."""

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import torch

from gpu_studio.core.messages.check_messages import PlantKind, StageName
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.engine.check.compute import every_work
from gpu_studio.engine.check.heat import HeatWatch
from gpu_studio.engine.check.known_work import KnownWork, in_turns
from gpu_studio.engine.check.layouts import layouts
from gpu_studio.engine.check.link import link
from gpu_studio.engine.check.load import load
from gpu_studio.engine.check.memory import memory
from gpu_studio.engine.check.stage_run import StageRun

MIB = 1 << 20
CPU = torch.device("cpu")
_BUDGETS_S: dict[StageName, float] = {
    "load": 20.0, "compute": 2.5, "layouts": 20.0, "memory": 10.0, "link": 6.0,
}  # fmt: skip
_FEW = (
    "Exact products in float32", "Exact products in bfloat16", "Convolution 1 × 1",
    "Whole numbers in int32", "Whole numbers in int64", "Whole numbers that fill", "Random gather",
    "Random scatter", "IEEE + in float32",
)  # fmt: skip


class TickingClock:
    """Every look at it takes the same time."""

    def __init__(self, tick_s: float = 0.03) -> None:
        self.now_s = 100.0
        self.tick_s = tick_s

    def __call__(self) -> float:
        self.now_s += self.tick_s
        return self.now_s

    def rest(self, seconds: float) -> None:
        self.now_s += seconds


def sensor_of(*readings: Telemetry) -> Callable[[], Telemetry]:
    left = list(readings)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def works_named(run: StageRun, *titles: str) -> list[KnownWork]:
    """Return the kinds of work of compute whose titles begin so."""
    return [work for work in every_work(run) if work.title.startswith(titles)]


def few_works(run: StageRun) -> Generator[str, None, bool]:
    return in_turns(run, works_named(run, *_FEW))


STAGES: dict[StageName, Callable[[StageRun], Generator[str, None, bool]]] = {
    "load": load, "compute": few_works, "layouts": layouts,
    "memory": partial(memory, most_bytes=32 * MIB), "link": link,
}  # fmt: skip
"""Smaller: little memory, and a few kinds of work of compute."""


class TickingRun(StageRun):
    """A run whose rests move its clock on."""

    def rest(self, seconds: float) -> None:
        self.clock.rest(seconds)  # type: ignore[attr-defined]


class CardRun(TickingRun):
    @property
    def is_card(self) -> bool:
        return True

    def synchronize(self) -> None:
        return


def run_for(
    name: StageName, plant: PlantKind | None = None, *, kind: type[StageRun] = TickingRun,
    **options: Any,
) -> StageRun:  # fmt: skip
    options = {"planned_s": _BUDGETS_S[name], "clock": TickingClock(), **options}
    return kind(name, CPU, options.pop("planned_s"), plant_kind=plant, **options)


def card_run(name: StageName, plant: PlantKind | None = None, **options: Any) -> StageRun:
    """Return a run whose CPU passes for a card, with much time."""
    return run_for(name, plant, kind=CardRun, **{"planned_s": 1000.0, **options})


def follow(run: StageRun, steps: Generator[str, None, bool] | None = None) -> tuple[int, bool]:
    """Run a stage to its end and judge its heat; return its steps, and whether it tested all."""
    steps = steps or STAGES[run.stage](run)
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            HeatWatch().end_stage(run)
            return count, bool(end.value)
        run.vitals()
        count += 1
