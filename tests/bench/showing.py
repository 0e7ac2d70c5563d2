"""What showing a race costs: the steps of a run that shows its frames over one that does not.

``python -m tests.bench.showing [--repeats 12] [--budget-s 2] [--device cpu] [--threads 1]``

For every picture, a run with frames at 20 Hz and one without take turns in random order, and the
ratio of the median step times is printed with its interval. A second pair, both without frames,
says how far this PC can tell at all. Then the window races, and the longest turn of its event loop
is printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from random import Random
from typing import TYPE_CHECKING

from gpu_studio.core.messages.race_messages import FrameReady, Showing
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.pictures import PICTURES
from gpu_studio.engine.dispatcher import Dispatcher
from tests.bench.event_loop_gap import bare_paint_s, show_longest, turns_from
from tests.bench.ratios import Ratio, describe_machine, paired_ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.messages.run_messages import WorkloadDescription

_MOST = 1.02


class Runs:
    """Runs of this program's engine in this process, with frames or without."""

    def __init__(self, contestant: Contestant, budget_s: float) -> None:
        self._contestant, self._budget_s = contestant, budget_s
        self._dispatcher = Dispatcher()
        self.frames = 0

    def median_s(self, picture: WorkloadDescription, *, shows: bool) -> float:
        """Return the median step of one run."""
        assert picture.race is not None
        (request,) = race_requests(
            picture,
            picture.race.default_size,
            [self._contestant],
            self._budget_s,
            showing=Showing() if shows else None,
        )
        last = None
        for last in self._dispatcher.run(request, threading.Event()):
            self.frames += isinstance(last, FrameReady)
        if not isinstance(last, RunFinished):
            sys.exit(f"The run failed: {last}")
        return last.median_s


def compare(runs: Runs, picture: WorkloadDescription, repeats: int, random: Random) -> list[Ratio]:
    """Return the ratio with frames over without, and that of two runs without."""
    sides: dict[str, list[float]] = {"shown": [], "hidden": [], "again": []}
    for _ in range(repeats):
        for side in random.sample(list(sides), len(sides)):
            sides[side].append(runs.median_s(picture, shows=side == "shown"))
    return [paired_ratio(sides[side], sides["hidden"]) for side in ("shown", "again")]


def sentence(ratio: Ratio, noise: Ratio) -> str:
    """Return the meaning of the ratio, as far as this PC can show it."""
    if noise.high > _MOST or noise.low < 1 / _MOST:
        return f"this PC is too busy to tell {_MOST - 1:.0%}: run it on one that does no more"
    if ratio.high <= _MOST:
        return f"showing costs at most {_MOST - 1:.0%}"
    return "showing costs more" if ratio.low > _MOST else "undecided: give it more repeats"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each picture; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.showing")
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--budget-s", type=float, default=2.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args(arguments)
    print(describe_machine())
    threads = chosen.threads if chosen.device == "cpu" else None
    runs = Runs(Contestant(device=chosen.device, threads=threads), chosen.budget_s)
    random = Random(0)
    for picture in PICTURES:
        runs.frames = 0
        ratio, noise = compare(runs, picture, chosen.repeats, random)
        print(f"{picture.name}: shown over hidden {ratio}; hidden over hidden {noise}")
        print(f"    {runs.frames} frames; {sentence(ratio, noise)}", flush=True)
    print_gaps()
    return 0


def print_gaps() -> None:
    """Print the longest turn of the window's event loop during a race."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    bare_s = bare_paint_s()
    print("event loop, over a bare window's first paint:")
    show_longest([(turns_from("--phases=race"), bare_s)])


if __name__ == "__main__":
    sys.exit(main())
