"""The tab as a whole: what is there before anything ran, names, keys, the look, a narrow window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QTableView,
    QToolButton,
    QWidget,
)

from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.model.benchmark.results_table import Column
from gpu_studio.ui.benchmark.benchmark_choices import _INDENT, DeviceBoxes
from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.benchmark import cells, run
from tests.driving.pages import settle
from tests.driving.window import click, drawn, find, numbers, sees, text
from tests.fakes.descriptions import described, elementwise

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.settings import Settings
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme
    from tests.fakes.scripted_engine import Engines


def test_everything_a_script_drives_is_there_before_the_tab_was_seen(
    qtbot: QtBot, studio: Studio, theme: Theme
) -> None:
    tab = BenchmarkTab(studio, theme)
    qtbot.addWidget(tab)
    for part in (
        "workload", "sizes", "dtype", "devices", "run", "stop", "progress", "plot", "results",
        "verdict", "export",
    ):  # fmt: skip
        assert tab.findChild(QWidget, f"benchmark.{part}") is not None, part


def test_every_control_has_an_accessible_name(ready: BenchmarkTab) -> None:
    for kind in (QPushButton, QComboBox, QLineEdit, QTableView, QProgressBar, LivePlot):
        for widget in ready.findChildren(kind):
            named = widget.objectName().startswith("benchmark.")
            assert not named or widget.accessibleName(), widget.objectName()
    boxes = ready.findChildren(QCheckBox)
    assert len(boxes) >= 5
    assert all(box.text() or box.accessibleName() for box in boxes)


def test_until_the_engine_is_there_nothing_can_run(
    qtbot: QtBot, studio: Studio, tab: BenchmarkTab
) -> None:
    run_button = find(tab, "benchmark.run", QPushButton)
    assert not run_button.isEnabled()
    assert "engine" in text(tab, "benchmark.progress.text")
    assert numbers(text(tab, "benchmark.verdict")) == []
    qtbot.keyClick(find(tab, "benchmark.sizes", QLineEdit), Qt.Key.Key_Return)
    assert not tab.benchmark.runs
    studio.start()
    qtbot.waitUntil(run_button.isEnabled)
    assert numbers(text(tab, "benchmark.progress.text")) == ["4", "16"]  # runs, seconds
    assert find(tab, "benchmark.workload", QComboBox).currentText() == elementwise().title
    assert text(tab, "benchmark.workload.sentence").startswith(elementwise().sentence)


def test_without_an_engine_there_is_a_way_to_start_one(
    qtbot: QtBot, studio: Studio, engines: Engines, tab: BenchmarkTab, caplog: Any
) -> None:
    fresh = find(tab, "benchmark.fresh_engine", QPushButton)
    assert not fresh.isVisible()
    engines.scripts[DescribeEngine] = [EngineEnded(exit_code=1)]
    studio.start()
    qtbot.waitUntil(fresh.isVisible)
    assert "stopped" in text(tab, "benchmark.progress.text")
    engines.scripts[DescribeEngine] = [described()]
    click(tab, "benchmark.fresh_engine")
    qtbot.waitUntil(find(tab, "benchmark.run", QPushButton).isEnabled)
    assert not fresh.isVisible()


def test_the_tab_key_goes_through_the_parts_as_they_are_read(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    """Of the two views one is reached; the arrow keys go to the other."""
    run(ready, "64, 128")
    first = find(ready, "benchmark.workload", QComboBox)
    first.setFocus()
    reached = []
    for _ in range(21):
        widget = QApplication.focusWidget()
        assert widget is not None
        reached.append(widget.objectName().removeprefix("benchmark."))
        qtbot.keyClick(widget, Qt.Key.Key_Tab)
    assert reached == [
        "workload", "devices.cpu", "more", "sizes", "sweep", "dtype.float32",
        "dtype.float16", "dtype.float64", "dtype.bfloat16", "budget", "mode.transfers",
        "mode.naive", "mode.sustained",
        "expert",
        "trust", "plot.sizes", "results",
        "view.live", "clear", "export", "run",
    ]  # fmt: skip
    assert first.hasFocus()


def test_most_options_are_folded_and_say_what_differs_from_the_default(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    more, sizes = find(ready, "benchmark.more", QToolButton), find(ready, "benchmark.sizes")
    click(ready, "benchmark.more")
    assert not sizes.isVisible()
    assert find(ready, "benchmark.devices.cpu", QCheckBox).isVisible()
    assert numbers(more.text()) == []
    assert numbers(text(ready, "benchmark.more.summary"))[0] == "4"  # sizes
    find(ready, "benchmark.mode.transfers", QCheckBox).setChecked(True)
    find(ready, "benchmark.dtype.float16", QCheckBox).setChecked(True)
    assert numbers(more.text()) == ["2"]
    assert "float16" in text(ready, "benchmark.more.summary")
    find(ready, "benchmark.sizes", QLineEdit).setText("no size")
    assert sizes.isVisible()  # a mistake is shown
    find(ready, "benchmark.sizes", QLineEdit).setText("64")
    assert numbers(more.text()) == ["3"]


def test_clear_brings_the_empty_page_back(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(ready, "64, 128")
    click(ready, "benchmark.clear")
    assert cells(ready, Column.SIZE) == []
    assert numbers(text(ready, "benchmark.verdict")) == []
    assert not find(ready, "benchmark.results", QTableView).isVisible()
    assert not find(ready, "benchmark.export", QPushButton).isVisible()


def test_before_the_first_run_the_question_fills_the_page(
    qtbot: QtBot, tab: BenchmarkTab, studio: Studio
) -> None:
    """It is in the middle, with the other ways to a result; these stay when they are there."""
    hero, ways = find(tab, "benchmark.hero"), ("published", "recording")
    assert not any(sees(tab, f"benchmark.view.{way}") for way in ways), "devices may still come"
    studio.start()
    qtbot.waitUntil(lambda: sees(tab, "benchmark.view.published"))
    choices = find(tab, "benchmark.choices")
    assert hero.height() == choices.height() > 500
    headline = find(tab, "benchmark.hero.headline", QLabel)
    assert abs(headline.geometry().center().x() - hero.width() // 2) <= 1
    assert headline.alignment() & Qt.AlignmentFlag.AlignHCenter
    assert hero.height() // 4 < headline.y() < hero.height() // 2
    run(tab, "64")
    assert hero.height() < choices.height() // 2
    assert not headline.alignment() & Qt.AlignmentFlag.AlignHCenter
    assert not any(sees(tab, f"benchmark.view.{way}") for way in ways)
    click(tab, "benchmark.clear")
    assert all(sees(tab, f"benchmark.view.{way}") for way in ways)
    qtbot.waitUntil(lambda: hero.height() == choices.height())
    click(tab, "benchmark.view.history")
    assert not hero.isVisible()


def test_in_a_bar_and_back_each_name_stands_below_its_box(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    """The words of “More options” begin where all others do."""
    boxes = find(ready, "benchmark.devices", DeviceBoxes)
    more = find(ready, "benchmark.more")
    for width in (1240, 960, 1240):
        ready.window().resize(width, 720)
        settle()
        assert more.width() == more.sizeHint().width(), "its words would be in its middle"
    assert {one.indent() for one in boxes._notes} == {_INDENT}


def test_the_look_changes_while_results_are_shown(
    qtbot: QtBot, ready: BenchmarkTab, settings: Settings, theme: Theme
) -> None:
    run(ready, "64, 128")
    plot = find(ready, "benchmark.plot.sizes", LivePlot)
    qtbot.waitUntil(lambda: plot.plot is not None)
    settings.change(theme="dark" if not theme.is_dark else "light")
    assert drawn(ready, "benchmark.plot.sizes", "cpu float32")[0] == [64, 128]
    assert isinstance(ready.benchmark.results[0], RunFinished)


def test_in_a_narrow_window_nothing_is_cut_off(qtbot: QtBot, ready: BenchmarkTab) -> None:
    run(ready, "64, 128")
    sizes = find(ready, "benchmark.view.sizes", QPushButton)
    whole = sizes.text()
    ready.window().resize(560, 560)
    qtbot.waitUntil(lambda: len(sizes.text()) < len(whole))
    assert sizes.accessibleName() == whole
    ready.window().resize(760, 560)
    click(ready, "benchmark.view.history")
    page = ready.window()
    qtbot.waitUntil(lambda: page.isVisible())
    QApplication.processEvents()
    inner = page.widget()
    assert inner is not None
    assert inner.width() <= page.viewport().width()
    for created in ready.findChildren(QPushButton):
        if created.isVisible():
            assert created.width() >= created.sizeHint().width(), created.objectName()
    click(ready, "benchmark.view.live")
    results = find(ready, "benchmark.results", QTableView)
    QApplication.processEvents()
    assert results.horizontalScrollBar().maximum() == 0
    assert results.isColumnHidden(Column.FASTER)  # with one device there is nothing to compare


def test_in_a_narrow_page_the_choices_are_a_bar_and_the_focus_stays(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    def tops(*names: str) -> set[int]:
        widgets = [find(ready, f"benchmark.{name}", QWidget) for name in names]
        return {w.mapTo(ready, w.rect().center()).y() // 20 for w in widgets}

    row = ("workload", "devices.cpu", "run")
    hero = find(ready, "benchmark.hero", QWidget)
    card = find(ready, "benchmark.choices", QWidget)

    def is_a_bar() -> bool:
        return hero.mapTo(ready, QPoint(0, 0)).y() > card.geometry().bottom()

    for width, is_bar in ((1400, False), (1000, True), (1400, False)):
        run_button = find(ready, "benchmark.run", QPushButton)
        run_button.setFocus()
        ready.window().resize(width, 800)
        qtbot.waitUntil(lambda wanted=is_bar: is_a_bar() == wanted == (len(tops(*row)) == 1))
        assert run_button.hasFocus()
        assert run_button.isVisible()
        more, sentence = (find(ready, f"benchmark.{name}") for name in ("more", "progress.text"))
        middles = [one.mapTo(ready, one.rect().center()).y() for one in (more, sentence)]
        assert (abs(middles[0] - middles[1]) < more.height() // 2) == is_bar, "in one line"


def test_more_options_open_under_the_bar_and_move_the_page_down(
    qtbot: QtBot, ready: BenchmarkTab
) -> None:
    ready.window().resize(1000, 640)
    sizes = find(ready, "benchmark.sizes", QLineEdit)
    hero = find(ready, "benchmark.hero", QWidget)
    more = find(ready, "benchmark.more", QToolButton)
    more.setChecked(True)
    qtbot.waitUntil(lambda: sizes.isVisible() and sizes.y() >= 0)
    bar_end = more.mapTo(ready, QPoint(0, more.height())).y()
    assert sizes.mapTo(ready, QPoint(0, 0)).y() >= bar_end
    qtbot.waitUntil(
        lambda: hero.mapTo(ready, QPoint(0, 0)).y() > sizes.mapTo(ready, QPoint(0, 0)).y()
    )
    more.setChecked(False)
    assert not sizes.isVisible()
