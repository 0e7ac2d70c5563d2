"""Whether a window shows what it has to say: nothing cut off, covered or wider than its place."""

import contextlib
from collections.abc import Callable, Iterator

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QScrollArea,
    QStyle,
    QStyleOptionComboBox,
    QTabBar,
    QTableView,
    QToolButton,
    QWidget,
)

from gpu_studio.ui.eliding import ElidedText, ElidingCombo
from gpu_studio.ui.parts import Table
from gpu_studio.ui.scroll_page import TabScroll
from tests.driving.window import wait_until

_CELL_PADDING = 8  # pixels that a cell's frame may take of its text without a letter being cut


def misfits(window: QWidget) -> list[str]:
    """Return a sentence for each thing in a window that cannot be read; empty if all can be."""
    found = []
    for widget in [window, *window.findChildren(QWidget)]:
        if widget.isVisibleTo(window) and not widget.size().isEmpty():
            name = f"{type(widget).__name__} {widget.objectName() or _text_of(widget)[:30]!r}"
            found += [f"{name}: {what}" for what in _misfits_of(widget)]
    return found


def misfits_at_rest(window: QWidget) -> list[str]:
    """Return as `misfits`, once layouts have come to rest: a busy PC needs more turns for them."""
    return at_rest(lambda: misfits(window))


def at_rest(look: Callable[[], list[str]]) -> list[str]:
    """Return what is found once nothing is, or still."""
    found: list[str] = []

    def fits() -> bool:
        found[:] = look()
        return not found

    with contextlib.suppress(AssertionError):
        wait_until(fits)
    return found


def _misfits_of(widget: QWidget) -> Iterator[str]:
    if isinstance(widget, QLabel):
        yield from _of_label(widget)
    elif isinstance(widget, QTabBar):
        yield from _of_tabs(widget)
    elif isinstance(widget, QAbstractButton | QAbstractSpinBox) and not _is_inner(widget):
        yield from _smaller_than(widget, widget.sizeHint())
    elif isinstance(widget, QComboBox):
        yield from _of_combo(widget)
    elif isinstance(widget, QLineEdit) and not _is_inner(widget):
        yield from _smaller_than(widget, QSize(0, widget.sizeHint().height()))
    elif isinstance(widget, QTableView):
        yield from _of_table(widget)
    elif isinstance(widget, QScrollArea):
        yield from _of_scroll_area(widget)
    yield from _beyond_parent(widget)


def _is_inner(widget: QWidget) -> bool:
    """Return whether a widget is a part that Qt itself puts into another."""
    return widget.objectName().startswith("qt_") or isinstance(
        widget.parentWidget(), QComboBox | QAbstractSpinBox | QHeaderView | QTableView | QLineEdit
    )


def _smaller_than(widget: QWidget, wanted: QSize) -> Iterator[str]:
    if widget.width() < wanted.width():
        yield f"{widget.width()} wide, {wanted.width()} wanted"
    if widget.height() < wanted.height():
        yield f"{widget.height()} high, {wanted.height()} wanted"


def _of_label(label: QLabel) -> Iterator[str]:
    if not label.text() or isinstance(label, ElidedText):
        return
    if label.wordWrap():
        wanted = label.heightForWidth(label.width())
        if label.height() < wanted:
            yield f"{label.height()} high, {wanted} wanted for {label.text()[:30]!r}"
        return
    wanted_width = label.sizeHint().width()
    if label.width() < wanted_width and not label.toolTip():
        yield f"{label.width()} wide, {wanted_width} wanted for {label.text()[:40]!r}"
    if label.height() < label.fontMetrics().height():
        yield f"{label.height()} high for a line of {label.fontMetrics().height()}"


def _of_tabs(bar: QTabBar) -> Iterator[str]:
    for index in range(bar.count()):
        room = bar.tabRect(index)
        if room.right() >= bar.width() or room.width() < bar.fontMetrics().horizontalAdvance(
            bar.tabText(index)
        ):
            yield f"the tab {bar.tabText(index)!r} is cut off"


def _of_combo(combo: QComboBox) -> Iterator[str]:
    yield from _smaller_than(combo, QSize(0, combo.sizeHint().height()))
    if combo.isEditable() or combo.currentIndex() < 0 or isinstance(combo, ElidingCombo):
        return
    option = QStyleOptionComboBox()
    combo.initStyleOption(option)
    room = combo.style().subControlRect(
        QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, combo
    )
    wanted = combo.fontMetrics().horizontalAdvance(combo.currentText())
    if room.width() < wanted and not combo.toolTip():
        yield f"{room.width()} for {combo.currentText()!r}, {wanted} wanted"


def _of_table(table: QTableView) -> Iterator[str]:
    model, header = table.model(), table.horizontalHeader()
    if model is None or table.isHidden():
        return
    tells = isinstance(table, Table)  # in tool tips, the whole of what is cut
    for column in range(model.columnCount()):
        if table.isColumnHidden(column):
            continue
        width = table.columnWidth(column)
        tip = model.headerData(column, Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)
        if (
            not header.isHidden()
            and not tells
            and width < header.sectionSizeHint(column)
            and not tip
        ):
            title = model.headerData(column, Qt.Orientation.Horizontal)
            yield f"the heading {title!r} has {width}, wants {header.sectionSizeHint(column)}"
        for row in range(min(model.rowCount(), 30)):
            index = model.index(row, column)
            wanted = table.sizeHintForIndex(index)
            text = index.data()
            is_cut = text and wanted.width() - _CELL_PADDING > width
            if is_cut and not tells and not index.data(Qt.ItemDataRole.ToolTipRole):
                yield f"the cell {text!r} has {width}, wants {wanted.width()}"
            if table.rowHeight(row) < table.fontMetrics().height():
                yield f"a row is {table.rowHeight(row)} high"


def _of_scroll_area(area: QScrollArea) -> Iterator[str]:
    inner = area.widget()
    hides = area.horizontalScrollBarPolicy() is Qt.ScrollBarPolicy.ScrollBarAlwaysOff
    is_wide = hides or isinstance(area, TabScroll)
    if inner is not None and is_wide and inner.width() > area.viewport().width():
        yield f"its page is {inner.width()} wide in {area.viewport().width()}"


def _beyond_parent(widget: QWidget) -> Iterator[str]:
    """Tell what stands out of its parent, but for what is scrolled to."""
    parent = widget.parentWidget()
    if parent is None or widget.isWindow() or _is_inner(widget):
        return
    scrolled = isinstance(parent.parentWidget(), QAbstractScrollArea)
    place = QRect(QPoint(0, 0), parent.size())
    if not scrolled and not place.contains(widget.geometry()):
        yield f"{widget.geometry().getRect()} stands out of {parent.size().toTuple()}"


def _text_of(widget: QWidget) -> str:
    return widget.text() if isinstance(widget, QLabel | QAbstractButton | QToolButton) else ""
