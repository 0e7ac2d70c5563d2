"""Everything known about a device: groups of facts in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.parts import Text, letters, section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent

    from gpu_studio.core.devices.facts import Fact, FactGroup

_COLUMN_LETTERS = 42
_LABEL_LETTERS = 18
_COLUMN_GAP = 28
_MOST_COLUMNS = 4


class FactGrid(QWidget):
    """Shows groups of facts. Rows stay in place when their values change.

    Args:
        name: the object name; a value is named ``name.KEY``.
    """

    def __init__(self, *, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName("Facts about this device")
        self._groups: tuple[FactGroup, ...] = ()
        self._values: dict[str, ElidedText] = {}
        self._columns: list[QWidget] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(_COLUMN_GAP)

    def show_groups(self, groups: Sequence[FactGroup]) -> None:
        """Show these facts."""
        before, self._groups = self._groups, tuple(groups)
        if _shape(groups) != _shape(before):
            self._build()
            return
        known = {fact.key: fact for group in before for fact in group.facts}
        for group in groups:
            for fact in group.facts:
                if known[fact.key] != fact:
                    self._write(fact)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use as many columns as fit."""
        super().resizeEvent(event)
        if self._groups and self._fitting_columns() != len(self._columns):
            self._build()

    def _fitting_columns(self) -> int:
        fitting = (self.width() + _COLUMN_GAP) // (letters(self, _COLUMN_LETTERS) + _COLUMN_GAP)
        return max(1, min(fitting, _MOST_COLUMNS, len(self._groups)))

    def _build(self) -> None:
        """Put each group into the column that is the shortest so far."""
        for column in self._columns:
            column.setParent(None)
            column.deleteLater()
        self._values = {}
        self._columns = [QWidget() for _ in range(self._fitting_columns())]
        filled = [0] * len(self._columns)
        for column in self._columns:
            QVBoxLayout(column).setContentsMargins(0, 0, 0, 0)
            self._row.addWidget(column, 1, Qt.AlignmentFlag.AlignTop)
        for group in self._groups:
            shortest = filled.index(min(filled))
            layout = self._columns[shortest].layout()
            assert layout is not None
            layout.addWidget(self._block(group))
            filled[shortest] += len(group.facts) + 2
        for column in self._columns:
            column.show()

    def _block(self, group: FactGroup) -> QWidget:
        block = QWidget()
        grid = QGridLayout(block)
        grid.setContentsMargins(0, 0, 0, 10)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(7)
        grid.setColumnMinimumWidth(0, letters(self, _LABEL_LETTERS))
        grid.setColumnStretch(1, 1)
        grid.addWidget(section(group.title), 0, 0, 1, 2)
        for row, fact in enumerate(group.facts, start=1):
            value = ElidedText(name=f"{self.objectName()}.{fact.key}")
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            self._values[fact.key] = value
            self._write(fact)
            grid.addWidget(Text(fact.label, "muted"), row, 0)
            grid.addWidget(value, row, 1)
        return block

    def _write(self, fact: Fact) -> None:
        value = self._values[fact.key]
        value.setText(fact.value)
        value.set_role("" if fact.is_known else "muted")
        value.setToolTip(plain_tip(f"{fact.value}\n{fact.reason}".strip()))
        value.setAccessibleName(f"{fact.label}: {fact.value}")
        value.setAccessibleDescription(fact.reason)


def _shape(groups: Sequence[FactGroup]) -> list[tuple[str, list[tuple[str, str]]]]:
    return [(group.title, [(fact.key, fact.label) for fact in group.facts]) for group in groups]
