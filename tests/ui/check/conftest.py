"""The check's tab over an engine that answers from a script."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from gpu_studio.model.check import card_check
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui.check.check_tab import CheckTab
from gpu_studio.ui.theme import Theme
from tests.fakes.check_answers import checking_engines
from tests.fakes.pc import SteadySensors
from tests.fakes.scripted_engine import Engines


@pytest.fixture(autouse=True)
def words_change_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(card_check, "_WORDS_MS", 10)


@pytest.fixture
def engines(inventory: Any) -> Engines:
    return checking_engines(inventory)


@pytest.fixture
def studio(
    qapp: object,
    engines: Engines,
    sensor_source: SteadySensors,
    settings: Settings,
    tmp_path: Path,
) -> Iterator[Studio]:
    """The application's state, with a folder for the checks."""
    studio = Studio(engines, sensor_source, settings, data_folder=tmp_path / "data", boot="now")
    yield studio
    studio.close()
    studio.deleteLater()


@pytest.fixture
def tab(qtbot: QtBot, ready_studio: Studio, theme: Theme) -> CheckTab:
    """The tab in a window of its own, with its engine described."""
    tab = CheckTab(ready_studio, theme)
    qtbot.addWidget(tab)
    tab.resize(1240, 720)
    with qtbot.waitActive(tab):
        tab.show()
        tab.activateWindow()
    return tab
