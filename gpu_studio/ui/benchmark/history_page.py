"""All kept runs and their actions, recordings and published results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QHeaderView, QLineEdit, QTabBar, QTableView, QVBoxLayout

from gpu_studio.core.benchmark.options import option_words
from gpu_studio.core.benchmark.run import interval_words
from gpu_studio.core.benchmark.trust import stamp_of
from gpu_studio.core.units import format_duration, format_size, shown_moment
from gpu_studio.model.kept_device import doubt_note
from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.benchmark.benchmark_plots import HistoryPart
from gpu_studio.ui.benchmark.recording_card import RecordingCard
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import (
    Card,
    Text,
    button,
    show_whole_rows,
    table,
)
from gpu_studio.ui.saving import ask_open_path, ask_save_path
from gpu_studio.ui.scroll_page import PageColumn, PageStack, keep_row_in_view

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent, QShowEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.benchmark.history import HistoryEntry
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.benchmark.benchmark_history import BenchmarkHistory
    from gpu_studio.model.benchmark.published_experiment import PublishedExperiment
    from gpu_studio.model.benchmark.recording import RecordingPlayer
    from gpu_studio.ui.theme import Theme

_HEAD = ("When", "Name", "Workload", "Size", "Median", "Precision", "Device", "Mode", "Trust")
# Hidden if every run leaves them empty.
_RARE_COLUMNS = (_HEAD.index("Name"), _HEAD.index("Mode"))
_WHEN_COLUMN = _HEAD.index("When")
# Hidden in this order in a narrow window if every run has the same value. The time of the selected
# run is below the table as well.
_SPARE_COLUMNS = (_HEAD.index("Precision"), _HEAD.index("Workload"), _WHEN_COLUMN)
_NO_NAME = "–"


class HistoryPage(PageColumn):
    """Earlier results of this PC and of others."""

    def __init__(
        self,
        history: BenchmarkHistory,
        experiment: PublishedExperiment,
        player: RecordingPlayer,
        benchmark: Benchmark,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("Result history", parent)
        self.setObjectName("benchmark.history")
        self._history, self._benchmark, self._theme = history, benchmark, theme
        self._deletes: str | None = None
        self._texts: list[tuple[str, ...]] = []
        self._widths: list[int] = []
        self._pages = QTabBar()
        self._pages.setObjectName("benchmark.history.pages")
        self._pages.setAccessibleName("History pages")
        self._pages.setDrawBase(False)
        self._pages.setExpanding(False)
        self._stack = PageStack()
        self.recording = RecordingCard(player, history, theme)
        self.recording.kept.connect(self._show_runs)
        published = PublishedCard(experiment, theme)
        # One at a time: a list of kept runs, as long as it gets, pushes no button away.
        pages = (self._make_runs(), self.recording, published)
        for part, page in zip(HistoryPart, pages, strict=True):
            self._pages.addTab(part.value)
            self._stack.add(page)
        self._pages.currentChanged.connect(self._stack.show_page)
        self.column.addWidget(self._pages)
        self.column.addWidget(self._stack, 1)
        history.contents_changed.connect(self._show_contents)
        history.ghost_changed.connect(self._ghost_changed)
        history.notified.connect(self._outcome.show_notice)
        self._show_contents()

    def showEvent(self, event: QShowEvent) -> None:
        """Read the folder when shown: another window may have written there."""
        super().showEvent(event)
        self._history.refresh()

    def go_to(self, part: HistoryPart) -> None:
        """Bring a part to the front."""
        self._pages.setCurrentIndex(list(HistoryPart).index(part))

    def _show_runs(self) -> None:
        self.go_to(HistoryPart.RUNS)

    @property
    def selected(self) -> HistoryEntry | None:
        """The selected kept run."""
        rows = self._table.selectionModel().selectedRows()
        entries = self._history.entries
        return entries[rows[0].row()] if rows and rows[0].row() < len(entries) else None

    # ── its cards ────────────────────────────────────────────────────────────────────────────

    def _make_runs(self) -> Card:
        card = Card()
        self._trouble = Text("", "amber", name="benchmark.history.trouble", wraps=True)
        self._save = button(
            "Save again", self._history.save_again, name="benchmark.history.save",
            tip="Try again to save the runs that are only in memory",
        )  # fmt: skip
        self._rows = TextRows(_HEAD, (3, 4), self)
        self._table = table(
            self._rows, name="benchmark.history.table", accessible_name="Kept runs, newest first"
        )
        # The header would ask for each cell at each change of the page, through Python.
        header = self._table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        self._table.horizontalScrollBar().rangeChanged.connect(self._fit_rows)
        self._table.activated.connect(self._race)
        self._table.selectionModel().selectionChanged.connect(self._selection_changed)
        self._empty = Text(
            "No runs yet. Every finished run is kept here.", "muted",
            name="benchmark.history.empty", wraps=True,
        )  # fmt: skip
        self._more = button(
            "", self._history.show_more, name="benchmark.history.more",
            tip="Show older runs as well",
        )  # fmt: skip
        self._details = Text("", "muted", name="benchmark.history.details", wraps=True)
        self._outcome = Text("", "muted", name="benchmark.history.outcome", wraps=True)
        self._refused = Text("", "muted", name="benchmark.history.refused", wraps=True)
        self._make_buttons(card)
        card.column.addWidget(self._trouble)
        card.column.addWidget(self._save, 0, Qt.AlignmentFlag.AlignLeft)
        card.column.addWidget(self._empty)
        card.column.addWidget(self._table)
        card.column.addWidget(self._details)
        self._outcome.hide()
        card.column.addWidget(self._outcome)
        card.column.addWidget(self._refused)
        card.column.addStretch(1)
        return card

    def _make_buttons(self, card: Card) -> None:
        self._ghost = button(
            "Compare", self._race, name="benchmark.history.ghost",
            tip="Show its samples in the live plot beside the next run",
        )  # fmt: skip
        self._end = button(
            "Stop comparing", self._history.end_race, name="benchmark.history.ghost.end",
            tip="Remove it from the live plot",
        )  # fmt: skip
        self._name = QLineEdit()
        self._name.setObjectName("benchmark.history.name")
        self._name.setAccessibleName("Name of the selected run")
        self._name.setPlaceholderText("Name (Enter to save)")
        self._name.returnPressed.connect(self._rename)
        self._delete = button(
            "Delete", self._delete_selected, name="benchmark.history.delete",
            tip="Delete the selected run's file, after asking again",
        )  # fmt: skip
        self._delete.setIcon(icon("trash", self._theme))
        import_ = button(
            "Import…", self._import, name="benchmark.history.import",
            tip="Add a result file from another PC; nothing in it is executed",
        )  # fmt: skip
        import_.setIcon(icon("file", self._theme))
        self._export = button(
            "Export…", self._export_selected, name="benchmark.history.export",
            tip="Save all samples to a file that another PC can import",
        )  # fmt: skip
        self._export.setIcon(icon("export", self._theme))
        card.column.addWidget(FlowRow(self._ghost, self._end, self._name, fills=self._name))
        card.column.addWidget(FlowRow(self._delete, self._export, import_, self._more))
        delete = QShortcut(QKeySequence(QKeySequence.StandardKey.Delete), self._table)
        delete.setContext(Qt.ShortcutContext.WidgetShortcut)
        delete.activated.connect(self._delete_selected)

    # ── its contents ─────────────────────────────────────────────────────────────────────────

    def _show_contents(self) -> None:
        entries = self._history.entries
        key = self.selected.key if self.selected else None
        texts = [self._cells(entry) for entry in entries]
        if texts != self._texts:
            self._texts = texts
            self._rows.set_rows(texts)
            self._measure_columns()
        self._table.setVisible(bool(entries))
        self._fit_columns()
        self._fit_rows()
        unread_count = self._history.unread_count
        self._more.setText(f"Show more ({unread_count:,} older)")
        self._more.setAccessibleName(self._more.text())
        self._more.setVisible(unread_count > 0)
        self._empty.setVisible(not entries)
        self._trouble.setText(self._history.trouble)
        self._trouble.setVisible(bool(self._history.trouble))
        self._save.setVisible(bool(self._history.trouble))
        refused = self._history.refused
        self._refused.setText("\n".join(refused))
        self._refused.setVisible(bool(refused))
        for number, entry in enumerate(entries):
            if entry.key == key:
                self._table.selectRow(number)
        self._selection_changed()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Fit the columns into the new width."""
        super().resizeEvent(event)
        self._fit_columns()

    def _fit_rows(self) -> None:
        """Make the table as high as its rows: the tab scrolls."""
        show_whole_rows(self._table)

    def _measure_columns(self) -> None:
        """Make each column as wide as its longest text; only these cells are asked for."""
        advance = self._table.fontMetrics().horizontalAdvance
        header = self._table.horizontalHeader()
        self._widths = []
        for column, texts in enumerate(zip(*self._texts, strict=True)):
            advances = list(map(advance, texts))
            longest = self._rows.index(advances.index(max(advances)), column)
            content = self._table.sizeHintForIndex(longest).width() + 1
            self._widths.append(max(content, header.sectionSizeHint(column)))
            self._table.setColumnWidth(column, self._widths[-1])

    def _fit_columns(self) -> None:
        """Show the columns in which runs differ, and the others if there is space."""
        if not self._texts:
            return
        values = [set(column) for column in zip(*self._texts, strict=True)]
        hidden = {column for column in _RARE_COLUMNS if values[column] <= {"", _NO_NAME}}
        needed = sum(width for column, width in enumerate(self._widths) if column not in hidden)
        for column in _SPARE_COLUMNS:
            is_shown_elsewhere = column == _WHEN_COLUMN or len(values[column]) == 1
            if needed > self._table.viewport().width() and is_shown_elsewhere:
                needed -= self._widths[column]
                hidden.add(column)
        for column in range(len(_HEAD)):
            if self._table.isColumnHidden(column) != (column in hidden):
                self._table.setColumnHidden(column, column in hidden)

    def _cells(self, entry: HistoryEntry) -> tuple[str, ...]:
        result = entry.header.result
        mode = option_words(result.options)
        mode += ["cold cache"] * (result.cache == "cold") + ["with copies"] * result.transfers
        mode += ["sustained"] * result.sustained
        return (
            _when(entry),
            entry.header.name or _NO_NAME,
            self._benchmark.title_of(result.workload),
            format_size(result.size, result.size_text),
            format_duration(result.median_s),
            result.dtype,
            self._history.device_name(entry),
            ", ".join(mode),
            stamp_of(result).sign,
        )

    def _selection_changed(self) -> None:
        entry = self.selected
        self._deletes = None
        self._delete.setText("Delete")
        for part in (self._ghost, self._name, self._delete, self._export):
            part.setEnabled(entry is not None)
        if not self._name.hasFocus():
            self._name.setText(entry.header.name if entry else "")
        self._details.setVisible(entry is not None)
        if entry is not None:
            if self._table.hasFocus():
                keep_row_in_view(self._table, self._history.entries.index(entry))
            found = self._history.comparability(entry, self._latest())
            self._details.setText("\n".join(filter(None, [_sentence(entry), found.sentence])))
        self._ghost_changed()

    def _ghost_changed(self) -> None:
        self._end.setEnabled(self._history.ghost is not None)

    def _latest(self) -> RunFinished | None:
        results = self._benchmark.results
        return results[-1] if results else None

    # ── its actions ──────────────────────────────────────────────────────────────────────────

    def _race(self) -> None:
        if self.selected is not None:
            self._history.race(self.selected, self._latest())

    def _rename(self) -> None:
        if self.selected is not None:
            self._table.setFocus()
            self._history.rename(self.selected.key, self._name.text())

    def _delete_selected(self) -> None:
        """Ask again in the button itself; selecting another run cancels the question."""
        entry = self.selected
        if entry is None:
            return
        if self._deletes == entry.key:
            self._history.delete(entry.key)
            self._table.clearSelection()
        else:
            self._deletes = entry.key
            self._delete.setText("Delete forever?")

    def _export_selected(self) -> None:
        if self.selected is None:
            return
        path = ask_save_path(
            self.window(), "Export a result", "result.json", "GPU Studio result (*.json)"
        )
        if path:
            self._history.export_file(self.selected.key, Path(path))

    def _import(self) -> None:
        path = ask_open_path(
            self.window(), "Import a result", "GPU Studio result (*.json);;All files (*)"
        )
        if path:
            self._history.import_file(Path(path))


def _when(entry: HistoryEntry) -> str:
    return shown_moment(entry.header.kept_at)


def _sentence(entry: HistoryEntry) -> str:
    result = entry.header.result
    interval = interval_words(result.ci95_s, result.samples, len(result.rounds_s))
    counted = f", {result.samples} samples" if result.samples > 1 else ""
    torch = (
        f", PyTorch {result.conditions.torch_version}" if result.conditions.torch_version else ""
    )
    recorded = f" Recorded: {result.recording}." if result.recording else ""
    doubt = doubt_note(entry.header)
    return (
        f"{_when(entry)}, {result.device_name}: median {format_duration(result.median_s)} per "
        f"call{counted}, {interval}{torch}.{recorded} {doubt}".rstrip()
    )


_BUDGET_S = 2.0
_NOTE = (
    "The experiment times each size for 2\u202fs on this PC. “≈” marks a time scaled to the "
    "published number of iterations."
)


class PublishedCard(Card):
    """A table, not a curve: only the “Here” columns were measured on this PC."""

    def __init__(
        self, experiment: PublishedExperiment, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, name="benchmark.published")
        self._experiment = experiment
        self._rows: TextRows | None = None
        self._table: QTableView | None = None
        self._source = Text("", "muted", name="benchmark.published.source", wraps=True)
        self._place = QVBoxLayout()
        self._scaling = Text("", "muted", name="benchmark.published.scaling", wraps=True)
        self._full_text = Text("", "muted", name="benchmark.published.full.text", wraps=True)
        self._run = button(
            "Run the GT 1030 experiment", self._run_budgeted, name="benchmark.preset.gt_1030",
            tip="Run the published work on this PC, in about half a minute",
        )  # fmt: skip
        self._run.setIcon(icon("play", theme))
        self._full = button(
            "Run the full version", experiment.run_in_full, name="benchmark.preset.gt_1030.full",
            tip="Make as many calls as the published program",
        )  # fmt: skip
        self.column.addWidget(Text("Published: the GT 1030 experiment", "title"))
        self.column.addWidget(FlowRow(self._run, self._full))
        self.column.addWidget(self._source)
        self.column.addLayout(self._place)
        self.column.addWidget(self._scaling)
        self.column.addWidget(Text(_NOTE, "muted", wraps=True))
        self.column.addWidget(self._full_text)
        self.column.addStretch(1)
        experiment.changed.connect(self._show)
        self._show()

    def showEvent(self, event: QShowEvent) -> None:
        """Show changes that came while hidden."""
        super().showEvent(event)
        self._show()

    def _run_budgeted(self) -> None:
        self._experiment.run(_BUDGET_S)

    def _show(self) -> None:
        """Update everything if visible; otherwise `showEvent` does it."""
        if not self.isVisible():
            return
        published = self._experiment.table
        if published is None:
            self._source.setText("The published table is missing from this installation.")
            self._run.setEnabled(False)
            self._full.setEnabled(False)
            return
        self._source.setText(f"{published.source}. {published.about} {published.method}")
        self._show_table(self._experiment.head, self._experiment.rows)
        self._run.setEnabled(self._experiment.can_run)
        self._full.setEnabled(self._experiment.can_run_in_full)
        self._scaling.setText(self._experiment.scaling)
        self._scaling.setVisible(bool(self._experiment.scaling))
        self._full_text.setText(
            self._experiment.full_sentence
            or "Run the experiment first: it shows how long the full version takes."
        )

    def _show_table(self, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        if self._rows is None or self._rows.columnCount() != len(head):
            if self._table is not None:
                self._table.hide()
                self._table.setObjectName("")
                self._table.deleteLater()
            self._rows = TextRows(head, tuple(range(len(head))), self)
            self._table = table(
                self._rows, name="benchmark.published.table",
                accessible_name="Published times and this PC's times",
            )  # fmt: skip
            self._table.horizontalHeader().setStretchLastSection(False)
            self._place.addWidget(self._table)
        self._rows.set_head(head)
        self._rows.set_rows(rows)
        assert self._table is not None
        show_whole_rows(self._table)
