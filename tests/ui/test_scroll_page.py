"""The scroll area around a tab."""

from __future__ import annotations

from PySide6.QtWidgets import QVBoxLayout, QWidget

from gpu_studio.ui.parts import Text
from gpu_studio.ui.scroll_page import TabScroll


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
