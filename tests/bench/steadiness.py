"""How far the median of the same work differs from one engine to the next.

``python -m tests.bench.steadiness [--engines 10] [--budget-s 0.5] [--size 512]``

Every engine is a new process and runs the same work once on the CPU. Engines that keep freed memory
(`process/steady_memory.py`), as the window and the terminal start them, take turns with engines
with the defaults of glibc, as a user's script has them. For each side it prints the medians, their
median, and how many times as long the slowest takes as the fastest. Only with glibc.
"""

from __future__ import annotations

import argparse
import os
import sys
from statistics import median
from typing import TYPE_CHECKING

import torch

from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.process.steady_memory import glibc_version
from tests.bench.ratios import describe_machine, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

# A user's own setting, so that the engine gets none of ours. Its value is the default.
_USERS = ("GLIBC_TUNABLES", "glibc.malloc.perturb=0")
_MOST = 2.0


def median_s(is_steady: bool, request: RunWorkload) -> float:
    """Return the median of a run in a new engine."""
    name, value = _USERS
    os.environ.pop(name, None)
    if not is_steady:
        os.environ[name] = value
    engine = ProcessEngine()
    try:
        *_, last = engine.run(request)
    finally:
        engine.close()
    if not isinstance(last, RunFinished):
        sys.exit(f"The run failed: {last}")
    return last.median_s


def report(side: str, medians_s: Sequence[float]) -> float:
    """Print a side's medians; return the slowest as a ratio of the fastest."""
    ratio = max(medians_s) / min(medians_s)
    shown = " ".join(f"{1e3 * one_s:.2f}" for one_s in sorted(medians_s))
    print(f"  {side:9} median {1e3 * median(medians_s):.2f} ms, slowest {ratio:.2f} ×: {shown}")
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", type=int, default=10)
    parser.add_argument("--budget-s", type=float, default=0.5)
    parser.add_argument("--workload", default="elementwise")
    parser.add_argument("--size", type=int, default=512)
    options = parser.parse_args()
    if glibc_version() is None:
        sys.exit("The C library is not glibc.")
    request = RunWorkload(
        run_id="1", workload=options.workload, device="cpu", size=options.size, dtype="float32",
        budget_s=options.budget_s,
    )  # fmt: skip
    medians_s: dict[bool, list[float]] = {True: [], False: []}
    print(describe_machine())
    for number in range(options.engines):
        for is_steady in (True, False) if number % 2 else (False, True):
            medians_s[is_steady].append(median_s(is_steady, request))
    print(
        f"{options.engines} engines a side, {options.workload}, {options.size} × {options.size}, "
        f"{torch.get_num_threads()} threads"
    )
    report("default", medians_s[False])
    print(f"    {verdict(report('steady', medians_s[True]), _MOST)}")


if __name__ == "__main__":
    main()
