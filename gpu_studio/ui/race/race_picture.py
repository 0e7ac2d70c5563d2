"""The picture of one contestant, with its name and its state on top of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QImage, QMouseEvent, QPainter, QPainterPath
from PySide6.QtWidgets import QSizePolicy, QWidget

from gpu_studio.core.race.pictures import WIDE
from gpu_studio.ui.icons import icon
from gpu_studio.ui.race.framed_picture import DIMMED, paint_framed, place_in

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gpu_studio.core.race.photo import Detail
    from gpu_studio.ui.theme import Theme

# In lines of the widget's font.
_INSET, _GAP = 0.6, 0.4
_PADDING, _HIGH, _SIGN = 0.75, 1.75, 1.0  # of a chip
_LEAST = (12.0, 7.0)
_USUAL = (30.0, 18.0)
_RADIUS = 7.0


class PictureChip(NamedTuple):
    """A few words in a rounded box on the picture.

    Attributes:
        text: the words; without any, there is no chip.
        role: the color of the swatch or the icon.
        sign: the icon's name; without one, a swatch.
    """

    text: str = ""
    role: str = "muted"
    sign: str = ""


class RacePicture(QWidget):
    """Paints a picture in its own shape: it fills the place if it loses little by that.

    Signals:
        pointed(float, float): the mouse pressed or dragged at this share of the picture's width
            and height, from the left top.

    Attributes:
        image: the shown picture.
        is_dimmed: whether it is only to come.
        chips: the contestant's name at the left, and its state at the right.
    """

    pointed = Signal(float, float)

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self._theme = theme
        self.image: QImage | None = None
        self.is_dimmed = False
        self._lens: Detail | None = None
        self.chips = PictureChip(), PictureChip()
        self._seeds: tuple[tuple[float, float], ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.update)

    def show_picture(self, image: QImage | None, *, is_dimmed: bool = False) -> None:
        """Show a picture; a dimmed one is only to come."""
        self.image, self.is_dimmed = image, is_dimmed
        self.update()

    def show_detail(self, lens: Detail | None) -> None:
        """Show a detail in a lens; None takes the lens away."""
        self._lens = lens
        self.update()

    def show_chips(self, name: PictureChip, state: PictureChip) -> None:
        """Show the contestant's name and its state."""
        self.chips = name, state
        self.setAccessibleName(f"Picture of {name.text}")
        self.setAccessibleDescription(state.text)
        self.update()

    def show_seeds(self, seeds: tuple[tuple[float, float], ...]) -> None:
        """Mark points, as shares of the picture's width and height."""
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
        """Paint the picture, the seeds and the chips."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        paint_framed(
            painter,
            QRectF(self.rect()),
            self.image,
            ground=self._color("track"),
            radius=_RADIUS,
            opacity=DIMMED if self.is_dimmed else 1.0,
            detail=None if self.is_dimmed else self._lens,
        )
        place, radius = self._place(), self._lines(0.3)
        painter.setPen(self._color("card"))
        painter.setBrush(self._color("accent"))
        for x, y in self._seeds:
            middle = QPointF(place.left() + x * place.width(), place.top() + y * place.height())
            painter.drawEllipse(middle, radius, radius)
        self._paint_chips(painter)

    def _paint_chips(self, painter: QPainter) -> None:
        inset, gap = self._lines(_INSET), self._lines(_GAP)
        room = self.width() - 2 * inset
        font = QFont(self.font())
        font.setWeight(QFont.Weight.DemiBold)
        painter.setFont(font)
        beside = self._lines(_SIGN + _GAP + 2 * _PADDING)
        widths = [
            min(QFontMetricsF(font).horizontalAdvance(chip.text) + beside + 1, room) if chip.text
            else 0.0
            for chip in self.chips
        ]  # fmt: skip
        # One below the other if they have no room beside each other.
        below = self._lines(_HIGH) + gap / 2 if sum(widths) + gap > room else 0.0
        lefts = inset, self.width() - inset - widths[1]
        for chip, left, width, top in zip(self.chips, lefts, widths, (0.0, below), strict=True):
            if chip.text:
                self._paint_chip(
                    painter, chip, QRectF(left, inset + top, width, self._lines(_HIGH))
                )

    def _paint_chip(self, painter: QPainter, chip: PictureChip, place: QRectF) -> None:
        outline = QPainterPath()
        outline.addRoundedRect(place, place.height() / 2, place.height() / 2)
        painter.fillPath(outline, self._color("card"))
        side = self._lines(_SIGN)
        left = place.left() + self._lines(_PADDING)
        sign = QRectF(left, place.center().y() - side / 2, side, side)
        if chip.sign:
            icon(chip.sign, self._theme, chip.role).paint(painter, sign.toRect())
        else:
            painter.fillRect(sign, self._color(chip.role))
        painter.setPen(self._color("good" if chip.sign and chip.role == "good" else "text"))
        words = QRectF(place)
        words.setLeft(sign.right() + self._lines(_GAP))
        words.setRight(place.right() - self._lines(_PADDING) + 1)
        text = QFontMetricsF(painter.font()).elidedText(
            chip.text, Qt.TextElideMode.ElideRight, words.width() + 1
        )
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)

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

    def _color(self, role: str) -> QColor:
        return QColor(self._theme.colour(role))

    def _lines(self, count: float) -> float:
        return count * self.fontMetrics().height()
