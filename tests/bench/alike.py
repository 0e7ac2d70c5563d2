"""How often do two runs of the same work on the same CPU have a winner? At most 5 of 100 pairs may.

The pairs take turns in one engine, as the program compares devices; with ``--apart``, they are two
requests one after the other, as in two sittings; with ``--race``, two contestants of one thread.
``--busy N`` keeps N processes computing beside them. ``--slower`` gives the second side half as
many elements more: then the first one should win in at least 80 of 100 pairs. Ends with the number
of winners and their ratios, how often both intervals contain the median of all medians, and the
share of runs that were called busy.

    python -m tests.bench.alike --pairs 200 --workload elementwise --size 512 --busy 2 --apart
"""

import argparse
import multiprocessing
import statistics
import threading
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from gpu_studio.core.benchmark.claim import Claim, claim_of
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.messages.run_messages import RunFinished, RunInTurns, RunWorkload
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.pictures import PICTURES
from gpu_studio.core.race.verdict import judge
from gpu_studio.engine.dispatcher import Dispatcher

_MORE = 1.5


class Pair(NamedTuple):
    """Both results, and what may be claimed of them."""

    results: list[RunFinished]
    claim: Claim | None


def keep_busy() -> None:
    while True:
        sum(range(10_000))


def run_of(options: argparse.Namespace, name: str, size: int) -> RunWorkload:
    return RunWorkload(
        run_id=name, workload=options.workload, device="cpu", size=size,
        dtype="float32", budget_s=options.budget_s,
    )  # fmt: skip


def raced(dispatcher: Dispatcher, options: argparse.Namespace) -> Pair:
    picture = next(one for one in PICTURES if one.name == options.race)
    alike = [Contestant(device="cpu", threads=1)] * 2
    requests = race_requests(picture, options.size, alike, options.budget_s)
    runs = [Run(one) for one in requests]
    for event in dispatcher.run(RunInTurns(runs=tuple(requests)), threading.Event()):
        for run in runs:
            run.apply(event)
    return Pair([run.result for run in runs if run.result], judge(picture, runs).claim)


def timed(dispatcher: Dispatcher, options: argparse.Namespace) -> Pair:
    """Return the results of one pair, in turns or one after the other."""
    larger = round(options.size * _MORE**0.5) if options.slower else options.size
    runs = run_of(options, "one", options.size), run_of(options, "other", larger)
    requests = runs if options.apart else (RunInTurns(runs=runs),)
    answers = (event for one in requests for event in dispatcher.run(one, threading.Event()))
    results = [event for event in answers if isinstance(event, RunFinished)]
    return Pair(results, claim_of(*results))


def measured(options: argparse.Namespace) -> list[Pair]:
    """Measure the pairs. In a process of its own: what it starts itself is no other program."""
    dispatcher = Dispatcher()
    made = raced if options.race else timed
    return [made(dispatcher, options) for _ in range(options.pairs)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--workload", default="elementwise")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--budget-s", type=float, default=2.0)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--slower", action="store_true")
    parser.add_argument("--race", choices=[picture.name for picture in PICTURES])
    options = parser.parse_args()
    if options.race and options.slower:
        parser.error("both contestants of a race have the same size")
    busy_ones = [
        multiprocessing.Process(target=keep_busy, daemon=True) for _ in range(options.busy)
    ]
    for process in busy_ones:
        process.start()
    try:
        with ProcessPoolExecutor(1) as pool:
            pairs = pool.submit(measured, options).result()
    finally:
        for process in busy_ones:
            process.kill()
    claims = [pair.claim for pair in pairs if pair.claim is not None]
    winners = [claim for claim in claims if claim.sign]
    results = [result for pair in pairs for result in pair.results]
    middle_s = statistics.median(result.median_s for result in results)
    held = sum(low <= middle_s <= high for low, high in (one.ci95_s for one in results))
    busy = sum(bool(result.conditions.other_processes) for result in results)
    print(f"winners: {len(winners)} of {len(claims)} pairs")
    for claim in winners:
        print(f"  {claim.ratio:.2f}, {claim.low:.2f} to {claim.high:.2f}, {claim.words}")
    print(f"intervals that contain the median of all medians: {held} of {len(results)}")
    print(f"runs beside other programs: {busy} of {len(results)}")


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
