"""One side of a race: the picture, the clock, the pace, and the way to the finish line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.parts import GAP, Card, Role, Text
from gpu_studio.ui.race.picture_chip import PictureChip
from gpu_studio.ui.race.race_picture import RacePicture

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from gpu_studio.ui.theme import Theme


_NO_CHIP = PictureChip()
_SPACING = 4
_STRIP = 0.86  # the opacity of figures on a picture


class LaneFigures(NamedTuple):
    """What stands below a picture.

    Attributes:
        clock: the race's own time of this contestant.
        pace: the steps a second.
        pace_unit: what it counts.
        steps: how many steps are done, and of how many.
        done: the same in numbers alone, for a low window.
        measure: what the steps have achieved, with its unit; empty without one.
        measure_title: the name of that.
        power: the device's mean power; empty if unknown.
        energy: the energy of a picture; empty if unknown.
        share: the share of the way that is done, 0 to 1.
        is_reached: whether the finish line is reached.
    """

    clock: str = "0.0\u202fs"
    pace: str = "–"
    pace_unit: str = "steps/s"
    steps: str = ""
    done: str = ""
    measure: str = ""
    measure_title: str = ""
    power: str = ""
    energy: str = ""
    share: float = 0.0
    is_reached: bool = False


class RaceLane(Card):
    """Shows one contestant. Both sides are equal in everything but their names and colors.

    The figures stand below the picture; in a low window, on its lower edge.
    """

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, name=name)
        self.picture = RacePicture(theme, name=f"{name}.picture")
        self._figures = _Figures(theme, name)
        self._body = _Body(self.picture, self._figures)
        self.column.setContentsMargins(1, 1, 1, 1)
        self.column.addWidget(self._body, 1)

    def show_contestant(self, chip: PictureChip, state: PictureChip = _NO_CHIP) -> None:
        """Show the name of the contestant, and its state."""
        self.picture.show_chips(chip, state)
        self.setAccessibleName(chip.text)
        self.setAccessibleDescription(state.text)

    def show_figures(self, figures: LaneFigures, role: str) -> None:
        """Show the figures, and the way in the color of the contestant."""
        self._figures.show_figures(figures, role)

    def set_narrow(self, is_narrow: bool) -> None:
        """Use a smaller type for the figures, for large letters in a small window."""
        self._figures.set_narrow(is_narrow)

    def set_dense(self, is_dense: bool) -> None:
        """Leave the picture all of a low window: one line of figures lies on it."""
        self._figures.set_dense(is_dense)
        self._body.set_over(is_dense)


class _Body(QWidget):
    """Places the picture and the figures, below each other or one on the other."""

    def __init__(self, picture: RacePicture, figures: _Figures) -> None:
        super().__init__()
        self._picture, self._figures = picture, figures
        self._is_over = False
        for widget in (picture, figures):
            widget.setParent(self)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)

    def set_over(self, is_over: bool) -> None:
        """Let the figures lie on the picture's lower edge, or below it."""
        self._is_over = is_over
        self.updateGeometry()
        self._place()

    def sizeHint(self) -> QSize:
        """Return the size for a picture that is easy to see."""
        return self._size(self._picture.sizeHint())

    def minimumSizeHint(self) -> QSize:
        """Return the size for a small picture."""
        return self._size(self._picture.minimumSizeHint())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place both again."""
        super().resizeEvent(event)
        self._place()

    def event(self, event: QEvent) -> bool:
        """Place both again if one asks for another size."""
        if event.type() is QEvent.Type.LayoutRequest:
            self.updateGeometry()
            self._place()
        return super().event(event)

    def _place(self) -> None:
        whole = self.rect()
        figures = QRect(whole)
        figures.setTop(whole.bottom() + 1 - self._figures.minimumSizeHint().height())
        self._figures.setGeometry(figures)
        if not self._is_over:
            whole.setBottom(figures.top() - 1)
        self._picture.set_covered(figures.height() if self._is_over else 0)
        self._picture.setGeometry(whole)

    def _size(self, picture: QSize) -> QSize:
        figures = self._figures.minimumSizeHint()
        below = 0 if self._is_over else figures.height()
        return QSize(max(picture.width(), figures.width()), picture.height() + below)


class _Figures(QWidget):
    """The figures in one line, with the way below it."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._clock = Text("", "hero_words", name=f"{name}.clock")
        self._clock_title = ElidedText("race clock", "muted")
        self._pace = Text("", "hero_words", name=f"{name}.pace")
        self._pace_unit = ElidedText("", "muted", name=f"{name}.pace_unit")
        self._steps = ElidedText("", "muted", name=f"{name}.steps")
        self._measure = Text("", "value", name=f"{name}.measure")
        self._measure_title = ElidedText("", "muted", name=f"{name}.measure_title")
        self._power = Text("", "value", name=f"{name}.power")
        self._energy = ElidedText("", "muted", name=f"{name}.energy")
        self._power.setToolTip(
            "The average over the whole race, in which the card idles while the other side has "
            "its turns. Drivers report no shorter one."
        )
        self._way = ProgressLine(theme, name=f"{name}.way")
        self._is_dense = self._is_narrow = False
        self._shown = LaneFigures()
        self._arrange()
        theme.changed.connect(self.update)

    def show_figures(self, figures: LaneFigures, role: str) -> None:
        """Show the figures, and the way in the color of the contestant."""
        self._clock.setText(figures.clock)
        self._pace.setText(figures.pace)
        self._pace_unit.setText(figures.pace_unit)
        self._shown = figures
        self._show_steps()
        self._measure.setText(figures.measure)
        self._measure_title.setText(figures.measure_title)
        self._power.setText(figures.power)
        self._energy.setText(figures.energy)
        self._way.show_share(figures.share, role, is_reached=figures.is_reached)

    def _show_steps(self) -> None:
        """Show the steps; in one line, what they are stands beside the pace."""
        self._steps.setText(self._shown.done if self._is_dense else self._shown.steps)

    def set_dense(self, is_dense: bool) -> None:
        """Show one line, without the words below the figures."""
        self._is_dense = is_dense
        self._show_steps()
        self._clock_title.setVisible(not is_dense)
        self._measure_title.setVisible(not is_dense)
        self._energy.setVisible(not is_dense)
        self._set_role()
        self._middle.setDirection(
            QBoxLayout.Direction.LeftToRight if is_dense else QBoxLayout.Direction.TopToBottom
        )
        self._middle.setSpacing(GAP if is_dense else 0)
        side = GAP if is_dense else 2 * GAP
        self._column.setContentsMargins(side, GAP // 2, side, GAP // 2 if is_dense else GAP)
        self.update()

    def set_narrow(self, is_narrow: bool) -> None:
        """Use a smaller type, for large letters in a small window."""
        self._is_narrow = is_narrow
        self._set_role()

    def _set_role(self) -> None:
        role: Role = "value" if self._is_dense or self._is_narrow else "hero_words"
        for text in (self._clock, self._pace):
            text.set_role(role)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint a ground on which the figures can be read above a picture."""
        super().paintEvent(event)
        if self._is_dense:
            ground = QColor(self._theme.colour("card"))
            ground.setAlphaF(_STRIP)
            QPainter(self).fillRect(self.rect(), ground)

    def _arrange(self) -> None:
        self._column = QVBoxLayout(self)
        self._column.setSpacing(_SPACING)
        line = QHBoxLayout()
        line.setSpacing(2 * GAP)
        self._column.addLayout(line)
        self._column.addWidget(self._way)
        _add_pair(line, self._clock, self._clock_title)
        self._middle = QVBoxLayout()
        self._middle.setSpacing(0)
        line.addLayout(self._middle)
        pace = QHBoxLayout()
        pace.setSpacing(GAP // 2)
        self._middle.addLayout(pace)
        pace.addWidget(self._pace)
        pace.addWidget(self._pace_unit, 0, Qt.AlignmentFlag.AlignBottom)
        pace.addStretch(1)
        self._middle.addWidget(self._steps)
        line.addStretch(1)
        _add_pair(line, self._measure, self._measure_title)
        _add_pair(line, self._power, self._energy)
        for text in (self._power, self._energy, self._measure, self._measure_title):
            text.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.set_dense(False)


def _add_pair(line: QHBoxLayout, value: Text, title: Text) -> None:
    """Add a figure with the words below it."""
    pair = QVBoxLayout()
    pair.setSpacing(0)
    line.addLayout(pair)
    pair.addStretch(1)
    pair.addWidget(value)
    pair.addWidget(title)


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
        if (share, role, is_reached) != (self.share, self._role, self._is_reached):
            self.share, self._role, self._is_reached = share, role, is_reached
            self.setAccessibleDescription(f"{share:.0%}")
            self.update()

    def sizeHint(self) -> QSize:
        """Return a usual width and the height of the flag."""
        return QSize(math.ceil(self._lines(12)), math.ceil(self._lines(_FLAG)))

    def minimumSizeHint(self) -> QSize:
        """Return the least width at which progress can be seen."""
        return QSize(math.ceil(self._lines(4)), math.ceil(self._lines(_FLAG)))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the track, the bar and the flag."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        thick, side = self._lines(_THICK), self._lines(_FLAG)
        width = self.width() - side - self._lines(_GAP)
        track = QRectF(0, (self.height() - thick) / 2, width, thick)
        outline = QPainterPath()
        outline.addRoundedRect(track, thick / 2, thick / 2)
        painter.fillPath(outline, QColor(self._theme.colour("track")))
        if self.share > 0:
            done = QRectF(track)
            done.setWidth(max(width * min(self.share, 1.0), thick))
            bar = QPainterPath()
            bar.addRoundedRect(done, thick / 2, thick / 2)
            painter.fillPath(bar, QColor(self._theme.colour(self._role)))
        self._paint_flag(painter, QRectF(self.width() - side, 0, side, side))

    def _paint_flag(self, painter: QPainter, place: QRectF) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        color = QColor(self._theme.colour("good" if self._is_reached else "muted"))
        square = place.width() / _SQUARES
        for row in range(_SQUARES):
            for column in range(row % 2, _SQUARES, 2):
                painter.fillRect(
                    QRectF(
                        place.left() + column * square, place.top() + row * square, square, square
                    ),
                    color,
                )

    def _lines(self, count: float) -> float:
        return count * self.fontMetrics().height()
