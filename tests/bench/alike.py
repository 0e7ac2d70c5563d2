"""How often do two runs of the same work on the same CPU have a winner? At most 5 of 100 pairs may.

The pairs take turns in one engine, as the program compares devices; with ``--apart``, they are two
requests one after the other, as in two sittings. ``--busy N`` keeps N processes computing beside
them. Ends with the number of winners, how often both intervals contain the median of all medians,
and the share of pairs that were called busy.

    python -m tests.bench.alike --pairs 200 --workload elementwise --size 512 --busy 2 --apart
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import threading

from gpu_studio.core.benchmark.claim import claim_of
from gpu_studio.core.messages.run_messages import RunFinished, RunInTurns, RunWorkload
from gpu_studio.engine.dispatcher import Dispatcher


def keep_busy() -> None:
    """Compute until this process is ended."""
    while True:
        sum(range(10_000))


def run_of(options: argparse.Namespace, name: str) -> RunWorkload:
    """Return a run of the work that is compared with itself."""
    return RunWorkload(
        run_id=name, workload=options.workload, device="cpu", size=options.size,
        dtype="float32", budget_s=options.budget_s,
    )  # fmt: skip


def results_of(dispatcher: Dispatcher, options: argparse.Namespace) -> list[RunFinished]:
    """Return the results of one pair."""
    runs = run_of(options, "one"), run_of(options, "other")
    requests = runs if options.apart else (RunInTurns(runs=runs),)
    answers = (event for one in requests for event in dispatcher.run(one, threading.Event()))
    return [event for event in answers if isinstance(event, RunFinished)]


def main() -> None:
    """Measure the pairs and print the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--workload", default="elementwise")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--budget-s", type=float, default=2.0)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--apart", action="store_true")
    options = parser.parse_args()
    beside = [multiprocessing.Process(target=keep_busy, daemon=True) for _ in range(options.busy)]
    for process in beside:
        process.start()
    try:
        dispatcher = Dispatcher()
        pairs = [results_of(dispatcher, options) for _ in range(options.pairs)]
    finally:
        for process in beside:
            process.kill()
    claims = [claim for one, other in pairs if (claim := claim_of(one, other))]
    winners = sum(claim.sign != 0 for claim in claims)
    results = [result for pair in pairs for result in pair]
    middle_s = statistics.median(result.median_s for result in results)
    held = sum(low <= middle_s <= high for low, high in (one.ci95_s for one in results))
    busy = sum(bool(result.conditions.other_processes) for result in results)
    print(f"winners: {winners} of {len(claims)} pairs")
    print(f"intervals that contain the median of all medians: {held} of {len(results)}")
    print(f"runs beside other programs: {busy} of {len(results)}")


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
