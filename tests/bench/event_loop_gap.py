"""The longest turns of the window's event loop in a minute of use, and what ran in them.

``python -m tests.bench.event_loop_gap [--rounds 3] [--phases tabs,race] [--cards] [--worst 20]``

The window's own work in one turn of its loop is processor time of its thread: other programs
disturb it little. A last round, whose figures do not count, samples what the longest turns do.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence

from tests.bench.heartbeat import Turn
from tests.bench.ratios import describe_machine, verdict

_TARGET_MS = 100
_TARGETS_MS = {"theme": 500}
_ONCE_MS, _START = 250, "start"  # one turn of the start may take this long


def turns_from(*arguments: str) -> list[Turn]:
    """Return the longer turns of a minute of use."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.gaps_of_studio", *arguments],
        capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"The window ended with {done.returncode}:\n{done.stderr}")
    return [Turn(*json.loads(line)) for line in done.stdout.splitlines()]


def longest_ms(turns: Sequence[Turn], phase: str) -> list[float]:
    return sorted((1000 * one.own_work_s for one in turns if one.phase == phase), reverse=True)


def show_longest(rounds: Sequence[list[Turn]]) -> None:
    """Print the two longest turns of each phase in each round, against its target."""
    for phase in dict.fromkeys(turn.phase for turns in rounds for turn in turns):
        longest = [[*longest_ms(turns, phase), 0.0, 0.0][:2] for turns in rounds]
        listed = ", ".join(f"{first:.0f} and {second:.0f} ms" for first, second in longest)
        worst = [max(column) for column in zip(*longest, strict=True)]
        target = _TARGETS_MS.get(phase, _TARGET_MS)
        result = verdict(worst[0], target)
        if phase == _START:
            result = f"one {verdict(worst[0], _ONCE_MS)}; the others {verdict(worst[1], target)}"
        print(f"  {phase:12} {listed}; {result}")


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
    rounds = [turns_from(*asked) for _ in range(options.rounds)]
    print(describe_machine())
    print(f"the two longest turns in each of {options.rounds} rounds, by what the person does:")
    show_longest(rounds)
    if options.worst:
        print("what ran in the longest turns of another round, which the sampling makes longer:")
        turns = sorted(turns_from(*asked, "--owners"), key=lambda turn: -turn.own_work_s)
        for turn in turns[: options.worst]:
            print(f"  {1000 * turn.own_work_s:6.0f} ms {turn.phase:12} {turn.owner}")


if __name__ == "__main__":
    main()
