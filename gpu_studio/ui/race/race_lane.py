"""One side of a race: the picture, the clock, the steps, and the way to the finish line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QEvent, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPainterPath
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from gpu_studio.core.notice import Tone
from gpu_studio.ui.parts import GAP, Card, Text
from gpu_studio.ui.race.picture_chip import ChipPainter, PictureChip
from gpu_studio.ui.race.race_picture import RacePicture

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from gpu_studio.ui.theme import Theme


_NO_CHIP = PictureChip()
_COLUMN = 13  # the least width of the figures beside a picture, in lines of the font
_LONGEST_CLOCK = "000.0\u202fs"
_SPACING = 4
_LARGE_CHIPS = 1.4  # times the font


class LaneFigures(NamedTuple):
    """What stands below a picture.

    Attributes:
        clock: the race's own time of this contestant.
        steps: the number of steps.
        step_title: the name of the steps, in the plural.
        measure: the quantity of the finish line, with its unit.
        goal: the name of the quantity, and where it finishes.
        share: the share of the way that is done, 0 to 1.
        is_reached: whether the finish line is reached.
    """

    clock: str = "0.0\u202fs"
    steps: str = "0"
    step_title: str = "steps"
    measure: str = ""
    goal: str = ""
    share: float = 0.0
    is_reached: bool = False


class RaceLane(Card):
    """Shows one contestant. Both sides are equal in everything but their names and colors.

    The figures stand beside the picture if it is then larger than above them.
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
        self._figures.chips.show_chips(chip, state)
        self.setAccessibleName(chip.text)
        self.setAccessibleDescription(state.text)

    def show_figures(self, figures: LaneFigures, role: str) -> None:
        """Show the figures, and the way in the color of the contestant."""
        self._figures.show_figures(figures, role)

    def set_dense(self, is_dense: bool) -> None:
        """Leave the picture more of a low window: one line of figures, with their units."""
        self._figures.set_dense(is_dense)
        self._body.updateGeometry()
        self._body.place()

    def set_large(self, is_large: bool) -> None:
        """Use the largest type, for a class room."""
        self._figures.set_large(is_large)
        self._body.updateGeometry()
        self._body.place()

    def set_alone(self, is_alone: bool) -> None:
        """Show the figures without a picture: both sides then paint another one together."""
        if self.picture.isHidden() is not is_alone:
            self.picture.setHidden(is_alone)
            self._body.updateGeometry()
            self._body.place()


class _Body(QWidget):
    """Places the picture and the figures itself: which of both arrangements depends on its size."""

    def __init__(self, picture: RacePicture, figures: _Figures) -> None:
        super().__init__()
        self._picture, self._figures = picture, figures
        for widget in (picture, figures):
            widget.setParent(self)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Expanding)

    def sizeHint(self) -> QSize:
        """Return the size for a picture that is easy to see, or for the figures alone."""
        return self._size(self._picture.sizeHint())

    def minimumSizeHint(self) -> QSize:
        """Return the size for a small picture above the figures, or for the figures alone.

        It is as high as the figures in a column: beside them, the picture is twice as large.
        """
        least = self._size(self._picture.minimumSizeHint())
        column = self._figures.height_beside(self._figures.column_width())
        return QSize(least.width(), max(least.height(), column))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Place both again."""
        super().resizeEvent(event)
        self.place()

    def event(self, event: QEvent) -> bool:
        """Place both again if one asks for another size."""
        if event.type() is QEvent.Type.LayoutRequest:
            self.updateGeometry()
            self.place()
        return super().event(event)

    def place(self) -> None:
        """Give the picture the larger of its two places."""
        whole, figures = self.rect(), self._figures
        if self._picture.isHidden():
            figures.set_beside(True)
            figures.setGeometry(whole)
            return
        below = QRect(whole)
        below.setBottom(whole.bottom() - figures.height_below(whole.width()))
        column = figures.column_width()
        beside = QRect(whole)
        beside.setRight(whole.right() - column)
        is_beside = figures.height_beside(column) <= whole.height() and (
            self._shown_in(beside).height() > self._shown_in(below).height()
        )
        if is_beside:
            beside.setWidth(self._shown_in(beside).width())
        figures.set_beside(is_beside)
        self._picture.set_bare(is_beside)
        self._picture.setGeometry(beside if is_beside else below)
        rest = QRect(whole)
        if is_beside:
            rest.setLeft(beside.right() + 1)
        else:
            rest.setTop(below.bottom() + 1)
        figures.setGeometry(rest)

    def _size(self, picture: QSize) -> QSize:
        column = self._figures.column_width()
        if self._picture.isHidden():
            return QSize(column, self._figures.height_beside(column))
        width = max(picture.width(), self._figures.width_below())
        return QSize(width, picture.height() + self._figures.height_below(width))

    def _shown_in(self, place: QRect) -> QSize:
        """Return the size of the picture in a place."""
        if place.isEmpty():
            return QSize(0, 0)
        return self._picture.shape.scaled(place.size(), Qt.AspectRatioMode.KeepAspectRatio)


class Chips(QWidget):
    """The name and the state of a contestant, one below the other."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown = (_NO_CHIP, _NO_CHIP)
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self.update)

    def show_chips(self, name: PictureChip, state: PictureChip) -> None:
        """Show the contestant's name and its state."""
        if (name, state) != self._shown:
            self._shown = (name, state)
            self.updateGeometry()
            self.update()

    def sizeHint(self) -> QSize:
        """Return the size for two short texts."""
        width = _COLUMN * self.fontMetrics().height()
        return QSize(width, self.heightForWidth(width))

    def minimumSizeHint(self) -> QSize:
        """Return the same: the words must be readable."""
        return self.sizeHint()

    def heightForWidth(self, width: int) -> int:
        """Return the height of both, in pixels."""
        chips = ChipPainter(self._theme, self.font())
        sizes = [chips.size_of(chip, width) for chip in self._shown if chip.text]
        return math.ceil(sum(size.height() for size in sizes) + _SPACING * max(len(sizes) - 1, 0))

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint both."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        chips = ChipPainter(self._theme, self.font())
        top = 0.0
        for chip in self._shown:
            size = chips.size_of(chip, self.width())
            chips.paint(painter, chip, QRectF(QPointF(0, top), size), "track")
            top += size.height() + (_SPACING if chip.text else 0)


class _Figures(QWidget):
    """The figures, in one line below a picture or in a column beside it."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self.chips = Chips(theme)
        self.chips.hide()
        self._clock = Text("", "hero_words", name=f"{name}.clock")
        self._steps = Text("", "value", name=f"{name}.steps")
        self._step_title = Text("", "muted", name=f"{name}.step_title")
        self._measure = Text("", "value", name=f"{name}.measure")
        self._goal = Text("", "muted", name=f"{name}.goal", wraps=True)
        self._way = ProgressLine(theme, name=f"{name}.way")
        self._is_beside = self._is_dense = False
        self._arrange()
        self._align()

    def show_figures(self, figures: LaneFigures, role: str) -> None:
        """Show the figures, and the way in the color of the contestant."""
        self._clock.setText(figures.clock)
        self._steps.setText(figures.steps)
        self._step_title.setText(figures.step_title)
        self._measure.setText(figures.measure)
        self._measure.set_tone(Tone.GOOD if figures.is_reached else Tone.PLAIN)
        self._goal.setText(figures.goal)
        self._way.show_share(figures.share, role, is_reached=figures.is_reached)

    def set_dense(self, is_dense: bool) -> None:
        """Show the count and its unit on one line, and the goal only as a tip."""
        self._is_dense = is_dense
        self._counted.setDirection(
            QBoxLayout.Direction.LeftToRight if is_dense else QBoxLayout.Direction.TopToBottom
        )
        self._counted.setSpacing(GAP // 2 if is_dense else 0)
        self._goal.setVisible(not is_dense)
        self._measure.setToolTip(self._goal.text())

    def set_large(self, is_large: bool) -> None:
        """Use the largest type."""
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * (_LARGE_CHIPS if is_large else 1))
        self.chips.setFont(font)
        self._clock.set_role("hero" if is_large else "hero_words")
        for text in (self._step_title, self._goal):
            text.set_role("lead" if is_large else "muted")
        for text in (self._steps, self._measure):
            text.set_role("headline" if is_large else "value")

    def set_beside(self, is_beside: bool) -> None:
        """Stand in a column, with the chips, or in a line without them."""
        if is_beside is self._is_beside:
            return
        self._is_beside = is_beside
        self._line.setDirection(
            QBoxLayout.Direction.TopToBottom if is_beside else QBoxLayout.Direction.LeftToRight
        )
        self._line.setSpacing(GAP // 2 if is_beside else 2 * GAP)
        self.chips.setVisible(is_beside)
        self._align()

    def column_width(self) -> int:
        """Return the width beside a picture, the same at all times of a race."""
        self._clock.ensurePolished()
        clock = QFontMetrics(self._clock.font()).horizontalAdvance(_LONGEST_CLOCK)
        return max(_COLUMN * self.chips.fontMetrics().height(), clock + 1) + 2 * GAP

    def width_below(self) -> int:
        """Return the least width of the line below a picture."""
        texts = (self._clock, self._steps, self._step_title, self._measure)
        return sum(text.sizeHint().width() for text in texts) + 8 * GAP

    def height_below(self, width: int) -> int:
        """Return the height below a picture of this width."""
        clock, counted = self._clock.sizeHint(), self._size_of_count()
        rest = width - 8 * GAP - clock.width() - counted.width()
        measure = self._measure.sizeHint().height() + self._goal_height(rest)
        line = max(clock.height(), counted.height(), measure)
        return line + _SPACING + self._way.sizeHint().height() + GAP + GAP // 2

    def height_beside(self, width: int) -> int:
        """Return the height of the column in this width."""
        inner = width - 2 * GAP
        parts = (
            self.chips.heightForWidth(inner),
            self._clock.sizeHint().height(),
            self._size_of_count().height(),
            self._measure.sizeHint().height() + self._goal_height(inner),
            self._way.sizeHint().height(),
        )
        return sum(parts) + 2 * _SPACING + GAP + 2 * GAP

    def _goal_height(self, width: int) -> int:
        return self._goal.heightForWidth(max(width, 1)) if not self._goal.isHidden() else 0

    def _size_of_count(self) -> QSize:
        steps, title = self._steps.sizeHint(), self._step_title.sizeHint()
        if self._is_dense:
            width = steps.width() + GAP // 2 + title.width()
            return QSize(width, max(steps.height(), title.height()))
        return QSize(max(steps.width(), title.width()), steps.height() + title.height())

    def _align(self) -> None:
        sideways = Qt.AlignmentFlag.AlignLeft if self._is_beside else Qt.AlignmentFlag.AlignRight
        self._goal.setAlignment(sideways)
        self._measured.setAlignment(self._measure, sideways)
        self._line.setAlignment(
            self._counted, Qt.AlignmentFlag.AlignLeft if self._is_beside else Qt.AlignmentFlag(0)
        )
        side, top = (GAP, GAP) if self._is_beside else (2 * GAP, GAP // 2)
        self._column.setContentsMargins(side, top, side, GAP)

    def _arrange(self) -> None:
        self._column = QVBoxLayout(self)
        self._column.setSpacing(_SPACING)
        self._column.addWidget(self.chips)
        self._line = QHBoxLayout()
        self._line.setSpacing(2 * GAP)
        self._column.addLayout(self._line, 1)
        self._column.addWidget(self._way)
        self._line.addWidget(self._clock)
        self._counted = QVBoxLayout()
        self._counted.setSpacing(0)
        self._line.addLayout(self._counted)
        self._counted.addWidget(self._steps)
        self._counted.addWidget(self._step_title)
        self._measured = QVBoxLayout()
        self._measured.setSpacing(0)
        self._line.addLayout(self._measured, 1)
        self._measured.addWidget(self._measure)
        self._measured.addWidget(self._goal)
        self._measured.addStretch(1)


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
        self.setAccessibleName("Way to the finish line")
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
