"""The devices as cards in their colors, in a list with keyboard navigation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
)

from gpu_studio.model.devices.device_list import DEVICE_ROLE, SUMMARY_ROLE
from gpu_studio.ui.theme import device_role

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.model.devices.device_list import DeviceList
    from gpu_studio.ui.theme import Theme

_PADDING = 14
_GAP = 8
_DOT = 10
_RADIUS = 8
_MOST_HEIGHT = 1000
_NAME_SIZE = 1.1  # of the font
_NAME_GAP = 3
_WRAPPED = Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap


class DeviceListView(QListView):
    """Shows the devices; one is always selected.

    Signals:
        device_selected(str): the identity of the device that the user chose here.
    """

    device_selected = Signal(str)

    def __init__(self, devices: DeviceList, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("devices.table")
        self.setAccessibleName("Devices of this PC")
        self._devices = devices
        self._is_following = False
        self.setModel(devices)
        self.setItemDelegate(_CardDelegate(theme, self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setProperty("plain", True)
        self.setSpacing(0)
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.viewport().setAutoFillBackground(False)
        theme.changed.connect(self.viewport().update)
        self.selectionModel().currentChanged.connect(self._tell)

    def follow(self, identity: str) -> None:
        """Mark this device as selected."""
        row = self._devices.row_of(identity)
        if row >= 0 and row != self.currentIndex().row():
            self._is_following = True
            self.setCurrentIndex(self._devices.index(row))
            self._is_following = False

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out the cards again: they are as wide as the list."""
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()

    def _tell(self, current: QModelIndex) -> None:
        if current.isValid() and not self._is_following:
            self.device_selected.emit(current.data(DEVICE_ROLE).identity)


class _CardDelegate(QStyledItemDelegate):
    """Paints one device: a dot in its color, its name, and a line that describes it."""

    def __init__(self, theme: Theme, view: QListView) -> None:
        super().__init__(view)
        self._theme, self._view = theme, view

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        """Return the height of a card: the line under the name wraps."""
        room = self._view.viewport().width() - 2 * _PADDING
        summary = option.fontMetrics.boundingRect(
            0, 0, room, _MOST_HEIGHT, _WRAPPED, index.data(SUMMARY_ROLE)
        )
        words = _name_line(option.font) + max(summary.height(), option.fontMetrics.height())
        return QSize(100, words + 2 * _PADDING + _GAP)

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        """Paint one device."""
        device: Device = index.data(DEVICE_ROLE)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = option.rect.adjusted(0, 0, 0, -_GAP)
        self._paint_card(painter, box, option)
        role = "other" if device.address is None else device_role(device.address)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colour(role)))
        top = box.top() + _PADDING - 2
        name_line = _name_line(option.font)
        left = box.left() + _PADDING
        painter.drawEllipse(QRectF(left, top + (name_line - _DOT) / 2, _DOT, _DOT))
        text_left = left + _DOT + 9
        width = box.right() - _PADDING - text_left
        name_box = QRect(text_left, top, width, name_line)
        painter.setFont(_name_font(option.font))
        painter.setPen(QColor(self._theme.colour("text")))
        name = painter.fontMetrics().elidedText(
            index.data(), Qt.TextElideMode.ElideRight, name_box.width()
        )
        painter.drawText(name_box, Qt.AlignmentFlag.AlignVCenter, name)
        line_box = QRect(name_box.bottomLeft(), box.bottomRight())
        line_box.adjust(left - text_left, 4, -_PADDING, 0)
        painter.setFont(option.font)
        painter.setPen(QColor(self._theme.colour("muted")))
        painter.drawText(line_box, _WRAPPED, index.data(SUMMARY_ROLE))
        painter.restore()

    def _paint_card(self, painter: QPainter, box: QRect, option: QStyleOptionViewItem) -> None:
        state = option.state
        selected = bool(state & QStyle.StateFlag.State_Selected)
        hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        focused = bool(state & QStyle.StateFlag.State_HasFocus)
        width = 2 if selected else 1
        painter.setPen(QPen(QColor(self._theme.colour("accent" if selected else "border")), width))
        painter.setBrush(QColor(self._theme.colour("hover" if hovered else "card")))
        inset = width / 2
        painter.drawRoundedRect(
            QRectF(box).adjusted(inset, inset, -inset, -inset), _RADIUS, _RADIUS
        )
        if focused:
            painter.setPen(QPen(QColor(self._theme.colour("accent")), 1, Qt.PenStyle.DotLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(box).adjusted(4.5, 4.5, -4.5, -4.5), 5, 5)


def _name_line(font: QFont) -> int:
    return QFontMetrics(_name_font(font)).height() + _NAME_GAP


def _name_font(font: QFont) -> QFont:
    name_font = QFont(font)
    name_font.setPointSizeF(_NAME_SIZE * font.pointSizeF())
    name_font.setWeight(QFont.Weight.DemiBold)
    return name_font
