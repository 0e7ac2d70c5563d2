"""Titles and their values side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QWidget

from gpu_studio.ui.parts import GAP, Text

if TYPE_CHECKING:
    from collections.abc import Sequence


class FactRows(QWidget):
    """A row for each fact; long values wrap. Without facts it is hidden.

    The value of row 2 is the label ``NAME.2``.
    """

    def __init__(self, *, name: str, accessible_name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(accessible_name)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, GAP, 0, 0)
        self._grid.setHorizontalSpacing(2 * GAP)
        self._grid.setColumnStretch(1, 1)
        self._rows: list[tuple[Text, Text]] = []

    def show_rows(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show these titles and values."""
        while len(self._rows) < len(facts):
            row = len(self._rows)
            name = f"{self.objectName()}.{row}"
            pair = (Text("", "muted"), Text("", name=name, wraps=True))
            for column, label in enumerate(pair):
                self._grid.addWidget(label, row, column, Qt.AlignmentFlag.AlignTop)
            self._rows.append(pair)
        for number, pair in enumerate(self._rows):
            is_shown = number < len(facts)
            for label, text in zip(pair, facts[number] if is_shown else ("", ""), strict=True):
                label.setText(text)
                label.setVisible(is_shown)
        self.setVisible(bool(facts))
