"""A canvas over a painter: for the window, in the theme's colors, and for a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPen, QPolygonF

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QColor, QPainter

    from gpu_studio.core.svg_canvas import Anchor, Dash

_DASHES = {
    "solid": Qt.PenStyle.SolidLine, "dashed": Qt.PenStyle.DashLine, "dotted": Qt.PenStyle.DotLine,
}  # fmt: skip
_ALIGNMENTS = {
    "left": Qt.AlignmentFlag.AlignLeft,
    "middle": Qt.AlignmentFlag.AlignHCenter,
    "right": Qt.AlignmentFlag.AlignRight,
}
_ROUND = 2.0


class PainterCanvas:
    """See `core.check.check_drawing.Canvas`.

    Args:
        painter: draws; its font is taken for the texts.
        font: of the texts.
        color: returns the color of a role.
    """

    def __init__(self, painter: QPainter, font: QFont, color: Callable[[str], QColor]) -> None:
        self._painter, self._color = painter, color
        bold = QFont(font)
        bold.setWeight(QFont.Weight.DemiBold)
        self._fonts = {False: font, True: bold}
        self._metrics = {is_bold: QFontMetricsF(one) for is_bold, one in self._fonts.items()}

    def line(
        self, x1: float, y1: float, x2: float, y2: float, role: str, *, dash: Dash = "solid"
    ) -> None:
        self._painter.setPen(QPen(self._color(role), 1.0, _DASHES[dash]))
        self._painter.drawLine(QPointF(x1, y1), QPointF(x2, y2))

    def curve(
        self, points: Sequence[tuple[float, float]], role: str, *, dash: Dash = "solid"
    ) -> None:
        pen = QPen(self._color(role), 1.8, _DASHES[dash])
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        self._painter.setPen(pen)
        if len(points) == 1:
            self._painter.drawPoint(QPointF(*points[0]))
        else:
            self._painter.drawPolyline(QPolygonF([QPointF(x, y) for x, y in points]))

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        role: str,
        *,
        tip: str = "",  # a widget shows its tips itself
    ) -> None:
        self._painter.setPen(Qt.PenStyle.NoPen)
        self._painter.setBrush(self._color(role))
        self._painter.drawRoundedRect(QRectF(x, y, width, height), _ROUND, _ROUND)
        self._painter.setBrush(Qt.BrushStyle.NoBrush)

    def text(
        self, x: float, y: float, text: str, role: str, *, anchor: Anchor = "left",
        bold: bool = False,
    ) -> None:  # fmt: skip
        width, height = self.text_width(text, bold=bold) + 2, self._metrics[bold].height()
        left = {"left": x, "middle": x - width / 2, "right": x - width}[anchor]
        self._painter.setPen(self._color(role))
        self._painter.setFont(self._fonts[bold])
        place = QRectF(left, y - height / 2, width, height)
        flags = _ALIGNMENTS[anchor] | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextDontClip
        self._painter.drawText(place, int(flags), text)

    def text_width(self, text: str, *, bold: bool = False) -> float:
        return self._metrics[bold].horizontalAdvance(text)
