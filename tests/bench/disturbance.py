"""What the live window does to what it measures: its medians over those of a terminal's run.

``python -m tests.bench.disturbance [--rounds 8] [--budget-s 1]``

For every workload and size, a run with the live window and the same run without a window take
turns; each side has an engine process of its own that lives through the whole script.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from itertools import product
from statistics import median

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.protocol import RunFinished, RunWorkload
from gpu_studio.engine.client import ProcessEngine
from tests.bench.ratios import describe_machine, paired_ratio, verdict

_TARGET = 1.02
_WORKLOADS = ("elementwise", "matmul")
_SIZES = (64, 256, 1024)


class Terminal:
    """The engine as ``gpu-studio bench`` runs it, without a window."""

    def __init__(self, budget_s: float) -> None:
        self._budget_s = budget_s
        self._engine = ProcessEngine(EngineEnvironment())

    def median_s(self, workload: str, size: int) -> float:
        request = RunWorkload(
            run_id="1", workload=workload, device="cpu", size=size, dtype="float32",
            budget_s=self._budget_s,
        )  # fmt: skip
        *_, last = self._engine.run(request)
        if not isinstance(last, RunFinished):
            sys.exit(f"The terminal's run failed: {last}")
        return last.median_s

    def close(self) -> None:
        self._engine.close()


class LiveWindow:
    """A window in a process of its own."""

    def __init__(self, budget_s: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.live_window", str(budget_s)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.core_shares: list[float] = []
        self._answer()

    def median_s(self, workload: str, size: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{workload} {size}\n")
        self._process.stdin.flush()
        median_s, core_share = map(float, self._answer().split())
        self.core_shares.append(core_share)
        return median_s

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--budget-s", type=float, default=1.0)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    window, terminal = LiveWindow(options.budget_s), Terminal(options.budget_s)
    terminal.median_s("elementwise", 64)
    sides = {"window": window, "terminal": terminal, "again": terminal}
    medians_s: dict[tuple[str, int, str], list[float]] = {}
    for number in range(options.rounds):
        for workload, size in product(_WORKLOADS, _SIZES):
            # In turns, and in turned order: neither side is always the first one.
            for side in list(sides) if number % 2 else reversed(list(sides)):
                taken_s = sides[side].median_s(workload, size)
                medians_s.setdefault((workload, size, side), []).append(taken_s)
    window.close()
    terminal.close()
    print(describe_machine())
    print(f"median per call, live window over terminal, {options.rounds} pairs each; in brackets")
    print("the terminal over itself, which is the noise:")
    logs, noise = [], []
    for workload, size in product(_WORKLOADS, _SIZES):
        live, alone, again = (medians_s[workload, size, side] for side in sides)
        ratio, self_ratio = paired_ratio(live, alone), paired_ratio(again, alone)
        logs += [a / b for a, b in zip(live, alone, strict=True)]
        noise += [a / b for a, b in zip(again, alone, strict=True)]
        print(f"  {workload:12} {size:5}  {1e6 * median(alone):10.1f} µs  {ratio}  [{self_ratio}]")
    ones = [1.0] * len(logs)
    ratio, self_ratio = paired_ratio(logs, ones), paired_ratio(noise, ones)
    print(f"  the window's process used {median(window.core_shares):.1%} of one core meanwhile")
    print(f"  all together: {ratio}  [{self_ratio}]; {verdict(ratio.median, _TARGET)}")


if __name__ == "__main__":
    main()
