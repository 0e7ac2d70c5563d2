"""What is told while a plan is on its way, and how often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtCore import QTimer

from gpu_studio.core.messages.run_messages import RunPhaseChanged, RunWorkload
from gpu_studio.model.benchmark.benchmark import REST_S, Benchmark
from tests.fakes.pc import gt_1030
from tests.fakes.run_answers import batch, finished, started
from tests.fakes.scripted_engine import Engines, Pause, ScriptedEngine
from tests.model.benchmark.plans import held, plan, wait_over, wait_paused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytestqt.qtbot import QtBot


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_what_runs_now_is_reported(qtbot: QtBot, benchmark: Benchmark, engines: Engines) -> None:
    engines.scripts[RunWorkload] = held(expected_call_s=0.1)
    benchmark.start(plan(512, 1024, devices=("cuda:0",)))
    assert "waiting for PyTorch" in benchmark.sentence
    wait_paused(qtbot, engines, benchmark)
    # 1.5 s of this run are left, and 2 s and a usual setup of the other.
    sentence = benchmark.sentence.replace("\u202f", " ")
    assert all(part in sentence for part in ("512 × 512", "GT 1030", "timing", "6 s left"))
    assert benchmark.progress == pytest.approx(0.25 / 2)
    assert benchmark.warning == ""
    benchmark.stop()
    wait_over(qtbot, benchmark)


def test_minutes_are_reported_as_minutes(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = held()
    benchmark.start(plan(512, budget_s=100.0))
    wait_paused(qtbot, engines, benchmark)
    assert benchmark.sentence.endswith("about 2\u202fmin left")
    benchmark.stop()
    wait_over(qtbot, benchmark)


def test_numbers_change_a_few_times_a_second_however_many_batches_come(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def many(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        yield started(request)
        yield RunPhaseChanged(run_id=request.run_id, phase="timing")
        for index in range(500):
            yield batch(request, (0.001,), spent_s=index / 1000)
        yield Pause()
        yield finished(request, (0.001,))

    # As if all of them came within one turn of the timer, however busy this machine is.
    monkeypatch.setattr("gpu_studio.model.benchmark.benchmark._SOONEST_UPDATE_MS", 1_800_000)
    monkeypatch.setattr("gpu_studio.model.benchmark.benchmark._LATEST_UPDATE_MS", 3_600_000)
    engines.scripts[RunWorkload] = many
    changes: list[bool] = []
    benchmark.plan_changed.connect(lambda: changes.append(True))
    for timer in benchmark.findChildren(QTimer):
        timer.setInterval(3_600_000)
    benchmark.start(plan(64))
    run = benchmark.running
    assert run is not None
    qtbot.waitUntil(lambda: len(run.series) == 500)
    # its begin, its start and its phase, and nothing for each batch: the timer's turn has not come
    assert len(changes) == 3
    for timer in benchmark.findChildren(QTimer):
        timer.setInterval(1)
    qtbot.waitUntil(lambda: len(changes) > 3)
    engines.latest.go()
    wait_over(qtbot, benchmark)
    assert not any(timer.isActive() for timer in benchmark.findChildren(QTimer))


def test_what_a_run_hands_over_before_a_rest_is_reported_at_once(
    qtbot: QtBot, benchmark: Benchmark, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lines(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
        assert request.rest_s == REST_S
        yield started(request)
        for index in range(5):
            yield batch(request, (0.001,), spent_s=index / 1000)
        yield finished(request, (0.001,))

    # As if each line came later than anybody changes text, and the timer never. Qt may round a
    # coarse timer up: no remaining time is too long.
    monkeypatch.setattr("gpu_studio.model.benchmark.benchmark._SOONEST_UPDATE_MS", -3_600_000)
    engines.scripts[RunWorkload] = lines
    changes: list[bool] = []
    benchmark.plan_changed.connect(lambda: changes.append(True))
    for timer in benchmark.findChildren(QTimer):
        timer.setInterval(3_600_000)
    monkeypatch.setattr("gpu_studio.model.benchmark.benchmark._LATEST_UPDATE_MS", 3_600_000)
    benchmark.start(plan(64))
    wait_over(qtbot, benchmark)
    # its begin, its start, its five lines and its end
    assert len(changes) == 8
