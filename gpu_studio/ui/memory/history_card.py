"""The time line of a history: what each line of code holds, and what is reserved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontDatabase, QPainter
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QSizePolicy, QWidget

from gpu_studio.core.memory.replay.replay_call import AnsweredWhatIf
from gpu_studio.core.memory.replay.timeline import MOST_LAYERS, Category, MarkKind
from gpu_studio.core.memory.replay.what_if_words import (
    card_name,
    layer_line,
    layer_name,
    mark_label,
    moment,
)
from gpu_studio.core.series import TimedSeries
from gpu_studio.core.units import format_gib
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.parts import GAP, Card, Text, letters
from gpu_studio.ui.plots.live_plot import Curve, Level, LivePlot, Marker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from gpu_studio.core.memory.replay.timeline import Layer, Timeline
    from gpu_studio.model.memory.what_if_model import WhatIfChoices, WhatIfModel
    from gpu_studio.ui.theme import Theme

_PASSING, _STAYING = 4, 3  # colors of each kind
_STAYS = (Category.BEFORE, Category.OPTIMIZER_STATE, Category.PARAMETER, Category.GRADIENT)
_LEAST_LINES = 13  # of text: the plot's height
_LEGEND_LETTERS = 42
_BESIDE_LETTERS = 105
_SWATCH = 12
_MOST_DOTS = 30
_ABOVE = 1.3  # the top of the axis, above the highest curve
_FAR_ABOVE = 2.0  # a card that is so much larger is out of sight
_ANY_WIDTH = (1 << 24) - 1  # QWIDGETSIZE_MAX of Qt


class HistoryCard(Card):
    """The plot, and beside it the lines of code with what each holds at the peak.

    Signals:
        clicked(float): the time of a click.
    """

    clicked = Signal(float)

    def __init__(self, model: WhatIfModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="memory.what_if.history")
        self._model = model
        self._shown: Timeline | None = None
        self._times = np.zeros(0)
        below = self._below = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        below.setSpacing(2 * GAP)
        self.column.addWidget(Text("Memory by line of code", "title"))
        self.column.addLayout(below, 1)
        self._plot = LivePlot(
            theme, name="memory.what_if.plot", x_unit="s", y_unit="GiB", legend=0, zoomable=True,
        )  # fmt: skip
        self._plot.setAccessibleName("Memory over the history")
        self._plot.setMinimumHeight(_LEAST_LINES * self.fontMetrics().height())
        self._plot.clicked.connect(self.clicked)
        self._legend = _Legend(theme)
        below.addWidget(self._plot, 1)
        below.addWidget(self._legend)
        model.history_changed.connect(self._show_history)
        model.answers_changed.connect(self._show_answer)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the lines under the plot if there is no room beside it."""
        super().resizeEvent(event)
        has_room = self.width() >= letters(self, _BESIDE_LETTERS)
        directions = QBoxLayout.Direction
        self._below.setDirection(directions.LeftToRight if has_room else directions.TopToBottom)
        width = letters(self, _LEGEND_LETTERS) if has_room else 0
        self._legend.setMinimumWidth(width)
        self._legend.setMaximumWidth(width or _ANY_WIDTH)

    # ── showing ──────────────────────────────────────────────────────────────────────────────

    def _show_history(self) -> None:
        history = self._model.history
        if history is None or history.timeline is self._shown:
            return
        timeline = self._shown = history.timeline
        self._times = np.frombuffer(timeline.times)
        self._plot.show_all()
        self._plot.clear()
        self._plot.set_x_unit("s" if timeline.is_timed else "count")
        allocated = TimedSeries(self._times, np.frombuffer(timeline.allocated))
        roles = layer_roles(timeline.layers)
        below: TimedSeries | None = None
        areas: list[tuple[str, Curve]] = []
        for number, layer in enumerate(timeline.layers):
            series = TimedSeries(self._times, np.frombuffer(layer.tops, np.float32), allocated)
            label = f"{layer_name(layer)} {layer_line(layer)}".strip()
            area = Curve(label, roles[number], series.itself, area=True, stepped=True, below=below)
            areas.append((f"layer{number}", area))
            below = series
        for key, area in reversed(areas):  # the highest first: the lower ones cover it
            self._plot.set_curve(key, area)
        self._legend.show_layers(timeline.layers, roles, history.peak_allocated_bytes)
        self._show_answer()

    def _show_answer(self) -> None:
        history, choices, found = self._model.history, self._model.choices, self._model.on_card
        if history is None or choices is None or self._shown is None:
            return
        answer = found if isinstance(found, AnsweredWhatIf) else None
        highest = max(history.peak_reserved_bytes, self._show_reserved(answer))
        budget_bytes = choices.card_bytes - choices.other_bytes
        level = f"{card_name(choices.card_bytes)} card: {format_gib(budget_bytes)} for PyTorch"
        is_near = budget_bytes < _FAR_ABOVE * highest
        self._plot.set_levels([Level(budget_bytes, level, "failure")] if is_near else [])
        self._plot.set_y_range(0, _ABOVE * max(highest, budget_bytes if is_near else 0))
        self._plot.set_x_range(float(self._times[0]), max(float(self._times[-1]), 1e-6))
        failed_at = None if answer is None else answer.found.failed_at
        rest = None if failed_at is None else (self._times[failed_at], self._times[-1])
        self._plot.set_veil(rest)
        self._plot.set_markers(list(self._markers(self._shown, failed_at, choices)))
        self._plot.describe(
            f"At most {format_gib(history.peak_allocated_bytes)} allocated and "
            f"{format_gib(history.peak_reserved_bytes)} reserved, recorded."
        )

    def _show_reserved(self, answer: AnsweredWhatIf | None) -> float:
        """Show what is reserved on the chosen card, or as recorded; return the most."""
        timeline = self._shown
        assert timeline is not None
        if answer is None:
            changed = [
                np.frombuffer(one, np.int32) for one in (timeline.asked, timeline.given_back)
            ]
            shown = np.unique(np.concatenate([[0], *changed, [len(self._times) - 1]]))
            series = TimedSeries(self._times[shown], np.frombuffer(timeline.reserved)[shown])
        else:
            entries, values = (
                np.frombuffer(answer.entries, np.int32),
                np.frombuffer(answer.reserved),
            )
            failed_at = answer.found.failed_at
            end = len(self._times) - 1 if failed_at is None else failed_at
            last = values[-1:] if len(values) else np.zeros(1)
            series = TimedSeries(self._times[np.append(entries, end)], np.append(values, last))
        # A dot is memory that the driver gave or got; zooming in shows them.
        curve = Curve(
            "reserved", "allocated", series.itself, dashed=True, stepped=True, dots="o",
            most_dots=_MOST_DOTS,
        )  # fmt: skip
        self._plot.set_curve("reserved", curve)
        return float(series.values.max(initial=0.0))

    def _markers(
        self, timeline: Timeline, failed_at: int | None, choices: WhatIfChoices
    ) -> Iterable[Marker]:
        is_first = True
        for mark in timeline.marks:
            is_failure = mark.kind is MarkKind.OUT_OF_MEMORY
            label = f"recorded {mark_label(mark)}" if is_failure and is_first else ""
            is_first = is_first and not is_failure
            role = "failure" if is_failure else "muted"
            yield Marker(float(self._times[mark.entry]), label, role, row=2)
        for entry in choices.empty_at:
            time = float(self._times[entry])
            yield Marker(time, "empty_cache here", "accent", dashed=True, row=1)
        if failed_at is not None:
            label = f"Out of memory {moment(timeline, failed_at)}"
            yield Marker(float(self._times[failed_at]), label, "failure")


def layer_roles(layers: Iterable[Layer]) -> list[str]:
    """Return the color role of each layer: grays for what stays, greens for what passes."""
    roles, staying, passing = [], 0, 0
    for layer in layers:
        if layer.category is Category.OTHER:
            roles.append("stack4")
        elif layer.category in _STAYS:
            roles.append(f"stay{staying % _STAYING}")
            staying += 1
        else:
            roles.append(f"stack{passing % _PASSING}")
            passing += 1
    return roles


class _Legend(QWidget):
    """A row for each layer, the highest first: what it is for, its line, and its bytes."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(2, 1)
        grid.addWidget(Text("Line of code", "muted"), 0, 1, 1, 2)
        grid.addWidget(_right(Text("at the peak", "muted")), 0, 3)
        fixed = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        self._rows: list[tuple[_Swatch, ElidedText, ElidedText, Text]] = []
        for row in range(1, MOST_LAYERS + 2):
            line = ElidedText(role="muted")
            line.setFont(fixed)
            parts = (_Swatch(theme), ElidedText(), line, _right(Text()))
            for column, widget in enumerate(parts):
                grid.addWidget(widget, row, column)
            self._rows.append(parts)
        self._total = _right(Text(role="value", name="memory.what_if.allocated"))
        grid.addWidget(Text("Allocated", "value"), MOST_LAYERS + 2, 1, 1, 2)
        grid.addWidget(self._total, MOST_LAYERS + 2, 3)
        grid.setRowStretch(MOST_LAYERS + 3, 1)

    def show_layers(self, layers: Iterable[Layer], roles: list[str], peak_bytes: int) -> None:
        """Show these layers."""
        shown = list(zip(layers, roles, strict=True))[::-1]
        for number, parts in enumerate(self._rows):
            for widget in parts:
                widget.setVisible(number < len(shown))
            if number < len(shown):
                layer, role = shown[number]
                swatch, name, line, size = parts
                swatch.show_role(role)
                name.setText(layer_name(layer))
                line.setText(layer_line(layer))
                size.setText(format_gib(layer.peak_bytes))
        self._total.setText(format_gib(peak_bytes))


def _right(text: Text) -> Text:
    text.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
    return text


class _Swatch(QWidget):
    """A square in a layer's color."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._role = theme, "stack0"
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_role(self, role: str) -> None:
        """Take another color."""
        self._role = role
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(_SWATCH, _SWATCH)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Paint the square."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._theme.colour(self._role)))
        painter.drawRoundedRect(QRectF(0, 0, _SWATCH, _SWATCH), 2, 2)
