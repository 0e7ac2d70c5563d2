"""The page on which memory is broken: choices on the left, what comes of them on the right."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QWidget

from gpu_studio.core.memory.memory_presets import PRESETS
from gpu_studio.model.memory.oom_experiment import EXPANDABLE
from gpu_studio.ui.memory.lab_results import LabResults
from gpu_studio.ui.memory.oom_panel import OomPanel
from gpu_studio.ui.parts import GAP, Card, Text, button, section
from gpu_studio.ui.plots.live_plot import Curve, LivePlot
from gpu_studio.ui.scroll_page import ScrollPage

if TYPE_CHECKING:
    from gpu_studio.core.memory.oom_words import Outcome
    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_PANEL_WIDTHS = (288, 336)
_PLOT_HEIGHT = 190
_SPAN_S = 30.0
_LEAST_TOP_BYTES = 4 << 20
_INVITATION = (
    "Choose one and press Run. It runs in an engine of its own, within a budget, so nothing else "
    "of this program can break. The real error, its numbers and what they mean come here."
)


class LabPage(QWidget):
    """Runs experiments and lays their results beside each other.

    Signals:
        segments_wanted(): somebody wants to see the segments as they were.
    """

    segments_wanted = Signal()

    def __init__(
        self, studio: Studio, model: MemoryModel, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("memory.lab")
        self._model, self._experiment = model, model.experiment
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(GAP)
        panel = OomPanel(studio, model, self)
        panel.setMinimumWidth(_PANEL_WIDTHS[0])
        panel.setMaximumWidth(_PANEL_WIDTHS[1])
        line.addWidget(panel, 2)
        page = ScrollPage("What came of the experiment")
        line.addWidget(page, 3)
        self._invitation = self._make_invitation()
        page.column.addWidget(self._invitation)
        self._results = LabResults(theme, model.tanks.reached)
        page.column.addWidget(self._results)
        self._actions = QWidget()
        self._actions.setLayout(self._make_actions())
        page.column.addWidget(self._actions)
        self._plot_card = self._make_plot(theme)
        self._plot_card.hide()
        page.column.addWidget(self._plot_card)
        page.column.addWidget(self._results.numbers)
        page.column.addStretch(1)
        self._experiment.outcome_changed.connect(self._show_outcome)
        self._experiment.results_changed.connect(self._show_results)
        self._experiment.state_changed.connect(self._show_actions)
        model.marks_changed.connect(self.follow)
        self._show_actions()

    def follow(self) -> None:
        """Bring the curve up to now."""
        if not self.isVisible():
            return
        now_s = max(self._model.now_s, _SPAN_S)
        start_s = now_s - _SPAN_S
        history = self._model.history
        highest = max(
            (max(p.lower_bytes, p.upper_bytes or 0) for p in history.since(start_s)),
            default=_LEAST_TOP_BYTES,
        )
        self._plot.set_x_range(start_s, now_s)
        self._plot.set_y_range(0, max(highest, _LEAST_TOP_BYTES) * 1.2)
        failures = [mark for mark in history.marks if mark.is_failure and mark.at_s >= start_s]
        self._plot.set_markers([(mark.at_s, mark.label, "failure") for mark in failures])

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _make_invitation(self) -> Card:
        card = Card(name="memory.oom.invitation")
        card.column.addWidget(Text("Break memory on purpose", "title"))
        card.column.addWidget(Text(_INVITATION, "muted", wraps=True))
        for preset in PRESETS:
            card.column.addSpacing(6)
            card.column.addWidget(Text(preset.title, "value"))
            card.column.addWidget(Text(preset.sentence, "muted", wraps=True))
        return card

    def _make_actions(self) -> QHBoxLayout:
        self._compare = button(
            "Try with expandable_segments", self._experiment.compare, name="memory.oom.compare",
            tip=(
                "The same in a fresh engine with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, "
                "laid beside it. Linux only: on Windows PyTorch ignores it"
            ),
        )  # fmt: skip
        self._segments = button(
            "See the segments", self._want_segments, name="memory.oom.segments",
            tip="The segment map as it was when it broke",
        )  # fmt: skip
        self._save = button(
            "Save snapshot …", self._ask_place, name="memory.snapshot.save",
            tip="For the segment map here, and for pytorch.org/memory_viz",
        )  # fmt: skip
        self._saved = Text(role="muted", name="memory.snapshot.saved", wraps=True)
        line = QHBoxLayout()
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(8)
        for widget in (self._compare, self._segments, self._save):
            line.addWidget(widget)
        line.addWidget(self._saved, 1)
        return line

    def _make_plot(self, theme: Theme) -> Card:
        card = Card(name="memory.oom.curve_card")
        card.column.addWidget(section("Allocated and reserved, the last half minute"))
        self._plot = LivePlot(theme, name="memory.oom.plot", x_unit="", y_unit="bytes")
        self._plot.setAccessibleName("Memory during the experiment")
        self._plot.describe("The page “Curves” has the table of the same readings.")
        self._plot.setFixedHeight(_PLOT_HEIGHT)
        for key, column, dashed in (("reserved", "upper", True), ("allocated", "lower", False)):
            source = partial(self._curve, column)
            curve = Curve(key, "allocated", source, dashed=dashed, stepped=True)
            self._plot.set_curve(key, curve)
        card.column.addWidget(self._plot)
        return card

    def _curve(self, column: str) -> tuple[list[float], list[float]]:
        return self._model.visible_curve(column) if self._model.chosen.is_card else ([], [])

    # ── showing ──────────────────────────────────────────────────────────────────────────────

    def _want_segments(self) -> None:
        self.segments_wanted.emit()

    def _show_outcome(self, outcome: Outcome) -> None:
        request = self._experiment.request
        if request is None:  # it is over: the results have it
            return
        self._invitation.hide()
        self._plot_card.show()
        number = len(self._experiment.results)
        is_modelled = request.device.startswith("model:")
        self._results.show_now(
            outcome, number, conf=EXPANDABLE if number else "", is_modelled=is_modelled
        )

    def _show_results(self) -> None:
        self._saved.setText("")
        self._results.show_results(self._experiment.results)
        self._show_actions()
        self.follow()

    def _show_actions(self) -> None:
        results = self._experiment.results
        is_idle = self._experiment.request is None
        self._actions.setVisible(bool(results))
        self._compare.setVisible(bool(results))
        self._compare.setEnabled(self._experiment.can_compare)
        last = results[-1] if results else None
        self._segments.setVisible(last is not None and last.segments is not None)
        self._segments.setEnabled(is_idle)
        self._save.setVisible(bool(self._recorded()) and is_idle)

    def _recorded(self) -> str:
        paths = [
            result.finished.snapshot_path
            for result in self._experiment.results
            if result.finished is not None and result.finished.snapshot_path
        ]
        return paths[0] if paths else ""

    def _ask_place(self) -> None:
        path, _ = QFileDialog.getSaveFileName(
            self, "Save the snapshot", "snapshot.pickle", "Snapshots (*.pickle)"
        )
        if path:
            self.save_snapshot(path)

    def save_snapshot(self, path: str) -> None:
        """Copy what was recorded to a place of one's own."""
        try:
            shutil.copyfile(self._recorded(), path)
        except OSError as error:
            self._saved.setText(f"It could not be saved: {error.strerror or error}.")
        else:
            self._saved.setText(f"Saved as {path}")
