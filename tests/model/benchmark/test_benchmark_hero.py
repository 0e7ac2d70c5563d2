"""What the top of the Benchmark tab shows in each state of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import format_rate
from gpu_studio.model.benchmark.benchmark import RunSource
from gpu_studio.model.benchmark.benchmark_hero import Hero, hero_of
from gpu_studio.model.devices.device_board import device_rows
from tests.fakes.descriptions import described_for
from tests.fakes.pc import cpu_device, gt_1030_card
from tests.fakes.run_answers import (
    batch,
    call_time_s,
    finished,
    kept_busy,
    run_events,
    samples_of,
    started,
)
from tests.model.benchmark.plans import FATAL, held, plan, wait_over, wait_paused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytestqt.qtbot import QtBot

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.studio import Studio
    from tests.fakes.scripted_engine import Engines, ScriptedEngine

BOTH = ("cpu", "cuda:0")
REFUSED = Failure(FailureKind.TOO_LARGE, "It needs 64 GiB, 3 GiB are free. Use a smaller size.")


def shown(benchmark: Benchmark, chosen: Run | None = None, **changes: Any) -> Hero:
    titles = {"elementwise": "Element by element"}
    pc = Inventory(devices=(cpu_device(), gt_1030_card(torch_index=0)))
    return hero_of(benchmark, device_rows(pc, None), chosen=chosen, titles=titles, **changes)


def values(hero: Hero) -> dict[str, tuple[str, bool]]:
    return {bar.name: (bar.text.replace("\u202f", " "), bar.is_final) for bar in hero.bars}


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


def test_one_device_has_its_rate_and_no_bar_that_nothing_is_beside(
    qtbot: QtBot, benchmark: Benchmark
) -> None:
    benchmark.start(plan(64))
    wait_over(qtbot, benchmark)
    hero = shown(benchmark)
    assert hero.headline == format_rate(benchmark.results[-1].throughput, "B/s")
    assert (hero.bars, hero.work.split(" · ")[0]) == ((), "CPU")


def test_each_card_and_each_mode_has_a_bar(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request)
    copies = msgspec.structs.replace(plan(2048, devices=(*BOTH, "cuda:1")), transfers=True)
    benchmark.start(copies)
    wait_over(qtbot, benchmark)
    hero = shown(benchmark)
    assert "40" in hero.bars[0].tip  # its samples
    assert list(values(hero)) == [
        "CPU", "GT 1030", "GT 1030, with copies", "cuda:1", "cuda:1, with copies",
    ]  # fmt: skip
    assert "compared with the CPU" in hero.work


def test_a_doubt_is_on_the_chip_with_all_reasons_behind_it(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    def few(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        yield started(request)
        yield batch(request, samples_of(request, 3), spent_s=0.1)
        yield finished(request, samples_of(request, 3), other_processes=True)

    engines.scripts[RunWorkload] = few
    benchmark.start(plan(2048, devices=BOTH))
    wait_over(qtbot, benchmark)
    hero = shown(benchmark)
    assert (hero.chip.sentence, hero.chip.tone) == ("Busy CPU · 2 more", Tone.AMBER)
    assert any(
        "another program used the card" in reason for reason in hero.chip.detail.splitlines()
    )
    assert "faster" not in hero.headline


def test_wrong_results_come_first_and_take_the_ratio_away(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request, verified=request.device == "cpu"
    )
    benchmark.start(plan(2048, devices=BOTH))
    wait_over(qtbot, benchmark)
    hero = shown(benchmark)
    assert (hero.headline, hero.chip.tone) == ("Wrong results", Tone.FAILURE)
    assert "2048" in hero.chip.sentence


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
    assert {text for text, _ in values(hero).values()} == {""}


def test_a_full_card_says_once_what_to_do(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    full = Failure(FailureKind.OUT_OF_MEMORY, "CUDA out of memory.")
    engines.scripts[RunWorkload] = lambda _engine, request: [
        started(request), RunFailed(run_id=request.run_id, failure=full)
    ]  # fmt: skip
    benchmark.start(plan(64, 2048, devices=BOTH))
    wait_over(qtbot, benchmark)
    work = shown(benchmark).work
    assert (work.count(full.message), work.count("smaller sizes")) == (1, 1)


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
    assert values(hero)["CPU"] == ("4.20 ms", False)


def test_a_recording_is_not_run_again(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, studio: Studio
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(
        request, **kept_busy(call_time_s(request))
    )
    source = RunSource(studio.session, "of another PC")
    benchmark.start(plan(512, devices=BOTH), source)
    wait_over(qtbot, benchmark)
    assert not benchmark.can_run_again
    assert shown(benchmark).action is None
    count = len(benchmark.runs)
    benchmark.run_again()
    assert (len(benchmark.runs), benchmark.state.is_busy) == (count, False)
