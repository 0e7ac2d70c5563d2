"""Memory: where it is now, how it grew, and how it is broken on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.units import format_bytes
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory import MemoryModel
from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.memory_curves import MemoryCurves, toggle
from gpu_studio.ui.oom_panel import OomPanel
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, table
from gpu_studio.ui.tank import TankBar

if TYPE_CHECKING:
    from PySide6.QtGui import QHideEvent, QShowEvent

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_POLL_MS = 500
_TABLE_HEIGHT = 160  # a head and four parts
_PANEL_WIDTHS = (288, 344)


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
        tank_card = Card(self, name="memory.tank_card")
        column.addWidget(tank_card)
        self._fill_tank_card(tank_card, theme)
        below = QHBoxLayout()
        below.setSpacing(GAP)
        column.addLayout(below, 1)
        self._curves = MemoryCurves(self.model, theme, self)
        below.addWidget(self._curves, 3)
        panel = OomPanel(studio, self.model, self)
        panel.setMinimumWidth(_PANEL_WIDTHS[0])
        panel.setMaximumWidth(_PANEL_WIDTHS[1])
        below.addWidget(panel, 2)
        self.model.choices_changed.connect(self._list_cards)
        self.model.chosen_changed.connect(self._show_chosen)
        self.model.memory_changed.connect(self._show_memory)
        self._session.state_changed.connect(self._show_memory)
        self._list_cards()
        self._show_chosen()

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _fill_tank_card(self, card: Card, theme: Theme) -> None:
        self._title = Text(role="headline", name="memory.title")
        self._cards = QComboBox()
        self._cards.setObjectName("memory.card")
        self._cards.setAccessibleName("Whose memory is shown")
        self._cards.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._cards.activated.connect(self._choose)
        self._numbers = toggle("Numbers", "memory.tank.numbers", "Show the bar as a table")
        self._numbers.toggled.connect(self._toggle_numbers)
        head = QHBoxLayout()
        head.setSpacing(GAP)
        card.column.addLayout(head)
        head.addWidget(self._title, 1)
        head.addWidget(self._numbers)
        head.addWidget(self._cards)
        self._tank = TankBar(theme, name="memory.tank")
        self._tank.part_told.connect(self._show_sentence)
        self._tank_rows = TextRows(
            ("Part", "Memory", "Share", "What it is"), numbers=(1, 2), parent=self
        )
        self._tank_table: QTableView | None = None  # made when it is first asked for
        self._sentence = Text(role="muted", name="memory.sentence", wraps=True)
        card.column.addWidget(self._tank)
        card.column.addWidget(self._sentence)
        self._tank_column = card.column

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
            self._curves.follow()

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
        self._show_memory()

    # ── the numbers ──────────────────────────────────────────────────────────────────────────

    def _show_memory(self) -> None:
        tank, device = self.model.tank, self.model.device
        name = device.short_name if device and self.model.chosen.is_card else "This PC's RAM"
        size = f"  ·  {format_bytes(tank.total_bytes)}" if tank else ""
        self._title.setText(f"{name}{size}")
        self._tank.show_tank(tank)
        if self._numbers.isChecked() and tank is not None:
            self._tank_rows.set_rows(tank.rows())
        self._show_sentence("")

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

    def _toggle_numbers(self, shown: bool) -> None:
        if self._tank_table is None:
            self._tank_table = table(
                self._tank_rows, name="memory.tank.table", accessible_name="Where the memory is"
            )
            self._tank_table.setFixedHeight(_TABLE_HEIGHT)
            self._tank_column.insertWidget(self._tank_column.count() - 1, self._tank_table)
        self._tank_table.setVisible(shown)
        self._show_memory()
