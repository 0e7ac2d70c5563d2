"""Whether the rest after each line of samples changes what is measured.

``python -m tests.bench.rest [--repeats 60] [--budget-s 0.6] [--device cpu]``

The window lets a run rest for 40 ms after each line of samples, so that it draws while nothing is
timed. A card may cool down and a CPU raise its clock in it. For every workload, a run with the
rests and a run without take turns, in random order, and the ratio of their medians is printed with
its interval. A second pair of runs, both without rests, says how far this PC can tell at all. A
sustained run has no rests.
"""

from __future__ import annotations

import argparse
import sys
import threading
from random import Random
from typing import TYPE_CHECKING

from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.model.benchmark.benchmark import REST_S
from tests.bench.ratios import Ratio, describe_machine, paired_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

_CASES = (("matmul", 64), ("matmul", 256), ("matmul", 1024), ("elementwise", 256))
_TOLD_WITHIN = 0.02


class Runs:
    """Runs of this program's engine in this process, with rests or without."""

    def __init__(self, device: str, budget_s: float) -> None:
        self._device, self._budget_s = device, budget_s
        self._dispatcher = Dispatcher()

    def median_s(self, workload: str, size: int, rest_s: float) -> float:
        """Return the median of one run."""
        request = RunWorkload(
            run_id="1", workload=workload, device=self._device, size=size, dtype="float32",
            budget_s=self._budget_s, rest_s=rest_s,
        )  # fmt: skip
        *_, last = self._dispatcher.run(request, threading.Event())
        if not isinstance(last, RunFinished):
            sys.exit(f"The run failed: {last}")
        return last.median_s


def compare(runs: Runs, workload: str, size: int, repeats: int, random: Random) -> list[Ratio]:
    """Return the ratio with rests over without, and that of two runs without."""
    sides: dict[str, list[float]] = {"rest": [], "none": [], "again": []}
    for _ in range(repeats):
        for side in random.sample(list(sides), len(sides)):
            rest_s = REST_S if side == "rest" else 0.0
            sides[side].append(runs.median_s(workload, size, rest_s))
    return [paired_ratio(sides[side], sides["none"]) for side in ("rest", "again")]


def _is_one(ratio: Ratio) -> bool:
    """Return whether the whole interval lies around 1, as closely as is to be told."""
    return ratio.low >= 1 - _TOLD_WITHIN and ratio.high <= 1 + _TOLD_WITHIN


def sentence(ratio: Ratio, noise: Ratio) -> str:
    """Return the meaning of the ratio, as far as this PC can show it."""
    if not _is_one(noise):
        return f"this PC is too busy to tell {_TOLD_WITHIN:.0%}: run it on one that does no more"
    if _is_one(ratio):
        return f"no change within {_TOLD_WITHIN:.0%}"
    if ratio.low > 1 or ratio.high < 1:
        return "the rests change the result"
    return "undecided: give it more repeats"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each workload; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.rest")
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--budget-s", type=float, default=0.6)
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args(arguments)
    print(describe_machine())
    runs, random = Runs(chosen.device, chosen.budget_s), Random(0)
    for workload, size in _CASES:
        ratio, noise = compare(runs, workload, size, chosen.repeats, random)
        print(f"{workload} {size}: with rests over without {ratio}; without over without {noise}")
        print(f"    {sentence(ratio, noise)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
