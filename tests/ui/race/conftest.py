"""The race's tab over an engine that answers from a script."""

from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.race import race as race_module
from gpu_studio.model.studio import Studio
from gpu_studio.ui.race.race_tab import RaceTab
from gpu_studio.ui.theme import Theme
from tests.fakes.descriptions import described_for
from tests.fakes.race_answers import race_run
from tests.fakes.scripted_engine import Engines


@pytest.fixture(autouse=True)
def words_change_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_module, "_WORDS_MS", 10)


@pytest.fixture
def engines(inventory: Any, tmp_path: Path) -> Engines:
    return Engines(
        {
            DescribeEngine: [described_for(inventory)],
            RunWorkload: lambda _engine, request: race_run(request),
        }
    )


@pytest.fixture
def tab(qtbot: QtBot, ready_studio: Studio, theme: Theme) -> RaceTab:
    """The tab in a window of its own, with its engine described."""
    tab = RaceTab(ready_studio, theme)
    qtbot.addWidget(tab)
    tab.resize(1240, 720)
    with qtbot.waitActive(tab):
        tab.show()
        tab.activateWindow()
    return tab
