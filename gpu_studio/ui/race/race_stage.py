"""The stage of a race: pictures, clocks and result alone, on a full screen and in saved pictures.

It is one page of the tab's own lanes, laid out small and shown larger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QPainter, QTransform
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QGraphicsScene,
    QGraphicsView,
    QLayout,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.parts import GAP, MARGIN, Role, Text
from gpu_studio.ui.race.race_lane import RaceLane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from PySide6.QtGui import QCloseEvent, QKeyEvent, QMouseEvent, QResizeEvent

    from gpu_studio.core.race.stage_view import StageView
    from gpu_studio.model.race.race import Race
    from gpu_studio.ui.theme import Theme

_PAGE = (1080, 608)  # the figures of two lanes with any device are whole
_HEADLINES: tuple[Role, ...] = ("hero", "hero_words", "headline")
# How long a result stands before the race is shown again.
_RESULT_MS = 6000


class StagePage(QWidget):
    """A moment of a race without controls."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._headline = Text("", "hero", name="race.stage.headline")
        self._headline.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._detail = Text("", "lead", name="race.stage.detail", wraps=True)
        self._detail.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._lanes = [RaceLane(theme, name=f"race.stage.{side}") for side in ("left", "right")]
        self._foot = ElidedText("", "muted", name="race.stage.foot")
        self._trust = Text("", "muted", name="race.stage.trust")
        column = QVBoxLayout(self)
        column.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        column.setContentsMargins(MARGIN, MARGIN, MARGIN, GAP)
        column.setSpacing(GAP)
        column.addWidget(self._headline)
        column.addWidget(self._detail)
        self._beside = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        column.addLayout(self._beside, 1)
        for lane in self._lanes:
            self._beside.addWidget(lane, 1)
        line = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        column.addLayout(line)
        line.addWidget(self._foot, 1)
        line.addWidget(self._trust)

    def fit(self, width: int, height: int) -> float:
        """Lay the page out for a screen of some pixels; return how much larger that is."""
        scale = min(width / _PAGE[0], height / _PAGE[1])
        # Side by side, two pictures would be a stamp each on a screen that stands upright.
        is_upright = height > width
        directions = QBoxLayout.Direction
        self._beside.setDirection(directions.TopToBottom if is_upright else directions.LeftToRight)
        self.resize(round(width / scale), round(height / scale))
        return scale

    def show_view(self, view: StageView) -> None:
        """Show a moment."""
        self._headline.setText(view.headline)
        self._headline.fit_role(_HEADLINES, self.width() - 2 * MARGIN)
        self._detail.setText(view.detail)
        for lane, shown in zip(self._lanes, view.lanes, strict=False):
            lane.show_lane(shown)
        self._lanes[1].setVisible(len(view.lanes) > 1)
        self._foot.setText(view.foot)
        self._trust.setText(view.trust)
        self._trust.set_tone(view.trust_tone)

    def lay_out(self) -> None:
        """Give each text its room now: off the screen, no event of Qt does."""
        for widget in (*self._lanes, self):
            layout = widget.layout()
            if layout is not None:
                layout.activate()


def painted(views: Sequence[StageView], size: tuple[int, int], theme: Theme) -> Iterator[QImage]:
    """Yield moments as images of some pixels, painted off the screen."""
    page = StagePage(theme)
    page.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    scale = page.fit(*size)
    page.show()
    for view in views:
        page.show_view(view)
        page.lay_out()
        image = QImage(*size, QImage.Format.Format_RGB32)
        image.fill(QColor(theme.colour("window")))
        painter = QPainter(image)
        painter.setTransform(QTransform.fromScale(scale, scale))
        page.render(painter, QPoint(), renderFlags=QWidget.RenderFlag.DrawChildren)
        painter.end()
        yield image
    page.close()
    page.deleteLater()


class RaceStage(QGraphicsView):
    """Shows the race on all of a screen, and again when it is over, until Esc.

    Args:
        race: the race.
        theme: has the colors.
        roles: returns the colors of the sides.

    Signals:
        closed(): the stage is gone.
    """

    closed = Signal()

    def __init__(self, race: Race, theme: Theme, roles: Callable[[], Sequence[str]]) -> None:
        super().__init__()
        self.setObjectName("race.stage")
        self.setWindowTitle("GPU Studio – Race")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setInteractive(False)
        for set_policy in (self.setHorizontalScrollBarPolicy, self.setVerticalScrollBarPolicy):
            set_policy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setCursor(Qt.CursorShape.BlankCursor)
        self._race, self._theme, self._roles = race, theme, roles
        self.page = StagePage(theme)
        self.setScene(QGraphicsScene(self))
        self._shown = self.scene().addWidget(self.page)
        self._again = QTimer(self)
        self._again.setSingleShot(True)
        self._again.setInterval(_RESULT_MS)
        self._again.timeout.connect(race.replay)
        race.moment_changed.connect(self._show)
        race.changed.connect(self._on_race_changed)
        theme.changed.connect(self._show)
        self._on_race_changed()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Make the page as large as the screen."""
        super().resizeEvent(event)
        scale = self.page.fit(self.width(), self.height())
        self.setTransform(QTransform.fromScale(scale, scale))
        self._shown.resize(self.page.size().toSizeF())
        self.setSceneRect(self._shown.rect())
        self._show()

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
        self._race.end_replay()
        self.closed.emit()
        super().closeEvent(event)

    def _show(self) -> None:
        view = self._race.stage(self._roles())
        self.setAccessibleName(view.headline)
        self.setBackgroundBrush(QColor(self._theme.colour("window")))
        self.page.show_view(view)

    def _on_race_changed(self) -> None:
        is_waiting = self._race.state.is_busy or self._race.is_replaying
        if is_waiting or not self._race.sides:
            self._again.stop()
        elif not self._again.isActive():
            self._again.start()
        self._show()
