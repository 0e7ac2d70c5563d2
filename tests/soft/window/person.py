"""Somebody at the real window: presses what has a name, reads what stands there, and waits."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QLabel,
    QMainWindow,
    QRadioButton,
    QTabBar,
    QTabWidget,
    QWidget,
)
from pytestqt.qtbot import QtBot

from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineDescribed
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.model.engine_session import EngineSession, EngineState, Reply
from gpu_studio.model.studio import Studio
from gpu_studio.ui.plots.live_plot import LivePlot

PATIENCE_S = 60.0

Widget = TypeVar("Widget", bound=QWidget)


class Person:
    """Drives one window by its object names.

    `heard` has every event of every engine, oldest first, with what it answers.
    """

    def __init__(self, qtbot: QtBot, window: QMainWindow) -> None:
        self._qtbot = qtbot
        self.window = window
        self._studio = window.findChild(Studio)
        self.heard: list[tuple[Request, Event]] = []
        self._awaited: Callable[[Event], bool] = lambda event: False
        self._reaction: Callable[[], None] = lambda: None
        for session in (self._studio.session, self._studio.lab, self._studio.modelled):
            self._overhear(session)

    def until(self, is_so: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
        """Wait until something is so."""
        try:
            self._qtbot.waitUntil(lambda: bool(is_so()), timeout=round(timeout_s * 1000))
        except self._qtbot.TimeoutError:
            pytest.fail("waited in vain; what stands in the window:\n" + self._everything())

    def until_ready(self) -> None:
        """Wait until the cards were found and the engine has nothing to do."""
        sensors, session = self._studio.sensors, self._studio.session
        self.until(lambda: sensors.inventory and session.state is EngineState.READY)

    def until_another_engine(self, old: EngineDescribed) -> None:
        """Wait until another engine than this one is there and ready."""
        self.until(
            lambda: (
                self._studio.session.description is not None
                and self._studio.session.description.pid != old.pid
                and self._studio.session.state is EngineState.READY
            )
        )

    @property
    def engine(self) -> EngineDescribed:
        """What the present engine says of itself."""
        description = self._studio.session.description
        assert description is not None, "there is no engine"
        return description

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    def find(self, kind: type[Widget], name: str) -> Widget:
        """Return a widget by its object name."""
        found = self.window.findChild(kind, name)
        assert found is not None, f"the window has no {name}"
        return found

    def sees(self, name: str) -> bool:
        """Whether a widget is in sight, in its tab."""
        widget = self.window.findChild(QWidget, name)
        return widget is not None and widget.isVisible()

    def text(self, name: str) -> str:
        """Return the text of a label, or "" if it is not visible."""
        label = self.window.findChild(QLabel, name)
        return _plain(label.text()) if label is not None and label.isVisible() else ""

    def property_of(self, name: str, key: str) -> str:
        """Return the role of a text or the tone of a card, from which its colour is made."""
        return str(self.find(QWidget, name).property(key))

    def entries(self, name: str) -> list[str]:
        """Return the texts of a list."""
        model = self.find(QAbstractItemView, name).model()
        return [_plain(model.index(row, 0).data()) for row in range(model.rowCount())]

    def table(self, name: str) -> list[tuple[str, ...]]:
        """Return the texts of a table."""
        model = self.find(QAbstractItemView, name).model()
        return [
            tuple(_plain(model.index(row, column).data()) for column in range(model.columnCount()))
            for row in range(model.rowCount())
        ]

    def column(self, name: str, heading: str) -> list[str]:
        """Return the texts of one column of a table."""
        model = self.find(QAbstractItemView, name).model()
        headings = [
            str(model.headerData(column, Qt.Orientation.Horizontal))
            for column in range(model.columnCount())
        ]
        place = headings.index(heading)
        return [row[place] for row in self.table(name)]

    def curve(self, name: str, key: str) -> tuple[Sequence[float], Sequence[float]]:
        """Return x and y that a plot has drawn under a key."""
        plot = self.find(LivePlot, name)
        if plot.plot is None or key not in plot.curve_keys:
            return (), ()
        item = plot.plot.listDataItems()[plot.curve_keys.index(key)]
        xs, ys = item.getOriginalDataset()
        return (xs, ys) if xs is not None and ys is not None else ((), ())

    # ── doing ────────────────────────────────────────────────────────────────────────────────

    def click_at(self, is_it: Callable[[Event], bool], name: str) -> None:
        """Press a button as soon as the window has taken over a certain event, once."""
        self._awaited, self._reaction = is_it, lambda: self.click(name)

    def open_tab(self, title: str) -> None:
        """Bring a tab to the front."""
        tabs = self.find(QTabWidget, "tabs")
        bar = tabs.tabBar()
        titles = [bar.tabText(index) for index in range(bar.count())]
        place = bar.tabRect(titles.index(title)).center()
        self._qtbot.mouseClick(bar, Qt.MouseButton.LeftButton, pos=place)
        self.until(lambda: tabs.tabText(tabs.currentIndex()) == title)

    def click(self, name: str) -> None:
        """Press a button once it can be pressed."""
        pressed = self.find(QAbstractButton, name)
        self.until(lambda: pressed.isVisible() and pressed.isEnabled())
        # The box or the circle is on the left; beside its text a wide one cannot be pressed.
        is_box = isinstance(pressed, (QCheckBox, QRadioButton))
        place = QPoint(8, pressed.height() // 2) if is_box else pressed.rect().center()
        self._qtbot.mouseClick(pressed, Qt.MouseButton.LeftButton, pos=place)

    def press(self, name: str, key: Qt.Key) -> None:
        """Press a key in a widget."""
        self._qtbot.keyClick(self.find(QWidget, name), key)

    def write(self, name: str, text: str) -> None:
        """Replace what stands in a line."""
        line = self.find(QWidget, name)
        self._qtbot.keyClick(line, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        self._qtbot.keyClicks(line, text)

    def choose(self, name: str, words: str) -> None:
        """Choose the entry of a combo box that begins with these words, by the keyboard."""
        box = self.find(QComboBox, name)
        self.until(box.isEnabled)
        entries = [box.itemText(index) for index in range(box.count())]
        wanted = next(index for index, text in enumerate(entries) if text.startswith(words))
        self._qtbot.keyClick(box, Qt.Key.Key_Home)
        for _ in range(wanted):
            self._qtbot.keyClick(box, Qt.Key.Key_Down)
        assert box.currentIndex() == wanted

    def ask(self, request: Request) -> None:
        """Ask the program's engine for something that no button does."""
        self._studio.session.submit(request)

    def open_page(self, title: str, bar: str = "memory.pages") -> None:
        """Turn to a page of a tab, whose bar of pages has this name."""
        pages = self.find(QTabBar, bar)
        titles = [pages.tabText(index) for index in range(pages.count())]
        place = pages.tabRect(titles.index(title)).center()
        self._qtbot.mouseClick(pages, Qt.MouseButton.LeftButton, pos=place)
        self.until(lambda: pages.tabText(pages.currentIndex()) == title)

    def choose_row(self, name: str, row: int) -> None:
        """Choose a row of a list."""
        view = self.find(QAbstractItemView, name)
        view.setCurrentIndex(view.model().index(row, 0))  # the whole row, where a click takes it

    def events(self, kind: type) -> list[Event]:
        """Return the received events of one kind, oldest first."""
        return [event for _, event in self.heard if isinstance(event, kind)]

    def _everything(self) -> str:
        labels = self.window.findChildren(QLabel)
        texts = (f"{one.objectName()}: {one.text()}" for one in labels if one.isVisible())
        return "\n".join(texts)

    def _overhear(self, session: EngineSession) -> None:
        """Hear all that is asked of a session, and the question that it asks by itself."""
        session.request_submitted.connect(self._follow)
        session.engine_described.connect(lambda event: self._hear(DescribeEngine(), event))

    def _follow(self, reply: Reply) -> None:
        reply.event_received.connect(lambda event: self._hear(reply.request, event))

    def _hear(self, request: Request, event: Event) -> None:
        self.heard.append((request, event))
        if self._awaited(event):
            self._awaited = lambda event: False
            self._reaction()


def _plain(text: object) -> str:
    """Return a text with plain spaces, as a test is written."""
    return " ".join(str(text).split())
