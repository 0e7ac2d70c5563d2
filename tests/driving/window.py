"""What a person does at the window, and reads there: found by object name, waited for by condition.

The one vocabulary for a tab alone, the whole window over scripted or real engines, pictures and
measurements. It needs no pytest: a program that drives the window in a process of its own uses it
as well. ``root`` is any widget that has the named one somewhere below it.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import (
    QDeadlineTimer,
    QEvent,
    QEventLoop,
    QItemSelectionModel,
    QMimeData,
    QPoint,
    QPointF,
    Qt,
    QTimer,
    QUrl,
)
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QApplication,
    QCheckBox,
    QComboBox,
    QLabel,
    QLineEdit,
    QRadioButton,
    QScrollArea,
    QTabBar,
    QTabWidget,
    QWidget,
)

from gpu_studio.model.studio import Studio
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.patience import PATIENCE_S

_LOOK_MS = 10

Widget = TypeVar("Widget", bound=QWidget)
_CONTROLS = (QAbstractButton, QComboBox, QLineEdit, QTabBar, QAbstractSlider)


def wait_until(is_so: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Let the window live until something is so.

    Raises:
        AssertionError: it never was; the text has what stands in the window.
    """
    deadline = QDeadlineTimer(round(1000 * patience_s))
    loop = QEventLoop()
    while not is_so():
        assert not deadline.hasExpired(), f"waited in vain; the window says:\n{everything()}"
        QTimer.singleShot(_LOOK_MS, loop.quit)
        loop.exec()


def wait_ready(studio: Studio, patience_s: float = PATIENCE_S) -> None:
    """Wait until the devices were found and the engine has nothing to do."""
    wait_until(lambda: studio.session.is_free and studio.sensors.inventory, patience_s)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────


def plain(text: object) -> str:
    """Return a text with plain spaces, as a test is written."""
    return str(text).replace("\u202f", " ").replace("\u00a0", " ")


def numbers(text: str) -> list[str]:
    """Return the numbers that stand in a text, in order: no part of a name such as cuda:0."""
    return re.findall(r"(?<![\w.:])\d+(?:[.,]\d+)*", plain(text))


def find(root: QWidget, name: str, kind: type[Widget] = QWidget) -> Widget:
    found = root.findChild(kind, name)
    assert found is not None, f"there is no {kind.__name__} {name}"
    return found


def places(root: QWidget) -> dict[str, QPoint]:
    """Return where each visible control is in a window, by its name."""
    found: dict[str, QPoint] = {}
    parents = [root]
    while parents:  # a tenth of all widgets are visible: to look at the others takes 4 ms each time
        for child in parents.pop().children():
            if isinstance(child, QWidget) and child.isVisible():
                parents.append(child)
                if isinstance(child, _CONTROLS) and child.objectName():
                    found[child.objectName()] = child.mapTo(root, QPoint(0, 0))
    return found


def sees(root: QWidget, name: str) -> bool:
    _catch_up(root)
    widget = root.findChild(QWidget, name)
    return widget is not None and widget.isVisible()


def text(root: QWidget, name: str) -> str:
    _catch_up(root)
    label = find(root, name, QLabel)
    return plain(label.text()) if label.isVisible() else ""


def property_of(root: QWidget, name: str, key: str) -> str:
    """Return the role of a text or the tone of a card, from which its color is made."""
    return str(find(root, name).property(key))


def entries(root: QWidget, name: str) -> list[str]:
    """Return the texts of a list, or of the first column of a table."""
    model = find(root, name, QAbstractItemView).model()  # a list's hides its columnCount
    return [plain(model.index(row, 0).data()) for row in range(model.rowCount())]


def table(root: QWidget, name: str) -> list[tuple[str, ...]]:
    """Return the texts of a table, a tuple a row."""
    model = find(root, name, QAbstractItemView).model()
    return [
        tuple(plain(model.index(row, column).data()) for column in range(model.columnCount()))
        for row in range(model.rowCount())
    ]


def column(root: QWidget, name: str, heading: str | int) -> list[str]:
    """Return the texts of one column of a table, by its heading or its number."""
    if isinstance(heading, str):
        model = find(root, name, QAbstractItemView).model()
        across = range(model.columnCount())
        headings = [str(model.headerData(n, Qt.Orientation.Horizontal)) for n in across]
        heading = [one.rstrip(" ↑↓") for one in headings].index(heading)
    return [row[heading] for row in table(root, name)]


def drawn(root: QWidget, plot: str, key: str) -> tuple[list[float], list[float]]:
    """Return x and y of a curve, in the data's own scale; empty before it is drawn."""
    live = find(root, plot, LivePlot)
    if live.plot is None or key not in live.curve_keys:
        return [], []
    xs, ys = live.plot.listDataItems()[live.curve_keys.index(key)].getOriginalDataset()
    return ([], []) if xs is None else (list(xs), list(ys))


def everything() -> str:
    """Return the texts of all labels that are shown."""
    labels = [one for one in QApplication.allWidgets() if isinstance(one, QLabel)]
    return "\n".join(f"{one.objectName()}: {one.text()}" for one in labels if one.isVisible())


# ── doing ────────────────────────────────────────────────────────────────────────────────────────


def click(root: QWidget, name: str) -> None:
    """Press a button once it can be pressed."""
    button = find(root, name, QAbstractButton)
    wait_until(lambda: button.isVisible() and button.isEnabled())
    bring_into_sight(button)
    # The box or the circle is on the left; beside its text a wide one cannot be pressed.
    is_box = isinstance(button, QCheckBox | QRadioButton)
    place = QPoint(8, button.height() // 2) if is_box else button.rect().center()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton, pos=place)


def move_mouse(widget: QWidget, place: QPoint) -> None:
    """Move the mouse onto a place of a widget, whatever lies over it on the screen."""
    none = Qt.MouseButton.NoButton
    at, on_screen = QPointF(place), QPointF(widget.mapToGlobal(place))
    move = QMouseEvent(
        QEvent.Type.MouseMove, at, on_screen, none, none, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(widget, move)


def bring_into_sight(widget: QWidget) -> None:
    parent = widget.parentWidget()
    while parent is not None:
        if isinstance(parent, QScrollArea):
            parent.ensureWidgetVisible(widget)
        parent = parent.parentWidget()


def press(root: QWidget, name: str, key: Qt.Key) -> None:
    QTest.keyClick(find(root, name), key)


def write(root: QWidget, name: str, words: str) -> None:
    field = find(root, name)
    QTest.keyClick(field, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(field, Qt.Key.Key_Delete)
    QTest.keyClicks(field, words)


def choose(root: QWidget, name: str, words: str) -> None:
    """Choose the entry of a combo box that begins with these words, by the keyboard."""
    box = find(root, name, QComboBox)
    wait_until(box.isEnabled)
    texts = [plain(box.itemText(index)) for index in range(box.count())]
    meant = [n for n, entry in enumerate(texts) if entry.startswith(words)]
    assert meant, f"{name} has no {words}: {texts}"
    _choose_entry(box, meant[0])


def choose_data(root: QWidget, name: str, value: object) -> None:
    """Choose the entry of a combo box that stands for a value, by the keyboard."""
    box = find(root, name, QComboBox)
    wait_until(box.isEnabled)
    index = box.findData(value)
    assert index >= 0, f"{name} has no {value}"
    _choose_entry(box, index)


def choose_row(root: QWidget, name: str, row: int) -> None:
    view = find(root, name, QAbstractItemView)
    chosen = (
        QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
    )
    view.selectionModel().setCurrentIndex(view.model().index(row, 0), chosen)


def drop(widget: QWidget, *paths: Path) -> bool:
    """Drag files over a widget and let them go there; return whether it would take them."""
    dragged = QMimeData()
    dragged.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    how = (Qt.DropAction.CopyAction, dragged, Qt.MouseButton.LeftButton)
    enter = QDragEnterEvent(widget.rect().center(), *how, Qt.KeyboardModifier.NoModifier)
    enter.ignore()
    QApplication.sendEvent(widget, enter)
    center = QPointF(widget.rect().center())
    QApplication.sendEvent(widget, QDropEvent(center, *how, Qt.KeyboardModifier.NoModifier))
    return enter.isAccepted()


def open_tab(window: QWidget, title: str) -> None:
    _turn_to(find(window, "tabs", QTabWidget).tabBar(), title)


def open_page(root: QWidget, pages: str, title: str) -> None:
    """Turn to a page of a tab, whose bar of pages has this name."""
    _turn_to(find(root, pages, QTabBar), title)


def _turn_to(bar: QTabBar, title: str) -> None:
    titles = [bar.tabText(index).replace("&", "") for index in range(bar.count())]
    place = bar.tabRect(titles.index(title)).center()
    QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=place)
    wait_until(lambda: bar.currentIndex() == titles.index(title))


def _choose_entry(box: QComboBox, wanted: int) -> None:
    QTest.keyClick(box, Qt.Key.Key_Home)
    for _ in range(wanted):
        QTest.keyClick(box, Qt.Key.Key_Down)
    assert box.currentIndex() == wanted


def _catch_up(root: QWidget) -> None:
    """Let a tab show what has changed, which some do in turns of the event loop of their own."""
    wait_until(lambda: getattr(root, "is_up_to_date", True))
