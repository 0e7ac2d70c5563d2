"""What stands below the answers about a device: its sensors, programs, facts and processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSortFilterProxyModel, Qt, Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QMessageBox,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.devices.card_programs import memory_by_program
from gpu_studio.core.devices.facts import identity_line
from gpu_studio.core.units import format_bytes
from gpu_studio.model.devices.process_table import MEMORY, PROGRAM, SORT_ROLE, end_process, question
from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.devices.copy_dialog import CopyDialog
from gpu_studio.ui.devices.sensor_grid import SensorGrid
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import (
    GAP,
    Card,
    Text,
    button,
    height_of_rows,
    letters,
    section,
    show_label,
    table,
)
from gpu_studio.ui.result_bars import ResultBar, ResultBars
from gpu_studio.ui.saving import ask_save_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtCore import QObject
    from PySide6.QtGui import QResizeEvent, QShowEvent
    from PySide6.QtWidgets import QPushButton

    from gpu_studio.core.devices.devices import Device, GpuProcess
    from gpu_studio.core.devices.facts import Fact, FactGroup
    from gpu_studio.model.devices.devices import DevicesModel
    from gpu_studio.model.devices.process_table import ProcessTable
    from gpu_studio.model.settings import Settings
    from gpu_studio.ui.theme import Theme

_COLUMN_LETTERS = 42
_LABEL_LETTERS = 18
_COLUMN_GAP = 28
_MOST_COLUMNS = 4


class FactGrid(QWidget):
    """Shows groups of facts. Rows stay in place when their values change.

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
        if self._blocks and self._fitting_columns() != len(self._columns):
            self._arrange()

    def _write(self, fact: Fact) -> None:
        value = self._values[fact.key]
        value.setText(fact.value)
        value.set_role("" if fact.is_known else "muted")
        value.setToolTip(plain_tip(f"{fact.value}\n{fact.reason}".strip()))
        value.setAccessibleName(f"{fact.label}: {fact.value}")
        value.setAccessibleDescription(fact.reason)

    def _build(self) -> None:
        for block in self._blocks:
            block.hide()
            block.deleteLater()
        self._values, self._blocks = {}, []
        self._arrange()
        for group in self._groups:
            self._blocks.append(self._block(group))
            self._place(self._blocks[-1], group)

    def _block(self, group: FactGroup) -> QWidget:
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
        return block

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
        for block, group in zip(self._blocks, self._groups, strict=bool(self._blocks)):
            self._place(block, group)

    def _place(self, block: QWidget, group: FactGroup) -> None:
        shortest = self._filled.index(min(self._filled))
        column = self._columns[shortest]
        column.insertWidget(column.count() - 1, block)
        self._filled[shortest] += len(group.facts) + 2
        block.show()


def _shape(groups: Sequence[FactGroup]) -> list[tuple[str, list[tuple[str, str]]]]:
    return [(group.title, [(fact.key, fact.label) for fact in group.facts]) for group in groups]


class DeviceDetails(QWidget):
    """Shows the selected device of a model; the facts and processes are folded at first.

    Args:
        all_sensors: the button that shows them all.
        all_facts: the button that shows the facts and processes.

    Signals:
        readings_wanted(): another time span or other sensors are shown now.

    Attributes:
        tools: what stands beside the two buttons.
    """

    readings_wanted = Signal()

    def __init__(
        self,
        model: DevicesModel,
        settings: Settings,
        theme: Theme,
        all_sensors: QPushButton,
        all_facts: QPushButton,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._model = model
        self._log = button("", self._log_or_stop, name="devices.sensors.log", tip=_LOG_TIP)
        self._log_notice = Text("", "muted", name="devices.sensors.log.said", wraps=True)
        self._sensors = SensorGrid(theme, all_sensors, self._log)
        model.log.state_changed.connect(self._show_log)
        self._effect = Text("", "muted", name="devices.effect", wraps=True)
        self._theme = theme
        self._programs = ProgramMemory(theme)
        self._fold = all_facts
        self._fold.toggled.connect(self._show_facts)
        self._copy = button("Copy…", self._copy_report, name="devices.copy", tip=_COPY_TIP)
        self._copy.setIcon(icon("copy", theme))
        self.tools = (self._copy, *self._sensors.tools)
        self._facts = FactGrid(name="devices.details")
        self._facts_card = Card()
        self._facts_card.column.addWidget(self._facts)
        self._processes = ProcessCard(model.processes, settings)
        self._lay_out()
        self._sensors.readings_wanted.connect(self.readings_wanted)
        model.runs.effect_changed.connect(self._effect.setText)
        model.runs.effect_changed.connect(self._effect.show)
        self._copy.setEnabled(model.device is not None)
        self._show_log()

    def show_device(self) -> None:
        """Show what is known about the selected device."""
        device = self._model.device
        self._copy.setEnabled(device is not None)
        if device is None:
            return
        is_card = not device.is_cpu
        self._sensors.show_device(device.name, identity_line(device) if is_card else "")
        self._sensors.setVisible(self._model.is_readable)
        self._programs.show_programs(
            self._model.processes.processes if is_card else (),
            self._model.memory_used,
            self._role(device),
        )
        self._show_facts()

    def show_readings(self) -> None:
        """Show the newest readings of the selected device."""
        device = self._model.device
        if device is None:
            return
        span_s = self._sensors.span_s
        spans = self._model.spans(span_s)
        newest_s = max((float(s.times_s[-1]) for s in spans if s.has_values), default=0.0)
        marks = self._model.marks_since(newest_s - span_s)
        self._sensors.show_spans(spans, self._role(device), marks, self._model.spans_beside(span_s))

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        column.addWidget(self._sensors, 1)  # its plots fill the page
        for part in (
            self._facts_card,
            self._processes,
            self._programs,
            self._effect,
            self._log_notice,
        ):
            column.addWidget(part)
        self._effect.hide()
        self._facts_card.hide()
        self._processes.hide()

    def _show_facts(self) -> None:
        """Show the facts and the processes while they are unfolded."""
        groups, device = self._model.groups, self._model.device
        is_open = self._fold.isChecked()
        count = sum(len(group.facts) for group in groups)
        show_label(self._fold, f"{'Hide' if is_open else 'All'} facts ({count})")
        self._facts_card.setVisible(is_open)
        is_card = device is not None and not device.is_cpu and self._model.is_readable
        # Without their memory, the programs have no bars above.
        self._processes.setVisible(is_card and (is_open or self._programs.isHidden()))
        if is_open:
            self._facts.show_groups(groups)

    def _copy_report(self) -> None:
        report = self._model.report
        CopyDialog(lambda form, masked: report(form, masked=masked), self.window()).exec()

    def _log_or_stop(self) -> None:
        log = self._model.log
        if log.is_running:
            log.stop()
            return
        chosen = ask_save_path(
            self._log, "Log the sensors to a file", "gpu-studio-sensors.csv", "CSV (*.csv)"
        )
        if chosen:
            log.start(Path(chosen))

    def _show_log(self) -> None:
        log = self._model.log
        self._log.setText("Stop the log" if log.is_running else "Log to file…")
        self._log.setAccessibleName(self._log.text())
        self._log_notice.show_notice(log.notice)

    def _role(self, device: Device) -> str:
        row = self._model.row
        shown = row.number or row.identity if row is not None else device.identity
        return self._theme.device_role(shown)


_COPY_TIP = "Copy everything known about this PC, as text, for a forum or as JSON"
_LOG_TIP = "Write every reading of all devices to a CSV file until you stop the log"


_MOST_BARS = 3


class ProgramMemory(Card):
    """The programs with the most GPU memory; hidden if the driver reports no memory."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(name="devices.programs.card")
        self._total = Text("", "muted", name="devices.programs.total")
        self._bars = ResultBars(theme, name="devices.programs", is_dense=True)
        self._bars.setAccessibleName("GPU memory by program")
        head = QHBoxLayout()
        head.setSpacing(GAP)
        self.column.addLayout(head)
        head.addWidget(Text("Programs using VRAM", "value"), 1)
        head.addWidget(self._total)
        self.column.addWidget(self._bars)
        self.hide()

    def show_programs(self, processes: Sequence[GpuProcess], total: str, role: str) -> None:
        """Show the memory by program.

        Args:
            processes: all processes on the card.
            total: the memory used on the whole card, in words.
            role: the card's color.
        """
        shown = memory_by_program(processes, _MOST_BARS)
        self._bars.show_bars(
            [ResultBar(name, role, float(size), format_bytes(size)) for name, size in shown]
        )
        self._total.setText(total)
        self.setVisible(bool(shown))


_PROCESS_COLUMN_LETTERS = 9
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
            header.setMinimumSectionSize(letters(self, _PROCESS_COLUMN_LETTERS))
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
        may_end = self._settings.choices.may_end_processes and self._processes.is_here
        self._end.setVisible(count > 0 and may_end)
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
