"""A device to select: its sign in its color, its name, and a line that describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QRadioButton, QSizePolicy

from gpu_studio.core.device_name import name_at
from gpu_studio.core.devices.devices import short_name, without_maker
from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.icons import icon

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.ui.theme import Theme

_PADDING = 8
_RADIUS = 8
_NAME_SIZE = 1.5  # of the font
_NAME_GAP = 2
_WRAPPED = Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap
_MOST_HEIGHT = 1000


class DeviceButton(QRadioButton):
    """Shows a device; before there is one, it keeps the room.

    Attributes:
        device: the device.
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        theme.changed.connect(self.update)
        self._theme = theme
        self.device: DeviceRow | None = None
        self._summary, self._is_choice = "", False
        self.setAutoExclusive(False)  # that of another PC is in another group
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def show_device(
        self, device: DeviceRow, summary: str, *, is_selected: bool, is_choice: bool
    ) -> None:
        """Show a device.

        Args:
            device: the device.
            summary: the line under its name.
            is_selected: whether it is the selected one.
            is_choice: whether there is another one.
        """
        self.device, self._is_choice = device, is_choice
        self.setChecked(is_selected)
        if summary != self._summary:
            self._summary = summary
            self.updateGeometry()
        name = name_at(device.pc, device.name)
        unreadable = device.device.unreadable if device.device is not None else None
        self.setAccessibleName(f"{name}, {summary}")
        self.setToolTip(plain_tip(f"{name}\n{unreadable or summary}"))
        self.update()

    def nextCheckState(self) -> None:
        """Change nothing: the page shows which one is selected."""

    def hitButton(self, place: QPoint) -> bool:
        """Take a press anywhere."""
        return self.rect().contains(place)

    def sizeHint(self) -> QSize:
        """Return the size with a summary of one line."""
        return QSize(100, _sign_side(self.font()) + 2 * _PADDING)

    def minimumSizeHint(self) -> QSize:
        """Return the size with a summary of one line."""
        return self.sizeHint()

    def heightForWidth(self, width: int) -> int:
        """Return the height of a device: the line under the name wraps."""
        room = max(width - 4 * _PADDING - _sign_side(self.font()), 1)
        one_line, all_lines = (
            self.fontMetrics().boundingRect(0, 0, room, _MOST_HEIGHT, _WRAPPED, words).height()
            for words in ("x", self._summary or "x")
        )
        return self.sizeHint().height() + all_lines - one_line

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the device."""
        device = self.device
        if device is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_frame(painter)
        side = _sign_side(self.font())
        self._paint_sign(painter, QRect(_PADDING, (self.height() - side) // 2, side, side), device)
        words = self.rect().adjusted(3 * _PADDING + side, _PADDING, -_PADDING, -_PADDING)
        painter.setFont(_name_font(self.font()))
        painter.setPen(QColor(self._theme.colour("text")))
        name = painter.fontMetrics().elidedText(
            _shown_name(device), Qt.TextElideMode.ElideRight, words.width()
        )
        painter.drawText(words, Qt.AlignmentFlag.AlignTop, name)
        painter.setFont(self.font())
        painter.setPen(QColor(self._theme.colour("muted")))
        painter.drawText(
            words.adjusted(0, _name_line(self.font()), 0, _PADDING), _WRAPPED, self._summary
        )

    def _paint_sign(self, painter: QPainter, box: QRect, device: DeviceRow) -> None:
        role = self._theme.device_role(device.number or device.identity)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colour(role)))
        painter.drawRoundedRect(QRectF(box), _RADIUS, _RADIUS)
        inset = box.width() // 5
        drawing = icon("cpu" if device.is_cpu else "card", self._theme, "on_device")
        drawing.paint(painter, box.adjusted(inset, inset, -inset, -inset))

    def _paint_frame(self, painter: QPainter) -> None:
        """Mark the selected one of several devices, the one under the mouse, and the focus."""
        box = QRectF(self.rect())
        if self._is_choice and (self.isChecked() or self.underMouse()):
            painter.setPen(Qt.PenStyle.NoPen)
            shade = "selection" if self.isChecked() else "hover"
            painter.setBrush(QColor(self._theme.colour(shade)))
            painter.drawRoundedRect(box, _RADIUS, _RADIUS)
        if self.hasFocus():
            painter.setPen(QPen(QColor(self._theme.colour("accent")), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box.adjusted(1, 1, -1, -1), _RADIUS, _RADIUS)


def _shown_name(device: DeviceRow) -> str:
    """Return the name without the maker; the tool tip has it in full."""
    name = short_name(device.name) if device.is_cpu else without_maker(device.name)
    return name_at(device.pc, name)


def _sign_side(font: QFont) -> int:
    return _name_line(font) + QFontMetrics(font).height()


def _name_line(font: QFont) -> int:
    return QFontMetrics(_name_font(font)).height() + _NAME_GAP


def _name_font(font: QFont) -> QFont:
    name_font = QFont(font)
    name_font.setPointSizeF(_NAME_SIZE * font.pointSizeF())
    name_font.setWeight(QFont.Weight.DemiBold)
    return name_font
