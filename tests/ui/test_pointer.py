from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QAbstractSlider,
    QApplication,
    QComboBox,
    QScrollBar,
    QWidget,
)

from gpu_studio.app import build_window
from gpu_studio.model.studio import Studio
from gpu_studio.ui.main_window import MainWindow
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.pages import PAGES, go, scripts_of_all_pages, settle
from tests.fakes.pc import SteadySensors, reading, two_cards


@pytest.fixture
def window(pages_on_sight, qtbot, engines, settings) -> Iterator[MainWindow]:
    """The window on a PC with two cards, before any result."""
    engines.scripts |= scripts_of_all_pages()
    sensors = SteadySensors(two_cards())
    created = build_window(engine_factory=engines, sensor_source=sensors, settings=settings)
    created.resize(1280, 800)
    created.show()
    studio = created.findChild(Studio)
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    with qtbot.waitSignal(studio.sensors.reading_taken):
        sensors.send(reading(two_cards(), 1.0))
    yield created
    created.close()
    created.deleteLater()


def test_lists_open_whole_each_time_and_leave_the_wheel_to_the_page(qtbot, window):
    found, seen = [], set()
    for page in PAGES:
        go(window, page)
        for control in (
            *window.findChildren(QComboBox),
            *window.findChildren(QAbstractSlider),
            *window.findChildren(LivePlot),
        ):
            if not control.isVisible() or isinstance(control, QScrollBar) or control in seen:
                continue
            seen.add(control)
            name = f"{page.title}: {control.objectName()}"
            if isinstance(control, QComboBox):
                found += [f"{name} is cut" for _ in range(2) if _is_cut(control)]
            if isinstance(control, LivePlot):
                qtbot.waitUntil(lambda plot=control: plot.plot is not None)
            before = _state(control)
            for degrees in (30, -30):
                turn_wheel(control, degrees)
                if _state(control) != before:
                    found.append(f"{name} takes the wheel")
    assert len(seen) > 12
    assert not found, "\n".join(found)


def _is_cut(combo: QComboBox) -> bool:
    """Open a list; return whether a part of it is out of sight."""
    combo.showPopup()
    settle()
    view = combo.view()
    last = view.visualRect(view.model().index(combo.count() - 1, combo.modelColumn()))
    is_cut = last.bottom() > view.viewport().rect().bottom()
    combo.hidePopup()
    settle()
    return is_cut


def _state(control: QComboBox | QAbstractSlider | LivePlot) -> object:
    if isinstance(control, QComboBox):
        return control.currentIndex()
    return control.value() if isinstance(control, QAbstractSlider) else control.plot.viewRange()


def turn_wheel(control: QWidget, degrees: int) -> None:
    place = control.plot.viewport() if isinstance(control, LivePlot) else control
    middle = QPointF(place.rect().center())
    turn = QWheelEvent(
        middle, place.mapToGlobal(middle), QPoint(), QPoint(0, degrees * 8),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(place, turn)
