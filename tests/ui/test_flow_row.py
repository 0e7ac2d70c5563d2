import itertools

import pytest
from PySide6.QtWidgets import QApplication, QPushButton, QVBoxLayout, QWidget

from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import keep_room


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


def test_in_a_column_each_fills_a_line_and_side_by_side_none_does(buttons, make, qtbot):
    row = FlowRow(*buttons)
    make(row, 1000)
    for is_column in (True, False):
        row.turn(is_column=is_column)
        lines, widths = 3 if is_column else 1, {button.width() for button in buttons}
        assert len({button.y() for button in buttons}) == lines
        assert (widths == {row.width()}) is is_column


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


def test_a_control_that_became_longer_moves_the_next(buttons, make, qtbot):
    row = FlowRow(*buttons)
    make(row, 1000)
    buttons[0].setText("The first, longer")
    qtbot.waitUntil(lambda: buttons[0].width() == buttons[0].sizeHint().width())
    assert buttons[1].x() > buttons[0].geometry().right()


def test_the_room_of_a_hidden_control_can_be_kept(buttons, make, qtbot):
    row = FlowRow(*buttons)
    keep_room(buttons[0])
    make(row, 1000)
    before = buttons[1].x()
    buttons[0].hide()
    QApplication.processEvents()
    assert buttons[1].x() == before
