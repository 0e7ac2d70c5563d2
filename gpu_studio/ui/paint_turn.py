"""Layouts and painting, each in a turn of the event loop of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent, QObject

from gpu_studio.model.turn_timer import TurnTimer

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

_LAYOUT_TURN, _PAINT_TURN = 2, 3  # the first one is often still that of what was pressed
_LEVELS = 16  # of widgets in widgets, from the window to a word


class PaintTurn(QObject):
    """Lets a window paint in a turn of its own, once all layouts are done.

    A line that comes or goes is laid out level by level, with an event for each, and Qt paints in
    between: a page was laid out, painted, laid out and painted again, most of it in one turn. A
    plot that is painted asks for another paint, so five plots painted the window five times more.

    Args:
        window: paints when Qt asks it to, but for what the system itself asks for at once.
    """

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._turn = 0
        self._turns = TurnTimer(self)
        self._turns.timeout.connect(self._on_turn)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Put off the paint that Qt asks for; Qt does not ask again before it is done."""
        if event.type() is QEvent.Type.UpdateRequest and self._turn < _PAINT_TURN:
            self._turns.start()
            return True
        return super().eventFilter(watched, event)

    def _on_turn(self) -> None:
        if self._turn == _PAINT_TURN - 1 and not self._window.updatesEnabled():
            return  # Qt would take the request, paint nothing, and never ask again
        self._turn += 1
        if self._turn == _LAYOUT_TURN:
            for _ in range(_LEVELS):  # Qt sends only the events that were posted before the call
                QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        elif self._turn == _PAINT_TURN:
            self._turns.stop()
            try:
                QCoreApplication.sendEvent(self._window, QEvent(QEvent.Type.UpdateRequest))
            finally:
                self._turn = 0
