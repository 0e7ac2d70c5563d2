"""Another batch size: a line through the peaks of a few histories of one script."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QSignalBlocker
from PySide6.QtWidgets import QGridLayout, QLineEdit, QPushButton

from gpu_studio.core.memory.replay.batch_line import MOST_BATCH
from gpu_studio.core.memory.replay.what_if_words import card_name
from gpu_studio.core.notice import Notice
from gpu_studio.core.units import format_gib
from gpu_studio.model.memory.batch_model import MOST_HISTORIES, BatchModel
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, Card, Text, button, letters
from gpu_studio.ui.plots.live_plot import Curve, Level, LivePlot
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpu_studio.model.memory.what_if_model import WhatIfModel
    from gpu_studio.ui.theme import Theme

_LEAST_LINES = 9  # of text: the plot's height
_BATCH_LETTERS = 9
_ASIDE = 1.3  # of the largest batch: the level's name covers no point
_BELOW, _ABOVE = 0.85, 1.15  # of the lowest and the highest point
_INVITATION = (
    "Add histories of the same script with other batch sizes: a line through their peaks tells "
    "what any batch needs."
)


class BatchCard(Card):
    """The histories with their batch sizes, the line, and the batch that is asked for."""

    def __init__(self, model: WhatIfModel, theme: Theme) -> None:
        super().__init__(name="memory.what_if.batch_card")
        self._model, self.batches = model, BatchModel(self)
        self._add = button(
            "Add history…", self._ask_file, name="memory.what_if.batch.add",
            tip="Add a history of the same script with another batch size",
        )  # fmt: skip
        title = Text("Another batch", "title")
        self.column.addWidget(FlowRow(title, self._add, fills=title, spacing=GAP))
        grid = QGridLayout()
        self.column.addLayout(grid)
        grid.setColumnStretch(0, 1)
        self._rows: list[tuple[ElidedText, QLineEdit, Text, QPushButton]] = []
        for number in range(MOST_HISTORIES):
            self._add_row(grid, number)
        self._plot = LivePlot(
            theme, name="memory.what_if.batch.plot", x_unit="count", y_unit="GiB", legend=0,
        )  # fmt: skip
        self._plot.setAccessibleName("Memory over the batch size")
        self._plot.setMinimumHeight(_LEAST_LINES * self.fontMetrics().height())
        self.column.addWidget(self._plot, 1)
        self._wanted = self._field("Batch size to predict", "memory.what_if.batch.to")
        self._wanted.textChanged.connect(self._ask)
        label = Text("Batch to predict", "muted")
        label.setBuddy(self._wanted)
        self._question = FlowRow(label, self._wanted, spacing=GAP)
        self._answer = Text(name="memory.what_if.batch.answer", wraps=True)
        self._notice = Text(name="memory.what_if.batch.notice", wraps=True)
        for widget in (self._question, self._answer, self._notice):
            self.column.addWidget(widget)
        self.column.addStretch(0)
        model.history_changed.connect(self._begin)
        model.answers_changed.connect(self._ask)
        self.batches.changed.connect(self._show)
        self._begun = model.history
        self._show()

    def _field(self, accessible_name: str, name: str) -> QLineEdit:
        field = QLineEdit()
        field.setObjectName(name)
        field.setAccessibleName(accessible_name)
        field.setMaximumWidth(letters(self, _BATCH_LETTERS))
        return field

    def _add_row(self, grid: QGridLayout, number: int) -> None:
        name = ElidedText()
        batch = self._field(f"Batch size of history {number + 1}", f"memory.what_if.batch.{number}")
        batch.setPlaceholderText("batch")
        batch.textChanged.connect(self._read_batches)
        peak = Text(role="muted")
        remove = button(
            "Remove", self._remove, name=f"memory.what_if.batch.remove.{number}",
            tip="Remove this history from the line",
        )  # fmt: skip
        row = (name, batch, peak, remove)
        for column, widget in enumerate(row):
            grid.addWidget(widget, number, column)
        self._rows.append(row)

    # ── choosing ─────────────────────────────────────────────────────────────────────────────

    def add_history(self, path: Path) -> None:
        """Add a history from a file, or say why it is refused."""
        self.batches.add(path)

    def _ask_file(self) -> None:
        path = ask_open_path(self, "Add a history", "Histories (*.pickle *.pkl);;All files (*)")
        if path:
            self.add_history(Path(path))

    def _begin(self) -> None:
        history = self._model.history
        if history is not None and history is not self._begun:
            self._begun = history
            self.batches.begin(history, self._model.name)

    def _remove(self) -> None:
        pressed = self.sender()
        removed = next(at for at, row in enumerate(self._rows) if row[3] is pressed)
        self.batches.remove(removed)

    def _read_batches(self) -> None:
        for number, one in enumerate(self.batches.histories):
            batch = _batch_in(self._rows[number][1].text())
            if batch != one.batch:
                self.batches.set_batch(number, batch)

    def _ask(self) -> None:
        choices = self._model.choices
        if choices is not None:
            wanted = _batch_in(self._wanted.text())
            self.batches.ask(wanted, choices.card_bytes, choices.other_bytes)

    # ── showing ──────────────────────────────────────────────────────────────────────────────

    def _show(self) -> None:
        histories = self.batches.histories
        for number, (name, batch, peak, remove) in enumerate(self._rows):
            is_there = number < len(histories)
            for widget in (name, batch, peak):
                widget.setVisible(is_there)
            remove.setVisible(is_there and number > 0)
            if is_there:
                one = histories[number]
                name.setText(one.name)
                peak.setText(format_gib(one.peak_bytes))
                if _batch_in(batch.text()) != one.batch:
                    with QSignalBlocker(batch):
                        batch.setText("" if one.batch is None else str(one.batch))
        self._add.setEnabled(0 < len(histories) < MOST_HISTORIES)
        self._plot.setVisible(self.batches.line is not None)
        self._question.setVisible(self.batches.line is not None)
        answer = self.batches.answer
        self._answer.show_notice(answer if len(histories) > 1 else Notice(_INVITATION))
        self._notice.show_notice(self.batches.notice)
        self._draw()

    def _draw(self) -> None:
        line, choices = self.batches.line, self._model.choices
        self._plot.clear()
        self._plot.set_levels([])
        if line is None or choices is None:
            return
        batches = [peak.batch for peak in line.peaks]
        if self.batches.wanted is not None:
            batches.append(self.batches.wanted)
        other_bytes = choices.other_bytes
        last = _ASIDE * max(batches)
        first = min(batches) / _ASIDE
        ends = np.array([first, last])
        needed = line.base_bytes + line.slope_bytes * ends + other_bytes
        peaks = np.array([(peak.batch, peak.peak_bytes + other_bytes) for peak in line.peaks])
        self._curve("line", ends, needed)
        self._curve("peaks", peaks[:, 0], peaks[:, 1], symbol="o")
        if self.batches.wanted is not None:
            at = np.array([float(self.batches.wanted)])
            self._curve("wanted", at, line.base_bytes + line.slope_bytes * at + other_bytes, "d")
        lowest, highest = float(needed.min()), float(needed.max())
        if lowest / 2 < choices.card_bytes < 2 * highest:
            level = Level(choices.card_bytes, f"{card_name(choices.card_bytes)} card", "failure")
            self._plot.set_levels([level])
            lowest, highest = min(lowest, choices.card_bytes), max(highest, choices.card_bytes)
        self._plot.set_x_range(first, last)
        self._plot.set_y_range(_BELOW * lowest, _ABOVE * highest)
        self._plot.describe(self.batches.answer.sentence)

    def _curve(
        self, key: str, xs: NDArray[np.float64], ys: NDArray[np.float64], symbol: str = ""
    ) -> None:
        role = "failure" if symbol == "d" else "allocated"
        curve = Curve(key, role, lambda: (xs, ys), symbol=symbol or None, smooth=True)
        self._plot.set_curve(key, curve)


def _batch_in(text: str) -> int | None:
    """Return a batch size that a person typed; None if it is none."""
    is_number = text.strip().isascii() and text.strip().isdecimal() and len(text.strip()) < 9
    return int(text) if is_number and 1 <= int(text) <= MOST_BATCH else None
