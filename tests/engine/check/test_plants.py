import threading
from typing import get_args

import pytest

from gpu_studio.core.check.check_record import stage_verdict
from gpu_studio.core.check.stages import OVERTIME_S, PLANTED_FAULTS
from gpu_studio.core.messages.check_messages import STAGE_NAMES, PlantKind, StageName
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.engine.check import known_answers, link
from gpu_studio.engine.check.compute import every_work
from gpu_studio.engine.check.known_answers import answer_works
from gpu_studio.engine.check.known_work import KnownWork, in_turns
from gpu_studio.engine.check.stage_run import StageRun
from tests.engine.check.outside_plants import OUTSIDE_PLANTS, OutsidePlant
from tests.engine.check.stage_runs import STAGES, TickingClock, card_run, follow, run_for

# Each kind in one of its stages; a wrong bit, in each.
_FOUND = [
    (stage, fault.kind)
    for fault in PLANTED_FAULTS
    for stage in (fault.found_by if fault.kind == "bit" else fault.found_by[:1])
]


@pytest.mark.parametrize(("stage", "kind"), _FOUND)
def test_a_stage_finds_its_planted_faults(stage: StageName, kind: PlantKind) -> None:
    run = run_for(stage, kind, offset_s=60.0)
    if kind == "slow_memory":  # on a card, at the same clock
        run = card_run(stage, kind, planned_s=6.0, read=lambda: Telemetry(memory_clock_mhz=3004.0))
    follow(run)
    verdict = stage_verdict(run.findings, has_tested=True, is_complete=True)
    is_wrong_result = kind in ("bit", "stuck", "swap", "drop", "edge")
    assert verdict == ("failed" if is_wrong_result else "inconclusive")
    assert (run.errors > 0) == is_wrong_result


@pytest.mark.parametrize("stage", STAGE_NAMES)
def test_without_a_plant_nothing_is_found_on_the_cpu(stage: StageName) -> None:
    run = run_for(stage)
    _, is_whole = follow(run)
    assert (run.findings, run.errors) == ([], 0)
    assert is_whole
    assert run.tested


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_a_stop_ends_a_stage_after_its_step(name: StageName) -> None:
    stop = threading.Event()
    run = run_for(name, stop=stop)
    steps = STAGES[name](run)
    next(steps)
    stop.set()
    more, is_whole = follow(run, steps)
    assert more <= 1
    assert not is_whole


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_on_a_busy_pc_a_stage_takes_longer_to_test_everything_once(name: StageName) -> None:
    planned_s = 5.0 if name == "load" else 0.02  # its periods alone take six seconds
    run = run_for(name, planned_s=planned_s, clock=TickingClock(0.01))
    _, is_whole = follow(run)
    assert is_whole
    assert run.tested
    assert planned_s < run.elapsed_s < planned_s + OVERTIME_S


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_a_stage_that_has_not_tested_everything_ends_after_its_overtime(name: StageName) -> None:
    run = run_for(name, planned_s=0.2, clock=TickingClock(OVERTIME_S / 6))
    _, is_whole = follow(run)
    assert not is_whole


def test_every_planted_fault_is_found_by_a_stage_but_one_of_older_records() -> None:
    kinds = [fault.kind for fault in PLANTED_FAULTS]
    assert sorted([*kinds, "slow"]) == sorted(get_args(PlantKind))
    assert all(fault.found_by for fault in PLANTED_FAULTS)


# The other tests of this folder copy less at once, and compare fewer answers.
_LARGE_COPY_BYTES, _KNOWN = link._LARGE_COPY_BYTES, known_answers.KNOWN


@pytest.fixture
def all_work(little_work: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_LARGE_COPY_BYTES", _LARGE_COPY_BYTES)
    monkeypatch.setattr(known_answers, "KNOWN", _KNOWN)


def works_for(run: StageRun, begin: str = "") -> list[KnownWork]:
    return [work for work in (*every_work(run), *answer_works()) if work.title.startswith(begin)]


@pytest.mark.usefixtures("all_work")
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


@pytest.mark.usefixtures("all_work")
def test_no_work_finds_anything_on_a_sound_cpu() -> None:
    run = run_for("compute", planned_s=0.0, clock=TickingClock(0.0001), seed=5)
    _, is_whole = follow(run, in_turns(run, works_for(run)))
    assert run.findings == []
    assert is_whole
    assert "11 dtypes" in run.tested
