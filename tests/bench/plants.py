"""Which stage of a check finds a planted fault first: the table of docs/check.md.

    python -m tests.bench.plants               on the CPU, some minutes
    python -m tests.bench.plants --write       the same, into docs/check.md

The first faults are the check's own (`--plant`), which change what comes back from the device. The
others are planted in PyTorch itself. `load` finds wrong products: tests/engine/check/test_load.py.
"""

from __future__ import annotations

import argparse
import re
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.core.check.plants import PLANTED_FAULTS
from gpu_studio.engine.check.compute import Compute
from gpu_studio.engine.check.layouts import Layouts
from gpu_studio.engine.check.link import LinkCheck
from gpu_studio.engine.check.video_memory import VideoMemory
from tests.engine.check.benches import MIB, TickingClock, bench_for, card_bench
from tests.engine.check.outside_plants import OUTSIDE_PLANTS, OutsidePlant

if TYPE_CHECKING:
    from gpu_studio.core.messages.check_messages import PlantKind, StageName
    from gpu_studio.engine.check.stage import Stage

_PAGE = Path(__file__).resolve().parents[2] / "docs/check.md"
_BEGIN, _END = "<!-- plants -->", "<!-- end of plants -->"
# Of a clock that each look moves on: two rounds of compute, so that a stale result can be seen.
_BUDGETS_S: dict[StageName, float] = {"compute": 1.0, "layouts": 1.0}
_STAGES: tuple[StageName, ...] = ("compute", "layouts", "memory", "link")


def _stage(name: StageName) -> Stage:
    stages: dict[StageName, Stage] = {
        "compute": Compute(),
        "layouts": Layouts(),
        "memory": VideoMemory(most_bytes=32 * MIB, passes=1),
        "link": LinkCheck(),
    }
    return stages[name]


def finds(name: StageName, plant: OutsidePlant | None, kind: PlantKind | None) -> str:
    """Return "yes" for an error, "doubt" for a doubt, "–" for neither; an error ends the stage."""
    budget_s = _BUDGETS_S.get(name, 1.0)
    # Only a card's work is large enough to fill a card.
    make = card_bench if plant is not None and "fill" in plant.found_by else bench_for
    bench = make(name, kind, budget_s=budget_s, clock=TickingClock(0.001), seed=1)
    with plant.planted() if plant is not None else nullcontext():
        for _ in _stage(name).run(bench):
            if bench.errors:
                return "yes"
    return "doubt" if any(one.severity == "doubt" for one in bench.findings) else "–"


def found_by(plant: OutsidePlant | None, kind: PlantKind | None) -> str:
    """Return the first stage that finds a fault; a doubt only if no stage has an error."""
    doubt = "–"
    for name in _STAGES:
        found = finds(name, plant, kind)
        if found == "yes":
            return f"`{name}`"
        if found == "doubt" and doubt == "–":
            doubt = f"`{name}`, as a doubt"
    return doubt


def table() -> str:
    """Return the table as Markdown."""
    lines = ["| Fault | The first stage that finds it |", "|---|---|"]
    rows: list[tuple[str, OutsidePlant | None, PlantKind | None]] = [("none", None, None)]
    rows += [
        (f"{fault.title} (`{fault.kind}`)", None, fault.kind)
        for fault in PLANTED_FAULTS
        if fault.kind in ("bit", "stuck", "swap", "drop")
    ]
    rows += [(plant.title, plant, None) for plant in OUTSIDE_PLANTS]
    for title, plant, kind in rows:
        lines.append(f"| {title} | {found_by(plant, kind)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table into docs/check.md")
    is_written = parser.parse_args().write
    made = table()
    if is_written:
        page = _PAGE.read_text(encoding="utf-8")
        between = re.compile(f"{_BEGIN}.*?{_END}", re.DOTALL)
        _PAGE.write_text(between.sub(lambda _: f"{_BEGIN}\n{made}\n{_END}", page), encoding="utf-8")


if __name__ == "__main__":
    main()
