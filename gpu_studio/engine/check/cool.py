"""Cool down: a pause until the clocks are low, then compute and video memory once more.

Marginal cards fail at low clocks and right after a change of the clock, when their voltage changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.units import format_count, format_duration
from gpu_studio.engine.check.compute import ComputeWork, part_of_the_answers
from gpu_studio.engine.check.stage import StageBench, Step
from gpu_studio.engine.check.video_memory import VideoMemory

if TYPE_CHECKING:
    from collections.abc import Generator

    from gpu_studio.core.messages.check_messages import StageName
    from gpu_studio.engine.check.compute import Choice

_LONGEST_PAUSE_S, _PAUSE_SHARE = 15.0, 0.4
_LOOK_S = 0.25
_MOST_BYTES, _MOST_RAM_BYTES = 1 << 30, 24 << 20


class CoolDown:
    """A pause, then the work of two other stages, once each.

    Args:
        choose: returns the parts of compute to test.
    """

    name: StageName = "cool"

    def __init__(self, choose: Choice | None = None) -> None:
        self._choose = choose or part_of_the_answers

    def run(self, bench: StageBench) -> Generator[Step, None, bool]:
        """Rest, then test; see `stage.Stage`."""
        pause_s = min(_LONGEST_PAUSE_S, _PAUSE_SHARE * bench.budget_s)
        while bench.elapsed_s < pause_s and not bench.is_stopped:
            bench.rest(_LOOK_S)
            bench.vitals()
            yield Step(doing="A pause until the clocks are low", tested="")
        bench.pause = (0.0, bench.elapsed_s)
        rested = f"after a pause of {format_duration(bench.elapsed_s)}{_clock_words(bench)}"
        work = ComputeWork(bench, self._choose(bench))
        for title in work.round():
            bench.vitals()
            tested = f"{_results(work)} {rested}" if work.results else ""
            yield Step(doing=title, tested=tested)
        steps = VideoMemory(_MOST_BYTES if bench.is_card else _MOST_RAM_BYTES, passes=1).run(bench)
        is_whole = False
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                is_whole = bool(end.value)
                break
            yield Step(doing=step.doing, tested=f"{_results(work)}, {step.tested}, {rested}")
        return work.rounds == 1 and is_whole


def _clock_words(bench: StageBench) -> str:
    """Return the clock at the end of the pause, in words; empty if it is not reported."""
    vitals = bench.vitals(at_once=True)
    clock = vitals.sm_clock_mhz if vitals is not None else None
    return "" if clock is None else f" at {clock:.0f}\u202fMHz"


def _results(work: ComputeWork) -> str:
    return f"{format_count(work.results)} results"
