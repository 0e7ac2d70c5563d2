"""Count how often two standard runs of one PC disagree: ``python -m tests.bench.standards``.

Each try makes two whole runs of the CPU, one after the other, with the program's own plan and
engine, and compares each item as the page Compare does. ``--share`` shortens the time of all items
alike; the method stays. ``--busy`` lets that many other programs compute meanwhile.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from gpu_studio.core.benchmark.comparison import Claim, compare
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.benchmark.standard import LOAD, STANDARD_1, StandardPlan
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.engine.client import ProcessEngine

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import RunFinished

_BUSY = "while True: sum(range(100_000))"


def results_of(engine: ProcessEngine, share: float) -> dict[str, RunFinished]:
    """Make a standard run of the CPU; return its results by item."""
    plan = StandardPlan(["cpu"], share)
    runs: list[Run] = []
    requests = plan.requests()
    while requests:
        group = [Run(request) for request in requests]
        runs += group
        for event in engine.run(requests[0]):
            for run in group:
                run.apply(event)
        results = [run.result for run in runs if run.result is not None]
        requests = plan.next_requests(results, len(runs) + 1)
    found = {plan.keys[run.request.run_id]: run.result for run in runs}
    return {key: result for key, result in found.items() if result is not None and key != LOAD}


def overlap(one: RunFinished, other: RunFinished) -> bool:
    """Return whether the 95 % intervals of two results have a time in common."""
    return one.ci95_s[0] <= other.ci95_s[1] and other.ci95_s[0] <= one.ci95_s[1]


def main() -> None:
    """Make the tries; print for each item how many agreed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--busy", type=int, default=0)
    options = parser.parse_args()
    compared, overlapping, winners = Counter[str](), Counter[str](), Counter[str]()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        for _ in range(options.busy):
            other = subprocess.Popen([sys.executable, "-c", _BUSY])
            stack.callback(other.wait)
            stack.callback(other.kill)
        for number in range(options.tries):
            pair = []
            for _ in range(2):
                engine = ProcessEngine(EngineEnvironment(), log_path=folder / "engine.log")
                pair.append(results_of(engine, options.share))
                engine.close()
            for key in pair[0].keys() & pair[1].keys():
                one, other_result = pair[0][key], pair[1][key]
                claim = compare(one, other_result)
                compared[key] += 1
                overlapping[key] += overlap(one, other_result)
                winners[key] += claim is not None and claim.outcome in (Claim.FASTER, Claim.SLOWER)
            print(f"try {number + 1} of {options.tries}", flush=True)
    for item in STANDARD_1:
        if compared[item.key]:
            print(
                f"{item.title:<20} {compared[item.key]:>3} pairs, intervals overlap in "
                f"{overlapping[item.key]}, winners {winners[item.key]}"
            )
    print(f"{sum(compared.values())} pairs, {sum(winners.values())} winners")


if __name__ == "__main__":
    main()
