"""The processes on a card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSortFilterProxyModel, Qt
from PySide6.QtWidgets import QHeaderView

from gpu_studio.model.process_table import MEMORY, PROGRAM, SORT_ROLE
from gpu_studio.ui.parts import Card, Text, section, table

if TYPE_CHECKING:
    from PySide6.QtCore import QObject
    from PySide6.QtGui import QShowEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.process_table import ProcessTable

_MOST_ROWS = 8
_ROW_HEIGHT = 30
_HEAD_HEIGHT = 34


class SortedProcesses(QSortFilterProxyModel):
    """Sorts by any column, and says in the heading by which; the style's arrow hides the text."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setSortRole(SORT_ROLE)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a heading, with an arrow where the table is sorted by it."""
        heading = super().headerData(section, orientation, role)
        if role != Qt.ItemDataRole.DisplayRole or section != self.sortColumn():
            return heading
        return f"{heading} {'↑' if self.sortOrder() is Qt.SortOrder.AscendingOrder else '↓'}"


class ProcessCard(Card):
    """The table of processes, or the sentence that there is none.

    The table gets its columns when it is first shown: measuring them takes longer than all else.
    """

    def __init__(self, processes: ProcessTable, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="devices.processes.card")
        self._processes = processes
        self._sorted = SortedProcesses(self)
        self._view = table(
            self._sorted, name="devices.processes", accessible_name="Processes on this card"
        )
        self._note = Text("", "muted", name="devices.processes.note", wraps=True)
        self.column.addWidget(section("Processes"))
        self.column.addWidget(self._view)
        self.column.addWidget(self._note)
        for signal in (processes.rowsInserted, processes.rowsRemoved, processes.dataChanged):
            signal.connect(self._fit)
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        """Give the table its columns, once."""
        super().showEvent(event)
        if self._sorted.sourceModel() is None:
            self._sorted.setSourceModel(self._processes)
            self._view.setSortingEnabled(True)
            self._view.sortByColumn(MEMORY, Qt.SortOrder.DescendingOrder)
            header = self._view.horizontalHeader()
            header.setStretchLastSection(False)
            header.setSectionResizeMode(PROGRAM, QHeaderView.ResizeMode.Stretch)

    def _fit(self) -> None:
        """Be as high as the rows, up to a few."""
        rows = self._processes.rowCount()
        note = self._processes.note
        self._note.setText(note)
        self._note.setVisible(bool(note))
        self._view.setVisible(rows > 0)
        self._view.setFixedHeight(_HEAD_HEIGHT + _ROW_HEIGHT * min(rows, _MOST_ROWS))
