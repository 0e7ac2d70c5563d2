import itertools

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent, Qt, QTextDocument
from PySide6.QtWidgets import QApplication, QHeaderView, QPushButton, QToolTip, QVBoxLayout, QWidget

from gpu_studio.model.text_rows import TextRows, plain_tip, rich_tip
from gpu_studio.ui.eliding import ElidedText, ElidingCombo
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import table

LONG = "a text that is a good deal longer than the place that it is given"


def tip_of(widget, at=None):
    """Return the tool tip that a person gets who rests the mouse on a widget."""
    QToolTip.showText(QPoint(0, 0), "")
    place = at or widget.rect().center()
    event = QHelpEvent(QEvent.Type.ToolTip, place, widget.mapToGlobal(place))
    QApplication.sendEvent(widget, event)
    return QToolTip.text()


def shown(qtbot, widget, width, height=30):
    qtbot.addWidget(widget)
    widget.resize(width, height)
    widget.show()
    qtbot.waitExposed(widget)
    return widget


@pytest.fixture(autouse=True)
def no_tip_left(qtbot):
    yield
    QToolTip.hideText()
    qtbot.waitUntil(lambda: not QToolTip.text())  # Qt lets a tip stand for a moment


@pytest.mark.parametrize(("width", "tip"), [(60, LONG), (2000, "")])
def test_a_line_reports_what_it_leaves_out(qtbot, theme, width, tip):
    assert tip_of(shown(qtbot, ElidedText(LONG), width)) == tip


@pytest.mark.parametrize(("width", "tip"), [(80, LONG), (2000, "")])
def test_a_choice_reports_what_it_leaves_out(qtbot, theme, width, tip):
    combo = ElidingCombo()
    combo.setSizeAdjustPolicy(combo.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    combo.addItem(LONG)
    assert tip_of(shown(qtbot, combo, width)) == tip


@pytest.mark.parametrize(("width", "tip"), [(90, LONG), (3000, "")])
def test_a_table_reports_cells_that_are_cut(qtbot, theme, width, tip):
    rows = TextRows((LONG.upper(),))
    rows.set_rows([(LONG,)])
    view = shown(qtbot, table(rows, name="table", accessible_name="A table"), width, 200)
    view.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
    assert tip_of(view.viewport(), view.visualRect(rows.index(0, 0)).center()) == tip


@pytest.fixture
def buttons(qtbot, theme):
    return [QPushButton(text) for text in ("The first", "The second", "The third")]


@pytest.fixture
def make(qtbot):
    """Put a row into a shown window of a width in which it stands alone."""
    collected = []  # or Python would end the window, and the row with it

    def put(row, width):
        window = QWidget()
        column = QVBoxLayout(window)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(row)
        column.addStretch(1)
        qtbot.addWidget(window)
        collected.append(window)
        window.resize(width, 300)
        window.show()
        qtbot.waitExposed(window)
        return window

    return put


def test_one_line_where_there_is_room_and_more_where_there_is_none(buttons, make, qtbot):
    row = FlowRow(*buttons)
    window = make(row, 1000)
    assert len({button.y() for button in buttons}) == 1
    one_line = row.height()
    window.resize(row.minimumSizeHint().width(), 300)
    qtbot.waitUntil(lambda: len({button.y() for button in buttons}) == len(buttons))
    assert row.height() >= len(buttons) * one_line
    for button in buttons:
        assert row.rect().contains(button.geometry())
        assert button.width() >= button.sizeHint().width()


def test_the_filling_one_takes_what_is_left(buttons, make):
    row = FlowRow(*buttons, fills=buttons[1])
    make(row, 1000)
    assert buttons[0].width() == buttons[0].sizeHint().width()
    assert buttons[2].geometry().right() == row.width() - 1
    assert buttons[1].width() > 500


@pytest.mark.parametrize("width", [1000, 160])
def test_a_control_that_came_while_the_page_was_hidden_covers_no_other(buttons, make, width):
    """Qt asks a hidden page for no new layout."""
    buttons[0].hide()
    row = FlowRow(*buttons)
    make(row, width)
    row.hide()
    buttons[0].show()
    buttons[1].setText("A second one that is longer")
    row.show()
    QApplication.processEvents()
    places = [button.geometry() for button in buttons]
    assert not any(a.intersects(b) for a, b in itertools.combinations(places, 2))
    assert all(row.rect().contains(place) for place in places)


def test_a_hidden_control_leaves_no_gap_and_comes_back(buttons, make, qtbot):
    buttons[0].hide()
    row = FlowRow(*buttons)
    make(row, 1000)
    assert buttons[0].isHidden()
    assert buttons[1].x() == 0
    buttons[0].show()
    qtbot.waitUntil(lambda: buttons[1].x() > buttons[0].width())
    assert buttons[0].x() == 0


def shown_tip(tip: str) -> str:
    """What a tool tip shows of a text, as QToolTip's label decides by itself."""
    if not Qt.mightBeRichText(tip):
        return tip
    document = QTextDocument()
    document.setHtml(tip)
    return document.toPlainText()


@pytest.mark.parametrize(
    "text",
    [
        "NVIDIA GeForce GT 1030\nidle",
        "<b>card</b>",
        "a\n<img src='file:///etc/hostname'>\nb",
        "&lt;b&gt; & <br>",
        "&lt;b&gt; alone",
        "layer.0 & layer.1",
    ],
)
def test_a_tip_shows_every_text_as_it_is(text: str) -> None:
    assert shown_tip(plain_tip(text)) == text


def test_lines_stay_lines() -> None:
    assert shown_tip(rich_tip(["<a>", "b"])) == "<a>\nb"
