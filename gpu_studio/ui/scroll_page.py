"""Scroll areas for small windows, and pages that are made late.

A page is made when it is needed or when the window is idle, not before the first paint.
"""

from __future__ import annotations

import sys
from collections import deque
from importlib import import_module
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QWidget
from shiboken6 import isValid

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QTableView


_IDLE_WORK = "idle work"


def imported(path: str) -> Any:
    """Return what a path names: ``package.module:name``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


class LazyPage(QObject):
    """A page that is imported and made on first use.

    Signals:
        created(QWidget): the page, once.

    Attributes:
        page: the page; None before it is made.

    Args:
        path: what makes the page: ``package.module:name``.
        arguments: its arguments.
        parent: the owner.
    """

    created = Signal(object)

    def __init__(self, path: str, *arguments: object, parent: QObject) -> None:
        super().__init__(parent)
        self._path, self._arguments = path, arguments
        self.page: QWidget | None = None

    def make(self) -> Any:
        """Return the page; the first call makes it."""
        if self.page is None:
            self.page = imported(self._path)(*self._arguments)
            self.created.emit(self.page)
        return self.page

    def make_next(self) -> None:
        """Import the page's module; the next call makes the page. Each takes about as long."""
        module = self._path.partition(":")[0]
        if module in sys.modules:
            self.make()
        else:
            import_module(module)


class IdleWork(QObject):
    """Does what can wait, one piece in each turn of the event loop, in order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: deque[tuple[QObject, Callable[[], object]]] = deque()
        self._turns = QTimer(self)
        self._turns.setInterval(0)
        self._turns.timeout.connect(self._do_next)

    @property
    def is_done(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def add(self, owner: QObject, *pieces: Callable[[], object]) -> None:
        """Do each of these once, but not after the end of their owner."""
        self._waiting.extend((owner, piece) for piece in pieces)
        self._turns.start()

    def _do_next(self) -> None:
        # A piece may let the event loop run, or raise: it is taken off the list before.
        owner, piece = self._waiting.popleft()
        if not self._waiting:
            self._turns.stop()
        if isValid(owner):
            piece()


def idle_work() -> IdleWork:
    """Return the work of the application: that of all windows waits in one line."""
    application = QApplication.instance()
    assert application is not None
    known = application.property(_IDLE_WORK)
    if isinstance(known, IdleWork):
        return known
    made = IdleWork(application)
    application.setProperty(_IDLE_WORK, made)
    return made


class TabScroll(QScrollArea):
    """Holds a tab: scrolls if the window is smaller than the tab's least size.

    A tab is as wide with a scroll bar as without: a line that comes or goes would otherwise lay out
    the whole page a second time, at another width.
    """

    def __init__(self, tab: QWidget | None = None) -> None:
        super().__init__()
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        if tab is not None:
            self.show_page(tab)

    def show_page(self, tab: QWidget) -> None:
        """Hold a tab."""
        tab.setProperty("page", True)
        self.setWidget(tab)

    def minimumSizeHint(self) -> QSize:
        """Return no size: the window may be any size."""
        return QSize(0, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Let the tab fill the area."""
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Update the tab's size if its least size changes."""
        if event.type() is QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        tab = self.widget()
        if tab is None:
            return
        least = tab.minimumSizeHint()
        width = max(self.width() - self.verticalScrollBar().sizeHint().width(), least.width())
        height = least.height()
        layout = tab.layout()
        if layout is not None and layout.hasHeightForWidth():
            # A layout's own minimum assumes a narrow column for wrapped text: use this width.
            height = layout.totalMinimumHeightForWidth(width)
        tab.resize(width, max(self.viewport().height(), height))


def keep_row_in_view(view: QTableView, row: int) -> None:
    """Scroll the tab to a row of a table that is shown in full, as the arrow keys move."""

    def scroll() -> None:
        place, inside = _scroll_area_around(view)
        if place is None or inside is None or not view.isVisible():
            return
        height = view.rowHeight(row)
        middle = QPoint(0, view.rowViewportPosition(row) + height // 2)
        y = view.viewport().mapTo(inside, middle).y()
        place.ensureVisible(place.horizontalScrollBar().value(), y, 0, height)

    # Two turns: the first lays the page out, the second one the tab around it.
    QTimer.singleShot(0, view, lambda: QTimer.singleShot(0, view, scroll))


def _scroll_area_around(widget: QWidget) -> tuple[QScrollArea | None, QWidget | None]:
    """Return the nearest scroll area that holds a widget, and what it scrolls."""
    place = widget.parentWidget()
    while place is not None and not isinstance(place, QScrollArea):
        place = place.parentWidget()
    return place, place.widget() if place is not None else None
