"""The sheet of every picture to share: 1200 × 630 pixels, its colors, fonts and bars.

That is the size in which chats and forums show a preview without cutting it.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QGuiApplication,
    QImage,
    QPainter,
    QPainterPath,
)

from gpu_studio.ui.theme import COLOURS, application_font

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = (1200, 630)
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
WRAPPED = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextWordWrap)
_LEAST_BAR = 8.0


def new_sheet(*, is_dark: bool = True) -> tuple[QImage, QPainter]:
    """Return an empty sheet, and a painter on it that has to be ended."""
    image = QImage(*SIZE, QImage.Format.Format_RGB32)
    image.fill(sheet_color("window", is_dark=is_dark))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
    return image, painter


def with_text(image: QImage, keyword: str, text: str) -> QImage:
    """Return a painted sheet with a text chunk.

    Args:
        image: the sheet; it changes.
        keyword: of the chunk; Qt reads none with a space.
        text: in ASCII.
    """
    image.setText(keyword, text)
    image.setText("Software", "GPU Studio")
    return image


def sheet_color(role: str, *, is_dark: bool = True) -> QColor:
    """Return the color of a role."""
    return QColor(COLOURS[role][is_dark])


def sheet_font(pixels: int, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """Return the window's font in a size in pixels, whatever the screen."""
    font = application_font(QGuiApplication.font())
    font.setPixelSize(pixels)
    font.setWeight(weight)
    return font


def fitting_font(text: str, place: QRectF, pixels: tuple[int, int], flags: int = WRAPPED) -> QFont:
    """Return the largest bold type in which a text fits into a place.

    Args:
        text: the text.
        place: its room.
        pixels: the smallest and the largest size.
        flags: how the text is drawn.
    """
    least, largest = pixels
    for size in range(largest, least, -2):
        font = sheet_font(size, QFont.Weight.Bold)
        needed = QFontMetricsF(font).boundingRect(place, flags, text)
        if needed.height() <= place.height() and needed.width() <= place.width():
            return font
    return sheet_font(least, QFont.Weight.Bold)


def paint_bar(
    painter: QPainter, place: QRectF, share: float, role: str, *, is_dark: bool = True
) -> None:
    """Paint a bar on its track; a share of 0 has none.

    Args:
        painter: of the sheet.
        place: the whole track.
        share: the filled part of it, 0 to 1.
        role: the bar's color.
        is_dark: whether the sheet is dark.
    """
    radius = min(6.0, place.height() / 3)
    track, bar = QPainterPath(), QPainterPath()
    track.addRoundedRect(place, radius, radius)
    painter.fillPath(track, sheet_color("track", is_dark=is_dark))
    if not share:
        return
    filled = QRectF(place)
    filled.setWidth(max(place.width() * share, _LEAST_BAR))
    bar.addRoundedRect(filled, radius, radius)
    painter.fillPath(bar, sheet_color(role, is_dark=is_dark))


@contextmanager
def painting_application() -> Iterator[None]:
    """Have Qt for a picture in a child process without a window."""
    has_screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform == "linux" and not has_screen:
        os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    application = QGuiApplication([])
    yield
    application.quit()
