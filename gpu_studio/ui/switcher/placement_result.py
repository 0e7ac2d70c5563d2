"""Where every tensor was and is, and the proof that nothing changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHeaderView

from gpu_studio.model.switching.placement_table import AFTER, BEFORE, KIND, NAME, SHAPE, TYPE
from gpu_studio.ui.parts import GAP, Card, Text, table
from gpu_studio.ui.switcher.device_card import DeviceInk

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QTableView, QWidget

    from gpu_studio.model.switching.device_choice import Said
    from gpu_studio.model.switching.placement_table import PlacementTable
    from gpu_studio.ui.theme import Theme

_NARROW = 880  # below it the table tells kind and type in its tool tips
_WIDE = 1100  # above it the columns share the room, so that a row can be read across
_SCROLL_BAR = 12


class PlacementResult(Card):
    """The proof on top, the table under it, and a hint as long as there is nothing."""

    def __init__(self, rows: PlacementTable, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="switcher.result_card")
        self.column.setSpacing(GAP)
        self._proof_card = Card(name="switcher.proof_card")
        self._proof = Text(name="switcher.proof", wraps=True)
        self._proof_card.column.addWidget(self._proof)
        self._rows = rows
        self._table = self._make_table(theme)
        self._hint = Text(role="muted", name="switcher.hint", wraps=True)
        self._hint.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.column.addWidget(self._proof_card)
        self.column.addWidget(self._table, 100)
        self.column.addWidget(self._hint, 100)
        self.column.addStretch(1)

    def _make_table(self, theme: Theme) -> QTableView:
        view = table(
            self._rows,
            name="switcher.placement",
            accessible_name="Every tensor with its device before and after",
        )
        view.setItemDelegate(DeviceInk(theme, view))
        view.horizontalHeader().setStretchLastSection(False)
        view.horizontalHeader().setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        return view

    def show_said(self, said: Said) -> None:
        """Show what the last move proved, or why it could not be done."""
        self._proof.setText(said.text)
        self._proof_card.set_tone(said.tone)
        self._proof_card.setVisible(bool(said.text))
        self._table.setAccessibleDescription(said.text)

    def show_hint(self, text: str) -> None:
        """Show the table once there is something in it, and before that what it is for."""
        is_empty = self._rows.rowCount() == 0
        self._hint.setText(text)
        self._hint.setVisible(is_empty)
        self._table.setVisible(not is_empty)
        self._fit_table()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the devices before and after in sight where there is little room."""
        super().resizeEvent(event)
        width, modes = self.width(), QHeaderView.ResizeMode
        for column in (KIND, TYPE):
            self._table.setColumnHidden(column, width < _NARROW)
        for column in (SHAPE, BEFORE, AFTER):
            mode = modes.Stretch if width > _WIDE else modes.ResizeToContents
            self._table.horizontalHeader().setSectionResizeMode(column, mode)

    def _fit_table(self) -> None:
        """Let the table end with its last row."""
        rows = self._rows.rowCount()
        row_height = self._table.verticalHeader().defaultSectionSize()
        self._table.setMaximumHeight(
            self._table.horizontalHeader().sizeHint().height() + rows * row_height + _SCROLL_BAR
        )
