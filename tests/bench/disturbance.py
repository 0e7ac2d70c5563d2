"""What the live window does to what it measures: its numbers over those of a terminal's run.

``python -m tests.bench.disturbance [--rounds 8] [--budget-s 1]``

For every workload and size, a run with the live window and the same run without a window take
turns; a sweep, in which table, curves and verdict grow with every size, is compared size by size.
Each side has an engine process of its own that lives through the whole script.
"""

import argparse
import json
import os
import subprocess
import sys
from itertools import product
from statistics import median

from gpu_studio.core.benchmark.run import Run, state_text
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.engine.client import ProcessEngine
from tests.bench.ratios import describe_machine, paired_ratio, verdict

_TARGETS = {"median": 1.02, "p99": 1.10}
_WORKLOADS = ("elementwise", "matmul")
_SIZES = ("64", "256", "1024", "64:1024")  # the last one is a sweep

Times = dict[int, tuple[float, float]]  # by size: median and p99, in seconds


class Terminal:
    """The engine as ``gpu-studio bench`` runs it, without a window."""

    def __init__(self, budget_s: float) -> None:
        self._budget_s = budget_s
        self._engine = ProcessEngine(EngineEnvironment())

    def times(self, workload: str, sizes: str) -> Times:
        return {size: self._time(workload, size) for size in sizes_of(sizes)}

    def _time(self, workload: str, size: int) -> tuple[float, float]:
        request = RunWorkload(
            run_id="1", workload=workload, device="cpu", size=size, dtype="float32",
            budget_s=self._budget_s,
        )  # fmt: skip
        run = Run(request)
        for event in self._engine.run(request):
            run.apply(event)
        if run.result is None or run.summary is None:
            sys.exit(f"The terminal's run failed: {state_text(run)}")
        return run.summary.median_s, run.summary.p99_s

    def close(self) -> None:
        self._engine.close()


class LiveWindow:
    def __init__(self, budget_s: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.live_window", str(budget_s)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.core_shares: list[float] = []
        self._answer()

    def times(self, workload: str, sizes: str) -> Times:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{workload} {sizes}\n")
        self._process.stdin.flush()
        answer = json.loads(self._answer())
        self.core_shares.append(answer["core_share"])
        return {size: (median_s, p99_s) for size, median_s, p99_s in answer["times"]}

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"The window ended with {self._process.wait()}.")
        return line


def sizes_of(sizes: str) -> list[int]:
    from gpu_studio.core.benchmark.sizes import parse_sizes, parse_sweep

    return parse_sweep(sizes) if ":" in sizes else parse_sizes(sizes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--budget-s", type=float, default=1.0)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    window, terminal = LiveWindow(options.budget_s), Terminal(options.budget_s)
    terminal.times("elementwise", "64")
    sides = {"window": window, "terminal": terminal, "again": terminal}
    taken: dict[tuple[str, str, str], list[Times]] = {}
    for number in range(options.rounds):
        for workload, sizes in product(_WORKLOADS, _SIZES):
            # In turns, and in turned order: neither side is always the first one.
            for side in list(sides) if number % 2 else reversed(list(sides)):
                times = sides[side].times(workload, sizes)
                taken.setdefault((workload, sizes, side), []).append(times)
    window.close()
    terminal.close()
    print(describe_machine())
    print(f"live window over terminal, {options.rounds} rounds; in brackets the terminal over")
    print("itself, which is the noise:")
    for place, (what, target) in enumerate(_TARGETS.items()):
        report(taken, list(sides), place, what, target)
    print(f"  the window's process used {median(window.core_shares):.1%} of one core meanwhile")


def report(
    taken: dict[tuple[str, str, str], list[Times]],
    sides: list[str],
    place: int,
    what: str,
    target: float,
) -> None:
    """Print the ratios of one of the two numbers, ``place`` in its pair."""
    print(f" {what}:")
    all_ratios, noise = [], []
    for workload, sizes in product(_WORKLOADS, _SIZES):
        columns = [
            [times[size][place] for times in taken[workload, sizes, side] for size in times]
            for side in sides
        ]
        live, alone, again = columns
        ratio, self_ratio = paired_ratio(live, alone), paired_ratio(again, alone)
        all_ratios += [a / b for a, b in zip(live, alone, strict=True)]
        noise += [a / b for a, b in zip(again, alone, strict=True)]
        print(f"  {workload:12} {sizes:>8}  {ratio}  [{self_ratio}]")
    ones = [1.0] * len(all_ratios)
    ratio, self_ratio = paired_ratio(all_ratios, ones), paired_ratio(noise, ones)
    print(f"  all together: {ratio}  [{self_ratio}]; {verdict(ratio.median, target)}")


if __name__ == "__main__":
    main()
