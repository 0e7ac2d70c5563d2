"""A few words in a rounded box: the name of a contestant, or its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath

from gpu_studio.ui.icons import icon

if TYPE_CHECKING:
    from gpu_studio.ui.theme import Theme

# In lines of the font.
_PADDING, _HIGH, _SIGN, _GAP = 0.75, 1.75, 1.0, 0.4
_BETWEEN = ", "


class PictureChip(NamedTuple):
    """A few words on the picture.

    Attributes:
        text: the words; without any, there is no chip.
        role: the color of the swatch or the icon.
        sign: the icon's name; without one, a swatch.
    """

    text: str = ""
    role: str = "muted"
    sign: str = ""


class ChipPainter:
    """Paints chips in a font. Too long a text takes a new line after a comma, or between words.

    Args:
        theme: has the colors.
        font: of the widget that is painted on.
    """

    def __init__(self, theme: Theme, font: QFont) -> None:
        self._theme = theme
        self._line = QFontMetricsF(font).height()
        self._font = QFont(font)
        self._font.setWeight(QFont.Weight.DemiBold)
        self._metrics = QFontMetricsF(self._font)

    def size_of(self, chip: PictureChip, room: float) -> QSizeF:
        """Return the size of a chip that is at most ``room`` wide."""
        if not chip.text:
            return QSizeF(0, 0)
        lines = self._lines_of(chip, room)
        width = max(self._metrics.horizontalAdvance(line) for line in lines) + self._beside + 1
        high = _HIGH * self._line + (len(lines) - 1) * self._metrics.height()
        return QSizeF(min(width, room), high)

    def paint(self, painter: QPainter, chip: PictureChip, place: QRectF, ground: str) -> None:
        """Paint a chip in a place of its size, on the color of a role."""
        if not chip.text:
            return
        radius = _HIGH * self._line / 2
        outline = QPainterPath()
        outline.addRoundedRect(place, radius, radius)
        painter.fillPath(outline, QColor(self._theme.colour(ground)))
        side = self._line * _SIGN
        left = place.left() + self._line * _PADDING
        sign = QRectF(left, place.top() + radius - side / 2, side, side)
        self._paint_sign(painter, chip, sign)
        is_ink = chip.sign and chip.role == "good"
        painter.setPen(QColor(self._theme.colour(chip.role if is_ink else "text")))
        painter.setFont(self._font)
        words = QRectF(place)
        words.setLeft(sign.right() + self._line * _GAP)
        words.setRight(place.right() - self._line * _PADDING + 1)
        text = "\n".join(
            self._metrics.elidedText(line, Qt.TextElideMode.ElideRight, words.width() + 1)
            for line in self._lines_of(chip, place.width())
        )
        painter.drawText(words, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)

    def _paint_sign(self, painter: QPainter, chip: PictureChip, place: QRectF) -> None:
        if chip.sign:
            icon(chip.sign, self._theme, chip.role).paint(painter, place.toRect())
            return
        inset = place.width() / 10
        swatch = QPainterPath()
        square = place.adjusted(inset, inset, -inset, -inset)
        swatch.addRoundedRect(square, 2 * inset, 2 * inset)
        painter.fillPath(swatch, QColor(self._theme.colour(chip.role)))

    def _lines_of(self, chip: PictureChip, room: float) -> list[str]:
        parts = self._broken(chip.text, _BETWEEN, room)
        return [line for part in parts for line in self._broken(part, " ", room)]

    def _broken(self, text: str, between: str, room: float) -> list[str]:
        lines: list[str] = []
        for part in text.split(between):
            longer = f"{lines[-1]}{between}{part}" if lines else part
            if lines and self._metrics.horizontalAdvance(longer) + self._beside > room:
                lines[-1] += between.rstrip()
                lines.append(part)
            else:
                lines[-1:] = [longer]
        return lines

    @property
    def _beside(self) -> float:
        """The width of a chip without its words."""
        return self._line * (_SIGN + _GAP + 2 * _PADDING)
