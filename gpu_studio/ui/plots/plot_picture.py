"""Saves a plot as a picture: PNG for a forum, SVG for a document.

The picture shows the current view in the current colors, with a title above, and above that what
the page shows at its top.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QLayout, QWidget

from gpu_studio.ui.plots.svg_strokes import with_plain_strokes
from gpu_studio.ui.png import png_bytes

if TYPE_CHECKING:
    from gpu_studio.ui.plots.live_plot import LivePlot
    from gpu_studio.ui.theme import Theme

_SCALE = 2  # PNG pixels per screen pixel: sharp in print, and on other screens
_MARGIN = 12
_MOST_PASSES = 4  # a headline's type follows the width, and the height follows the type
_TITLE_FLAGS = int(Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextWordWrap)


def png_of(plot: LivePlot, title: str, theme: Theme, head: QWidget | None = None) -> bytes:
    """Return a plot as the contents of a PNG file; it has been visible.

    Args:
        plot: shows the view to save.
        title: the text above it; a long one takes several lines.
        theme: gives the colors.
        head: a widget without a parent, painted above the title at the plot's width.
    """
    picture = _Picture(plot, title, theme, head)
    size = picture.size
    image = QImage(size * _SCALE, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(_SCALE)
    picture.paint(QPainter(image))
    return png_bytes(image)


def svg_of(plot: LivePlot, title: str, theme: Theme, head: QWidget | None = None) -> bytes:
    """Return a plot as the contents of an SVG file; it has been visible.

    The arguments are those of `png_of`.
    """
    picture = _Picture(plot, title, theme, head)
    size = picture.size
    contents = QByteArray()
    buffer = QBuffer(contents)
    generator = QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setResolution(plot.logicalDpiX())
    generator.setTitle(title)
    generator.setDescription(plot.accessibleDescription())
    picture.paint(QPainter(generator))
    return with_plain_strokes(bytes(contents.data()), picture.view)


class _Picture:
    """The parts of a picture from top to bottom, and their places."""

    def __init__(self, plot: LivePlot, title: str, theme: Theme, head: QWidget | None) -> None:
        self._plot, self._title, self._theme, self._head = plot, title, theme, head
        self._font = QFont(plot.font())
        self._font.setWeight(QFont.Weight.DemiBold)
        self._canvas = plot.lay_out()
        width = plot.width()
        head_height = _laid_out(head, width) + _MARGIN if head is not None else 0
        room = QRect(_MARGIN, _MARGIN + head_height, width, 1 << 16)
        lines = QFontMetrics(self._font).boundingRect(room, _TITLE_FLAGS, title)
        self._title_place = QRect(room.topLeft(), QSize(width, lines.height()))
        top = self._title_place.bottom() + 1 + _MARGIN
        self._plot_place = QRectF(_MARGIN, top, width, plot.height())
        self.size = QSize(width + 2 * _MARGIN, top + plot.height() + _MARGIN)

    @property
    def view(self) -> QRectF:
        """The place of the view between the axes."""
        seen = self._canvas.viewport().rect()
        shown = self._canvas.mapFromScene(self._canvas.getViewBox().sceneBoundingRect())
        place = QRectF(shown.boundingRect())
        scale = min(
            self._plot_place.width() / seen.width(), self._plot_place.height() / seen.height()
        )
        return QRectF(
            self._plot_place.left() + scale * place.left(),
            self._plot_place.top() + scale * place.top(),
            scale * place.width(),
            scale * place.height(),
        )

    def paint(self, painter: QPainter) -> None:
        """Paint everything, and end the painter."""
        painter.fillRect(QRect(QPoint(0, 0), self.size), QColor(self._theme.colour("card")))
        if self._head is not None:
            flags = QWidget.RenderFlag.DrawChildren | QWidget.RenderFlag.DrawWindowBackground
            self._head.render(painter, QPoint(_MARGIN, _MARGIN), renderFlags=flags)
        painter.setPen(QColor(self._theme.colour("text")))
        painter.setFont(self._font)
        painter.drawText(self._title_place, _TITLE_FLAGS, self._title)
        painter.setFont(self._plot.font())
        self._canvas.render(painter, self._plot_place, self._canvas.viewport().rect())
        painter.end()


def _laid_out(head: QWidget, width: int) -> int:
    """Lay a widget out at a width without showing it, and return its height in pixels."""
    head.setAttribute(Qt.WidgetAttribute.WA_DontShowOnScreen)
    layout = head.layout()
    if layout is None:
        head.resize(width, head.sizeHint().height())
        return head.height()
    # A window is at least as high as its layout in a narrow column, where text takes more lines.
    layout.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
    head.resize(width, layout.totalHeightForWidth(width))
    head.show()
    for _ in range(_MOST_PASSES):
        layout.activate()
        height = layout.totalHeightForWidth(width)
        if height == head.height():
            break
        head.resize(width, height)
    return head.height()
