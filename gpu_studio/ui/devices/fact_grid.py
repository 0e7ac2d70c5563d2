"""Facts with label and value, in as many columns as fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from gpu_studio.model.tool_tip import plain_tip
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

    Builds one group at a time, so that the window stays responsive.

    Args:
        name: the object name; a value is named ``name.KEY``.
    """

    def __init__(self, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName("Facts about this device")
        self._groups: tuple[FactGroup, ...] = ()
        self._values: dict[str, ElidedText] = {}
        self._blocks: list[QWidget] = []
        self._columns: list[QVBoxLayout] = []
        self._filled: list[int] = []
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(_COLUMN_GAP)
        self._turn = QTimer(self)
        self._turn.setSingleShot(True)
        self._turn.timeout.connect(self._build_next)

    @property
    def is_built(self) -> bool:
        """Whether all groups are built."""
        return len(self._blocks) == len(self._groups)

    def show_groups(self, groups: Sequence[FactGroup]) -> None:
        """Show these facts."""
        before, self._groups = self._groups, tuple(groups)
        if _shape(groups) != _shape(before):
            self._clear()
            self._build_next()
            return
        known = {fact.key: fact for group in before for fact in group.facts}
        for group in groups:
            for fact in group.facts:
                if fact.key in self._values and known[fact.key] != fact:
                    self._write(fact)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Use as many columns as fit."""
        super().resizeEvent(event)
        if self._blocks and self._fitting_columns() != len(self._columns):
            self._arrange()

    def _write(self, fact: Fact) -> None:
        value = self._values[fact.key]
        value.setText(fact.value)
        value.set_role("" if fact.is_known else "muted")
        value.setToolTip(plain_tip(f"{fact.value}\n{fact.reason}".strip()))
        value.setAccessibleName(f"{fact.label}: {fact.value}")
        value.setAccessibleDescription(fact.reason)

    def _clear(self) -> None:
        for block in self._blocks:
            block.hide()
            block.deleteLater()
        self._values, self._blocks = {}, []
        self._arrange()

    def _build_next(self) -> None:
        if self.is_built:
            return
        group = self._groups[len(self._blocks)]
        block = QWidget(self)
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
        self._blocks.append(block)
        self._place(block, group)
        self._turn.start(0)

    def _fitting_columns(self) -> int:
        fitting = (self.width() + _COLUMN_GAP) // (letters(self, _COLUMN_LETTERS) + _COLUMN_GAP)
        return max(1, min(fitting, _MOST_COLUMNS, len(self._groups)))

    def _arrange(self) -> None:
        """Rebuild the columns and place the blocks in them."""
        for column in self._columns:
            for block in self._blocks:
                column.removeWidget(block)
            self._row.removeItem(column)
            column.deleteLater()
        self._columns = []
        for _ in range(self._fitting_columns()):
            column = QVBoxLayout()
            column.setSpacing(4)
            # Filled after it was handed over: docs/pyside-layout-wrappers.md says why.
            self._row.addLayout(column, 1)
            column.addStretch(1)
            self._columns.append(column)
        self._filled = [0] * len(self._columns)
        for block, group in zip(self._blocks, self._groups, strict=False):
            self._place(block, group)

    def _place(self, block: QWidget, group: FactGroup) -> None:
        shortest = self._filled.index(min(self._filled))
        column = self._columns[shortest]
        column.insertWidget(column.count() - 1, block)
        self._filled[shortest] += len(group.facts) + 2
        block.show()


def _shape(groups: Sequence[FactGroup]) -> list[tuple[str, list[tuple[str, str]]]]:
    return [(group.title, [(fact.key, fact.label) for fact in group.facts]) for group in groups]
