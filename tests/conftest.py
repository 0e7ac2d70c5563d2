"""What every test gets, and what none may leave behind."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import gc
import weakref
from typing import TYPE_CHECKING

import hypothesis
import pytest
from shiboken6 import isValid

from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.model.worker import Worker
from gpu_studio.ui.theme import Theme
from tests.fakes.pc import SteadySensors, cpu_only
from tests.fakes.scripted_engine import Engines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PySide6.QtWidgets import QApplication
    from pytestqt.qtbot import QtBot

    from gpu_studio.core.pc.devices import Inventory

# The same cases at every run, whatever else the machine does meanwhile; to search for others:
# pytest --hypothesis-profile=default
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None)
hypothesis.settings.load_profile("steady")


@pytest.fixture(autouse=True)
def nothing_left_behind(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fail a test that leaves a window open or a worker running."""
    if not {"qtbot", "qapp", "studio"} & set(request.fixturenames):
        yield
        return
    request.getfixturevalue("qapp")
    from PySide6.QtCore import QCoreApplication, QEvent
    from PySide6.QtWidgets import QApplication

    workers: weakref.WeakSet[Worker] = weakref.WeakSet()
    start = Worker.start

    def noted_start(worker: Worker) -> None:
        workers.add(worker)
        start(worker)

    monkeypatch.setattr(Worker, "start", noted_start)
    # As in the program: a worker's thread must not collect the window's objects.
    gc.disable()
    before = {id(widget) for widget in QApplication.topLevelWidgets()}
    yield
    gc.enable()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    widgets = [
        widget
        for widget in QApplication.topLevelWidgets()
        if id(widget) not in before and not widget.isHidden()
    ]
    running = [worker for worker in workers if isValid(worker) and worker.isRunning()]
    for worker in running:  # so that the next test starts clean
        worker.requestInterruption()
        worker.wait(2000)
    assert not widgets, f"windows left open: {widgets}"
    assert not running, "a worker was left running"


@pytest.fixture
def inventory() -> Inventory:
    """The devices of `studio`; a test overrides it with ``parametrize("inventory", …)``."""
    return cpu_only()


@pytest.fixture
def engines() -> Engines:
    """The scripted engines of `studio`: change ``engines.scripts`` before it starts."""
    return Engines()


@pytest.fixture
def sensor_source(inventory: Inventory) -> SteadySensors:
    """The sensor reader of `studio`."""
    return SteadySensors(inventory)


@pytest.fixture
def settings() -> Settings:
    """Settings that are kept nowhere."""
    return Settings(None)


@pytest.fixture
def studio(
    qapp: QApplication, engines: Engines, sensor_source: SteadySensors, settings: Settings
) -> Iterator[Studio]:
    """The application's state with a scripted engine; nothing has started yet."""
    studio = Studio(engines, sensor_source, settings)
    yield studio
    studio.close()
    # Here and now: left to the garbage collector, its timers may be destroyed in a worker's thread.
    studio.deleteLater()


@pytest.fixture
def ready_studio(qtbot: QtBot, studio: Studio) -> Studio:
    """The same with its engine described and its devices found."""
    studio.start()
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    return studio


@pytest.fixture
def theme(qapp: QApplication, settings: Settings) -> Theme:
    """The theme in force."""
    theme = Theme(settings)
    theme.apply()
    return theme
