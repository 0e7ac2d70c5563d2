"""The longest time the window's event loop is away: while the engine starts, and during runs.

``python -m tests.bench.event_loop_gap [--rounds 5] [--budget-s 2]``

Beside each, in turns, an idle window of the same length: what this machine does to any window.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from statistics import median

from tests.bench.ratios import describe_machine, paired_ratio, verdict

_TARGETS_MS = {"while the engine starts": 16.0, "during runs with live curves": 50.0}


def lines_from(module: str, argument: float) -> list[list[float]]:
    """Run a script of this folder; return the numbers it prints."""
    done = subprocess.run(
        [sys.executable, "-m", module, str(argument)], capture_output=True, text=True, timeout=600
    )
    if done.returncode != 0:
        sys.exit(f"{module} ended with {done.returncode}:\n{done.stderr}")
    return [[float(number) for number in line.split()] for line in done.stdout.splitlines()]


def show(phase: str, studio_ms: list[float], idle_ms: list[float], work_ms: list[float]) -> None:
    target_ms = _TARGETS_MS[phase]
    middle = median(studio_ms)
    print(f"  {phase}: {_listed(studio_ms)} ms, median {middle:.1f}; {verdict(middle, target_ms)}")
    print(f"    an idle window at the same time: {_listed(idle_ms)} ms")
    print(f"    over the idle window: {paired_ratio(studio_ms, idle_ms)}")
    middle = median(work_ms)
    print(
        f"    the window's own work in one turn of its loop: {_listed(work_ms)} ms, median "
        f"{middle:.1f}; {verdict(middle, target_ms)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget-s", type=float, default=2.0)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    taken: dict[str, list[tuple[float, float, float]]] = {phase: [] for phase in _TARGETS_MS}
    for _ in range(options.rounds):
        phases = lines_from("tests.bench.gaps_of_studio", options.budget_s)
        for phase, (wall_s, work_s, length_s) in zip(_TARGETS_MS, phases, strict=True):
            ((idle_s, _),) = lines_from("tests.bench.idle_window", length_s)
            taken[phase].append((1000 * wall_s, 1000 * idle_s, 1000 * work_s))
    print(describe_machine())
    print(f"longest gap of the event loop, {options.rounds} rounds, a beat every 2 ms:")
    for phase, rows in taken.items():
        show(phase, *(list(column) for column in zip(*rows, strict=True)))


def _listed(numbers: list[float]) -> str:
    return ", ".join(f"{number:.1f}" for number in numbers)


if __name__ == "__main__":
    main()
