"""The devices of a PC: each with its sign in its color, its name, and a line that describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QListView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from gpu_studio.core.device_name import name_at
from gpu_studio.core.devices.devices import short_name, without_maker
from gpu_studio.model.devices.device_board import DEVICE_ROLE, SUMMARY_ROLE
from gpu_studio.ui.icons import icon

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from gpu_studio.model.devices.device_board import DeviceList, DeviceRow
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
        theme.changed.connect(self.viewport().update)
        self.setObjectName("devices.table")
        self.setAccessibleName("Devices")
        self._devices = devices
        self._is_following = self._has_followed = False
        self.setModel(devices)
        self.setItemDelegate(_DeviceDelegate(theme, self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setProperty("plain", True)
        self.setSpacing(0)
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        devices.modelReset.connect(self._on_reset)
        devices.dataChanged.connect(self._fit)
        self._fit()
        self.selectionModel().currentChanged.connect(self._on_current_changed)

    @property
    def is_choice(self) -> bool:
        """Whether the window has another device, here or in another list."""
        return self._devices.is_choice

    def follow(self, identity: str) -> None:
        """Mark this device as selected; none if it is one of another list."""
        row = self._devices.row_of(identity)
        self._has_followed = True
        if row != self.currentIndex().row():
            self._is_following = True
            self.setCurrentIndex(self._devices.index(row) if row >= 0 else QModelIndex())
            self._is_following = False

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lay out the devices again: they are as wide as the list."""
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()
        self._fit()

    def _fit(self) -> None:
        """Show all devices at once: the page scrolls, not the list."""
        rows = range(self._devices.rowCount())
        least = _least_height(self.font())  # the first device comes after the first paint
        self.setFixedHeight(max(sum(self.sizeHintForRow(row) for row in rows), least))

    def _on_reset(self) -> None:
        self._has_followed = False
        self._fit()

    def _on_current_changed(self, current: QModelIndex) -> None:
        # Qt makes the first row current if the list gets the focus before it follows a device.
        if current.isValid() and self._has_followed and not self._is_following:
            self.device_selected.emit(current.data(DEVICE_ROLE).identity)


class _DeviceDelegate(QStyledItemDelegate):
    """Paints one device: its sign in its color, its name, and a line that describes it."""

    def __init__(self, theme: Theme, view: DeviceListView) -> None:
        super().__init__(view)
        self._theme, self._view = theme, view

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        """Return the height of a device: the line under the name wraps."""
        left = 3 * _PADDING + _sign_side(option.font)
        room = max(self._view.viewport().width() - left - _PADDING, 1)
        one_line, all_lines = (
            option.fontMetrics.boundingRect(0, 0, room, _MOST_HEIGHT, _WRAPPED, words).height()
            for words in ("x", index.data(SUMMARY_ROLE))
        )
        spare = all_lines - one_line
        return QSize(100, _least_height(option.font) + spare)

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
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
        role = self._theme.device_role(device.number or device.identity)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colour(role)))
        painter.drawRoundedRect(QRectF(box), _RADIUS, _RADIUS)
        inset = box.width() // 5
        drawing = icon("cpu" if device.is_cpu else "card", self._theme, "on_device")
        drawing.paint(painter, box.adjusted(inset, inset, -inset, -inset))

    def _paint_frame(self, painter: QPainter, box: QRect, option: QStyleOptionViewItem) -> None:
        """Mark the selected one of several devices, and the one under the mouse."""
        from PySide6.QtWidgets import QStyle  # 5 ms: its enums

        state = option.state
        is_choice = self._view.is_choice
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
    name = short_name(device.name) if device.is_cpu else without_maker(device.name)
    return name_at(device.pc, name)


def _least_height(font: QFont) -> int:
    """Return the height of a device whose description is one line."""
    return _sign_side(font) + 2 * _PADDING + _GAP


def _sign_side(font: QFont) -> int:
    return _name_line(font) + QFontMetrics(font).height()


def _name_line(font: QFont) -> int:
    return QFontMetrics(_name_font(font)).height() + _NAME_GAP


def _name_font(font: QFont) -> QFont:
    name_font = QFont(font)
    name_font.setPointSizeF(_NAME_SIZE * font.pointSizeF())
    name_font.setWeight(QFont.Weight.DemiBold)
    return name_font
