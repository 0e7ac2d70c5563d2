"""Saves a plot as a picture: PNG for a forum, SVG for a document.

The picture shows the current view in the current colors, with a title above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QImage, QPainter

if TYPE_CHECKING:
    from gpu_studio.ui.plots.live_plot import LivePlot
    from gpu_studio.ui.theme import Theme

_SCALE = 2  # PNG pixels per screen pixel: sharp in print, and on other screens
_TITLE_ROOM, _MARGIN = 34, 12


def png_of(plot: LivePlot, title: str, theme: Theme) -> bytes:
    """Return a plot as the contents of a PNG file; empty if nothing is drawn yet."""
    if plot.plot is None:
        return b""
    size = _size_of(plot)
    image = QImage(size * _SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(_SCALE)
    _paint(QPainter(image), plot, title, theme, size)
    contents = QByteArray()
    buffer = QBuffer(contents)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]  # its stub wants bytes
    return bytes(contents.data())


def svg_of(plot: LivePlot, title: str, theme: Theme) -> bytes:
    """Return a plot as the contents of an SVG file; empty if nothing is drawn yet."""
    if plot.plot is None:
        return b""
    from PySide6.QtSvg import QSvgGenerator

    size = _size_of(plot)
    contents = QByteArray()
    buffer = QBuffer(contents)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setResolution(plot.logicalDpiX())
    generator.setTitle(title)
    generator.setDescription(plot.accessibleDescription())
    _paint(QPainter(generator), plot, title, theme, size)
    return bytes(contents.data())


def _size_of(plot: LivePlot) -> QSize:
    return QSize(plot.width() + 2 * _MARGIN, plot.height() + _TITLE_ROOM + _MARGIN)


def _paint(painter: QPainter, plot: LivePlot, title: str, theme: Theme, size: QSize) -> None:
    assert plot.plot is not None
    plot.refresh()
    painter.fillRect(QRect(0, 0, size.width(), size.height()), QColor(theme.colour("card")))
    painter.setPen(QColor(theme.colour("text")))
    font = QFont(plot.font())
    font.setWeight(QFont.Weight.DemiBold)
    painter.setFont(font)
    head = QRect(_MARGIN, 0, size.width() - 2 * _MARGIN, _TITLE_ROOM)
    text = painter.fontMetrics().elidedText(title, Qt.TextElideMode.ElideRight, head.width())
    painter.drawText(head, Qt.AlignmentFlag.AlignVCenter, text)
    painter.setFont(plot.font())
    place = QRectF(_MARGIN, _TITLE_ROOM, plot.plot.width(), plot.plot.height())
    plot.plot.render(painter, place, plot.plot.viewport().rect())
    painter.end()
