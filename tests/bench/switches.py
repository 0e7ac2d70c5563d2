"""What a switch costs, over the first paint of a bare window: a tab's first one, light and dark.

``python -m tests.bench.switches [--rounds 10]``

Both sides are processor time, without what other programs took: of the window's own thread from
the switch until the window is painted again, and of the bare window's process until its first
paint. A bare window is started before each of the program's.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from statistics import median

from tests.bench.ratios import describe_machine, paired_ratio, verdict

_TARGETS = {"the slowest first switch to a tab": 0.06, "light and dark, the slowest": 0.25}


def lines_from(module: str) -> list[list[float]]:
    """Run a script of this folder; return the numbers of each line that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", module], capture_output=True, text=True, timeout=300
    )
    if done.returncode != 0:
        sys.exit(f"{module} ended with {done.returncode}:\n{done.stderr}")
    return [[float(number) for number in line.split()] for line in done.stdout.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    bare_s: list[float] = []
    slowest_s: dict[str, list[float]] = {what: [] for what in _TARGETS}
    for _ in range(rounds):
        ((_, until_paint_s),) = lines_from("tests.bench.paint_bare")
        bare_s.append(until_paint_s)
        switches = lines_from("tests.bench.switches_of_studio")
        for what, taken_s in zip(_TARGETS, switches, strict=True):
            slowest_s[what].append(max(taken_s))
    print(describe_machine())
    print(f"bare window until its first paint: median {1000 * median(bare_s):.0f} ms")
    for what, taken_s in slowest_s.items():
        ratio = paired_ratio(taken_s, bare_s)
        result = verdict(ratio.median, _TARGETS[what])
        print(f"  {what}: {1000 * median(taken_s):.0f} ms, ratio {ratio}; {result}")


if __name__ == "__main__":
    main()
