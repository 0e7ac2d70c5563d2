"""A small square in a device's color, beside its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from gpu_studio.model.text_rows import DEVICE_ROLE

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

    from gpu_studio.ui.theme import Theme

SIDE = 12


def swatch(theme: Theme, role: str, scale: float = 1.0) -> QIcon:
    """Return the square of a device.

    Args:
        theme: gives the colors; a device's area color is the same in light and dark.
        role: the color.
        scale: device pixels per logical pixel.
    """
    picture = QPixmap(QSize(SIDE, SIDE) * scale)
    picture.setDevicePixelRatio(scale)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(theme.colour(role)))
    painter.drawRoundedRect(QRectF(0, 0, SIDE, SIDE), 3, 3)
    painter.end()
    icon = QIcon()
    for mode in (QIcon.Mode.Normal, QIcon.Mode.Selected, QIcon.Mode.Disabled):
        icon.addPixmap(picture, mode)
    return icon


class SwatchDelegate(QStyledItemDelegate):
    """Shows the square of the device that a cell is about."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Add the square to the style option."""
        super().initStyleOption(option, index)
        address = index.data(DEVICE_ROLE)
        if not address:
            return
        scale = option.widget.devicePixelRatioF() if option.widget else 1.0
        option.icon = swatch(self._theme, self._theme.device_role(address), scale)
        option.decorationSize = QSize(SIDE, SIDE)
        option.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration
