"""Feeding, mixed precision and several cards: ways of a workload side by side."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLabel,
    QPushButton,
    QTableView,
)

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, RequestFailed
from gpu_studio.core.messages.run_messages import RunWorkload, WorkloadOption
from gpu_studio.model.pages import AMP, CHOOSE, FEEDING, SEVERAL_CARDS
from gpu_studio.ui.switcher.switcher_tab import SwitcherTab
from gpu_studio.ui.switcher.workload_pages import ComparisonCard
from tests.driving.window import click, find, numbers, text
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.run_answers import kept_busy, run_events
from tests.ui.switcher.answers import WORKLOADS, free


@pytest.fixture
def feeding(tab):
    tab.pages.go_to(FEEDING)
    return tab


def test_all_ways_of_the_first_option_are_checked_and_the_default_of_the_others(feeding):
    boxes = {box.objectName(): box.isChecked() for box in feeding.findChildren(QCheckBox)}
    assert boxes == {
        "switcher.dataloader.feed.a": True, "switcher.dataloader.feed.b": True,
        "switcher.dataloader.workers.0": True, "switcher.dataloader.workers.2": False,
    }  # fmt: skip
    run = find(feeding, "switcher.dataloader.run", QPushButton)
    assert numbers(run.text()) == ["2"]
    find(feeding, "switcher.dataloader.workers.2", QCheckBox).setChecked(True)
    assert numbers(run.text()) == ["4"]


def test_a_size_that_comes_after_the_page_was_shown_can_be_read(feeding):
    feeding.resize(1000, 700)
    feeding.show()
    QApplication.processEvents()
    sizes = find(feeding, "switcher.dataloader.size", QComboBox)
    sizes.addItem("a batch of 65536 pictures")
    sizes.setCurrentIndex(sizes.count() - 1)
    QApplication.processEvents()
    assert sizes.width() > sizes.fontMetrics().horizontalAdvance(sizes.currentText())
    assert not sizes.geometry().intersects(
        find(feeding, "switcher.dataloader.run", QPushButton).geometry()
    )


def test_the_ways_stand_side_by_side(feeding, engines, studio, qtbot):
    assert find(feeding, "switcher.dataloader.results").isHidden()
    click(feeding, "switcher.dataloader.run")
    free(qtbot, studio)
    asked = [request for request in engines.requests if isinstance(request, RunWorkload)]
    assert [request.options for request in asked] == [
        {"feed": "a", "workers": "0"}, {"feed": "b", "workers": "0"},
    ]  # fmt: skip
    assert {(request.device, request.size) for request in asked} == {("cuda:0", 64)}
    rows = find(feeding, "switcher.dataloader.results", QTableView).model()
    shown = [rows.index(row, 0).data() for row in range(rows.rowCount())]
    assert shown == ["a", "b"]
    assert rows.index(0, 2).data() == "1\u202fMiB"
    parts = rows.index(0, 3).data()
    assert all(part in parts for part in ("loading 2.00\u202fms", "computing 1.00\u202fms"))
    bars = find(feeding, "switcher.dataloader.parts").bars
    assert [[part.name for part in bar.parts] for bar in bars] == [["loading", "computing"]] * 2
    # The parts come from a call of their own: the page says so if they are not the table's call.
    displayed = text(feeding, "switcher.dataloader.parts.note")
    assert "overlap" in displayed
    assert len(displayed.splitlines()) == 1  # once for both ways, whose bars have the figures
    findings = text(feeding, "switcher.dataloader.findings").splitlines()
    assert [line.split()[:2] for line in findings] == [["a:", "a"], ["b:", "b"]]  # way, finding
    plot = find(feeding, "switcher.dataloader.loss")
    assert plot.curve_keys == ("a", "b")


def test_every_way_is_in_sight_where_the_table_is_wider_than_the_window(
    feeding, engines, studio, qtbot
):
    feeding.resize(700, 900)
    feeding.show()
    click(feeding, "switcher.dataloader.run")
    free(qtbot, studio)
    table = find(feeding, "switcher.dataloader.results", QTableView)
    table.horizontalHeader().setMinimumSectionSize(200)
    qtbot.waitUntil(lambda: table.horizontalScrollBar().maximum() > 0)
    qtbot.waitUntil(lambda: table.verticalScrollBar().maximum() == 0)
    last = table.model().index(table.model().rowCount() - 1, 0)
    assert table.viewport().rect().contains(table.visualRect(last).bottomLeft())


def test_a_workload_that_cannot_run_says_why(tab):
    tab.pages.go_to(SEVERAL_CARDS)
    assert text(tab, "switcher.data_parallel.reason") == WORKLOADS[-1].skipped
    assert not find(tab, "switcher.data_parallel.run").isEnabled()


def test_mixed_precision_and_the_same_bits_are_on_one_page(tab, engines, studio, qtbot):
    tab.pages.go_to(AMP)
    for name in ("train_step", "conv2d"):
        title = next(one.title for one in WORKLOADS if one.name == name)
        assert text(tab, f"switcher.{name}.title") == title
    click(tab, "switcher.conv2d.run")
    free(qtbot, studio)
    assert engines.requests[-1].workload == "conv2d"
    assert find(tab, "switcher.train_step.results").isHidden()


def test_no_identifier_stands_in_for_a_title_while_the_engine_starts(unstarted):
    for page, name in ((FEEDING, "dataloader"), (SEVERAL_CARDS, "data_parallel")):
        unstarted.pages.go_to(page)
        assert text(unstarted, f"switcher.{name}.reason")
        assert not text(unstarted, f"switcher.{name}.title")


def test_a_page_of_two_workloads_has_one_primary_button(tab):
    tab.pages.go_to(AMP)
    buttons = [find(tab, f"switcher.{name}.run") for name in ("train_step", "conv2d")]
    assert [created.property("primary") for created in buttons] == [True, False]


def test_a_run_that_fails_says_so_in_the_sentence(feeding, engines, studio, qtbot):
    failure = Failure(FailureKind.TOO_LARGE, "That does not fit.")
    engines.scripts[RunWorkload] = [RequestFailed(failure=failure)]
    click(feeding, "switcher.dataloader.run")
    free(qtbot, studio)
    assert text(feeding, "switcher.dataloader.verdict") == failure.message


def test_a_way_is_named_and_not_called_by_its_identifier(feeding, engines, studio, qtbot):
    way = WorkloadOption(
        name="way", title="Transfer method", values=("pinned", "pinned_non_blocking"),
        sentence="How it comes.", meanings={
            "pinned": "a card can read it.", "pinned_non_blocking": "the same, without waiting.",
        },
    )  # fmt: skip
    loading = msgspec.structs.replace(WORKLOADS[0], options=(way,))
    engines.scripts[DescribeEngine] = [described_with_cuda(workloads=(loading,))]
    studio.session.restart(studio.session.environment)
    name = "switcher.dataloader.way.pinned_non_blocking"
    qtbot.waitUntil(lambda: feeding.findChild(QCheckBox, name) is not None)
    box = find(feeding, name, QCheckBox)
    for words in (box.text(), box.accessibleName(), box.toolTip()):
        assert "_" not in words
        assert "waiting" in words


def test_an_engine_without_the_workload_says_so(engines, studio, theme, qtbot):
    engines.scripts[DescribeEngine] = [described_with_cuda(workloads=())]
    tab = SwitcherTab(studio, theme)
    qtbot.addWidget(tab)
    tab.show()
    tab.pages.go_to(FEEDING)
    before = text(tab, "switcher.dataloader.reason")
    assert before
    studio.start()
    qtbot.waitUntil(lambda: text(tab, "switcher.dataloader.reason") not in ("", before))
    assert not find(tab, "switcher.dataloader.run").isEnabled()


def test_ways_without_a_verdict_beside_other_programs_run_again(feeding, engines, studio, qtbot):
    answers = iter([kept_busy(2e-3), {}, {}, {}])
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request, **next(answers))
    click(feeding, "switcher.dataloader.run")
    free(qtbot, studio)
    assert text(feeding, "switcher.dataloader.verdict").startswith("Which is the fastest cannot")
    again = find(feeding, "switcher.dataloader.again", QPushButton)
    assert (again.text(), again.isHidden()) == ("Run again", False)
    click(feeding, "switcher.dataloader.again")
    free(qtbot, studio)
    assert "cannot be told" not in text(feeding, "switcher.dataloader.verdict")
    assert again.isHidden()


def test_a_hidden_card_shows_what_an_engine_offers_when_it_is_shown(unstarted, studio, qtbot):
    unstarted.pages.go_to(FEEDING)
    unstarted.pages.go_to(CHOOSE)
    cards = unstarted.findChildren(ComparisonCard)
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free)
    assert _offering(cards) == 0
    unstarted.pages.go_to(FEEDING)
    assert _offering(cards) == len(cards) == 1


def _offering(cards):
    """Return how many cards have the title of a workload."""
    return sum(find(card, f"{card.objectName()}.title", QLabel).text() != "" for card in cards)
