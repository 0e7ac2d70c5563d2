"""Controls side by side, wrapped into as many lines as needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QEvent, QRect, QSize, Qt
from PySide6.QtWidgets import QSizePolicy, QWidget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PySide6.QtGui import QResizeEvent, QShowEvent

_LINE_GAP = 6
_MOST_WIDTHS = 16


class _Place(NamedTuple):
    """The place of a widget; `line` counts from the top."""

    widget: QWidget
    line: int
    left: int
    size: QSize


class FlowRow(QWidget):
    """Puts its widgets from left to right and starts a new line if one is full.

    It places the widgets itself: a custom layout would hand Qt items created by Python.

    Args:
        widgets: the widgets to place.
        fills: the widget that takes the remaining width of its line; without one, the widgets
            are left-aligned.
        centred: whether to center them instead.
        spacing: pixels between two widgets.
    """

    def __init__(
        self,
        *widgets: QWidget,
        fills: QWidget | None = None,
        centred: bool = False,
        spacing: int = 8,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._fills, self._is_centred, self._spacing = fills, centred, spacing
        self._widgets: list[QWidget] = []
        self._kept: set[QWidget] = set()
        self._sizes: dict[QWidget, QSize] = {}
        self._known_places: dict[object, list[_Place]] = {}
        self._needs: object = None  # what the last layout followed
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
        self._forget()
        self.updateGeometry()

    def set_widgets(self, *widgets: QWidget, fills: QWidget | None = None) -> None:
        """Place these widgets from now on; others from before already have another parent."""
        self._widgets, self._fills = [], fills
        self._forget()
        for widget in widgets:
            self.add(widget)
        self.updateGeometry()

    def keep_room(self, *widgets: QWidget, is_kept: bool = True) -> None:
        """Keep the room of widgets while they are hidden, or no longer: what follows them stays."""
        before = set(self._kept)
        self._kept = before | set(widgets) if is_kept else before - set(widgets)
        if self._kept != before:
            self._forget()
            self.updateGeometry()
            self._arrange()

    def sizeHint(self) -> QSize:
        """Return the size for everything in one line."""
        sizes = [self._size_of(widget) for widget in self._shown()]
        gaps = self._spacing * max(len(sizes) - 1, 0)
        height = max((size.height() for size in sizes), default=0)
        return QSize(sum(size.width() for size in sizes) + gaps, height)

    def minimumSizeHint(self) -> QSize:
        """Return the size for the widest widget."""
        width = max((_least_width(widget) for widget in self._shown()), default=0)
        return QSize(width, self.sizeHint().height())

    def heightForWidth(self, width: int) -> int:
        """Return the height of all lines, in pixels."""
        heights = _line_heights(self._places(width))
        return sum(heights) + _LINE_GAP * max(len(heights) - 1, 0)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place the widgets again."""
        super().resizeEvent(event)
        self._arrange()

    def showEvent(self, event: QShowEvent) -> None:
        """Place the widgets again: while the row is hidden, Qt requests no new layout."""
        super().showEvent(event)
        self._forget()
        self.updateGeometry()
        self._arrange()

    def event(self, event: QEvent) -> bool:
        """Place the widgets again if one was shown or hidden, or changed its size hint.

        Qt asks as well if one may have changed it. To ask for a new layout then would lay out, and
        paint, the whole page a second time.
        """
        if event.type() is QEvent.Type.LayoutRequest:
            self._forget()
            shown = self._shown()
            needs = self._fills, [(one, self._size_of(one), _least_width(one)) for one in shown]
            if needs != self._needs or not self.isVisible():
                self._needs = needs
                self.updateGeometry()
                self._arrange()
        return super().event(event)

    def _forget(self) -> None:
        self._sizes.clear()
        self._known_places.clear()

    def _shown(self) -> list[QWidget]:
        return [one for one in self._widgets if not one.isHidden() or one in self._kept]

    def _size_of(self, widget: QWidget) -> QSize:
        """Return a widget's size, which a layout asks for often and at several widths.

        A visible row hears of each change by a `LayoutRequest`; a hidden one does not.
        """
        if not self.isVisible():
            return _size_of(widget)
        size = self._sizes.get(widget)
        if size is None:
            size = self._sizes[widget] = _size_of(widget)
        return size

    def _places(self, width: int) -> list[_Place]:
        """Return the places, which a layout asks for some ten times at the same width."""
        shown = self._shown()
        if not self.isVisible():
            return self._places_of(shown, width)
        key = (width, *shown)
        places = self._known_places.get(key)
        if places is None:
            if len(self._known_places) > _MOST_WIDTHS:
                self._known_places.clear()
            places = self._known_places[key] = self._places_of(shown, width)
        return places

    def _places_of(self, shown: Iterable[QWidget], width: int) -> list[_Place]:
        places: list[_Place] = []
        line = left = 0
        for widget in shown:
            size = QSize(self._size_of(widget))
            if widget is self._fills:
                size.setWidth(_least_width(widget))
            if left and left + size.width() > width:
                line, left = line + 1, 0
            size.setWidth(min(size.width(), max(width, 0)))
            places.append(_Place(widget, line, left, size))
            left += size.width() + self._spacing
        return self._filled(places, width)

    def _filled(self, places: list[_Place], width: int) -> list[_Place]:
        """Return the places, with one widget widened to fill its line."""
        filling = next((place for place in places if place.widget is self._fills), None)
        if filling is None:
            return places
        last = next(place for place in reversed(places) if place.line == filling.line)
        spare = max(width - last.left - last.size.width(), 0)
        filled = []
        for place in places:
            if place is filling:
                size = QSize(place.size.width() + spare, place.size.height())
                filled.append(place._replace(size=size))
            elif place.line == filling.line and place.left > filling.left:
                filled.append(place._replace(left=place.left + spare))
            else:
                filled.append(place)
        return filled

    def _arrange(self) -> None:
        places = self._places(self.width())
        heights = _line_heights(places)
        tops = [sum(heights[:line]) + _LINE_GAP * line for line in range(len(heights))]
        ends = {place.line: place.left + place.size.width() for place in places}
        for place in places:
            height = place.size.height()
            aside = (self.width() - ends[place.line]) // 2 if self._is_centred else 0
            top = tops[place.line] + (heights[place.line] - height) // 2
            place.widget.setGeometry(QRect(place.left + aside, top, place.size.width(), height))


def _least_width(widget: QWidget) -> int:
    if widget.sizePolicy().horizontalPolicy() is QSizePolicy.Policy.Ignored:
        return widget.minimumWidth()
    return max(widget.minimumSizeHint().width(), widget.minimumWidth())


def _size_of(widget: QWidget) -> QSize:
    hint = widget.sizeHint().expandedTo(widget.minimumSizeHint())
    if widget.sizePolicy().horizontalPolicy() is QSizePolicy.Policy.Ignored:
        hint.setWidth(0)
    return hint.expandedTo(widget.minimumSize()).boundedTo(widget.maximumSize())


def _line_heights(places: Iterable[_Place]) -> list[int]:
    heights: list[int] = []
    for place in places:
        if place.line == len(heights):
            heights.append(0)
        heights[place.line] = max(heights[place.line], place.size.height())
    return heights
