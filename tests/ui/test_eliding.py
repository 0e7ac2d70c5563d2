import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QFont, QFontDatabase, QHelpEvent
from PySide6.QtWidgets import QApplication, QHeaderView, QToolTip

from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.eliding import ElidedText, ElidingCombo, RoomText
from gpu_studio.ui.parts import Text, table

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


def test_a_tool_tip_of_its_own_goes_before(qtbot, theme):
    line = ElidedText(LONG)
    line.setToolTip(own := "why it is so")
    assert tip_of(shown(qtbot, line, 60)) == own


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


@pytest.mark.parametrize("family", ["DejaVu Sans", "Inter"])
def test_the_room_for_some_lines_is_as_high_as_they_are(qtbot, family):
    """The last line's letters keep their lower ends."""
    if family not in QFontDatabase.families():
        pytest.skip("not installed")
    for size in range(16, 29):
        font = QFont(family)
        font.setPointSizeF(size / 2)
        for lines in (1, 2, 3, 5):
            room, words = RoomText(lines=lines), Text("\n".join("g" * lines), wraps=True)
            for label in (room, words):
                qtbot.addWidget(label)
                label.setFont(font)
                label.setAlignment(room.alignment())  # the middle may be half a pixel higher
            assert room.heightForWidth(200) >= words.heightForWidth(200), (size, lines)
