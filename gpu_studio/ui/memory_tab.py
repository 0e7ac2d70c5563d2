"""Memory: where it is now, how it grew, and how it is broken on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.units import format_bytes
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory import MemoryModel
from gpu_studio.model.memory_history import WINDOW_S, Mark
from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.live_plot import Curve, LivePlot
from gpu_studio.ui.oom_panel import OomPanel
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, button, table
from gpu_studio.ui.tank import TankBar

if TYPE_CHECKING:
    from PySide6.QtGui import QHideEvent, QShowEvent

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_POLL_MS = 500
_PANEL_WIDTHS = (288, 344)
_SPANS_S = (30.0, 60.0, WINDOW_S)  # the first minutes are shown larger
_LABEL_SHARE = 0.18  # of the span: labels closer than this would write over each other
_LEAST_TOP_BYTES = 4 << 20


class MemoryTab(QWidget):
    """The tank on top, the curves below it, the out-of-memory experiment beside them."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memory")
        self._session = studio.session
        self.model = MemoryModel(studio, self)
        self._polls = QTimer(self)
        self._polls.setInterval(_POLL_MS)
        self._polls.timeout.connect(self._poll)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        column.setSpacing(GAP)
        column.addWidget(self._make_tank_card(theme))
        below = QHBoxLayout()
        below.setSpacing(GAP)
        below.addWidget(self._make_curves(theme), 3)
        panel = OomPanel(studio, self.model)
        panel.setMinimumWidth(_PANEL_WIDTHS[0])
        panel.setMaximumWidth(_PANEL_WIDTHS[1])
        below.addWidget(panel, 2)
        column.addLayout(below, 1)
        self.model.choices_changed.connect(self._list_cards)
        self.model.chosen_changed.connect(self._show_chosen)
        self.model.memory_changed.connect(self._show_memory)
        self.model.marks_changed.connect(self._show_marks)
        self.model.emptying.changed.connect(self._show_cache)
        self._session.state_changed.connect(self._show_memory)
        self._list_cards()
        self._show_chosen()

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _make_tank_card(self, theme: Theme) -> Card:
        card = Card(name="memory.tank_card")
        self._title = Text(role="headline", name="memory.title")
        self._cards = QComboBox()
        self._cards.setObjectName("memory.card")
        self._cards.setAccessibleName("Whose memory is shown")
        self._cards.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._cards.activated.connect(self._choose)
        self._numbers = _toggle("Numbers", "memory.tank.numbers", "Show the bar as a table")
        self._numbers.toggled.connect(self._toggle_numbers)
        head = QHBoxLayout()
        head.setSpacing(GAP)
        head.addWidget(self._title, 1)
        head.addWidget(self._numbers)
        head.addWidget(self._cards)
        self._tank = TankBar(theme, name="memory.tank")
        self._tank.part_told.connect(self._show_sentence)
        self._tank_rows = TextRows(["Part", "Memory", "Share", "What it is"], numbers=(1, 2))
        self._tank_rows.setParent(self)
        self._tank_table = table(
            self._tank_rows, name="memory.tank.table", accessible_name="Where the memory is"
        )
        self._tank_table.setFixedHeight(160)
        self._tank_table.hide()
        self._sentence = Text(role="muted", name="memory.sentence", wraps=True)
        card.column.addLayout(head)
        card.column.addWidget(self._tank)
        card.column.addWidget(self._tank_table)
        card.column.addWidget(self._sentence)
        return card

    def _make_curves(self, theme: Theme) -> Card:
        card = Card(name="memory.curves")
        self._curves_title = Text(role="title", name="memory.curves.title")
        self._as_table = _toggle("Table", "memory.plot.as_table", "Show the readings as a table")
        self._as_table.toggled.connect(self._toggle_table)
        self._empty_cache = button("empty_cache", self.model.empty_cache, name="memory.empty_cache")
        head = QHBoxLayout()
        head.setSpacing(GAP)
        head.addWidget(self._curves_title, 1)
        head.addWidget(self._as_table)
        head.addWidget(self._empty_cache)
        self._plot = LivePlot(
            theme, name="memory.plot", x_label="seconds since the window opened", y_unit="bytes"
        )
        self._plot.setAccessibleName("Memory over time")
        self._rows = TextRows(
            ["Second", "Allocated", "Reserved", "Free", "What happened"], numbers=(0, 1, 2, 3)
        )
        self._rows.setParent(self)
        self._table = table(self._rows, name="memory.table", accessible_name="Memory over time")
        self._table.hide()
        self._cache_text = Text(role="muted", name="memory.cache", wraps=True)
        card.column.addLayout(head)
        card.column.addWidget(self._plot, 1)
        card.column.addWidget(self._table, 1)
        card.column.addWidget(self._cache_text)
        return card

    # ── watching ─────────────────────────────────────────────────────────────────────────────

    def showEvent(self, event: QShowEvent) -> None:
        """Read the memory twice a second while somebody can look."""
        super().showEvent(event)
        self._polls.start()
        self._poll()

    def hideEvent(self, event: QHideEvent) -> None:
        """Poll nothing while hidden."""
        super().hideEvent(event)
        self._polls.stop()

    def _poll(self) -> None:
        if self.isVisible() and not self.window().isMinimized():
            self.model.poll()
            self._scroll()

    # ── the device ───────────────────────────────────────────────────────────────────────────

    def _list_cards(self) -> None:
        self._cards.clear()
        for choice in self.model.choices:
            self._cards.addItem(choice.title, choice.identity)
        self._cards.setCurrentIndex(self._cards.findData(self.model.chosen.identity))

    def _choose(self, index: int) -> None:
        self.model.choose(self._cards.itemData(index))

    def _show_chosen(self) -> None:
        chosen = self.model.chosen
        self._cards.setCurrentIndex(self._cards.findData(chosen.identity))
        self._plot.clear()
        if chosen.is_card:
            self._curves_title.setText("Allocated and reserved")
            self._plot.set_curve(
                "reserved", Curve("reserved", "allocated", self._upper, dashed=True, stepped=True)
            )
            self._plot.set_curve(
                "allocated", Curve("allocated", "allocated", self._lower, filled=True, stepped=True)
            )
        else:
            self._curves_title.setText("The engine's process memory")
            self._plot.set_curve(
                "process", Curve("engine", "cpu", self._lower, filled=True, stepped=True)
            )
        self._empty_cache.setVisible(chosen.is_card)
        self._show_memory()
        self._show_marks()
        self._scroll()

    def _lower(self) -> tuple[list[float], list[float]]:
        return self.model.visible_curve()

    def _upper(self) -> tuple[list[float], list[float]]:
        return self.model.visible_curve(upper=True)

    # ── the numbers ──────────────────────────────────────────────────────────────────────────

    def _show_memory(self) -> None:
        tank, device = self.model.tank, self.model.device
        name = device.short_name if device and self.model.chosen.is_card else "This PC's RAM"
        size = f"  ·  {format_bytes(tank.total_bytes)}" if tank else ""
        self._title.setText(f"{name}{size}")
        self._tank.show_tank(tank)
        if self._tank_table.isVisible() and tank is not None:
            self._tank_rows.set_rows(tank.rows())
        if self._table.isVisible():
            self._rows.set_rows(self.model.history.rows())
        self._show_sentence("")
        self._show_cache()

    def _show_sentence(self, told: str) -> None:
        self._sentence.setText(told or self._what_is_shown())

    def _what_is_shown(self) -> str:
        """Return whose numbers the bar shows, and what is missing."""
        chosen, state = self.model.chosen, self._session.state
        if state is EngineState.FAILED:
            return "There is no engine. Start a fresh one from the Engine menu."
        if self._session.description is None:
            return "The engine is starting: PyTorch is being loaded, and its numbers come then."
        if not chosen.is_card:
            return self._without_card()
        if chosen.address is None:
            return f"These are the driver's numbers: PyTorch cannot use this card. {chosen.reason}"
        if self.model.is_held:
            return "This is what the experiment had reached; everything it took is freed again."
        if not self.model.has_allocator_numbers:
            return (
                "PyTorch has not touched this card yet, so these are the driver's numbers. Its own "
                "begin with the first CUDA work: run the experiment, a benchmark, or move a model."
            )
        return "The driver's and PyTorch's numbers, read together by the engine."

    def _without_card(self) -> str:
        if any(choice.is_card and choice.address for choice in self.model.choices):
            return "The PC's own memory. Choose a card to see PyTorch's allocator at work."
        return (
            "Live from this PC: its RAM and the engine's process. PyTorch's allocator keeps its "
            "own numbers, allocated and reserved, only for a CUDA card."
        )

    def _show_cache(self) -> None:
        self._empty_cache.setEnabled(self.model.can_empty_cache)
        text = self.model.cache_sentence
        self._cache_text.setText(text)
        self._cache_text.setVisible(bool(text))
        self._empty_cache.setToolTip(text)
        self._empty_cache.setAccessibleDescription(text)

    # ── the curves ───────────────────────────────────────────────────────────────────────────

    def _scroll(self) -> None:
        start_s, end_s = self._span_s()
        points = self.model.history.since(start_s)
        highest = max(
            (max(p.lower_bytes, p.upper_bytes or 0) for p in points), default=_LEAST_TOP_BYTES
        )
        self._plot.set_x_range(start_s, end_s)
        self._plot.set_y_range(0, max(highest, _LEAST_TOP_BYTES) * 1.2)
        tank = self.model.tank
        now = f" Now: {tank.sentence}" if tank and points else " No reading yet."
        self._plot.describe(f"{self._curves_title.text()} over the last two minutes.{now}")
        self._show_marks()

    def _span_s(self) -> tuple[float, float]:
        """Return the stretch of time that is shown."""
        now_s = self.model.now_s
        span_s = next((span_s for span_s in _SPANS_S if span_s > now_s), WINDOW_S)
        end_s = max(now_s, span_s)
        return end_s - span_s, end_s

    def _show_marks(self) -> None:
        """Mark what happened in the stretch that is shown; failures first in line for a label."""
        start_s, end_s = self._span_s()
        room_s = _LABEL_SHARE * (end_s - start_s)
        shown = [mark for mark in self.model.history.marks if mark.at_s >= start_s]
        labelled: list[Mark] = []
        for mark in sorted(shown, key=lambda mark: (not mark.is_failure, -mark.at_s)):
            if all(abs(mark.at_s - other.at_s) >= room_s for other in labelled):
                labelled.append(mark)
        self._plot.set_markers(
            [
                (
                    mark.at_s,
                    mark.label if any(mark is other for other in labelled) else "",
                    "failure" if mark.is_failure else "muted",
                )
                for mark in shown
            ]
        )

    # ── tables ───────────────────────────────────────────────────────────────────────────────

    def _toggle_numbers(self, shown: bool) -> None:
        self._tank_table.setVisible(shown)
        self._show_memory()

    def _toggle_table(self, shown: bool) -> None:
        self._table.setVisible(shown)
        self._plot.setVisible(not shown)
        self._show_memory()


def _toggle(text: str, name: str, tip: str) -> QPushButton:
    toggle = QPushButton(text)
    toggle.setObjectName(name)
    toggle.setCheckable(True)
    toggle.setToolTip(tip)
    toggle.setAccessibleName(tip)
    return toggle
