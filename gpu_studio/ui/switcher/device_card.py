"""One device to choose: a radio button, its name and its current facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPalette
from PySide6.QtWidgets import (
    QHBoxLayout,
    QRadioButton,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from gpu_studio.model.switcher.placement_model import DEVICE_ROLE
from gpu_studio.ui.parts import Card, Text, set_property

if TYPE_CHECKING:
    from PySide6.QtGui import QMouseEvent, QPaintEvent

    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.model.switcher.device_choice import DeviceWords
    from gpu_studio.ui.theme import Theme

_SWATCH = 12


class DeviceCard(Card):
    """A card that the user chooses by its radio button, or by a click anywhere on it.

    Signals:
        chosen(str): the identity of the device.
    """

    chosen = Signal(str)

    def __init__(self, identity: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, name=f"switcher.card.{identity}")
        self._identity = identity
        self.radio = QRadioButton()
        self.radio.setObjectName(f"switcher.radio.{identity}")
        self.radio.toggled.connect(self._toggled)
        self._swatch = _Swatch(theme)
        self._name = Text(role="value", wraps=True)
        self._facts = Text(role="muted", wraps=True)
        self._about = Text(role="muted", name=f"switcher.about.{identity}", wraps=True)
        self._warning = Text(role="amber", wraps=True)
        head = QHBoxLayout()
        head.setSpacing(8)
        self.column.setSpacing(4)
        self.column.addLayout(head)
        head.addWidget(self.radio)
        head.addWidget(self._swatch)
        head.addWidget(self._name, 1)
        for text in (self._facts, self._about, self._warning):
            self.column.addWidget(text)

    def show_row(self, row: DeviceRow, words: DeviceWords) -> None:
        self.radio.setText(words.number)
        self._swatch.show_device(row.address)
        self._name.setText(words.name)
        self._facts.setText(words.facts)
        self._about.show_text(words.about)
        self._warning.show_text(words.warning)
        self.radio.setAccessibleName(f"{words.number} {words.name}")
        about = f"{words.facts}. {words.about}. {words.warning}"
        self.radio.setAccessibleDescription(about.strip(" ."))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        self.radio.setChecked(True)
        self.radio.setFocus(Qt.FocusReason.MouseFocusReason)

    def _toggled(self, checked: bool) -> None:
        set_property(self, "selected", checked)
        if checked:
            self.chosen.emit(self._identity)


class _Swatch(QWidget):
    """The color of a device in every curve and table; hollow if it has none."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._address: str | None = None
        self.setFixedSize(QSize(_SWATCH, _SWATCH))
        theme.changed.connect(self.update)

    def show_device(self, address: str | None) -> None:
        if address != self._address:
            self._address = address
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        role = self._theme.device_role(self._address) if self._address else "other"
        colour = QColor(self._theme.colour(role))
        painter.setPen(colour)
        if self._address:
            painter.setBrush(colour)
        painter.drawRoundedRect(QRectF(0.5, 0.5, _SWATCH - 1, _SWATCH - 1), 3, 3)


class DeviceInk(QStyledItemDelegate):
    """Draws cells that name a device in that device's color."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        address = index.data(DEVICE_ROLE)
        if address:
            ink = QColor(self._theme.colour(f"{self._theme.device_role(address)}_ink"))
            for role in (QPalette.ColorRole.Text, QPalette.ColorRole.HighlightedText):
                option.palette.setColor(role, ink)
