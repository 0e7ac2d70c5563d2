"""A small square in a device's color, beside its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

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
    """Shows the square of a cell's address, from ``address_role``."""

    def __init__(self, theme: Theme, address_role: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme, self._address_role = theme, address_role
        self._icons: dict[tuple[str, float], QIcon] = {}

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Add the square to the style option."""
        super().initStyleOption(option, index)
        address = index.data(self._address_role)
        if address is None:
            return
        widget = option.widget
        key = (self._theme.device_role(address), widget.devicePixelRatioF() if widget else 1.0)
        if key not in self._icons:
            self._icons[key] = swatch(self._theme, *key)
        option.icon = self._icons[key]
        option.decorationSize = QSize(SIDE, SIDE)
        option.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration
