"""What a person points at: lists open whole, the wheel scrolls the page, and nothing moves away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QApplication,
    QComboBox,
    QLineEdit,
    QScrollBar,
    QTabBar,
    QToolButton,
)

from gpu_studio.app import build_window
from gpu_studio.model.studio import Studio
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.pages import PAGES, go, page_called, scripts_of_all_pages, settle
from tests.driving.window import find
from tests.fakes.pc import SteadySensors, reading, two_cards

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PySide6.QtWidgets import QWidget

    from gpu_studio.ui.main_window import MainWindow


@pytest.fixture
def window(qtbot, engines, settings) -> Iterator[MainWindow]:
    """The window on a PC with two cards, before any result."""
    engines.scripts |= scripts_of_all_pages()
    sensors = SteadySensors(two_cards())
    made = build_window(engine_factory=engines, sensor_source=sensors, settings=settings)
    made.resize(1280, 800)
    made.show()
    studio = made.findChild(Studio)
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    with qtbot.waitSignal(studio.sensors.reading_taken):
        sensors.send(reading(two_cards(), 1.0))
    yield made
    made.close()
    made.deleteLater()


_CONTROLS = (QAbstractButton, QComboBox, QLineEdit, QTabBar)


def places(window: QWidget) -> dict[str, QPoint]:
    """Return where each visible control is in the window, by its name."""
    return {
        control.objectName(): control.mapTo(window, QPoint(0, 0))
        for kind in _CONTROLS
        for control in window.findChildren(kind)
        if control.isVisible() and control.objectName()
    }


def test_a_banner_moves_nothing(qtbot, window):
    before = {}
    for page in (*PAGES, *PAGES):  # a page that was made just now is laid out in the turns after
        go(window, page)
        before[page.title] = places(window)
    window.findChild(Studio).headlines.notify("Something was found.", "This is what to do.")
    for page in PAGES:
        go(window, page)
        now = places(window)
        moved = {name for name, place in before[page.title].items() if now.get(name) != place}
        assert not moved, page.title
    assert window.banner.isVisible()


def test_a_page_moves_no_tab_and_a_sweep_moves_nothing(qtbot, window):
    bar = find(window, "memory.pages", QTabBar)
    go(window, page_called("Curves"))
    before = bar.mapTo(window, QPoint(0, 0))
    go(window, page_called("Read an error"))
    assert bar.mapTo(window, QPoint(0, 0)) == before
    go(window, page_called("LIVE"))
    find(window, "benchmark.more", QToolButton).setChecked(True)
    settle()
    sweep, width = find(window, "benchmark.sweep"), find(window, "benchmark.run").width()
    before = sweep.mapTo(window, QPoint(0, 0))
    sweep.click()
    settle()
    assert sweep.mapTo(window, QPoint(0, 0)) == before
    assert find(window, "benchmark.run").width() == width


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
    assert len(seen) > 20
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
    """Turn the wheel above the middle of a control."""
    place = control.plot.viewport() if isinstance(control, LivePlot) else control
    middle = QPointF(place.rect().center())
    turn = QWheelEvent(
        middle, place.mapToGlobal(middle), QPoint(), QPoint(0, degrees * 8),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(place, turn)
