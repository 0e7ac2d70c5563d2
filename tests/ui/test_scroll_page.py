"""The scroll area around a tab."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QTabWidget, QVBoxLayout, QWidget

from gpu_studio.ui.parts import Text
from gpu_studio.ui.scroll_page import CoverWatch, TabScroll


class Page(QWidget):
    """Notes each width that it is given."""

    def __init__(self):
        super().__init__()
        self.widths = []
        self.line = Text("A line. " * 40, wraps=True)
        QVBoxLayout(self).addWidget(self.line)

    def resizeEvent(self, event):
        self.widths.append(event.size().width())


def test_a_scroll_bar_that_comes_or_goes_does_not_lay_out_the_page_again(qtbot, theme):
    """A verdict that was hidden at a run's start did, and every column of its table was fitted."""
    page = Page()
    place = TabScroll(page)
    qtbot.addWidget(place)
    place.resize(400, 300)
    with qtbot.waitExposed(place):
        place.show()
    page.widths.clear()
    for times in (400, 40):
        page.line.setText("A line. " * times)
        is_long = times > 40
        qtbot.waitUntil(lambda is_long=is_long: place.verticalScrollBar().isVisible() is is_long)
    assert len(page.widths) > 1
    assert len(set(page.widths)) == 1
    assert page.width() <= place.viewport().width()


def test_a_tab_whose_own_area_comes_while_a_line_covers_it_does_not_scroll(qtbot, theme):
    tab = QWidget()
    column = QVBoxLayout(tab)
    area = TabScroll(tab)
    qtbot.addWidget(area)
    area.resize(400, 300)
    area.show()
    qtbot.waitExposed(area)
    area.set_covered(40)
    assert area.verticalScrollBar().maximum() == 40
    column.addWidget(TabScroll(Text("inside", wraps=True)))
    qtbot.waitUntil(lambda: area.verticalScrollBar().maximum() == 0)
    assert area.horizontalScrollBar().maximum() == 0
    area.set_covered(0)
    assert area.verticalScrollBar().maximum() == 0


class _Fitted(QWidget):
    """Counts how often it was asked for its least size."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def minimumSizeHint(self) -> QSize:
        self.asked += 1
        return QSize(100, 100)


def test_a_line_that_comes_fits_the_tab_in_front_and_the_others_when_they_are_shown(qtbot, theme):
    window, tabs, line = QWidget(), QTabWidget(), QWidget()
    qtbot.addWidget(window)
    column = QVBoxLayout(window)
    column.addWidget(tabs, 1)
    column.addWidget(line)
    line.setFixedHeight(0)
    pages = [_Fitted() for _ in range(3)]
    for number, page in enumerate(pages):
        tabs.addTab(TabScroll(page), str(number))
    CoverWatch(line, tabs)
    window.resize(400, 300)
    with qtbot.waitExposed(window):
        window.show()
    qtbot.waitUntil(lambda: pages[0].height() > 0)
    tabs.setCurrentIndex(1)
    tabs.setCurrentIndex(0)
    heights = [page.height() for page in pages[:2]]
    for page in pages:
        page.asked = 0
    room = tabs.height()
    line.setFixedHeight(40)
    qtbot.waitUntil(lambda: tabs.height() < room and pages[0].height() == heights[0])
    assert [page.asked for page in pages[1:]] == [0, 0]
    tabs.setCurrentIndex(1)
    assert pages[1].height() == heights[1]
