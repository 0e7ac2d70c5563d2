"""The runs of a card whose number changes, because another engine sees other cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.run_messages import RunWorkload
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import gt_1030_card, rtx_3060_card, two_cards
from tests.fakes.run_answers import run_events
from tests.model.benchmark.plans import plan, wait_over

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.studio import Studio
    from tests.fakes.scripted_engine import Engines

FIRST, SECOND = gt_1030_card().identity, rtx_3060_card().identity


@pytest.fixture
def measured(qtbot: QtBot, with_cuda: Engines, engines: Engines, benchmark: Benchmark) -> Benchmark:
    """A benchmark with a run on the CPU and on each of two cards."""
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request)
    benchmark.start(plan(64, devices=("cpu", "cuda:0", "cuda:1")))
    wait_over(qtbot, benchmark)
    assert [run.card for run in benchmark.runs] == ["cpu", FIRST, SECOND]
    return benchmark


def see(qtbot: QtBot, studio: Studio, engines: Engines, visible: str | None) -> None:
    """Start an engine that sees some cards, and wait until it is there."""
    count = 2 if visible is None else 1
    engines.scripts[DescribeEngine] = [
        described_with_cuda(device_count=count, visible_devices=visible)
    ]
    with qtbot.waitSignal(studio.session.engine_described):
        studio.session.restart(EngineEnvironment(visible_devices=visible))


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_run_follows_its_card_and_never_stands_among_anothers(
    qtbot: QtBot, ready_studio: Studio, engines: Engines, measured: Benchmark
) -> None:
    see(qtbot, ready_studio, engines, SECOND)
    assert [(run.request.device, run.card) for run in measured.runs] == [
        ("cpu", "cpu"), ("cuda:0", SECOND),
    ]  # fmt: skip
    assert [result.device for result in measured.results] == ["cpu", "cuda:0"]
    assert "History" in measured.notice.sentence
    see(qtbot, ready_studio, engines, None)
    assert [run.request.device for run in measured.runs] == ["cpu", "cuda:1"]


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_color_is_the_cards_in_any_number_and_at_the_next_start(
    qtbot: QtBot, ready_studio: Studio, engines: Engines, measured: Benchmark
) -> None:
    board = ready_studio.board
    assert (board.colors["cuda:0"], board.colors["cuda:1"]) == (0, 1)
    see(qtbot, ready_studio, engines, SECOND)
    assert (board.colors["cuda:0"], board.colors[SECOND], board.colors[FIRST]) == (1, 1, 0)
    assert ready_studio.settings.choices.cards == (FIRST, SECOND)
