"""Paints the picture of a race into a frame, with a lens on one detail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen

from gpu_studio.core.packed_frame import CHANNELS

if TYPE_CHECKING:
    from gpu_studio.core.packed_frame import PackedFrame
    from gpu_studio.core.race.photo import Detail

# A picture may lose so much of its length to fill its frame; beyond, it is shown whole.
_CUT = 0.16
# The diameter of the lens and its distance from the edges, as shares of the free height.
_LENS, _INSET = 0.46, 0.045
_RIM = "#FFFFFF"
DIMMED = 0.35
"""The opacity of a picture that is only to come."""


def image_of(picture: PackedFrame | None) -> QImage | None:
    """Return an image of its own pixels; None without a picture, or for a damaged one.

    Qt scales four bytes a pixel in half the time that it takes for three.
    """
    rows = picture.rows if picture is not None else None
    if picture is None or rows is None:
        return None
    width, height = picture.width, picture.height
    image = QImage(rows, width, height, CHANNELS * width, QImage.Format.Format_RGB888)
    return image.convertToFormat(QImage.Format.Format_RGB32)


def place_in(frame: QRectF, shape: QSizeF) -> QRectF:
    """Return where a picture of some shape is painted, around the middle of its frame.

    It fills the frame if it loses little by that, and is whole otherwise.
    """
    filling = shape.scaled(frame.size(), Qt.AspectRatioMode.KeepAspectRatioByExpanding)
    lost = 1 - frame.width() * frame.height() / max(filling.width() * filling.height(), 1.0)
    size = filling
    if lost > _CUT:
        size = shape.scaled(frame.size(), Qt.AspectRatioMode.KeepAspectRatio)
    place = QRectF(QPointF(0, 0), size)
    place.moveCenter(frame.center())
    return place


def paint_framed(
    painter: QPainter,
    frame: QRectF,
    image: QImage | None,
    *,
    ground: QColor,
    radius: float,
    opacity: float = 1.0,
    detail: Detail | None = None,
    covered: float = 0.0,
) -> None:
    """Paint a picture into a rounded frame.

    Args:
        painter: paints with smooth pixmaps.
        frame: the place for it.
        image: the picture; None paints the frame alone.
        ground: the color around the picture.
        radius: of the corners.
        opacity: of the picture.
        detail: what the lens shows; None without one.
        covered: the height at the frame's lower edge on which something else will lie.
    """
    outline = QPainterPath()
    outline.addRoundedRect(frame, radius, radius)
    painter.fillPath(outline, ground)
    if image is None:
        return
    painter.save()
    painter.setClipPath(outline, Qt.ClipOperation.IntersectClip)
    painter.setOpacity(opacity)
    place = place_in(frame, image.size().toSizeF())
    painter.drawImage(place, image)
    painter.setOpacity(1.0)
    if detail is not None:
        free = frame.adjusted(0, 0, 0, -covered).intersected(place)
        _paint_lens(painter, free, place, image, detail)
    painter.restore()


def _paint_lens(
    painter: QPainter, free: QRectF, place: QRectF, image: QImage, detail: Detail
) -> None:
    """Paint a circle with the detail, on the half of the free part where it is not."""
    side = detail.share * min(place.width(), place.height() * 16 / 9)
    square = QRectF(0, 0, side, side)
    square.moveCenter(
        QPointF(place.left() + detail.x * place.width(), place.top() + detail.y * place.height())
    )
    across = _LENS * min(free.height(), free.width())
    inset = _INSET * free.height()
    circle = QRectF(0, 0, across, across)
    circle.moveBottom(free.bottom() - inset)
    if square.center().x() < free.center().x():
        circle.moveRight(free.right() - inset)
    else:
        circle.moveLeft(free.left() + inset)
    thin = QPen(QColor(_RIM), max(free.height() / 220, 1.0))
    faint = QColor(_RIM)
    faint.setAlphaF(0.6)
    near = square.right() if circle.center().x() > square.center().x() else square.left()
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(faint, thin.widthF()))
    painter.drawLine(QLineF(near, square.top(), circle.center().x(), circle.top()))
    painter.drawLine(QLineF(near, square.bottom(), circle.center().x(), circle.bottom()))
    painter.setPen(thin)
    painter.drawRoundedRect(square, 2, 2)
    painter.save()
    hole = QPainterPath()
    hole.addEllipse(circle)
    painter.setClipPath(hole, Qt.ClipOperation.IntersectClip)
    scale_x, scale_y = image.width() / place.width(), image.height() / place.height()
    source = QRectF(
        (square.left() - place.left()) * scale_x,
        (square.top() - place.top()) * scale_y,
        square.width() * scale_x,
        square.height() * scale_y,
    )
    painter.fillPath(hole, QColor("#000000"))
    painter.drawImage(circle, image, source)
    painter.restore()
    painter.setPen(QPen(QColor(_RIM), 2 * thin.widthF()))
    painter.drawEllipse(circle)
