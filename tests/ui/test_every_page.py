"""What holds for each page of the window; the records of its tabs say which pages there are."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QAccessible, QColor, QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QFileDialog,
    QGraphicsView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QScrollBar,
    QTabBar,
    QTableView,
    QTabWidget,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot
from shiboken6 import isValid

from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.devices.finding import Finding
from gpu_studio.core.notice import Action
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui import page as described
from gpu_studio.ui.main_window import MainWindow
from tests.driving.memory import agree
from tests.driving.pages import PAGES, Page, go, scripts_of_all_pages, settle, use, work_of
from tests.driving.window import bring_into_sight, find, places, wait_ready, wait_until
from tests.fakes.pc import SteadySensors, reading, two_cards
from tests.fakes.scripted_engine import Engines
from tests.ui.fitting import at_rest, misfits_at_rest

EACH = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
SIZES = (900, 520), (1280, 800)  # below and above the width at which pages turn
LEAST_CONTRAST = 3.0
REST_S = 20.0
# A pasted error may have 200,000 characters, the segments may be thousands, and runs grow.
MAY_SCROLL = {
    "memory.error.text", "memory.segments_area", "benchmark.results", "benchmark.history.table",
}  # fmt: skip
CONTROLS = (
    QAbstractButton, QAbstractItemView, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit,
    QPlainTextEdit, QTabBar,
)  # fmt: skip
# A name that no label may lay out, and one of the same letters that none can.
EVIL, TAME = "GT<br><br><i>1030</i>", "GT>br<>br<>i<1030>/i<"

Open = Callable[[Inventory], MainWindow]


@pytest.fixture(scope="module")
def scripts() -> dict[type, Any]:
    """The answers for every page: what the engine says of itself takes a second to find out."""
    return scripts_of_all_pages()


@pytest.fixture
def open_window(
    pages_on_sight: None,
    scripts: dict[type, Any],
    qtbot: QtBot,
    engines: Engines,
    make_window: Callable[..., MainWindow],
) -> Open:
    def opened(inventory: Inventory) -> MainWindow:
        engines.scripts |= scripts
        sensors = SteadySensors(inventory)
        window = make_window(sensor_source=sensors)
        window.show()
        studio = window.findChild(Studio)
        wait_ready(studio)
        with qtbot.waitSignal(studio.sensors.reading_taken):
            sensors.send(reading(inventory, 1.0))
        return window

    return opened


@pytest.fixture
def window(open_window: Open) -> MainWindow:
    """The window on a PC with two cards, before any result."""
    return open_window(two_cards())


def front(window: MainWindow) -> QWidget:
    return find(window, "tabs", QTabWidget).currentWidget()


@EACH
@pytest.mark.parametrize("letters", [(125, 13.0)], indirect=True)
def test_it_opens_whole_with_large_letters(
    letters: None, window: MainWindow, settings: Settings, page: Page
) -> None:
    use(window, page)
    assert_whole(window, settings, page, ((1024, 640),))


@EACH
def test_it_opens_whole_is_reached_by_keyboard_and_does_nothing_hidden(
    window: MainWindow, engines: Engines, settings: Settings, page: Page
) -> None:
    use(window, page)
    assert_whole(window, settings, page, SIZES)
    assert not unreached(window)
    find(window, "code.close", QAbstractButton).click()
    assert_idle_while_hidden(window, engines, page)


def assert_whole(
    window: MainWindow, settings: Settings, page: Page, sizes: tuple[tuple[int, int], ...]
) -> None:
    """The code's drawer is open afterwards."""
    stops_work = Finding(
        code="program", sentence="PyTorch cannot use this card.", command="a command",
        action=Action.SHOW_LOG,
    )  # fmt: skip
    window.banner.show_headline(stops_work)
    for theme, shown in (("light", sizes), ("dark", sizes[:1])):  # colors take no room
        settings.change(theme=theme)
        for size in shown:
            window.resize(*size)
            settle()
            assert window.size().toTuple() == size
            assert not misfits_at_rest(window), (theme, size)
            assert page.tab == "Race" or not at_rest(lambda: scrolling(front(window))), size
        assert not pale(window), theme
    find(window, "code.open", QToolButton).click()
    settle()
    assert not misfits_at_rest(find(window, "code.drawer"))


def scrolling(tab: QWidget) -> list[str]:
    """Return what scrolls inside a tab."""
    return [
        f"{type(area).__name__} {area.objectName() or area.accessibleName()}"
        for area in tab.findChildren(QAbstractScrollArea)
        if area.isVisible()
        and area.window() is tab.window()
        and (area.verticalScrollBar().maximum() or isinstance(area, QScrollArea))
        and area.objectName() not in MAY_SCROLL
    ]


def pale(window: MainWindow) -> list[str]:
    """Return the labels that hardly differ from what they stand on."""
    image, found = window.grab().toImage(), []
    for label in window.findChildren(QLabel):
        seen = label.visibleRegion().boundingRect()
        if seen.isEmpty() or not label.text() or not label.isEnabled():
            continue
        part = image.copy(seen.translated(label.mapTo(window, QPoint())))
        pixels = Counter(
            part.pixel(x, y) for x in range(0, part.width(), 2) for y in range(0, part.height(), 2)
        )
        ground = QColor(pixels.most_common(1)[0][0])
        if contrast(label.palette().color(label.foregroundRole()), ground) < LEAST_CONTRAST:
            found.append(f"{label.objectName()} {label.text()[:30]!r} on {ground.name()}")
    return found


def contrast(one: QColor, other: QColor) -> float:
    """Return the contrast of two colors as WCAG 2 defines it, from 1 to 21."""
    darker, lighter = sorted(map(luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: QColor) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in color.getRgbF()[:3]
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def unreached(window: MainWindow) -> list[str]:
    """Return the controls that have no name, or that the keyboard reaches late or never."""
    tab, reached = front(window), walked(window)
    names = [one.objectName() for one in reached]
    behind = reached[names.index("code.close") :]
    found = [f"{one.objectName()} is behind the code" for one in behind if tab.isAncestorOf(one)]
    for control in tab.findChildren(QWidget):
        if not control.isVisible() or is_inner(control):
            continue
        name = f"{type(control).__name__} {control.objectName()}"
        if isinstance(control, CONTROLS) or control.focusPolicy() & Qt.FocusPolicy.TabFocus:
            if not QAccessible.queryAccessibleInterface(control).text(QAccessible.Text.Name):
                found.append(f"{name} has no name")
            if control.isEnabled() and not set(beside(control)) & set(reached):
                found.append(f"{name} is not reached")
    return found


def walked(window: MainWindow) -> list[QWidget]:
    """Return where Tab goes to in the whole window, in order."""
    find(window, "tabs", QTabWidget).tabBar().setFocus()
    reached: list[QWidget] = []
    while (now := window.focusWidget()) is not None and now not in reached:
        reached.append(now)
        QTest.keyClick(now, Qt.Key.Key_Tab)
    return reached


def beside(control: QWidget) -> list[QWidget]:
    """Return a control with those that the arrow keys go to from there."""
    if isinstance(control, QAbstractButton) and control.isCheckable():
        if control.group() is not None and control.group().exclusive():
            return control.group().buttons()
        if control.autoExclusive():
            return control.parentWidget().findChildren(QAbstractButton)
    return [control]


def is_inner(widget: QWidget) -> bool:
    """Return whether a widget is a part of another one, which has the name and the focus."""
    return (
        widget.objectName().startswith("qt_")
        or isinstance(widget, QScrollBar)
        or isinstance(
            widget.parentWidget(), (QAbstractItemView, QAbstractSpinBox, QComboBox, QGraphicsView)
        )
        or widget.window().windowType() is Qt.WindowType.Popup
    )


def assert_idle_while_hidden(window: MainWindow, engines: Engines, page: Page) -> None:
    """It does nothing while another page is shown, and catches up when it is back."""
    (shown,) = shown_pages(window)
    updates: list[None] = []
    shown.updates.append(lambda: updates.append(None))
    go(window, next(other for other in PAGES if other.tab != page.tab))
    updates.clear()
    asked = len(engines.requests)
    window.findChild(Studio).board.changed.emit()
    shown.model.changed.emit()
    settle()
    assert (updates, len(engines.requests), shown.model.is_seen) == ([], asked, False)
    go(window, page)
    assert updates


@pytest.mark.parametrize("tab", dict.fromkeys(page.tab for page in PAGES))
def test_hostile_names_change_nothing_in_the_layout_of_its_pages(
    open_window: Open, tab: str
) -> None:
    windows = [open_window(with_names(name)) for name in (TAME, EVIL)]
    done = []
    for page in [page for page in PAGES if page.tab == tab]:
        for window in windows:
            window.resize(1280, 800)
            (go if work_of(page) in done else use)(window, page)
        done.append(work_of(page))
        wait_until(lambda: tops(windows[0]) == tops(windows[1]), REST_S)


def tops(window: MainWindow) -> dict[str, int]:
    return {name: place.y() for name, place in places(window).items()}


def with_names(name: str) -> Inventory:
    """Return a PC whose devices' names end in another one."""
    usual = two_cards()
    devices = (msgspec.structs.replace(one, name=f"{one.name} {name}") for one in usual.devices)
    return msgspec.structs.replace(usual, devices=tuple(devices))


@EACH
def test_nothing_moves_under_a_pressed_button(
    window: MainWindow, monkeypatch: pytest.MonkeyPatch, page: Page
) -> None:
    for asks in ("getOpenFileName", "getOpenFileNames", "getSaveFileName"):
        monkeypatch.setattr(QFileDialog, asks, lambda *_: ("", ""))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "")
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda _url: True)
    window.resize(1280, 800)
    go(window, page)
    moved, seen = [], shown_pages(window)
    for button in front(window).findChildren(QPushButton):
        if shown_pages(window) != seen:  # a button may lead to another one
            go(window, page)
        if not isValid(button) or not (button.isVisible() and button.isEnabled()):
            continue
        name = button.objectName()
        bring_into_sight(button)
        settle()
        pointed = button.mapTo(window, button.rect().center())
        QTimer.singleShot(0, agree)
        button.click()
        settle()
        is_full = window.isFullScreen()
        for other in QApplication.topLevelWidgets():
            if other is not window and other.isVisible():
                other.close()
        wait_until(lambda: window.findChild(Studio).session.is_free and not is_working(window))
        settle()
        if is_full:
            window.turn_presentation()
        elif isValid(button) and button.isVisible() and window.childAt(pointed) is not button:
            moved.append(name)
    assert not moved


def shown_pages(window: MainWindow) -> list[described.Page]:
    return [one for one in window.findChildren(described.Page) if one.isVisible()]


def is_working(window: MainWindow) -> bool:
    """Return whether something can be stopped; an experiment has an engine of its own."""
    buttons = window.findChildren(QAbstractButton)
    stops = (one for one in buttons if one.objectName().endswith(".stop"))
    return any(one.isVisible() and one.isEnabled() for one in stops)


def test_in_a_low_window_a_row_that_the_keys_choose_is_scrolled_into_sight(
    window: MainWindow,
) -> None:
    window.resize(900, 520)
    go(window, next(page for page in PAGES if page.title == "Lessons"))
    lessons = find(window, "switcher.lab.list", QTableView)
    wait_until(lambda: lessons.model().rowCount() > 1)
    lessons.setFocus()
    for key, row in ((Qt.Key.Key_End, lessons.model().rowCount() - 1), (Qt.Key.Key_Home, 0)):
        QTest.keyClick(lessons, key, Qt.KeyboardModifier.ControlModifier)
        middle = QPoint(4, lessons.rowViewportPosition(row) + lessons.rowHeight(row) // 2)
        wait_until(
            lambda at=middle: (
                not lessons.visibleRegion().isEmpty()
                and lessons.viewport().visibleRegion().contains(at)
            )
        )
