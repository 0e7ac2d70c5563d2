"""The GT 1030 experiment: a published table beside this PC."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.benchmark.reference import (
    experiment,
    experiment_rows,
    published_table,
)
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.units import format_duration, format_size
from gpu_studio.model.devices.device_board import label_of

if TYPE_CHECKING:
    from gpu_studio.core.benchmark.reference import ExperimentRow, PublishedTable
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.studio import Studio

BUDGET_S = 2.0
_NOT_RUN = "–"
HEAD = ("Size", "Iterations", "Post: Ryzen 7 5700G", "Post: GT 1030", "Here: CPU", "Here: GPU")
"""The columns of `PublishedExperiment.rows`."""


class PublishedExperiment(QObject):
    """A published table, and this PC's results for it.

    Signals:
        changed(): a run progressed, or the available runs changed.
        begun(): the runs have begun.
    """

    changed = Signal()
    begun = Signal()

    def __init__(self, studio: Studio, benchmark: Benchmark, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._studio, self._benchmark = studio, benchmark
        self._table: PublishedTable | None = None
        benchmark.plan_changed.connect(self.changed)
        benchmark.runs_cleared.connect(self.changed)
        studio.session.engine_described.connect(self.changed)
        studio.board.changed.connect(self.changed)

    @property
    def table(self) -> PublishedTable | None:
        """The table; None if its file is missing."""
        if self._table is None:
            try:
                self._table = published_table()
            except MissingResourceError:
                return None
        return self._table

    @property
    def can_run(self) -> bool:
        """Whether the engine is ready and idle."""
        described = self._studio.session.description is not None
        return self.table is not None and described and not self._benchmark.state.is_busy

    @property
    def source(self) -> str:
        """Who published what, and how."""
        table = self.table
        if table is None:
            return "The published table is missing from this installation."
        return f"{table.source}. {table.about} {table.method}"

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """A row for each published size: times of all its iterations, published and on this PC."""
        table = self.table
        if table is None:
            return []
        here = {row.published.size: row for row in experiment_rows(table, self._results())}
        rows = []
        for row in table.rows:
            ours = here.get(row.size)
            cells = [
                _here(ours, device) if ours and device in ours.iterations_s else _NOT_RUN
                for device in self._devices()
            ]
            cells += [_NOT_RUN] * (2 - len(cells))
            published = (format_duration(row.cpu_s), format_duration(row.card_s))
            rows.append((format_size(row.size), str(row.iterations), *published, *cells))
        return rows

    @property
    def scaling(self) -> str:
        """How each of this PC's times was obtained; empty before the experiment."""
        table = self.table
        if table is None:
            return ""
        rows = self._studio.board.rows
        return "; ".join(
            f"{label_of(device, rows)} at {format_size(row.published.size)}: {row.label(device)}"
            for row in experiment_rows(table, self._results())
            for device in self._devices()
            if device in row.iterations_s
        )

    def run(self) -> None:
        """Run the published work with a time budget each; scale the times to all iterations."""
        if self.can_run and self.table is not None:
            self.begun.emit()
            self._benchmark.start(experiment(self.table, self._devices(), BUDGET_S))

    def _results(self) -> list[RunFinished]:
        table = self.table
        return [
            result
            for result in self._benchmark.results
            if table
            and (result.workload, result.dtype) == (table.workload, table.dtype)
            and result.cache == "hot"
            and result.recording is None
        ]

    def _devices(self) -> list[str]:
        """Return the CPU and the first usable card, as in the published program."""
        here = self._studio.board.usable_here[:2]
        return [row.address for row in here if row.address is not None]


def _here(row: ExperimentRow, device: str) -> str:
    """Return the time of all iterations on this PC; "≈" marks a scaled time."""
    sign = "≈ " if row.is_scaled(device) else ""
    return f"{sign}{format_duration(row.iterations_s[device])}"
