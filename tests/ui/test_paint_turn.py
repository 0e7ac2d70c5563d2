"""A window is painted once for all that changed in a turn of its event loop."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QMainWindow, QVBoxLayout, QWidget

from gpu_studio.ui.paint_turn import PaintTurn


class _Page(QWidget):
    """Notes the height at which it was painted."""

    def __init__(self) -> None:
        super().__init__()
        self.painted: list[int] = []

    def paintEvent(self, _event: object) -> None:
        self.painted.append(self.height())


def test_what_is_laid_out_level_by_level_is_painted_once(qtbot):
    window, page, line = QMainWindow(), _Page(), QWidget()
    qtbot.addWidget(window)
    line.setFixedHeight(40)
    place = line
    for _ in range(9):  # a line in a place in a place: each is laid out by an event of its own
        inner, place = place, QWidget()
        column = QVBoxLayout(place)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(inner)
    whole = QWidget()
    column = QVBoxLayout(whole)
    column.addWidget(page, 1)
    column.addWidget(place)
    window.setCentralWidget(whole)
    PaintTurn(window)
    window.resize(300, 300)
    with qtbot.waitExposed(window):
        window.show()
    qtbot.waitUntil(lambda: bool(page.painted))
    _let_all_be_painted(qtbot)
    before = page.height()
    page.painted.clear()
    line.hide()
    page.update()
    qtbot.waitUntil(lambda: page.height() > before and bool(page.painted))
    _let_all_be_painted(qtbot)
    assert page.painted == [page.height()]


def test_a_paint_that_is_asked_for_while_a_window_may_not_paint_comes_later(qtbot):
    """As where a change of theme meets an answer of the engine."""
    window, page = QMainWindow(), _Page()
    qtbot.addWidget(window)
    window.setCentralWidget(page)
    PaintTurn(window)
    with qtbot.waitExposed(window):
        window.show()
    qtbot.waitUntil(lambda: bool(page.painted))
    _let_all_be_painted(qtbot)
    page.painted.clear()
    window.update()
    window.setUpdatesEnabled(False)
    for _ in range(8):  # more turns than a paint waits
        _let_all_be_painted(qtbot)
    assert not page.painted
    window.setUpdatesEnabled(True)
    qtbot.waitUntil(lambda: bool(page.painted))


def _let_all_be_painted(qtbot) -> None:
    """Wait for a timer that was started twice: all that was asked for before it is done."""
    done: list[bool] = []
    QTimer.singleShot(0, lambda: QTimer.singleShot(0, lambda: done.append(True)))
    qtbot.waitUntil(lambda: bool(done))
