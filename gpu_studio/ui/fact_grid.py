"""Facts in columns: label and value, as many columns as there is room for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from gpu_studio.ui.elided_text import ElidedText
from gpu_studio.ui.parts import Text, section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent

    from gpu_studio.core.facts import Fact, FactGroup

_COLUMN_WIDTH = 310
_LABEL_WIDTH = 132
_COLUMN_GAP = 28
_MOST_COLUMNS = 4


class FactGrid(QWidget):
    """Shows groups of facts. Rows keep their place while their values change.

    Args:
        name: the object name; a value's is ``name.KEY``.
    """

    def __init__(self, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName("Everything known of this device")
        self._groups: tuple[FactGroup, ...] = ()
        self._values: dict[str, ElidedText] = {}
        self._blocks: list[QWidget] = []
        self._heights: list[int] = []
        self._columns: list[QVBoxLayout] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(_COLUMN_GAP)

    @property
    def groups(self) -> tuple[FactGroup, ...]:
        """What is shown."""
        return self._groups

    def show_groups(self, groups: Sequence[FactGroup]) -> None:
        """Show these facts."""
        if _shape(groups) != _shape(self._groups):
            self._build(groups)
        before = {fact.key: fact for group in self._groups for fact in group.facts}
        self._groups = tuple(groups)
        for group in groups:
            for fact in group.facts:
                if before.get(fact.key) != fact or not self._values[fact.key].text():
                    self._write(fact)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Take as many columns as there is room for."""
        super().resizeEvent(event)
        self._arrange()

    def _write(self, fact: Fact) -> None:
        value = self._values[fact.key]
        value.setText(fact.value)
        value.set_role("" if fact.is_known else "muted")
        value.setToolTip(f"{fact.value}\n{fact.reason}".strip())
        value.setAccessibleName(f"{fact.label}: {fact.value}")
        value.setAccessibleDescription(fact.reason)

    def _build(self, groups: Sequence[FactGroup]) -> None:
        for block in self._blocks:
            block.hide()
            block.deleteLater()
        self._values, self._blocks, self._heights = {}, [], []
        for group in groups:
            block = QWidget(self)
            grid = QGridLayout(block)
            grid.setContentsMargins(0, 0, 0, 10)
            grid.setHorizontalSpacing(10)
            grid.setVerticalSpacing(7)
            grid.setColumnMinimumWidth(0, _LABEL_WIDTH)
            grid.setColumnStretch(1, 1)
            grid.addWidget(section(group.title), 0, 0, 1, 2)
            for row, fact in enumerate(group.facts, start=1):
                value = ElidedText(name=f"{self.objectName()}.{fact.key}")
                value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
                grid.addWidget(Text(fact.label, "muted"), row, 0)
                grid.addWidget(value, row, 1)
                self._values[fact.key] = value
            self._blocks.append(block)
            self._heights.append(len(group.facts) + 2)
        self._drop_columns()
        self._arrange()

    def _drop_columns(self) -> None:
        for column in self._columns:
            for block in self._blocks:
                column.removeWidget(block)
            self._row.removeItem(column)
            column.deleteLater()
        self._columns = []

    def _arrange(self) -> None:
        count = (self.width() + _COLUMN_GAP) // (_COLUMN_WIDTH + _COLUMN_GAP)
        count = max(1, min(count, _MOST_COLUMNS, len(self._blocks)))
        if count == len(self._columns) or not self._blocks:
            return
        self._drop_columns()
        filled = [0] * count
        for _ in range(count):
            column = QVBoxLayout()
            column.setSpacing(4)
            self._row.addLayout(column, 1)
            self._columns.append(column)
        for block, height in zip(self._blocks, self._heights, strict=True):
            shortest = filled.index(min(filled))
            self._columns[shortest].addWidget(block)
            filled[shortest] += height
            block.show()
        for column in self._columns:
            column.addStretch(1)


def _shape(groups: Sequence[FactGroup]) -> list[tuple[str, list[tuple[str, str]]]]:
    return [(group.title, [(fact.key, fact.label) for fact in group.facts]) for group in groups]
