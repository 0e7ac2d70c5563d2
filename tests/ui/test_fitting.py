"""The proof that everything can be read finds what cannot.

The window survives its resizes, and leaves no wrapper at the address of another object.
"""

import pytest
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton, QTabBar, QVBoxLayout, QWidget

from gpu_studio.ui.scroll_page import TabScroll
from tests.ui.fitting import misfits

LONG = "a text that is a good deal longer than its place"


@pytest.fixture
def misfits_with(qtbot, theme):
    """Return the faults of a window of 300 pixels that holds one widget."""

    def look(widget, width=None, height=None):
        window = QWidget()
        column = QVBoxLayout(window)
        column.addWidget(widget)
        column.addStretch(1)
        if width is not None:
            widget.setFixedWidth(width)
        if height is not None:
            widget.setFixedHeight(height)
        qtbot.addWidget(window)
        window.resize(300, 200)
        window.show()
        qtbot.waitExposed(window)
        window.resize(300, 200)
        return misfits(window)

    return look


def test_what_is_cut_off_is_found(misfits_with):
    wrapped = QLabel(LONG)
    wrapped.setWordWrap(True)
    combo = QComboBox()
    combo.addItem(LONG)
    bar = QTabBar()
    bar.addTab(LONG)
    bar.setUsesScrollButtons(False)
    for widget, size in (
        (QLabel(LONG), (60, None)), (wrapped, (60, 15)), (QPushButton(LONG), (60, None)),
        (QLabel("short"), (None, 5)), (combo, (60, None)), (bar, (60, None)),
    ):  # fmt: skip
        assert misfits_with(widget, *size), type(widget)


def test_what_stands_out_of_its_place_is_found(qtbot, theme):
    window = QWidget()
    inner = QLabel("outside", window)
    inner.setGeometry(280, 10, 100, 20)
    qtbot.addWidget(window)
    window.resize(300, 200)
    window.show()
    assert any("stands out" in what for what in misfits(window))


def test_a_tab_that_is_wider_than_the_window_is_found(qtbot, theme):
    tab = QWidget()
    QVBoxLayout(tab).addWidget(QPushButton(LONG * 3))
    place = TabScroll(tab)
    qtbot.addWidget(place)
    place.resize(300, 200)
    place.show()
    qtbot.waitExposed(place)
    assert any("wide in" in what for what in misfits(place))
