"""Which stage of a check finds a planted fault first: the table of docs/development/check.md.

    python -m tests.bench.plants               on the CPU, some minutes
    python -m tests.bench.plants --write       the same, into docs/development/check.md

The first faults are the check's own (`--plant`), which change what comes back from the device. The
others are planted in PyTorch itself. `load` finds wrong products: tests/engine/check/test_load.py.
"""

from __future__ import annotations

import argparse
import re
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.core.check.stages import PLANTED_FAULTS
from gpu_studio.engine.check.check_round import STAGES
from gpu_studio.engine.check.memory import memory
from tests.engine.check.outside_plants import OUTSIDE_PLANTS, OutsidePlant
from tests.engine.check.stage_runs import MIB, TickingClock, card_run, run_for

if TYPE_CHECKING:
    from gpu_studio.core.messages.check_messages import PlantKind, StageName

_PAGE = Path(__file__).resolve().parents[2] / "docs/development/check.md"
_BEGIN, _END = "<!-- plants -->", "<!-- end of plants -->"
_STAGES: tuple[StageName, ...] = ("compute", "layouts", "memory", "link")


def finds(name: StageName, plant: OutsidePlant | None, kind: PlantKind | None) -> str:
    """Return "yes" for an error, "doubt" for a doubt, "–" for neither; an error ends the stage."""
    # Only a card's work is large enough to fill a card.
    make = card_run if plant is not None and "fill" in plant.found_by else run_for
    # A clock that each look moves on: two rounds of compute, so that a stale result can be seen.
    run = make(name, kind, planned_s=1.0, clock=TickingClock(0.001), seed=1)
    with plant.planted() if plant is not None else nullcontext():
        for _ in memory(run, 32 * MIB) if name == "memory" else STAGES[name](run):
            if run.errors:
                return "yes"
    return "doubt" if any(one.severity == "doubt" for one in run.findings) else "–"


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
    parser.add_argument("--write", action="store_true", help=f"write the table into {_PAGE.name}")
    is_written = parser.parse_args().write
    made = table()
    if is_written:
        page = _PAGE.read_text(encoding="utf-8")
        between = re.compile(f"{_BEGIN}.*?{_END}", re.DOTALL)
        _PAGE.write_text(between.sub(lambda _: f"{_BEGIN}\n{made}\n{_END}", page), encoding="utf-8")


if __name__ == "__main__":
    main()
