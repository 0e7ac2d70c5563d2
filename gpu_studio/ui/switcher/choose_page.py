"""Choose a card: make it current, or the only visible one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QVBoxLayout, QWidget

from gpu_studio.model.engine_session import EngineState
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import (
    MARGIN,
    Card,
    Text,
    button,
    letters,
)
from gpu_studio.ui.scroll_page import PageColumn
from gpu_studio.ui.switcher.device_card import DeviceCard

if TYPE_CHECKING:
    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.studio import Studio
    from gpu_studio.model.switcher.device_choice import DeviceChoice
    from gpu_studio.ui.theme import Theme

_LEFT_LETTERS = (30, 63)
_USE = (
    "torch.cuda.set_device: new “cuda” tensors go to this card, in the same engine. Tensors that "
    "exist stay where they are, and all cards stay visible."
)
_SHOW_ONLY = (
    "Starts a new engine with CUDA_VISIBLE_DEVICES set. PyTorch then sees only this card, as "
    "cuda:0."
)
_LOST = (
    "You lose the models and memory of the current engine. Your results stay. Switching back does "
    "the same."
)
_ACTIONS = {
    "use": ("Use this card", "Switching…"),
    "show_only": ("Let PyTorch see only this card", "Starting a new engine…"),
    "show_all": ("Let PyTorch see all cards", "Starting a new engine…"),
}  # the text of a button, and the one while the engine is at it


class ChoosePage(QWidget):
    """Devices on the left; the two ways on the right.

    Args:
        studio: the application's state.
        theme: the current look.
        choice: knows the devices.
        before: the widget before the devices in Tab order.
    """

    def __init__(
        self,
        studio: Studio,
        theme: Theme,
        choice: DeviceChoice,
        before: QWidget,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._session, self._theme, self.choice = studio.session, theme, choice
        self._before = before
        self._device_cards: dict[str, DeviceCard] = {}
        self._radios = QButtonGroup(self)
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(MARGIN)
        left = PageColumn("Devices", self)
        left.setMinimumWidth(letters(self, _LEFT_LETTERS[0]))
        left.setMaximumWidth(letters(self, _LEFT_LETTERS[1]))
        right = PageColumn("Two ways to choose", self)
        line.addWidget(left, 2)
        line.addWidget(right, 3)
        self._fill_devices(left.column)
        self._fill_ways(right.column)
        choice.rows_changed.connect(self._show_rows)
        choice.chosen_changed.connect(self._show_chosen)
        choice.notice_changed.connect(self._show_notice)
        self._show_rows()
        self._show_notice()

    def _fill_devices(self, column: QVBoxLayout) -> None:
        self._why = Text(role="muted", name="switcher.why", wraps=True)
        cards = QWidget()
        cards.setObjectName("switcher.cards")
        cards.setAccessibleName("Devices")
        column.addWidget(Text("Choose a device", "title"))
        column.addWidget(cards)
        column.addWidget(self._why)
        column.addStretch(1)
        self._cards_column = QVBoxLayout(cards)
        self._cards_column.setContentsMargins(0, 0, 0, 0)
        self._cards_column.setSpacing(8)

    def _fill_ways(self, column: QVBoxLayout) -> None:
        choice = self.choice
        self._use = button(_ACTIONS["use"][0], choice.use, name="switcher.activate", primary=True)
        self._only = button(
            _ACTIONS["show_only"][0], choice.show_only, name="switcher.visible_only"
        )
        self._all = button(_ACTIONS["show_all"][0], choice.show_all, name="switcher.show_all")
        self._notice_card = Card(name="switcher.said_card")
        self._notice = Text(name="switcher.said", wraps=True)
        self._notice_card.column.addWidget(self._notice)
        self._lost = Text(_LOST, "amber", name="switcher.explained", wraps=True)
        column.addWidget(Text("Two ways to switch", "title"))
        self._current_way = self._way("Current card", _USE, self._use)
        self._visible_way = self._way(
            "Visible cards", _SHOW_ONLY, self._only, self._all, then=self._lost
        )
        for widget in (self._notice_card, self._current_way, self._visible_way):
            column.addWidget(widget)
        column.addStretch(1)

    @staticmethod
    def _way(title: str, sentence: str, *buttons: QWidget, then: QWidget | None = None) -> Card:
        card = Card()
        card.column.setSpacing(8)
        card.column.addWidget(Text(title, "value"))
        card.column.addWidget(Text(sentence, "muted", wraps=True))
        if then is not None:
            card.column.addWidget(then)
        card.column.addWidget(FlowRow(*buttons))
        return card

    # ── devices ──────────────────────────────────────────────────────────────────────────────

    def _show_rows(self) -> None:
        rows = self.choice.rows
        if [row.identity for row in rows] != list(self._device_cards):
            self._make_cards()
        for one in rows:
            self._device_cards[one.identity].show_row(one, self.choice.words_of(one))
        self._why.show_text(self._why_so_few())
        self._show_buttons()

    def _make_cards(self) -> None:
        for card in self._device_cards.values():
            self._radios.removeButton(card.radio)
            self._cards_column.removeWidget(card)
            card.deleteLater()
        self._device_cards = {}
        for one in self.choice.rows:
            card = DeviceCard(one.identity, self._theme)
            self._device_cards[one.identity] = card
            self._radios.addButton(card.radio)
            self._cards_column.addWidget(card)
            card.chosen.connect(self._choose)
        self._order_focus()
        self._show_chosen()

    def _order_focus(self) -> None:
        """Let Tab reach the cards before the buttons, although the cards are created later."""
        radios = [card.radio for card in self._device_cards.values()]
        doing = [self._use, self._only, self._all]
        for earlier, later in pairwise([self._before, *radios, *doing]):
            QWidget.setTabOrder(earlier, later)

    def _choose(self, identity: str) -> None:
        if self.choice.chosen is None or identity != self.choice.chosen.identity:
            self.choice.choose(identity)

    def _show_chosen(self) -> None:
        chosen = self.choice.chosen
        if chosen is not None and chosen.identity in self._device_cards:
            self._device_cards[chosen.identity].radio.setChecked(True)
        self._show_buttons()

    def _why_so_few(self) -> str:
        """Return why there is no card to choose, or why the tab is waiting."""
        waiting = what_is_waited_for(self._session)
        if waiting or len(self.choice.rows) > 1:
            return waiting
        description = self._session.description
        reason = (description.cuda_reason if description else None) or ""
        return f"The CPU is the only device here, so everything runs on it. {reason}".strip()

    def _show_buttons(self) -> None:
        choice = self.choice
        self._use.setEnabled(choice.can_use)
        self._only.setEnabled(choice.can_show_only)
        self._all.setVisible(choice.is_one_shown or choice.pending == "show_all")
        for key, widget in (("use", self._use), ("show_only", self._only), ("show_all", self._all)):
            text = _ACTIONS[key][choice.pending == key]
            widget.setText(text)
            widget.setAccessibleName(text)
        self._all.setEnabled(choice.can_show_all)

    def _show_notice(self) -> None:
        notice = self.choice.notice
        self._notice.setText(notice.sentence)
        self._notice_card.set_tone(notice.tone)
        self._notice_card.setVisible(bool(notice.sentence))
        self._show_buttons()


def what_is_waited_for(session: EngineSession) -> str:
    """Return the reason why the tab is waiting; empty if it is ready."""
    if session.state is EngineState.FAILED:
        return "PyTorch has stopped. Start it anew from the PyTorch menu."
    return session.what_is_missing
