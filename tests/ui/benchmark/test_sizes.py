"""The sizes: a list, a range, and the sentences for wrong ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QPushButton

from gpu_studio.core.messages.run_messages import RunWorkload
from tests.driving.benchmark import cells, type_sizes, wait_over, wait_samples
from tests.driving.window import click, find, text
from tests.ui.benchmark.answers import hold, with_a_card

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

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
    assert sentence in text(ready, "benchmark.sizes.note")
    assert field.property("invalid") is True
    assert not find(ready, "benchmark.run", QPushButton).isEnabled()
    assert find(ready, "benchmark.workload", QComboBox).isEnabled()
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert not ready.benchmark.runs
    type_sizes(ready, "64")
    assert "Side" in text(ready, "benchmark.sizes.note")
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
def test_one_click_looks_closer_where_the_winner_changes(qtbot: QtBot, ready: BenchmarkTab) -> None:
    type_sizes(ready, "128, 1024")
    click(ready, "benchmark.sweep")
    wait_over(ready)
    sizes = [result.size for result in ready.benchmark.results]
    assert sizes[:8:2] == [128, 256, 512, 1024]
    assert any(256 < size < 512 for size in sizes[8:])
    click(ready, "benchmark.devices.cpu")
    assert not find(ready, "benchmark.sweep", QPushButton).isEnabled(), "nothing to compare with"


def test_return_in_the_sizes_runs_and_escape_stops(
    qtbot: QtBot, ready: BenchmarkTab, engines: Engines
) -> None:
    engines.scripts[RunWorkload] = hold
    field = type_sizes(ready, "64")
    field.setFocus()
    qtbot.keyClick(field, Qt.Key.Key_Return)
    wait_samples(ready)
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    wait_over(ready)
    assert cells(ready, "Trust") == ["■ stopped"]
