"""Benches for a stage on the CPU, in a time that only its own looks at the clock move on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch

from gpu_studio.engine.check.arithmetic import IeeeArithmetic
from gpu_studio.engine.check.compute import Compute, Filling, IndexedAccess, WholeNumbers
from gpu_studio.engine.check.formats import format_of
from gpu_studio.engine.check.heat import HeatWatch
from gpu_studio.engine.check.layouts import Layouts
from gpu_studio.engine.check.link import LinkCheck
from gpu_studio.engine.check.load import Load
from gpu_studio.engine.check.planting import Plant
from gpu_studio.engine.check.products import product_parts
from gpu_studio.engine.check.stage import Stage, StageBench, Step
from gpu_studio.engine.check.video_memory import VideoMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from gpu_studio.core.messages.check_messages import PlantKind, StageName
    from gpu_studio.core.telemetry import Telemetry
    from gpu_studio.engine.check.parts import Part

MIB = 1 << 20
CPU = torch.device("cpu")
_TICK_S = 0.05
_BUDGETS_S: dict[StageName, float] = {
    "load": 20.0, "compute": 2.5, "layouts": 20.0, "memory": 10.0, "link": 6.0,
}  # fmt: skip


class TickingClock:
    """Every look at it takes the same time."""

    def __init__(self, tick_s: float = _TICK_S) -> None:
        self.now_s = 100.0
        self.tick_s = tick_s

    def __call__(self) -> float:
        self.now_s += self.tick_s
        return self.now_s

    def rest(self, seconds: float) -> None:
        self.now_s += seconds


def sensor_of(*readings: Telemetry) -> Callable[[], Telemetry]:
    """Return a sensor that gives these readings and then repeats the last."""
    left = list(readings)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def few_parts(bench: StageBench) -> list[Part]:
    """Return a few parts of each kind."""
    wanted = ("Exact products in float32", "Exact products in bfloat16", "Convolution 1 × 1")
    return [
        *(part for part in product_parts(bench) if part.title.startswith(wanted)),
        WholeNumbers("int32"), WholeNumbers("int64"), IndexedAccess("gather"),
        IndexedAccess("scatter"), Filling(), IeeeArithmetic("add", format_of("float32")),
    ]  # fmt: skip


def stage_of(name: StageName) -> Stage:
    """Return a stage, smaller: little memory, and a few of the parts of compute."""
    stages: tuple[Stage, ...] = (
        Load(),
        Compute(few_parts),
        Layouts(),
        VideoMemory(most_bytes=32 * MIB),
        LinkCheck(),
    )
    return next(stage for stage in stages if stage.name == name)


def bench_for(name: StageName, plant: PlantKind | None = None, **options: Any) -> StageBench:
    """Return a bench on the CPU."""
    clock = options.pop("clock", None) or TickingClock()
    options.setdefault("stop", threading.Event())
    return StageBench(
        name, CPU, options.pop("budget_s", _BUDGETS_S[name]), plant=Plant(plant), clock=clock,
        work_clock=clock, rest=clock.rest, **options,
    )  # fmt: skip


def run(stage: Stage, bench: StageBench) -> tuple[list[Step], bool]:
    """Run a stage to its end and judge its heat; return its steps, and whether it tested all."""
    steps, is_whole = rest_of(stage.run(bench))
    HeatWatch().end_stage(bench)
    return steps, is_whole


def rest_of(running: Generator[Step, None, bool]) -> tuple[list[Step], bool]:
    """Run a stage that has begun to its end; return as `run` does."""
    steps = []
    while True:
        try:
            steps.append(next(running))
        except StopIteration as end:
            return steps, bool(end.value)


class CardBench(StageBench):
    """A bench whose CPU passes for a card."""

    @property
    def is_card(self) -> bool:
        return True

    def synchronize(self) -> None:
        return


def as_card(bench: StageBench) -> None:
    """Let a bench's CPU pass for a card."""
    bench.__class__ = CardBench


def card_bench(name: StageName, plant: PlantKind | None = None, **options: Any) -> StageBench:
    """Return a bench whose CPU passes for a card, with much time."""
    bench = bench_for(name, plant, **{"budget_s": 1000.0, **options})
    as_card(bench)
    return bench
