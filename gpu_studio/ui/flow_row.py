"""Controls side by side, wrapped into as many lines as needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtWidgets import QSizePolicy, QWidget

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent, QShowEvent

_LINE_GAP = 6


class FlowRow(QWidget):
    """Puts its widgets from left to right and starts a new line if one is full.

    It places the widgets itself: a custom layout would hand Qt items created by Python.

    Args:
        widgets: the widgets to place.
        fills: the widget that takes the remaining width of its line; without one, the widgets
            are left-aligned.
        spacing: pixels between two widgets.
    """

    def __init__(
        self,
        *widgets: QWidget,
        fills: QWidget | None = None,
        spacing: int = 8,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._fills, self._spacing = fills, spacing
        self._is_column = False
        self._widgets: list[QWidget] = []
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        for widget in widgets:
            self.add(widget)

    def add(self, widget: QWidget) -> None:
        """Append a widget; a hidden one stays hidden."""
        attributes = Qt.WidgetAttribute
        was_hidden = widget.isHidden() and widget.testAttribute(
            attributes.WA_WState_ExplicitShowHide
        )
        widget.setParent(self)
        widget.setVisible(not was_hidden)
        widget.ensurePolished()  # its size is another one without the style sheet
        self._widgets.append(widget)
        self.updateGeometry()

    def set_widgets(self, *widgets: QWidget) -> None:
        """Place these widgets from now on; others from before already have another parent."""
        self._widgets = []
        for widget in widgets:
            self.add(widget)
        self.updateGeometry()

    def turn(self, *, is_column: bool) -> None:
        """Give each widget a line of its own, which it fills, or put them side by side again."""
        if is_column is not self._is_column:
            self._is_column = is_column
            self.updateGeometry()
            self._arrange()

    def sizeHint(self) -> QSize:
        """Return the size for everything in one line."""
        sizes = [_size_of(widget) for widget in self._shown()]
        gaps = self._spacing * max(len(sizes) - 1, 0)
        height = max((size.height() for size in sizes), default=0)
        return QSize(sum(size.width() for size in sizes) + gaps, height)

    def minimumSizeHint(self) -> QSize:
        """Return the size for the widest widget."""
        width = max((_least_width(widget) for widget in self._shown()), default=0)
        return QSize(width, self.sizeHint().height())

    def heightForWidth(self, width: int) -> int:
        """Return the height of all lines, in pixels."""
        heights = [_height_of(line) for line in self._lines(width)]
        return sum(heights) + _LINE_GAP * max(len(heights) - 1, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the widgets again."""
        super().resizeEvent(event)
        self._arrange()

    def showEvent(self, event: QShowEvent) -> None:
        """Place the widgets again: while the row is hidden, Qt requests no new layout."""
        super().showEvent(event)
        self.updateGeometry()
        self._arrange()

    def event(self, event: QEvent) -> bool:
        """Place the widgets again if one was shown or hidden, or changed its size hint."""
        if event.type() is QEvent.Type.LayoutRequest:
            self.updateGeometry()
            self._arrange()
        return super().event(event)

    def _shown(self) -> list[QWidget]:
        return [
            widget
            for widget in self._widgets
            if not widget.isHidden() or widget.sizePolicy().retainSizeWhenHidden()
        ]

    def _lines(self, width: int) -> list[list[tuple[QWidget, QSize]]]:
        """Return the widgets of each line with their sizes, before one fills its line."""
        lines: list[list[tuple[QWidget, QSize]]] = []
        left = 0
        for widget in self._shown():
            size = _size_of(widget)
            if widget is self._fills:
                size.setWidth(_least_width(widget))
            if not lines or self._is_column or left + size.width() > width:
                lines.append([])
                left = 0
            size.setWidth(width if self._is_column else min(size.width(), max(width, 0)))
            if self._is_column and widget.hasHeightForWidth():
                size.setHeight(widget.heightForWidth(width))
            lines[-1].append((widget, size))
            left += size.width() + self._spacing
        return lines

    def _arrange(self) -> None:
        top = 0
        for line in self._lines(self.width()):
            height = _height_of(line)
            taken = sum(size.width() for _, size in line) + self._spacing * (len(line) - 1)
            spare = max(self.width() - taken, 0)
            left = 0
            for widget, size in line:
                width = size.width() + (spare if widget is self._fills else 0)
                above = (height - size.height()) // 2
                widget.setGeometry(left, top + above, width, size.height())
                left += width + self._spacing
            top += height + _LINE_GAP


def _least_width(widget: QWidget) -> int:
    if widget.sizePolicy().horizontalPolicy() is QSizePolicy.Policy.Ignored:
        return widget.minimumWidth()
    return max(widget.minimumSizeHint().width(), widget.minimumWidth())


def _size_of(widget: QWidget) -> QSize:
    hint = widget.sizeHint().expandedTo(widget.minimumSizeHint())
    if widget.sizePolicy().horizontalPolicy() is QSizePolicy.Policy.Ignored:
        hint.setWidth(0)
    elif widget.sizePolicy().hasHeightForWidth():  # its least height is that of its least width
        hint.setHeight(widget.heightForWidth(hint.width()))
    return hint.expandedTo(widget.minimumSize()).boundedTo(widget.maximumSize())


def _height_of(line: list[tuple[QWidget, QSize]]) -> int:
    return max(size.height() for _, size in line)
