"""The devices with their signs in their colors, in a list with keyboard navigation."""

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

from gpu_studio.core.devices.devices import short_name, without_maker
from gpu_studio.model.devices.device_list import DEVICE_ROLE, SUMMARY_ROLE
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import own_viewport
from gpu_studio.ui.theme import device_role

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.devices.device_list import DeviceList
    from gpu_studio.ui.theme import Theme

_PADDING = 8
_GAP = 4
_RADIUS = 8
_NAME_SIZE = 1.5  # of the font
_NAME_GAP = 2
_WRAPPED = Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
_MOST_HEIGHT = 1000


class DeviceListView(QListView):
    """Shows the devices, as high as they are together; one is always selected.

    Signals:
        device_selected(str): the identity of the device that the user chose here.
    """

    device_selected = Signal(str)

    def __init__(self, devices: DeviceList, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme.changed.connect(own_viewport(self).update)
        self.setObjectName("devices.table")
        self.setAccessibleName("Devices of this PC")
        self._devices = devices
        self._is_following = False
        self.setModel(devices)
        self.setItemDelegate(_DeviceDelegate(theme, self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setProperty("plain", True)
        self.setSpacing(0)
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        devices.modelReset.connect(self._fit)
        devices.dataChanged.connect(self._fit)
        self.selectionModel().currentChanged.connect(self._on_current_changed)

    def follow(self, identity: str) -> None:
        """Mark this device as selected."""
        row = self._devices.row_of(identity)
        if row >= 0 and row != self.currentIndex().row():
            self._is_following = True
            self.setCurrentIndex(self._devices.index(row))
            self._is_following = False

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out the devices again: they are as wide as the list."""
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()
        self._fit()

    def _fit(self) -> None:
        """Show all devices at once: the page scrolls, not the list."""
        rows = range(self._devices.rowCount())
        self.setFixedHeight(max(sum(self.sizeHintForRow(row) for row in rows), 1))

    def _on_current_changed(self, current: QModelIndex, previous: QModelIndex) -> None:
        # Qt makes the first row current if the list gets the focus before it follows a device.
        if current.isValid() and previous.isValid() and not self._is_following:
            self.device_selected.emit(current.data(DEVICE_ROLE).identity)


class _DeviceDelegate(QStyledItemDelegate):
    """Paints one device: its sign in its color, its name, and a line that describes it."""

    def __init__(self, theme: Theme, view: QListView) -> None:
        super().__init__(view)
        self._theme, self._view = theme, view

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        """Return the height of a device: the line under the name wraps."""
        left = 3 * _PADDING + _sign_side(option.font)
        room = max(self._view.viewport().width() - left - _PADDING, 1)
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
        device: DeviceRow = index.data(DEVICE_ROLE)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = option.rect.adjusted(0, 0, 0, -_GAP)
        self._paint_frame(painter, box, option)
        side = _sign_side(option.font)
        sign = QRect(box.left() + _PADDING, box.top() + (box.height() - side) // 2, side, side)
        self._paint_sign(painter, sign, device)
        words = box.adjusted(3 * _PADDING + side, _PADDING, -_PADDING, -_PADDING)
        name_box = QRect(words.topLeft(), QSize(words.width(), _name_line(option.font)))
        painter.setFont(_name_font(option.font))
        painter.setPen(QColor(self._theme.colour("text")))
        name = painter.fontMetrics().elidedText(
            _shown_name(device), Qt.TextElideMode.ElideRight, name_box.width()
        )
        painter.drawText(name_box, Qt.AlignmentFlag.AlignTop, name)
        painter.setFont(option.font)
        painter.setPen(QColor(self._theme.colour("muted")))
        line_box = words.adjusted(0, name_box.height(), 0, _PADDING)
        painter.drawText(line_box, _WRAPPED, index.data(SUMMARY_ROLE))
        painter.restore()

    def _paint_sign(self, painter: QPainter, box: QRect, device: DeviceRow) -> None:
        role = "other" if device.number is None else device_role(device.number)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colour(role)))
        painter.drawRoundedRect(QRectF(box), _RADIUS, _RADIUS)
        inset = box.width() // 5
        drawing = icon("cpu" if device.is_cpu else "card", self._theme, "on_device")
        drawing.paint(painter, box.adjusted(inset, inset, -inset, -inset))

    def _paint_frame(self, painter: QPainter, box: QRect, option: QStyleOptionViewItem) -> None:
        """Mark the selected one of several devices, and the one under the mouse."""
        state = option.state
        is_choice = self._view.model().rowCount() > 1
        is_selected = is_choice and bool(state & QStyle.StateFlag.State_Selected)
        is_hovered = is_choice and bool(state & QStyle.StateFlag.State_MouseOver)
        if is_selected or is_hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            shade = "selection" if is_selected else "hover"
            painter.setBrush(QColor(self._theme.colour(shade)))
            painter.drawRoundedRect(QRectF(box), _RADIUS, _RADIUS)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(QColor(self._theme.colour("accent")), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(box).adjusted(1, 1, -1, -1), _RADIUS, _RADIUS)


def _shown_name(device: DeviceRow) -> str:
    """Return the name without the maker; the tool tip has it in full."""
    return short_name(device.name) if device.is_cpu else without_maker(device.name)


def _sign_side(font: QFont) -> int:
    return _name_line(font) + QFontMetrics(font).height()


def _name_line(font: QFont) -> int:
    return QFontMetrics(_name_font(font)).height() + _NAME_GAP


def _name_font(font: QFont) -> QFont:
    name_font = QFont(font)
    name_font.setPointSizeF(_NAME_SIZE * font.pointSizeF())
    name_font.setWeight(QFont.Weight.DemiBold)
    return name_font
