import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QColor, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractSlider,
    QApplication,
    QComboBox,
    QPushButton,
    QScrollBar,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.pitfall_messages import RunPitfall
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.model.studio import Studio
from gpu_studio.ui.main_window import MainWindow
from gpu_studio.ui.parts import button, press_by_key
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.race.race_stage import RaceStage
from gpu_studio.ui.tabs import TABS
from tests.driving.pages import PAGES, go, scripts_of_all_pages, settle
from tests.driving.window import find, open_page, open_tab, write
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import SteadySensors, reading, two_cards
from tests.fakes.run_answers import run_events
from tests.fakes.scripted_engine import Pause
from tests.fakes.switching_answers import pitfall, pitfall_finished


@pytest.fixture
def window(pages_on_sight, qtbot, engines, make_window):
    """The window on a PC with two cards, in front."""
    engines.scripts[DescribeEngine] = [
        described_with_cuda(device_count=2, pitfalls=(pitfall("mixed_devices"),))
    ]
    engines.scripts[RunWorkload] = lambda _engine, request: run_events(request)
    created = make_window(two_cards())
    studio = created.findChild(Studio)
    with qtbot.waitActive(created):
        created.show()
        created.activateWindow()
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    return created


def key(qtbot, window: MainWindow, *keys, ctrl: bool = False) -> None:
    modifiers = Qt.KeyboardModifier
    for one in keys:
        place = window.focusWidget() or window
        qtbot.keyClick(place, one, modifiers.ControlModifier if ctrl else modifiers.NoModifier)


def asked(engines, kind) -> list:
    return [request for request in engines.requests if isinstance(request, kind)]


def test_ctrl_and_a_number_bring_a_tab_to_the_front(qtbot, window):
    tabs = find(window, "tabs", QTabWidget)
    for index in (3, 1, 0, 2):
        key(qtbot, window, Qt.Key(Qt.Key.Key_1 + index), ctrl=True)
        assert tabs.currentIndex() == index
        assert tabs.tabToolTip(index).endswith(str(index + 1))
    shown = [action.text() for action in window.findChildren(QAction) if action.shortcut()]
    assert {tab.title for tab in TABS} <= set(shown), "the keys stand in a menu"


def test_f11_shows_the_page_to_an_audience_and_f11_or_esc_ends_it(qtbot, window):
    bar = find(window, "tabs", QTabWidget).tabBar()
    usual = window.fontInfo().pointSizeF()
    for leaves in (Qt.Key.Key_Escape, Qt.Key.Key_F11):
        key(qtbot, window, Qt.Key.Key_F11)
        qtbot.waitUntil(window.isFullScreen)
        assert not bar.isVisible()
        assert not window.menuBar().isVisible()
        assert window.fontInfo().pointSizeF() > 2 * usual
        key(qtbot, window, leaves)
        qtbot.waitUntil(lambda: not window.isFullScreen())
        assert bar.isVisible()
        assert window.menuBar().isVisible()
        assert window.fontInfo().pointSizeF() == pytest.approx(usual, abs=0.1)


def test_f11_on_the_race_opens_its_stage(qtbot, window):
    open_tab(window, "Race")
    key(qtbot, window, Qt.Key.Key_F11)
    assert not window.isFullScreen()
    (stage,) = (one for one in QApplication.topLevelWidgets() if isinstance(one, RaceStage))
    stage.close()


def test_ctrl_return_runs_a_pitfall_and_esc_stops_it(qtbot, window, engines):
    engines.scripts[RunPitfall] = lambda _engine, request: [Pause(), pitfall_finished(request)]
    open_tab(window, "Switcher")
    open_page(window, "switcher.pages", "Lessons")
    qtbot.waitUntil(find(window, "switcher.lab.break", QPushButton).isEnabled)
    key(qtbot, window, Qt.Key.Key_Return, ctrl=True)
    qtbot.waitUntil(find(window, "switcher.lab.stop").isVisible)
    qtbot.waitUntil(lambda: [one.part for one in asked(engines, RunPitfall)] == ["broken"])
    assert "Esc" in find(window, "switcher.lab.stop").toolTip()
    key(qtbot, window, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not find(window, "switcher.lab.stop").isVisible())


def test_return_in_the_sizes_and_ctrl_return_elsewhere_run_the_benchmark(qtbot, window, engines):
    open_tab(window, "Benchmark")
    qtbot.waitUntil(find(window, "benchmark.run", QPushButton).isEnabled)
    qtbot.waitUntil(find(window, "benchmark.run").isVisible)  # laid out in later turns
    assert "Ctrl+Return" in find(window, "benchmark.run").toolTip()
    key(qtbot, window, Qt.Key.Key_Return, ctrl=True)
    qtbot.waitUntil(lambda: bool(asked(engines, RunWorkload)))
    before = len(asked(engines, RunWorkload))
    qtbot.waitUntil(find(window, "benchmark.run", QPushButton).isEnabled)
    write(window, "benchmark.sizes", "64")
    find(window, "benchmark.sizes").setFocus()
    key(qtbot, window, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(asked(engines, RunWorkload)) > before)
    qtbot.waitUntil(find(window, "benchmark.run", QPushButton).isEnabled)


def test_the_key_for_saving_presses_a_button_while_it_can_be_pressed(qtbot, window):
    pressed = []
    save = button("Save", lambda: pressed.append(True))
    press_by_key(save, "save")
    assert "Ctrl+S" in save.toolTip()
    find(window, "tabs", QTabWidget).currentWidget().widget().layout().addWidget(save)
    for is_enabled, is_shown in ((True, True), (False, True), (True, False)):
        save.setEnabled(is_enabled)
        save.setVisible(is_shown)
        key(qtbot, window, Qt.Key.Key_S, ctrl=True)
    assert pressed == [True]


@pytest.mark.parametrize("is_primary", [False, True])
def test_the_focus_is_a_ring_of_two_pixels_inside_the_border(qtbot, theme, is_primary):
    place = QWidget()
    qtbot.addWidget(place)
    column = QVBoxLayout(place)
    other, created = QPushButton("Another"), button("Do it", lambda: None, primary=is_primary)
    column.addWidget(other)
    column.addWidget(created)
    with qtbot.waitActive(place):
        place.show()
        place.activateWindow()
    other.setFocus()
    QApplication.processEvents()
    without, geometry = created.grab().toImage(), created.geometry()
    created.setFocus(Qt.FocusReason.TabFocusReason)
    QApplication.processEvents()
    with_ring = created.grab().toImage()
    assert created.geometry() == geometry, "nothing moves"
    ring = theme.colour("text" if is_primary else "accent")
    middle = with_ring.height() // 2
    for x in (0, 1, with_ring.width() - 2, with_ring.width() - 1):
        assert QColor(with_ring.pixel(x, middle)).name().upper() == ring, x
        assert QColor(without.pixel(x, middle)).name().upper() != ring, x


@pytest.fixture
def window_of_all_pages(pages_on_sight, qtbot, engines, make_window) -> MainWindow:
    """The window_of_all_pages on a PC with two cards, before any result."""
    engines.scripts |= scripts_of_all_pages()
    sensors = SteadySensors(two_cards())
    created = make_window(sensor_source=sensors)
    created.resize(1280, 800)
    created.show()
    studio = created.findChild(Studio)
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    with qtbot.waitSignal(studio.sensors.reading_taken):
        sensors.send(reading(two_cards(), 1.0))
    return created


def test_lists_open_whole_each_time_and_leave_the_wheel_to_the_page(qtbot, window_of_all_pages):
    found, seen = [], set()
    for page in PAGES:
        go(window_of_all_pages, page)
        for control in (
            *window_of_all_pages.findChildren(QComboBox),
            *window_of_all_pages.findChildren(QAbstractSlider),
            *window_of_all_pages.findChildren(LivePlot),
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
