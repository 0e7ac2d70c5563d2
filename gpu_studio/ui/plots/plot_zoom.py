"""Zooms a plot by mouse and keyboard.

Ctrl and the wheel zoom, and the wheel alone scrolls the page; dragging is pyqtgraph's own. If the
plot has keyboard focus, + and − zoom, the arrow keys move, and Home or 0 shows everything again. A
button does the same; it is visible while a part is hidden.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal

from gpu_studio.ui.parts import button, set_property

if TYPE_CHECKING:
    import pyqtgraph as pg
    from PySide6.QtGui import QKeyEvent
    from PySide6.QtWidgets import QWidget

_CLOSER, _STEP = 0.5, 0.2  # of the visible range
_MARGIN = 8
_HELP = (
    "Zoom with Ctrl and the wheel or + and −, move by dragging or with the arrow keys, reset with "
    "Home."
)


class PlotZoom(QObject):
    """The part of a plot that the user has zoomed to.

    Args:
        place: the plot's widget.

    Signals:
        changed(): another part is visible.

    Attributes:
        is_chosen: whether the user has zoomed; the axes stay fixed meanwhile.
    """

    changed = Signal()

    def __init__(self, place: QWidget) -> None:
        super().__init__(place)
        self._place = place
        self._plot: pg.PlotWidget | None = None
        self.is_chosen = False
        self._all = button("Show all", self.show_all, name=f"{place.objectName()}.all", tip=_HELP)
        self._all.setParent(place)
        self._all.hide()
        place.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        set_property(place, "zoomable", True)

    def look_at(self, plot: pg.PlotWidget) -> None:
        """Attach to the plot; called once it is built."""
        self._plot = plot
        plot.plotItem.vb.sigRangeChangedManually.connect(self._choose)
        self._all.raise_()

    def show_all(self) -> None:
        """Follow everything again."""
        self.is_chosen = False
        had_focus = self._all.hasFocus()
        self._all.hide()
        if had_focus:
            self._place.setFocus()
        self.changed.emit()

    def press(self, event: QKeyEvent) -> bool:
        """Zoom or move; return whether the key does that."""
        if self._plot is None:
            return False
        box = self._plot.plotItem.vb
        (left, right), (low, high) = box.viewRange()
        aside, up = _STEP * (right - left), _STEP * (high - low)
        match event.key():
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                box.scaleBy(x=_CLOSER, y=1.0)
            case Qt.Key.Key_Minus:
                box.scaleBy(x=1 / _CLOSER, y=1.0)
            case Qt.Key.Key_Left:
                box.translateBy(x=-aside)
            case Qt.Key.Key_Right:
                box.translateBy(x=aside)
            case Qt.Key.Key_Up:
                box.translateBy(y=up)
            case Qt.Key.Key_Down:
                box.translateBy(y=-up)
            case Qt.Key.Key_Home | Qt.Key.Key_0:
                self.show_all()
                return True
            case _:
                return False
        self._choose()
        return True

    def _choose(self) -> None:
        self.is_chosen = True
        self.put_button()
        self._all.show()
        self.changed.emit()

    def put_button(self) -> None:
        """Keep the button in its corner."""
        self._all.adjustSize()
        self._all.move(self._place.width() - self._all.width() - _MARGIN, _MARGIN)
