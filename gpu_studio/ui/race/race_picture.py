"""The picture of one contestant, with its name and its state on top of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Signal
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter
from PySide6.QtWidgets import QSizePolicy, QWidget

from gpu_studio.core.race.pictures import WIDE
from gpu_studio.ui.race.framed_picture import DIMMED, paint_framed, place_in
from gpu_studio.ui.race.picture_chip import ChipPainter, PictureChip

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gpu_studio.core.race.photo import Detail
    from gpu_studio.ui.theme import Theme

# In lines of the widget's font.
_INSET, _GAP = 0.6, 0.4
_LEAST = (12.0, 7.0)
_USUAL = (30.0, 18.0)
_RADIUS = 7.0


class RacePicture(QWidget):
    """Paints a picture in its own shape: it fills the place if it loses little by that.

    Signals:
        pointed(float, float): the mouse pressed or dragged at this share of the picture's width
            and height, from the left top.

    Attributes:
        image: the shown picture.
    """

    pointed = Signal(float, float)

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._theme = theme
        self.image: QImage | None = None
        self._is_dimmed = False
        self._covered = 0
        self._lens: Detail | None = None
        self._name_chip = self._state_chip = PictureChip()
        self._seeds: tuple[tuple[float, float], ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.update)

    @property
    def chips(self) -> tuple[PictureChip, PictureChip]:
        """The name at the left and the state at the right."""
        return self._name_chip, self._state_chip

    def show_picture(self, image: QImage | None, *, is_dimmed: bool = False) -> None:
        """Show a picture; a dimmed one is only to come."""
        self.image, self._is_dimmed = image, is_dimmed
        self.update()

    def show_detail(self, lens: Detail | None) -> None:
        """Show a detail in a lens; None takes the lens away."""
        if lens != self._lens:
            self._lens = lens
            self.update()

    def set_covered(self, height: int) -> None:
        """Keep the lens above what lies on the picture's lower edge, in pixels."""
        if height != self._covered:
            self._covered = height
            self.update()

    def show_chips(self, name: PictureChip, state: PictureChip) -> None:
        """Show the contestant's name and its state."""
        if (name, state) != self.chips:
            self._name_chip, self._state_chip = name, state
            self.setAccessibleName(f"Picture of {name.text}")
            self.setAccessibleDescription(state.text)
            self.update()

    def show_seeds(self, seeds: tuple[tuple[float, float], ...]) -> None:
        """Mark points, as shares of the picture's width and height."""
        if seeds != self._seeds:
            self._seeds = seeds
            self.update()

    def sizeHint(self) -> QSize:
        """Return the size of a picture that is easy to see."""
        return QSize(*(math.ceil(self._lines(count)) for count in _USUAL))

    def minimumSizeHint(self) -> QSize:
        """Return the size at which a picture can still be told from another."""
        return QSize(*(math.ceil(self._lines(count)) for count in _LEAST))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Tell where the mouse points."""
        self._point(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Tell where the mouse is dragged."""
        self._point(event.position())

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the picture and the chips."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        paint_framed(
            painter,
            QRectF(self.rect()),
            self.image,
            ground=QColor(self._theme.colour("track")),
            radius=_RADIUS,
            opacity=DIMMED if self._is_dimmed else 1.0,
            detail=None if self._is_dimmed else self._lens,
            covered=self._covered,
        )
        self._paint_seeds(painter)
        self._paint_chips(painter)

    def _paint_seeds(self, painter: QPainter) -> None:
        place, radius = self._place(), self._lines(0.3)
        painter.setPen(QColor(self._theme.colour("card")))
        painter.setBrush(QColor(self._theme.colour("accent")))
        for x, y in self._seeds:
            middle = QPointF(place.left() + x * place.width(), place.top() + y * place.height())
            painter.drawEllipse(middle, radius, radius)

    def _paint_chips(self, painter: QPainter) -> None:
        inset, gap = self._lines(_INSET), self._lines(_GAP)
        room = self.width() - 2 * inset
        chips = ChipPainter(self._theme, self.font())
        name, state = (chips.size_of(chip, room) for chip in self.chips)
        top = inset
        if name.width() + state.width() + gap > room:
            top += name.height() + gap / 2  # one below the other
        left = self.width() - inset - state.width()
        chips.paint(painter, self._name_chip, QRectF(QPointF(inset, inset), name), "card")
        chips.paint(painter, self._state_chip, QRectF(QPointF(left, top), state), "card")

    def _place(self) -> QRectF:
        """Return where the picture is painted."""
        shape = QSizeF(*WIDE) if self.image is None else self.image.size().toSizeF()
        return place_in(QRectF(self.rect()), shape)

    def _point(self, position: QPointF) -> None:
        place = self._place()
        if place.contains(position):
            self.pointed.emit(
                (position.x() - place.left()) / max(place.width(), 1.0),
                (position.y() - place.top()) / max(place.height(), 1.0),
            )

    def _lines(self, count: float) -> float:
        return count * self.fontMetrics().height()
