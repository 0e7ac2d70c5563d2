"""A published table with its source, this PC's results, and buttons to run the same work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QTableView, QVBoxLayout

from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import (
    Card,
    Text,
    button,
    show_whole_rows,
    table,
)

if TYPE_CHECKING:
    from PySide6.QtGui import QShowEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.benchmark.published_experiment import PublishedExperiment
    from gpu_studio.ui.theme import Theme

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
