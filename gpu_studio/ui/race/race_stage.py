"""A race on a full screen: pictures, clocks and result alone, again and again until Esc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QWidget

from gpu_studio.ui.race.stage import paint_stage
from gpu_studio.ui.race.stage_view import stage_view

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QCloseEvent, QImage, QKeyEvent, QMouseEvent, QPaintEvent

    from gpu_studio.core.race.photo import Detail
    from gpu_studio.model.race.race import Race
    from gpu_studio.model.race.race_side import RaceSide
    from gpu_studio.ui.theme import Theme

# How long a result stands before the race is shown again.
_RESULT_MS = 6000
# At a stand, a race is shown again so often before the next one is run.
_SHOWN_AGAIN = 1


class RaceStage(QWidget):
    """Shows the race on all of a screen, and again when it is over.

    Args:
        race: the race.
        theme: has the colors.
        roles: returns the colors of the sides.
        lens: returns what a lens shows.
        preview: returns what a side is to draw, before its first frame.
        runs_on: at a stand: run the race of the next picture after each result.

    Signals:
        closed(): the stage is gone.
    """

    closed = Signal()

    def __init__(
        self,
        race: Race,
        theme: Theme,
        roles: Callable[[], Sequence[str]],
        lens: Callable[[], Detail | None],
        preview: Callable[[RaceSide | None], QImage | None],
        *,
        runs_on: bool = False,
    ) -> None:
        super().__init__()
        self.setObjectName("race.stage")
        self.setWindowTitle("GPU Studio – Race")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setCursor(Qt.CursorShape.BlankCursor)
        self._race, self._theme = race, theme
        self._roles, self._lens, self._preview = roles, lens, preview
        self._runs_on, self._shown_again = runs_on, 0
        self._again = QTimer(self)
        self._again.setSingleShot(True)
        self._again.setInterval(_RESULT_MS)
        self._again.timeout.connect(self._go_on)
        race.moment_changed.connect(self.update)
        race.race_changed.connect(self._update)
        race.choices_changed.connect(self.update)
        theme.changed.connect(self.update)
        if self._runs_on and not race.sides:
            self._race.start()
        self._update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the moment."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._color("window"))
        race = self._race
        view = stage_view(race, self._roles(), self._lens(), self._preview)
        paint_stage(painter, QRectF(self.rect()), view, self._color)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Close with Esc or F11."""
        if event.key() in (Qt.Key.Key_Escape, Qt.Key.Key_F11):
            self.close()
        else:
            super().keyPressEvent(event)

    def mouseDoubleClickEvent(self, _event: QMouseEvent) -> None:
        """Close."""
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        """End what only this stage goes on with."""
        self._again.stop()
        self._race.clock.end_replay()
        if self._runs_on:
            self._race.stop()
        self.closed.emit()
        super().closeEvent(event)

    def _update(self) -> None:
        self.setAccessibleName(self._race.notice.sentence)
        is_waiting = self._race.state.is_busy or self._race.clock.is_replaying
        if is_waiting:
            self._again.stop()
        elif not self._again.isActive() and (self._race.sides or self._runs_on):
            self._again.start()
        self.update()

    def _go_on(self) -> None:
        """Show the race again, or run the next one."""
        race = self._race
        if self._runs_on and (not race.sides or self._shown_again >= _SHOWN_AGAIN):
            self._shown_again = 0
            if race.sides:
                race.choices.choose_next_picture()
            race.start()
            if not race.state.is_busy:  # the engine is not there yet, or this picture cannot run
                self._again.start()
            return
        self._shown_again += 1
        race.replay()

    def _color(self, role: str) -> QColor:
        return QColor(self._theme.colour(role))
