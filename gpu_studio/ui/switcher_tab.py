"""Switcher: choose a device, move a model there, and see the proof."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QButtonGroup,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.placement import PlacementModel
from gpu_studio.model.placement_table import AFTER, BEFORE, KIND, NAME, SHAPE, TYPE
from gpu_studio.ui.device_card import DeviceCard, DeviceInk
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, button, table
from gpu_studio.ui.scroll_page import ScrollPage

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_LEFT_WIDTHS = (270, 380)
_NARROW = 880  # of the tab; below it the table tells kind and type in its tool tips
_WIDE = 1100  # above it the columns share the room, so that a row can be read across
_SCROLL_BAR = 12
_USE = (
    "“Use this card”: new “cuda” tensors go there, in the same engine. What is placed already "
    "stays where it is."
)
_SHOW_ONLY = (
    "“Show PyTorch only this card”: a fresh engine, with CUDA_VISIBLE_DEVICES set before it "
    "starts, since CUDA reads it only then; the card becomes cuda:0. Models and memory of the "
    "present engine are lost, your results stay."
)
_SHOW_ALL = (
    "“Show PyTorch all cards” goes back, with a fresh engine again: models and memory of the "
    "present one are lost, your results stay."
)


class SwitcherTab(QWidget):
    """Devices on the left, a model's tensors on the right."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("switcher")
        self._session, self._theme = studio.session, theme
        self.model = PlacementModel(studio, self)
        self._device_cards: dict[str, DeviceCard] = {}
        self._radios = QButtonGroup(self)
        line = QHBoxLayout(self)
        line.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        line.setSpacing(MARGIN)
        # Into the window first, then filled: a filled part is styled anew at each step up.
        left = ScrollPage("Devices to choose from", self)
        left.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        left.setMinimumWidth(_LEFT_WIDTHS[0])
        left.setMaximumWidth(_LEFT_WIDTHS[1])
        right = QVBoxLayout()
        right.setSpacing(GAP)
        line.addWidget(left, 2)
        line.addLayout(right, 5)
        self._fill_choice(left.column)
        self._fill_move(right)
        self.model.rows_changed.connect(self._show_rows)
        self.model.chosen_changed.connect(self._show_chosen)
        self.model.choice_said.connect(self._show_said)
        self.model.move_changed.connect(self._show_move)
        self._session.engine_described.connect(self._list_models)
        self._list_models()
        self._show_rows()
        self._show_said()
        self._show_move()

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _fill_choice(self, column: QVBoxLayout) -> None:
        self._why = Text(role="muted", name="switcher.why", wraps=True)
        cards = QWidget()
        cards.setObjectName("switcher.cards")
        cards.setAccessibleName("Devices to choose from")
        self._use = button("Use this card", self.model.use, name="switcher.activate", primary=True)
        self._only = button(
            "Show PyTorch only this card", self.model.show_only, name="switcher.visible_only"
        )
        self._all = button("Show PyTorch all cards", self.model.show_all, name="switcher.show_all")
        self._choice_card = Card(name="switcher.said_card")
        self._explained = Text(role="muted", name="switcher.explained", wraps=True)
        for widget in (
            Text("1  Choose a device", "title"), self._why, cards, self._use, self._only,
            self._all, self._choice_card, self._explained,
        ):  # fmt: skip
            column.addWidget(widget)
        column.addStretch(1)
        self._cards_column = QVBoxLayout(cards)
        self._cards_column.setContentsMargins(0, 0, 0, 0)
        self._cards_column.setSpacing(8)
        self._choice_said = Text(name="switcher.said", wraps=True)
        self._choice_card.column.addWidget(self._choice_said)

    def _fill_move(self, column: QVBoxLayout) -> None:
        column.addWidget(Text("2  Move a model and see where everything is", "title"))
        card = Card(self, name="switcher.move_card")
        card.column.setSpacing(GAP)
        column.addWidget(card, 1)
        self._models = QComboBox()
        self._models.setObjectName("switcher.model")
        self._models.setAccessibleName("Model to move")
        self._models.setMinimumContentsLength(16)
        self._models.activated.connect(self._choose_model)
        self._move = button("Move", self._start_move, name="switcher.move", primary=True)
        head = QHBoxLayout()
        head.setSpacing(GAP)
        card.column.addLayout(head)
        head.addWidget(self._models, 1)
        head.addWidget(self._move)
        self._about_model = Text(role="muted", name="switcher.about_model", wraps=True)
        self._table = self._make_table()
        self._hint = Text(role="muted", name="switcher.hint", wraps=True)
        self._hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._proof_card = Card(name="switcher.proof_card")
        card.column.addWidget(self._about_model)
        card.column.addWidget(self._table, 100)
        card.column.addWidget(self._hint, 100)
        card.column.addWidget(self._proof_card)
        card.column.addStretch(1)
        self._proof = Text(name="switcher.proof", wraps=True)
        self._proof_card.column.addWidget(self._proof)

    def _make_table(self) -> QTableView:
        view = table(
            self.model.table,
            name="switcher.placement",
            accessible_name="Every parameter and buffer with its device before and after",
        )
        view.setItemDelegate(DeviceInk(self._theme, view))
        view.horizontalHeader().setStretchLastSection(False)
        view.horizontalHeader().setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        return view

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the devices before and after in sight where there is little room."""
        super().resizeEvent(event)
        width, modes = self.width(), QHeaderView.ResizeMode
        for column in (KIND, TYPE):
            self._table.setColumnHidden(column, width < _NARROW)
        for column in (SHAPE, BEFORE, AFTER):
            mode = modes.Stretch if width > _WIDE else modes.ResizeToContents
            self._table.horizontalHeader().setSectionResizeMode(column, mode)

    # ── devices ──────────────────────────────────────────────────────────────────────────────

    def _show_rows(self) -> None:
        rows = self.model.rows
        if [row.identity for row in rows] != list(self._device_cards):
            self._make_cards()
        for row in rows:
            self._device_cards[row.identity].show_row(row)
        why = self._why_so_few()
        self._why.setText(why)
        self._why.setVisible(bool(why))
        self._show_buttons()

    def _make_cards(self) -> None:
        for card in self._device_cards.values():
            self._radios.removeButton(card.radio)
            self._cards_column.removeWidget(card)
            card.deleteLater()
        self._device_cards = {}
        for row in self.model.rows:
            card = DeviceCard(row, self._theme)
            self._device_cards[row.identity] = card
            self._radios.addButton(card.radio)
            self._cards_column.addWidget(card)
            card.chosen.connect(self._choose)
        self._order_focus()
        self._show_chosen()

    def _order_focus(self) -> None:
        """Let Tab reach the cards, which are made late, before what is done with them."""
        radios = [card.radio for card in self._device_cards.values()]
        doing = [self._use, self._only, self._all, self._models, self._move, self._table]
        for earlier, later in pairwise([*radios, *doing]):
            QWidget.setTabOrder(earlier, later)

    def _choose(self, identity: str) -> None:
        if self.model.chosen is None or identity != self.model.chosen.identity:
            self.model.choose(identity)

    def _show_chosen(self) -> None:
        chosen = self.model.chosen
        if chosen is not None and chosen.identity in self._device_cards:
            self._device_cards[chosen.identity].radio.setChecked(True)
        self._show_buttons()

    def _why_so_few(self) -> str:
        """Return why there is no card to choose, or what is waited for."""
        waiting = self._what_is_waited_for()
        if waiting or len(self.model.rows) > 1:
            return waiting
        description = self._session.description
        reason = (description.cuda_reason if description else None) or ""
        return f"The CPU is the only device here, so everything is moved to it. {reason}".strip()

    def _what_is_waited_for(self) -> str:
        if self._session.state is EngineState.FAILED:
            return "There is no engine. Start a fresh one from the Engine menu."
        if self._session.description is None:
            return "The engine is starting: PyTorch is being loaded."
        return ""

    def _show_buttons(self) -> None:
        model, chosen = self.model, self.model.chosen
        has_cards = len(model.rows) > 1
        for widget in (self._use, self._only):
            widget.setVisible(has_cards)
        self._use.setEnabled(model.can_use)
        self._only.setEnabled(model.can_show_only)
        self._all.setVisible(model.is_one_shown)
        self._all.setEnabled(model.can_show_all)
        texts = [_USE, _SHOW_ONLY] if has_cards else []
        texts += [_SHOW_ALL] if model.is_one_shown else []
        self._explained.setText("\n\n".join(texts))
        self._explained.setVisible(bool(texts))
        target = chosen.address if chosen else None
        self._move.setText(f"Move to {target}" if target else "Move")
        self._move.setAccessibleName(f"Move the model to {target}" if target else "Move the model")
        self._move.setEnabled(model.can_move)
        self._move.setToolTip("" if target else "PyTorch has no number for this device now.")
        self._show_hint()

    def _show_said(self) -> None:
        said = self.model.said_of_choice
        self._choice_said.setText(said.text)
        self._choice_card.set_tone(said.tone)
        self._choice_card.setVisible(bool(said.text))
        self._show_buttons()

    # ── the model ────────────────────────────────────────────────────────────────────────────

    def _list_models(self) -> None:
        models = self.model.models
        listed = [self._models.itemData(index) for index in range(self._models.count())]
        if listed != [model.name for model in models]:
            self._models.clear()
            for model in models:
                self._models.addItem(model.title, model.name)
        self._models.setEnabled(bool(models))
        self._describe_model()
        self._show_rows()

    def _choose_model(self) -> None:
        self.model.forget_move()
        self._describe_model()

    def _describe_model(self) -> None:
        name = self._models.currentData()
        sentence = next((m.sentence for m in self.model.models if m.name == name), "")
        self._about_model.setText(sentence)
        self._about_model.setVisible(bool(sentence))

    def _start_move(self) -> None:
        self.model.move(self._models.currentData())

    def _show_move(self) -> None:
        said = self.model.said_of_move
        self._proof.setText(said.text)
        self._proof_card.set_tone(said.tone)
        self._proof_card.setVisible(bool(said.text))
        self._table.setAccessibleDescription(said.text)
        self._models.setEnabled(bool(self.model.models) and not self.model.is_moving)
        self._show_buttons()

    def _show_hint(self) -> None:
        """Show the table once there is something in it, and before that what it is for."""
        is_empty = self.model.table.rowCount() == 0
        self._hint.setText(
            self._what_is_waited_for()
            or f"Press “{self._move.text()}”: each parameter and buffer of the model appears "
            "here, with its device before and after."
        )
        self._hint.setVisible(is_empty)
        self._table.setVisible(not is_empty)
        self._fit_table()

    def _fit_table(self) -> None:
        """Let the table end with its last row, so that the proof stands right under it."""
        rows = self.model.table.rowCount()
        row_height = self._table.verticalHeader().defaultSectionSize()
        self._table.setMaximumHeight(
            self._table.horizontalHeader().sizeHint().height() + rows * row_height + _SCROLL_BAR
        )
