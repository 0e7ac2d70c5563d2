"""Faults that are planted in PyTorch itself: each is found, and a sound CPU has none."""

import pytest

from gpu_studio.engine.check import known_answers, link
from gpu_studio.engine.check.compute import every_work
from gpu_studio.engine.check.known_answers import answer_works
from gpu_studio.engine.check.known_work import KnownWork, in_turns
from gpu_studio.engine.check.stage_run import StageRun
from tests.engine.check.outside_plants import OUTSIDE_PLANTS, OutsidePlant
from tests.engine.check.stage_runs import TickingClock, card_run, follow, run_for

# The other tests of this folder copy less at once, and compare fewer answers.
_LARGE_COPY_BYTES, _KNOWN = link._LARGE_COPY_BYTES, known_answers.KNOWN


@pytest.fixture(autouse=True)
def all_work(little_work: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_LARGE_COPY_BYTES", _LARGE_COPY_BYTES)
    monkeypatch.setattr(known_answers, "KNOWN", _KNOWN)


def works_for(run: StageRun, begin: str = "") -> list[KnownWork]:
    return [work for work in (*every_work(run), *answer_works()) if work.title.startswith(begin)]


@pytest.mark.parametrize("plant", OUTSIDE_PLANTS, ids=lambda plant: plant.title)
def test_a_fault_planted_in_pytorch_is_found(plant: OutsidePlant) -> None:
    name = plant.found_by if plant.found_by in ("memory", "link") else "compute"
    run = run_for(name, planned_s=0.5, clock=TickingClock(0.02), seed=1)  # type: ignore[arg-type]
    if "fill" in plant.found_by:
        run = card_run("compute", planned_s=0.01)
    steps = in_turns(run, works_for(run, plant.found_by)) if name == "compute" else None
    with plant.planted():
        follow(run, steps)
    assert {one.severity for one in run.findings} & {"error", "doubt"}


def test_no_work_finds_anything_on_a_sound_cpu() -> None:
    run = run_for("compute", planned_s=0.0, clock=TickingClock(0.0001), seed=5)
    _, is_whole = follow(run, in_turns(run, works_for(run)))
    assert run.findings == []
    assert is_whole
    assert "11 dtypes" in run.tested
