"""The sizes: a list, a range, and the sentences for wrong ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QLineEdit, QPushButton

from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.benchmark.results_table import Column
from tests.driving.benchmark import cells, type_sizes, wait_over, wait_samples
from tests.driving.window import click, find, text
from tests.ui.benchmark.answers import hold, with_a_card

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.model.settings import Settings
    from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
    from tests.fakes.scripted_engine import Engines


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("0", " 0 "),
        ("-5", "“-5”"),
        ("99999999999", "99999999999"),
        ("12, abc", "“abc”"),
        (" ", "size"),
    ],
)
def test_a_wrong_size_gets_a_sentence_and_disables_run_alone(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines, typed: str, sentence: str
) -> None:
    field = type_sizes(ready, typed)
    assert sentence in text(ready, "benchmark.sizes.error")
    assert field.property("invalid") is True
    assert not find(ready, "benchmark.run", QPushButton).isEnabled()
    assert find(ready, "benchmark.workload", QComboBox).isEnabled()
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert not ready.benchmark.runs
    type_sizes(ready, "64")
    assert text(ready, "benchmark.sizes.error") == ""
    assert find(ready, "benchmark.run", QPushButton).isEnabled()


def test_nothing_chosen_is_reported(qtbot: QtBot, ready: BenchmarkTab) -> None:
    click(ready, "benchmark.devices.cpu")
    assert "device" in text(ready, "benchmark.progress.text")
    assert not find(ready, "benchmark.run", QPushButton).isEnabled()
    click(ready, "benchmark.devices.cpu")
    click(ready, "benchmark.dtype.float32")
    assert "precision" in text(ready, "benchmark.progress.text")
    assert not find(ready, "benchmark.run", QPushButton).isEnabled()


@with_a_card
def test_a_sweep_looks_closer_where_the_winner_changes(
    qtbot: QtBot, ready: BenchmarkTab, settings: Settings
) -> None:
    click(ready, "benchmark.sweep")
    assert not find(ready, "benchmark.sizes", QLineEdit).isVisible()
    assert "crossover" in text(ready, "benchmark.progress.text")
    for name, typed in (("low", "128"), ("high", "1024")):
        field = find(ready, f"benchmark.sweep.{name}", QLineEdit)
        field.selectAll()
        qtbot.keyClicks(field, typed)
    click(ready, "benchmark.run")
    wait_over(ready)
    sizes = [result.size for result in ready.benchmark.results]
    assert sizes[:8:2] == [128, 256, 512, 1024]
    assert any(256 < size < 512 for size in sizes[8:])
    assert settings.choices.sweep
    assert settings.choices.sweep_range == "128:1024"


@pytest.mark.parametrize(
    ("low", "high", "sentence"),
    [("64", "32", "empty"), ("", "64", "size"), ("64", "x", "“x”")],
)
def test_a_wrong_range_gets_a_sentence(
    qtbot: QtBot, ready: BenchmarkTab, low: str, high: str, sentence: str
) -> None:
    click(ready, "benchmark.sweep")
    find(ready, "benchmark.sweep.low", QLineEdit).setText(low)
    find(ready, "benchmark.sweep.high", QLineEdit).setText(high)
    assert sentence in text(ready, "benchmark.sizes.error")
    assert not find(ready, "benchmark.run", QPushButton).isEnabled()
    click(ready, "benchmark.sweep")  # the list is as it was
    assert find(ready, "benchmark.run", QPushButton).isEnabled()


def test_return_in_the_sizes_runs_and_escape_stops(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    field = type_sizes(ready, "64")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    wait_samples(ready)
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    wait_over(ready)
    assert cells(ready, Column.STAMP) == ["■ stopped"]
