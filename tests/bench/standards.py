"""Count how often two standard runs of one PC disagree: ``python -m tests.bench.standards``.

Standard runs of the CPU follow each other, each with the program's own plan and in an engine of its
own; each try compares two neighbors, item by item, as the page Compare does. ``--share`` shortens
the time of all items alike; the method stays. ``--busy`` lets that many other programs compute
meanwhile.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.claim import claim_of
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.benchmark.standard import LOAD, STANDARD_1, StandardPlan
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.run_messages import RunInTurns
from gpu_studio.engine.client import ProcessEngine

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import RunFinished

_BUSY = "while True: sum(range(100_000))"


def results_of(engine: ProcessEngine, share: float) -> dict[str, RunFinished]:
    """Make a standard run of the CPU; return its results by item."""
    plan = StandardPlan(["cpu"], share)
    runs: list[Run] = []
    while requests := plan.next_requests([], len(runs) + 1):
        group = [Run(request) for request in requests]
        runs += group
        for event in engine.run(
            RunInTurns(runs=tuple(requests)) if len(requests) > 1 else requests[0]
        ):
            for run in group:
                run.apply(event)
    found = {plan.keys[run.request.run_id]: run.result for run in runs}
    return {
        key: msgspec.structs.replace(result, turns="")
        for key, result in found.items()
        if result is not None and key != LOAD
    }


def overlap(one: RunFinished, other: RunFinished) -> bool:
    """Return whether the 95 % intervals of two results have a time in common."""
    return one.ci95_s[0] <= other.ci95_s[1] and other.ci95_s[0] <= one.ci95_s[1]


def described(result: RunFinished) -> str:
    """Return the median and interval of a result, in milliseconds."""
    low, high = (1e3 * end for end in result.ci95_s)
    return f"{1e3 * result.median_s:.4g} ({low:.4g} to {high:.4g}) ms, {len(result.rounds_s)}"


def main() -> None:
    """Make the tries; print for each item how many agreed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--busy", type=int, default=0)
    options = parser.parse_args()
    standards: list[dict[str, RunFinished]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        for _ in range(options.busy):
            other = subprocess.Popen([sys.executable, "-c", _BUSY])
            stack.callback(other.wait)
            stack.callback(other.kill)
        for number in range(options.tries + 1):
            engine = ProcessEngine(EngineEnvironment(), log_path=folder / "engine.log")
            standards.append(results_of(engine, options.share))
            engine.close()
            print(f"run {number + 1} of {options.tries + 1}")
            for item in STANDARD_1:
                if item.key in standards[-1]:
                    print(f"  {item.title:<20} {described(standards[-1][item.key])} rounds")
            sys.stdout.flush()
    pairs, overlaps, winners = Counter[str](), Counter[str](), Counter[str]()
    agreeing = without_winner = 0
    for one, other_run in itertools.pairwise(standards):
        shared = one.keys() & other_run.keys()
        apart = {key for key in shared if not overlap(one[key], other_run[key])}
        claims = {key: claim_of(one[key], other_run[key]) for key in shared}
        decided = {key for key, claim in claims.items() if claim is not None and claim.sign}
        pairs.update(shared)
        overlaps.update(shared - apart)
        winners.update(decided)
        agreeing += not apart
        without_winner += not decided
    for item in STANDARD_1:
        if pairs[item.key]:
            print(
                f"{item.title:<20} {pairs[item.key]:>3} pairs, intervals overlap in "
                f"{overlaps[item.key]}, winners {winners[item.key]}"
            )
    print(
        f"{options.tries} tries: the intervals of all items overlap in {agreeing}, Compare names "
        f"no winner in {without_winner}"
    )


if __name__ == "__main__":
    main()
