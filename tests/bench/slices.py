"""Races in slices against races in one piece: is the ratio of both sides the same?

``python -m tests.bench.slices [--repeats 10] [--budget-s 3] [--picture grow] [--size 256]``

Each repeat has, in random order, a race of the given threads in slices of 0.3 s, and the same race
in one piece: one contestant after the other, and once more with the other one first, so that a PC
that becomes slower or faster meanwhile favours none. The ratio of both ratios is printed with its
interval. The same is done for a side against itself, which says how far this PC can tell at all.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import threading
from random import Random
from typing import TYPE_CHECKING

from gpu_studio.core.messages.run_messages import RunFinished, RunInTurns
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.pictures import PICTURES
from gpu_studio.engine.dispatcher import Dispatcher
from tests.bench.ratios import describe_machine, paired_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.run_messages import RunWorkload

_WITHIN = 0.02


def step_seconds(requests: Sequence[RunWorkload], *, in_slices: bool) -> list[float]:
    """Return the seconds of a step of each contestant: the median of its slices.

    Both kinds of races report a mean for each 0.3 s of work. Their median leaves out the slices in
    which this PC stood still for other programs, which has nothing to do with taking turns.
    """
    dispatcher = Dispatcher()
    asked = [RunInTurns(runs=tuple(requests))] if in_slices else list(requests)
    paces: dict[str, float] = {}
    for request in asked:
        for event in dispatcher.run(request, threading.Event()):
            if isinstance(event, RunFinished):
                paces[event.run_id] = statistics.median(event.rounds_s)
    return [paces[request.run_id] for request in requests]


def pace_ratio(requests: Sequence[RunWorkload], *, in_slices: bool) -> float:
    """Return how much longer a step of the first contestant takes, from both orders."""
    one, other = step_seconds(requests, in_slices=in_slices)
    other_first, one_last = step_seconds(requests[::-1], in_slices=in_slices)
    return math.sqrt(one / other * one_last / other_first)


def ratios_of(
    threads: Sequence[int], picture: str, size: int | None, budget_s: float, repeats: int
) -> tuple[list[float], list[float]]:
    """Return the ratio of both sides in slices and in one piece, for each repeat."""
    drawn = next(one for one in PICTURES if one.name == picture)
    assert drawn.race is not None
    contestants = [Contestant(device="cpu", threads=count) for count in threads]
    requests = race_requests(drawn, size or drawn.race.default_size, contestants, budget_s)
    random = Random(0)
    found: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(repeats):
        for in_slices in random.sample([True, False], 2):
            found[in_slices].append(pace_ratio(requests, in_slices=in_slices))
    return found[True], found[False]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each pair of sides; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.slices")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--budget-s", type=float, default=3.0)
    parser.add_argument("--picture", default="grow")
    parser.add_argument("--size", type=int)
    chosen = parser.parse_args(arguments)
    print(describe_machine())
    for threads in ((1, 2), (1, 1)):
        sliced, whole = ratios_of(
            threads, chosen.picture, chosen.size, chosen.budget_s, chosen.repeats
        )
        ratio = paired_ratio(sliced, whole)
        is_known = ratio.high - ratio.low <= 2 * _WITHIN
        is_near = 1 - _WITHIN <= ratio.median <= 1 + _WITHIN
        words = "within 2 %" if is_near else "MISSED: more than 2 % apart"
        if not is_known:
            words += "; the interval is wide: this PC is too busy to tell"
        print(
            f"{chosen.picture}, {threads[0]} against {threads[1]} threads: in slices "
            f"{sorted(sliced)[len(sliced) // 2]:.3f}, in one piece "
            f"{sorted(whole)[len(whole) // 2]:.3f}; ratio of both {ratio}: {words}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
