"""The longest time the window's event loop is away: as it opens, and during runs.

``python -m tests.bench.event_loop_gap [--rounds 5] [--budget-s 2]``

The window's own work in one turn of its loop is processor time of its thread: other programs
disturb it little. It is compared with the processor time of a bare window until its first paint,
which is started before each of the program's. The gap on the wall is printed beside that of an idle
window of the same length: what this machine does to any window.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from statistics import median

from tests.bench.ratios import describe_machine, paired_ratio, verdict

# The work in one turn over a bare window's first paint. Until the engine starts, the longest turn
# is the import of pyqtgraph, which a bare window with a plot has as well.
_TARGETS = {
    "from the first paint until the engine starts": None,
    "while the engine starts": 0.04,
    "during runs with live curves": 0.06,
}


def lines_from(module: str, *arguments: float) -> list[list[float]]:
    """Run a script of this folder; return the numbers it prints."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"{module} ended with {done.returncode}:\n{done.stderr}")
    return [[float(number) for number in line.split()] for line in done.stdout.splitlines()]


def show(
    phase: str,
    wall_ms: list[float],
    idle_ms: list[float],
    work_ms: list[float],
    bare_ms: list[float],
) -> None:
    ratio, target = paired_ratio(work_ms, bare_ms), _TARGETS[phase]
    sentence = f"; {verdict(ratio.median, target)}" if target is not None else ""
    print(f"  {phase}:")
    print(
        f"    own work {_listed(work_ms)} ms, median {median(work_ms):.1f}; ratio {ratio}{sentence}"
    )
    print(f"    on the wall {_listed(wall_ms)} ms; an idle window {_listed(idle_ms)} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget-s", type=float, default=2.0)
    options = parser.parse_args()
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    taken: dict[str, list[tuple[float, float, float, float]]] = {phase: [] for phase in _TARGETS}
    for _ in range(options.rounds):
        ((_, bare_s),) = lines_from("tests.bench.paint_bare")
        phases = lines_from("tests.bench.gaps_of_studio", options.budget_s)
        for phase, (wall_s, work_s, length_s) in zip(_TARGETS, phases, strict=True):
            ((idle_s, _),) = lines_from("tests.bench.idle_window", length_s)
            taken[phase].append((1000 * wall_s, 1000 * idle_s, 1000 * work_s, 1000 * bare_s))
    print(describe_machine())
    print(f"longest turn of the event loop, {options.rounds} rounds, a beat every 2 ms:")
    for phase, rows in taken.items():
        show(phase, *(list(column) for column in zip(*rows, strict=True)))


def _listed(numbers: list[float]) -> str:
    return ", ".join(f"{number:.1f}" for number in numbers)


if __name__ == "__main__":
    main()
