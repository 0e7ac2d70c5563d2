"""How much the median of a run moves from run to run, beside torch.utils.benchmark's.

``python -m tests.bench.spread [--repeats 10] [--budget-s 1] [--threads 2] [--device cpu]``

For every workload and size, a run of this program's and a ``blocked_autorange`` of the same length
take turns in one process, on operands of their own. The spread of a side is the standard deviation
of the logarithms of its medians; the interval of the ratio of spreads comes from resampling the
repeats, both sides of a repeat together. Both sides use all threads (``Timer`` would use one).
"""

from __future__ import annotations

import argparse
import sys
import threading
from itertools import product
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.utils.benchmark import Timer

from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.engine.device import resolve
from gpu_studio.engine.dispatcher import Dispatcher
from gpu_studio.engine.workloads.case import make_case
from gpu_studio.engine.workloads.registry import find_workload
from tests.bench.ratios import Ratio, describe_machine, paired_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_WORKLOADS = {"elementwise": "work(a, b, c)", "matmul": "work(a, b)"}
_SIZES = (64, 512, 2048)
_AGREEMENT = 0.02
_RESAMPLES = 4000


class Bench:
    """The two sides, which time the same call for the same time."""

    def __init__(self, device: str, dtype: str, budget_s: float) -> None:
        self._device, self._dtype, self._budget_s = device, dtype, budget_s
        self._dispatcher = Dispatcher()

    def studio_s(self, workload: str, size: int) -> float:
        """Return the median of a run of this program's."""
        request = RunWorkload(
            run_id="1", workload=workload, device=self._device, size=size, dtype=self._dtype,
            budget_s=self._budget_s,
        )  # fmt: skip
        *_, last = self._dispatcher.run(request, threading.Event())
        if not isinstance(last, RunFinished):
            sys.exit(f"The run failed: {last}")
        return last.median_s

    def torch_s(self, workload: str, size: int) -> float:
        """Return the median of torch.utils.benchmark."""
        one = find_workload(workload)
        case = make_case(one.description, resolve(self._device), size, self._dtype)
        variables = dict(zip("abc", one.operands(case), strict=False))
        timer = Timer(
            _WORKLOADS[workload],
            globals={"work": one.compute(case), **variables},
            num_threads=torch.get_num_threads(),
        )
        return float(timer.blocked_autorange(min_run_time=self._budget_s).median)


def spread_of(medians_s: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation of the logarithms along the last axis."""
    return np.log(np.asarray(medians_s)).std(axis=-1, ddof=1)


def ratio_of_spreads(ours_s: Sequence[float], theirs_s: Sequence[float]) -> Ratio:
    """Return how many times as much ours spreads, with a 95 % bootstrap interval.

    Args:
        ours_s: shape (n,).
        theirs_s: shape (n,), the i-th taken beside the i-th of ours.
    """
    ours, theirs = np.asarray(ours_s), np.asarray(theirs_s)
    generator = np.random.default_rng(0)
    picks = generator.integers(0, len(ours), (_RESAMPLES, len(ours)))
    # A resample that took one repeat ten times has no spread.
    picks = picks[[len(set(pick)) > 2 for pick in picks.tolist()]]
    low, high = np.percentile(spread_of(ours[picks]) / spread_of(theirs[picks]), (2.5, 97.5))
    return Ratio(float(spread_of(ours) / spread_of(theirs)), float(low), float(high))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--budget-s", type=float, default=1.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--sizes", type=int, nargs="+", default=_SIZES)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    bench = Bench(options.device, options.dtype, options.budget_s)
    cases = list(product(_WORKLOADS, options.sizes))
    studio: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    torchs: dict[tuple[str, int], list[float]] = {case: [] for case in cases}
    print(describe_machine())
    for number in range(options.repeats):
        for case in cases:
            sides = [(studio, bench.studio_s), (torchs, bench.torch_s)]
            for medians_s, measure in sides if number % 2 else reversed(sides):
                medians_s[case].append(measure(*case))
    print(
        f"{options.repeats} repeats of {options.budget_s:g} s, {options.device}, {options.dtype}, "
        f"{torch.get_num_threads()} threads"
    )
    for case in cases:
        report(case, studio[case], torchs[case])


def report(case: tuple[str, int], ours_s: Sequence[float], theirs_s: Sequence[float]) -> None:
    """Print both spreads, their ratio, and how the medians agree."""
    workload, size = case
    spreads = ratio_of_spreads(ours_s, theirs_s)
    medians = paired_ratio(ours_s, theirs_s)
    print(
        f"  {workload:12} {size:5} {1e6 * median(ours_s):10.1f} µs"
        f"  spread {float(spread_of(ours_s)):.2%} over {float(spread_of(theirs_s)):.2%}: {spreads}"
        f" {'reached' if spreads.low <= 1 else 'MISSED'};  medians {medians}"
        f" {agreement(medians)}"
    )


def agreement(medians: Ratio) -> str:
    """Return whether a ratio of medians is one, or too close to one to tell."""
    if medians.low >= 1 - _AGREEMENT and medians.high <= 1 + _AGREEMENT:
        return f"agree within {_AGREEMENT:.0%}"
    if medians.low > 1 + _AGREEMENT or medians.high < 1 - _AGREEMENT:
        return f"DIFFER by more than {_AGREEMENT:.0%}"
    return f"this machine is too noisy to tell {_AGREEMENT:.0%}"


if __name__ == "__main__":
    main()
