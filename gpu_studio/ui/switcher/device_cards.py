"""The devices to switch to: one card each, with the mark of the one in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QVBoxLayout, QWidget

from gpu_studio.core.device_name import is_cpu
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import Card, Text, button, letters, set_property, show_label

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from gpu_studio.model.switcher.device_words import DeviceWords
    from gpu_studio.ui.theme import Theme

_GAP = 8
_CARD_LETTERS = 30
_SWATCH, _ICON = 34, 20


class DeviceCards(QWidget):
    """A card for each device: below each other, or side by side where there is room.

    Args:
        theme: gives the colors.
        use: switches to a device, by its identity.
        show_only: lets PyTorch see only this card.
    """

    def __init__(
        self, theme: Theme, use: Callable[[str], None], show_only: Callable[[str], None]
    ) -> None:
        super().__init__()
        self.setAccessibleName("Devices")
        self._theme, self._use, self._show_only = theme, use, show_only
        self._cards: dict[str, DeviceCard] = {}
        self._line = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setSpacing(_GAP)

    def show_devices(self, devices: Sequence[DeviceWords]) -> None:
        if [one.identity for one in devices] != list(self._cards):
            for card in self._cards.values():
                self._line.removeWidget(card)
                card.deleteLater()
            self._cards = {one.identity: self._made(one.identity) for one in devices}
            self._order_focus()
            self._arrange()
        for one in devices:
            self._cards[one.identity].show_words(one)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _made(self, identity: str) -> DeviceCard:
        card = DeviceCard(identity, self._theme)
        card.use.clicked.connect(lambda: self._use(identity))
        card.only.clicked.connect(lambda: self._show_only(identity))
        self._line.addWidget(card, 1)
        return card

    def _order_focus(self) -> None:
        """Let Tab reach the cards at their place, although they are made later than the page."""
        earlier: QWidget = self
        while (before := earlier.previousInFocusChain()) is not None and before is not self:
            earlier = before
            if earlier.focusPolicy() is not Qt.FocusPolicy.NoFocus:
                break
        for card in self._cards.values():
            for pressed in (card.use, card.only):
                QWidget.setTabOrder(earlier, pressed)
                earlier = pressed

    def _arrange(self) -> None:
        fits = self.width() >= letters(self, _CARD_LETTERS) * len(self._cards)
        directions = QBoxLayout.Direction
        self._line.setDirection(directions.LeftToRight if fits else directions.TopToBottom)


class DeviceCard(Card):
    """A device: its name, its facts, and how to switch to it."""

    def __init__(self, identity: str, theme: Theme) -> None:
        super().__init__(name=f"switcher.card.{identity}")
        self._swatch = _Swatch(theme)
        self._name = Text(role="value", wraps=True)
        self._facts = Text(role="muted", name=f"switcher.facts.{identity}", wraps=True)
        self._warning = Text(role="amber", wraps=True)
        self._mark = Text("✔ in use", "good", name=f"switcher.mark.{identity}")
        self.use = button("", lambda: None, name=f"switcher.activate.{identity}")
        self.only = button("", lambda: None, name=f"switcher.visible_only.{identity}")
        self.only.setToolTip("Sets CUDA_VISIBLE_DEVICES; your results stay")
        head, words = QHBoxLayout(), QVBoxLayout()
        self.column.addLayout(head)
        head.setSpacing(12)
        head.addWidget(self._swatch, 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(words, 1)
        words.setSpacing(2)
        words.addWidget(self._name)
        words.addWidget(self._facts)
        self.column.addWidget(self._warning)
        self.column.addWidget(FlowRow(self._mark, self.use, self.only, spacing=_GAP))
        self.column.addStretch(1)

    def show_words(self, words: DeviceWords) -> None:
        self._swatch.show_device(words.identity, words.address)
        self._name.setText(words.name)
        self._facts.setText(words.facts)
        self._warning.show_text(words.warning)
        self._mark.setVisible(words.is_used)
        set_property(self, "selected", words.is_used)
        for pressed, label, can in (
            (self.use, words.use, words.can_use), (self.only, words.only, words.can_show_only),
        ):  # fmt: skip
            show_label(pressed, label)
            pressed.setEnabled(can)
            pressed.setAccessibleName(f"{label}: {words.number} {words.name}")
            pressed.setAccessibleDescription(f"{words.facts}. {words.warning}")


class _Swatch(QWidget):
    """The icon of a device in its color of every curve and table; hollow if it has none."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: tuple[str, str | None] = ("", None)
        self.setFixedSize(QSize(_SWATCH, _SWATCH))
        theme.changed.connect(self.update)

    def show_device(self, identity: str, address: str | None) -> None:
        if self._shown != (identity, address):
            self._shown = identity, address
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        identity, address = self._shown
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        role = self._theme.device_role(address) if address else "other"
        color = QColor(self._theme.colour(role))
        painter.setPen(color)
        if address:
            painter.setBrush(color)
        painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), 6, 6)
        ink = "on_device" if address else "muted"
        picture = icon("cpu" if is_cpu(identity) else "card", self._theme, ink)
        place = QRect(0, 0, _ICON, _ICON)
        place.moveCenter(self.rect().center())
        picture.paint(painter, place)
