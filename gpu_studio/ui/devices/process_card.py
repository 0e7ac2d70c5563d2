"""The processes on a card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSortFilterProxyModel, Qt
from PySide6.QtWidgets import QHBoxLayout, QHeaderView, QLineEdit, QMessageBox

from gpu_studio.model.devices.process_end import end_process, question
from gpu_studio.model.devices.process_table import MEMORY, PROGRAM, SORT_ROLE
from gpu_studio.ui.parts import Card, Text, button, height_of_rows, letters, section, table

if TYPE_CHECKING:
    from PySide6.QtCore import QObject
    from PySide6.QtGui import QShowEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.devices.devices import GpuProcess
    from gpu_studio.model.devices.process_table import ProcessTable
    from gpu_studio.model.settings import Settings

_COLUMN_LETTERS = 9
_FILTER_LETTERS = 27


class SortedProcesses(QSortFilterProxyModel):
    """Sorts by any column and marks its heading; the style's arrow would hide the text."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setSortRole(SORT_ROLE)
        self.setFilterKeyColumn(-1)
        self.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        """Return a heading, with an arrow if the table is sorted by it."""
        heading = super().headerData(section, orientation, role)
        if role != Qt.ItemDataRole.DisplayRole or section != self.sortColumn():
            return heading
        return f"{heading} {'↑' if self.sortOrder() is Qt.SortOrder.AscendingOrder else '↓'}"


class ProcessCard(Card):
    """The table of processes, sorted and filtered, or a sentence if there are none.

    The table gets its columns when first shown: measuring them takes the most time.
    Offers to end a process if a setting allows it.
    """

    def __init__(
        self, processes: ProcessTable, settings: Settings, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, name="devices.processes.card")
        self._processes, self._settings = processes, settings
        self._sorted = SortedProcesses(self)
        self._view = table(
            self._sorted, name="devices.processes", accessible_name="Processes on this card"
        )
        self._filter = QLineEdit()
        self._filter.setObjectName("devices.processes.filter")
        self._filter.setAccessibleName("Filter processes by text")
        self._filter.setPlaceholderText("Filter")
        self._filter.setClearButtonEnabled(True)
        self._filter.setFixedWidth(letters(self._filter, _FILTER_LETTERS))
        self._filter.textChanged.connect(self._sorted.setFilterFixedString)
        self._end = button(
            "End process…",
            self._end_selected,
            name="devices.processes.end",
            tip="End the selected process, after asking you",
        )
        self._note = Text("", "muted", name="devices.processes.note", wraps=True)
        self._outcome = Text("", "muted", name="devices.processes.outcome", wraps=True)
        head = QHBoxLayout()
        self.column.addLayout(head)
        head.addWidget(section("Processes"), 1)
        head.addWidget(self._end)
        head.addWidget(self._filter)
        for part in (self._view, self._note, self._outcome):
            self.column.addWidget(part)
        self._outcome.hide()
        for rows in (processes, self._sorted):
            for signal in (rows.rowsInserted, rows.rowsRemoved, rows.dataChanged):
                signal.connect(self._fit)
        processes.note_changed.connect(self._fit)
        self._filter.textChanged.connect(self._fit)
        settings.choices_changed.connect(self._fit)
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
            header.setMinimumSectionSize(letters(self, _COLUMN_LETTERS))
            header.setSectionResizeMode(PROGRAM, QHeaderView.ResizeMode.Stretch)
            self._view.selectionModel().selectionChanged.connect(self._fit)
            self._fit()

    def _fit(self) -> None:
        """Fit the height to the rows, for the page scrolls; say how many are hidden."""
        count = self._processes.rowCount()
        shown = self._sorted.rowCount() if self._sorted.sourceModel() is not None else count
        note = self._processes.note
        if shown < count:
            note = f"{count - shown} of {count} do not match “{self._filter.text()}”. {note}"
        self._note.setText(note.strip())
        self._note.setVisible(bool(note))
        self._view.setVisible(shown > 0)
        self._filter.setVisible(count > 0)
        self._end.setVisible(count > 0 and self._settings.choices.may_end_processes)
        self._end.setEnabled(self._selected() is not None)
        self._view.setFixedHeight(height_of_rows(self._view, shown))

    def _selected(self) -> GpuProcess | None:
        chosen = self._view.selectionModel().selectedRows() if self._view.selectionModel() else []
        if not chosen:
            return None
        return self._processes.processes[self._sorted.mapToSource(chosen[0]).row()]

    def _end_selected(self) -> None:
        process = self._selected()
        if process is None:
            return
        box = QMessageBox(self)
        box.setObjectName("devices.processes.question")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setText(question(process))
        end = box.addButton("End process", QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        box.exec()
        if box.clickedButton() is end:
            self._outcome.setText(end_process(process, self._processes.own_pids))
            self._outcome.show()
