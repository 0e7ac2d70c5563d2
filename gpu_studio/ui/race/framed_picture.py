"""The pictures of a race, and how one is painted into a frame, with a lens on one detail."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen

from gpu_studio.core.packed_frame import CHANNELS
from gpu_studio.core.resources import MissingResourceError, resource_path

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
_log = logging.getLogger(__name__)


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


@functools.cache
def poster(picture: str) -> QImage | None:
    """Return what a picture will become, as seen before it is run (`packaging/draw_posters.py`).

    Args:
        picture: the workload's name.

    Returns:
        The poster; None if the program's file cannot be read: the place for it is plain then.
    """
    try:
        image = QImage(str(resource_path(f"posters/{picture}.jpg")))
    except MissingResourceError as error:
        _log.warning("%s", error)
        return None
    return None if image.isNull() else image


def place_in(frame: QRectF, shape: QSizeF) -> QRectF:
    """Return where a picture of some shape is painted, around the middle of its frame.

    It fills the frame if it loses little by that, and is whole otherwise.
    """
    size = shape.scaled(frame.size(), Qt.AspectRatioMode.KeepAspectRatioByExpanding)
    lost = 1 - frame.width() * frame.height() / max(size.width() * size.height(), 1.0)
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
        _paint_lens(painter, frame.intersected(place), place, image, detail)
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
    across, inset = _LENS * min(free.height(), free.width()), _INSET * free.height()
    is_left = square.center().x() < free.center().x()
    left = free.right() - inset - across if is_left else free.left() + inset
    circle = QRectF(left, free.bottom() - inset - across, across, across)
    thin = max(free.height() / 220, 1.0)
    faint = QColor(_RIM)
    faint.setAlphaF(0.6)
    near = square.right() if is_left else square.left()
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(faint, thin))
    painter.drawLine(QLineF(near, square.top(), circle.center().x(), circle.top()))
    painter.drawLine(QLineF(near, square.bottom(), circle.center().x(), circle.bottom()))
    painter.setPen(QPen(QColor(_RIM), thin))
    painter.drawRoundedRect(square, 2, 2)
    hole = QPainterPath()
    hole.addEllipse(circle)
    scale_x, scale_y = image.width() / place.width(), image.height() / place.height()
    source = QRectF(
        (square.left() - place.left()) * scale_x, (square.top() - place.top()) * scale_y,
        square.width() * scale_x, square.height() * scale_y,
    )  # fmt: skip
    painter.save()
    painter.setClipPath(hole, Qt.ClipOperation.IntersectClip)
    painter.fillPath(hole, QColor("#000000"))
    painter.drawImage(circle, image, source)
    painter.restore()
    painter.setPen(QPen(QColor(_RIM), 2 * thin))
    painter.drawEllipse(circle)
