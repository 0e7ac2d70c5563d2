"""One side of a race: the picture, and below it the clock, the pace and the way to the finish."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.parts import GAP, Card, Text
from gpu_studio.ui.race.race_picture import PictureChip, RacePicture

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gpu_studio.ui.theme import Theme

_NO_CHIP = PictureChip()
_SPACING = 4
_OF_POWER = (
    "The average over the whole race, in which the card idles while the other side has its turns. "
    "Drivers report no shorter one."
)


class LaneFigures(NamedTuple):
    """What stands below a picture.

    Attributes:
        clock: the race's own time of this contestant.
        pace: the steps a second, with what it counts.
        steps: how many steps are done, and of how many.
        achieved: what the steps have achieved, and the device's power; empty without any.
        share: the share of the way that is done, 0 to 1.
        is_reached: whether the finish line is reached.
    """

    clock: str = "0.0\u202fs"
    pace: str = "–"
    steps: str = ""
    achieved: str = ""
    share: float = 0.0
    is_reached: bool = False


class RaceLane(Card):
    """Shows one contestant. Both sides are equal in everything but their names and colors."""

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, name=name)
        self.picture = RacePicture(theme, name=f"{name}.picture")
        self._clock = Text("", "value", name=f"{name}.clock")
        self._clock.setToolTip("The race's clock: it runs only while this side works")
        self._pace = Text("", "value", name=f"{name}.pace")
        self._steps = Text("", "muted", name=f"{name}.steps")
        self._achieved = ElidedText("", "muted", name=f"{name}.achieved")
        self._achieved.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._achieved.setToolTip(_OF_POWER)
        self._way = ProgressLine(theme, name=f"{name}.way")
        self.column.setContentsMargins(1, 1, 1, 1)
        self.column.addWidget(self.picture, 1)
        below = QVBoxLayout()
        below.setContentsMargins(GAP, GAP // 2, GAP, GAP // 2)
        below.setSpacing(_SPACING)
        self.column.addLayout(below)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        below.addLayout(line)
        line.addWidget(self._clock)
        line.addWidget(self._pace)
        line.addWidget(self._steps)
        line.addWidget(self._achieved, 1)
        below.addWidget(self._way)

    def show_contestant(self, chip: PictureChip, state: PictureChip = _NO_CHIP) -> None:
        """Show the name of the contestant, and its state."""
        self.picture.show_chips(chip, state)
        self.setAccessibleName(chip.text)
        self.setAccessibleDescription(state.text)

    def show_figures(self, figures: LaneFigures, role: str) -> None:
        """Show the figures, and the way in the color of the contestant."""
        self._clock.setText(figures.clock)
        self._pace.setText(figures.pace)
        self._steps.setText(figures.steps)
        self._achieved.setText(figures.achieved)
        self._way.show_share(figures.share, role, is_reached=figures.is_reached)


# In lines of the widget's font.
_THICK, _FLAG, _GAP = 0.5, 1.1, 0.5
_SQUARES = 4  # of the finish flag, in each direction


class ProgressLine(QWidget):
    """A bar on its track, with a checkered flag at its end, which turns green at the finish.

    Attributes:
        share: the share of the way that is done, 0 to 1.
    """

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName("Progress to the finish line")
        self._theme = theme
        self.share, self._role, self._is_reached = 0.0, "other", False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_share(self, share: float, role: str, *, is_reached: bool) -> None:
        """Show a share in the color of a role."""
        self.share, self._role, self._is_reached = share, role, is_reached
        self.setAccessibleDescription(f"{share:.0%}")
        self.update()

    def sizeHint(self) -> QSize:
        """Return the least width at which progress can be seen, and the height of the flag."""
        return QSize(math.ceil(self._lines(4)), math.ceil(self._lines(_FLAG)))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the track, the bar and the flag."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        thick, side = self._lines(_THICK), self._lines(_FLAG)
        track = QRectF(
            0, (self.height() - thick) / 2, self.width() - side - self._lines(_GAP), thick
        )
        self._paint_bar(painter, track, "track")
        if self.share > 0:
            track.setWidth(max(track.width() * min(self.share, 1.0), thick))
            self._paint_bar(painter, track, self._role)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        color = QColor(self._theme.colour("good" if self._is_reached else "muted"))
        square, left = side / _SQUARES, self.width() - side
        for row in range(_SQUARES):
            for column in range(row % 2, _SQUARES, 2):
                place = QRectF(left + column * square, row * square, square, square)
                painter.fillRect(place, color)

    def _paint_bar(self, painter: QPainter, place: QRectF, role: str) -> None:
        outline = QPainterPath()
        outline.addRoundedRect(place, place.height() / 2, place.height() / 2)
        painter.fillPath(outline, QColor(self._theme.colour(role)))

    def _lines(self, count: float) -> float:
        return count * self.fontMetrics().height()
