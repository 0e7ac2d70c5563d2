"""The chosen device's memory over time with its events, and ``empty_cache``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.model.memory.engine_memory import WINDOW_S
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, Card, Text, button
from gpu_studio.ui.plots.live_plot import Curve, LivePlot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QShowEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.memory.engine_memory import Mark
    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.ui.theme import Theme

_SPANS_S = (30.0, 60.0, WINDOW_S)  # the first minutes are enlarged
_LABEL_GAP, _AXIS_WIDTH = 16, 70
_LEAST_TOP_BYTES = 4 << 20
_EMPTY = "Empty cache"
_LEAST_LINES = 12  # of text: a lower plot is a strip


class MemoryCurves(Card):
    """Scrolling curves, and the button that empties PyTorch's cache."""

    def __init__(self, model: MemoryModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="memory.curves")
        self._model = model
        self._is_stale = False  # another device was chosen while this was hidden
        self._title = Text(role="title", name="memory.curves.title")
        self._empty_cache = button(_EMPTY, model.empty_cache, name="memory.empty_cache")
        controls = (self._title, self._empty_cache)
        self.column.addWidget(FlowRow(*controls, fills=self._title, spacing=GAP))
        self._plot = LivePlot(
            theme,
            name="memory.plot",
            x_unit="ago",
            y_unit="bytes",
            legend=4,
            empty="The memory of the last minutes appears here.",
        )
        self._plot.setAccessibleName("Memory over time")
        self._cache_text = Text(role="muted", name="memory.cache", wraps=True)
        self._plot.setMinimumHeight(_LEAST_LINES * self.fontMetrics().height())
        self.column.addWidget(self._plot, 1)
        self.column.addWidget(self._cache_text)
        model.chosen_changed.connect(self._show_chosen)
        model.memory_changed.connect(self._show_cache)
        model.marks_changed.connect(self._show_marks)
        model.emptying.changed.connect(self._show_cache)
        self._show_chosen()

    def follow(self) -> None:
        """Update the curves."""
        start_s, end_s = self._span_s()
        points = self._model.history.since(start_s)
        highest = max(
            (max(p.lower_bytes, p.upper_bytes or 0) for p in points), default=_LEAST_TOP_BYTES
        )
        self._plot.set_x_range(start_s, end_s)
        self._plot.set_y_range(0, max(highest, _LEAST_TOP_BYTES) * 1.2)
        tank = self._model.tank
        now = f" Now: {tank.sentence}" if tank and points else " No readings yet."
        self._plot.describe(f"{self._title.text()} over the last two minutes.{now}")
        self._show_marks()

    # ── showing ──────────────────────────────────────────────────────────────────────────────

    def showEvent(self, event: QShowEvent) -> None:
        """Draw the curves of what was chosen meanwhile."""
        super().showEvent(event)
        if self._is_stale:
            self._show_curves()
        else:
            self._show_marks()

    def _show_chosen(self) -> None:
        is_card = not self._model.chosen.is_cpu
        modelled = " · simulated" if self._model.chosen.is_modelled else ""
        self._title.setText(
            f"Allocated and reserved{modelled}" if is_card else "Memory of the engine's process"
        )
        self._empty_cache.setVisible(is_card)
        self._show_cache()
        self._is_stale = self._plot.plot is not None and not self.isVisible()
        if not self._is_stale:
            self._show_curves()

    def _show_curves(self) -> None:
        self._is_stale = False
        self._plot.clear()
        if not self._model.chosen.is_cpu:
            self._plot.set_curve(
                "reserved", Curve("reserved", "allocated", self._upper, dashed=True, stepped=True)
            )
            self._plot.set_curve(
                "allocated", Curve("allocated", "allocated", self._lower, filled=True, stepped=True)
            )
        else:
            self._plot.set_curve(
                "process", Curve("engine", "cpu", self._lower, filled=True, stepped=True)
            )
        self.follow()

    def _lower(self) -> tuple[list[float], list[float]]:
        return self._model.visible_curve()

    def _upper(self) -> tuple[list[float], list[float]]:
        return self._model.visible_curve("upper")

    def _show_cache(self) -> None:
        self._empty_cache.setEnabled(self._model.can_empty_cache)
        self._empty_cache.setText("Emptying…" if self._model.emptying.is_going_on else _EMPTY)
        text = self._model.cache_sentence
        self._cache_text.setText(text)
        self._cache_text.setVisible(bool(text))
        self._empty_cache.setToolTip(text)
        self._empty_cache.setAccessibleDescription(text)

    # ── marks ────────────────────────────────────────────────────────────────────────────────

    def _span_s(self) -> tuple[float, float]:
        """Return the start and end of the shown time span, which ends now."""
        now_s = self._model.now_s
        span_s = next((span_s for span_s in _SPANS_S if span_s > now_s), WINDOW_S)
        return now_s - span_s, now_s

    def _show_marks(self) -> None:
        """Mark the events in the shown time span: an experiment on another page adds many."""
        if self._plot.plot is not None and not self.isVisible():
            return  # `showEvent` shows them
        span_s = self._span_s()
        shown = [mark for mark in self._model.history.marks if mark.at_s >= span_s[0]]
        self._plot.set_markers(markers(shown, span_s, self._plot))


def markers(
    marks: Sequence[Mark], span_s: tuple[float, float], plot: LivePlot
) -> list[tuple[float, str, str]]:
    """Return what marks the events: place, label and color role. Important ones get labels first.

    An event whose label would cross another label has none, and no line through it.

    Args:
        marks: the events in the shown time.
        span_s: start and end of the shown time.
        plot: has the width and the font.
    """
    labelled: dict[int, tuple[float, float]] = {}
    for mark in sorted(marks, key=_importance):
        left_s, right_s = _label_place(mark, span_s, plot)
        if all(right_s <= left or right <= left_s for left, right in labelled.values()):
            labelled[id(mark)] = (left_s, right_s)
    return [
        (
            mark.at_s,
            mark.label if id(mark) in labelled else "",
            "failure" if mark.is_failure else "muted",
        )
        for mark in marks
        if id(mark) in labelled
        or not any(left < mark.at_s < right for left, right in labelled.values())
    ]


def _label_place(mark: Mark, span_s: tuple[float, float], plot: LivePlot) -> tuple[float, float]:
    """Return the place of a mark's label: right of its line, or left in the right half."""
    start_s, end_s = span_s
    width = plot.fontMetrics().horizontalAdvance(mark.label) + _LABEL_GAP
    width_s = width / max(plot.width() - _AXIS_WIDTH, 1) * (end_s - start_s)
    if mark.at_s < (start_s + end_s) / 2:
        return mark.at_s, mark.at_s + width_s
    return mark.at_s - width_s, mark.at_s


def _importance(mark: Mark) -> tuple[bool, bool, float]:
    """Order marks: failures, then user actions, then automatic events; newest first."""
    return not mark.is_failure, mark.is_minor, -mark.at_s
