"""The longest turns of the window's event loop in a minute of use, and what ran in them.

``python -m tests.bench.event_loop_gap [--rounds 3] [--phases tabs,race] [--cards] [--worst 20]``

The window's own work in one turn of its loop is processor time of its thread: other programs
disturb it little. It is compared with the processor time of a bare window until its first paint,
which is started before each of the program's. A last round, whose figures do not count, samples
what the longest turns do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from statistics import median
from typing import TYPE_CHECKING

from tests.bench.heartbeat import Turn
from tests.bench.ratios import describe_machine, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

# The work in one turn over a bare window's first paint.
_TARGET = 0.06
_THEME, _THEME_TARGET = "theme", 0.20


def lines_from(module: str, *arguments: object) -> list[str]:
    """Run a script of this folder; return the lines that it prints."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"{module} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout.splitlines()


def bare_paint_s() -> float:
    """Return the processor time of a bare window until its first paint."""
    (line,) = lines_from("tests.bench.paint_bare")
    return float(line.split()[1])


def turns_from(*arguments: str) -> list[Turn]:
    """Return the longer turns of a minute of use."""
    return [
        Turn(*json.loads(line)) for line in lines_from("tests.bench.gaps_of_studio", *arguments)
    ]


def show_longest(rounds: Sequence[tuple[list[Turn], float]]) -> None:
    """Print the longest turn of each phase in each round, and the median over the rounds."""
    phases = dict.fromkeys(turn.phase for turns, _ in rounds for turn in turns)
    for phase in phases:
        longest = [
            max((turn.own_work_s / bare_s for turn in turns if turn.phase == phase), default=0.0)
            for turns, bare_s in rounds
        ]
        target = _THEME_TARGET if phase == _THEME else _TARGET
        listed = ", ".join(f"{ratio:.1%}" for ratio in longest)
        print(f"  {phase:12} {listed}; {verdict(median(longest), target)}")


def show_worst(turns: Sequence[Turn], bare_s: float, count: int) -> None:
    """Print the longest turns with what was seen in them."""
    for turn in sorted(turns, key=lambda turn: turn.own_work_s, reverse=True)[:count]:
        print(f"  {turn.own_work_s / bare_s:6.1%} {turn.phase:12} {turn.owner}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--phases", default="")
    parser.add_argument("--cards", action="store_true", help="readings of two invented cards")
    parser.add_argument("--worst", type=int, default=20)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    asked = [f"--phases={options.phases}"] if options.phases else []
    asked += ["--cards"] if options.cards else []
    rounds = []
    for _ in range(options.rounds):
        bare_s = bare_paint_s()
        rounds.append((turns_from(*asked), bare_s))
    print(describe_machine())
    bare_s = median(bare_s for _, bare_s in rounds)
    print(f"bare window until its first paint: median {1000 * bare_s:.0f} ms of processor time")
    print(f"longest turn of the event loop in {options.rounds} rounds, by what the person does:")
    show_longest(rounds)
    print("what ran in the longest turns of another round, which the sampling makes longer:")
    show_worst(turns_from(*asked, "--owners"), bare_s, options.worst)


if __name__ == "__main__":
    main()
