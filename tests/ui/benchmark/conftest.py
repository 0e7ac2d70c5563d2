"""The benchmark's tab over an engine that answers from a script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtWidgets import QFileDialog, QToolButton

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.ui.benchmark.benchmark_tab import BenchmarkTab
from gpu_studio.ui.scroll_page import TabScroll
from tests.driving.window import find
from tests.fakes.descriptions import described, described_for, elementwise
from tests.fakes.scripted_engine import Engines
from tests.ui.benchmark.answers import train_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme


@pytest.fixture
def engines(inventory: Any) -> Engines:
    return Engines({DescribeEngine: [described_for(inventory)]})


@pytest.fixture
def tab(qtbot: QtBot, studio: Studio, theme: Theme, tmp_path: Path) -> Iterator[BenchmarkTab]:
    """The tab in a window that scrolls it, its options unfolded; the engine has not started yet."""
    studio.data_folder = tmp_path / "data"
    tab = BenchmarkTab(studio, theme)
    window = TabScroll(tab)
    qtbot.addWidget(window)
    window.resize(1250, 720)
    with qtbot.waitActive(window):  # shortcuts are heard by the active window alone
        window.show()
        window.activateWindow()
    find(tab, "benchmark.options.more", QToolButton).setChecked(True)
    yield tab
    window.close()


@pytest.fixture
def ready(qtbot: QtBot, studio: Studio, tab: BenchmarkTab) -> BenchmarkTab:
    """The tab with its engine described and its devices found."""
    studio.start()
    qtbot.waitUntil(lambda: studio.session.state.is_idle and studio.sensors.inventory is not None)
    return tab


@pytest.fixture
def with_training(engines: Engines) -> Engines:
    """An engine that has one workload with an option, and one that cannot run here."""
    scan = train_step(
        name="data_parallel", title="Data parallel", skipped="It needs two GPUs: there is none."
    )
    engines.scripts[DescribeEngine] = [described(workloads=(elementwise(), train_step(), scan))]
    return engines


@pytest.fixture
def chosen_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the file dialog says to save, without its suffix."""
    path = tmp_path / "results"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_args: (str(path), ""))
    return path
