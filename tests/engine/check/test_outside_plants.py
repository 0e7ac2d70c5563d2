"""Faults that are planted in PyTorch itself: each is found, and a sound CPU has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.engine.check import link
from gpu_studio.engine.check.compute import Compute, every_part
from gpu_studio.engine.check.known_answers import known_parts
from gpu_studio.engine.check.link import LinkCheck
from gpu_studio.engine.check.video_memory import VideoMemory
from tests.engine.check.benches import MIB, TickingClock, bench_for, card_bench, run
from tests.engine.check.outside_plants import OUTSIDE_PLANTS, OutsidePlant

if TYPE_CHECKING:
    from gpu_studio.engine.check.parts import Part
    from gpu_studio.engine.check.stage import Stage, StageBench

# The other tests of this folder copy less at once.
_LARGE_COPY_BYTES = link._LARGE_COPY_BYTES


def parts_for(plant: OutsidePlant, bench: StageBench) -> list[Part]:
    """Return the kinds of work that find a plant."""
    every = (*every_part(bench), *known_parts())
    return [part for part in every if part.title.startswith(plant.found_by)]


def stage_for(plant: OutsidePlant) -> Stage:
    """Return the stage that finds a plant; of compute, only the part that does."""
    if plant.found_by == "memory":
        return VideoMemory(most_bytes=32 * MIB, passes=1)
    if plant.found_by == "link":
        return LinkCheck()
    return Compute(lambda bench: parts_for(plant, bench))


def bench_of(plant: OutsidePlant) -> StageBench:
    if "fill" in plant.found_by:
        return card_bench("compute", budget_s=0.01)
    name = plant.found_by if plant.found_by in ("memory", "link") else "compute"
    return bench_for(name, budget_s=0.5, clock=TickingClock(0.02), seed=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("plant", OUTSIDE_PLANTS, ids=lambda plant: plant.title)
def test_a_fault_planted_in_pytorch_is_found(
    plant: OutsidePlant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "_LARGE_COPY_BYTES", _LARGE_COPY_BYTES)
    bench = bench_of(plant)
    with plant.planted():
        run(stage_for(plant), bench)
    assert {one.severity for one in bench.findings} & {"error", "doubt"}


def test_no_part_finds_anything_on_a_sound_cpu() -> None:
    bench = bench_for("compute", budget_s=0.0, clock=TickingClock(0.0001), seed=5)
    steps, is_whole = run(Compute(lambda bench: [*every_part(bench), *known_parts()]), bench)
    assert bench.findings == []
    assert is_whole
    assert "11 dtypes" in steps[-1].tested


def test_the_parts_that_find_the_plants_are_there() -> None:
    bench = bench_for("compute")
    for plant in OUTSIDE_PLANTS:
        assert plant.found_by in ("memory", "link") or parts_for(plant, bench), plant.title
