"""What the top of the Benchmark tab shows in each state of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import RunFailed, RunInTurns, RunWorkload
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.model.benchmark.benchmark_hero import Hero, hero_of
from gpu_studio.model.devices.device_board import device_rows
from tests.fakes.descriptions import described_for
from tests.fakes.pc import cpu_device, gt_1030_card
from tests.fakes.run_answers import started
from tests.model.benchmark.plans import FATAL, held, held_in_turns, plan, wait_over, wait_paused

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from tests.fakes.scripted_engine import Engines

BOTH = ("cpu", "cuda:0")
REFUSED = Failure(FailureKind.TOO_LARGE, "It needs 64 GiB, 3 GiB are free. Use a smaller size.")


def shown(benchmark: Benchmark, chosen: Run | None = None, **changes: Any) -> Hero:
    titles = {"elementwise": "Element by element"}
    pc = Inventory(devices=(cpu_device(), gt_1030_card(torch_index=0)))
    return hero_of(benchmark, device_rows(pc, None), chosen=chosen, titles=titles, **changes)


def test_the_question_names_a_card_only_where_pytorch_may_use_one(benchmark: Benchmark) -> None:
    pc = Inventory(devices=(cpu_device(), gt_1030_card(torch_index=0)))
    without_card = Inventory(devices=(cpu_device(),))

    def question(pc: Inventory | None, engine: EngineDescribed | None, *devices: str) -> str:
        return hero_of(benchmark, device_rows(pc, engine), devices=devices).headline

    assert "your PC" in question(None, None, "cpu"), "nothing is known yet"
    assert "your CPU" in question(without_card, None, "cpu")
    assert "your card" in question(pc, None, "cpu"), "the engine may still count it"
    assert "your card" in question(pc, described_for(pc), *BOTH)
    assert "your CPU" in question(pc, described_for(pc), "cpu"), "the card is not chosen"


@pytest.mark.parametrize("failure", [REFUSED, FATAL])
def test_a_failure_says_its_cause_once_and_nothing_is_green(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, failure: Failure
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: [
        started(request), RunFailed(run_id=request.run_id, failure=failure)
    ]  # fmt: skip
    benchmark.start(plan(2048, devices=BOTH))
    wait_over(qtbot, benchmark)
    hero = shown(benchmark)
    assert hero.has_failed
    assert hero.work.count(failure.message) == 1
    assert ("Press Run" in hero.work) is failure.fatal
    assert hero.chip.tone is Tone.FAILURE


def test_a_stop_before_any_result_is_no_failure(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = held()
    benchmark.start(plan(2048))
    wait_paused(qtbot, engines, benchmark)
    benchmark.stop()
    assert shown(benchmark).headline == "Stopping…"
    engines.latest.go()
    wait_over(qtbot, benchmark)
    hero = shown(benchmark)
    assert (hero.headline, hero.has_failed, hero.chip) == ("Stopped", False, Notice())


def test_while_runs_take_turns_their_ratio_is_told_and_called_unfinished(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    engines.scripts[RunInTurns] = held_in_turns(rounds=4)
    benchmark.start(plan(2048, devices=BOTH))
    wait_paused(qtbot, engines, benchmark)
    hero = shown(benchmark)
    assert (hero.headline, hero.is_final) == ("GT 1030 6.8\u202f× faster so far", False)
    assert "left" in hero.chip.sentence
    engines.latest.go()
    wait_over(qtbot, benchmark)


def test_beside_other_programs_no_ratio_is_told_before_there_are_enough_rounds(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    engines.scripts[RunInTurns] = held_in_turns(rounds=4, other_processes=True)
    benchmark.start(plan(2048, devices=BOTH))
    wait_paused(qtbot, engines, benchmark)
    hero = shown(benchmark)
    assert (hero.headline, hero.chip.sentence) == ("Measuring…", "Busy CPU")
    engines.latest.go()
    wait_over(qtbot, benchmark)


def test_a_size_at_which_the_other_side_wins_stands_beside_the_largest(
    qtbot: QtBot, benchmark: Benchmark
) -> None:
    benchmark.start(plan(64, 512, 2048, devices=BOTH))
    wait_over(qtbot, benchmark)
    hero = shown(benchmark)
    assert hero.headline == "GT 1030 6.8\u202f× faster"
    assert "At 64 × 64 the CPU is 48.9 × faster." in hero.work.replace("\u202f", " ")
    assert "64 ×" not in shown(benchmark, benchmark.runs[-1]).work, "one size was asked for"
