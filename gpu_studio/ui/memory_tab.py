"""Memory: where it is now, how it grew, its segments, how it is broken on purpose, what fits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QInputDialog,
    QStackedWidget,
    QTabBar,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.modelled_cards import LEAST_MIB, MOST_MIB, card_at
from gpu_studio.core.units import format_bytes
from gpu_studio.model.card_access import short_name
from gpu_studio.model.engine_state import EngineState
from gpu_studio.model.memory import ENGINE_NAMES, LAB, MAIN, MemoryModel
from gpu_studio.model.oom_experiment import OomState
from gpu_studio.model.text_rows import TextRows
from gpu_studio.ui.eliding_combo import ElidingCombo
from gpu_studio.ui.memory.memory_curves import MemoryCurves, toggle
from gpu_studio.ui.memory.memory_lab import LabPage
from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QHideEvent, QShowEvent

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_POLL_MS = 500
_FAST_POLL_MS = 100  # the segment map, while it is looked at
_ROW_HEIGHT, _HEAD_HEIGHT, _LEAST_TABLE = 30, 34, 96
_OWN = "own"
CURVES, SEGMENTS, LAB_PAGE, ERROR, FIT = range(5)
_PAGES = ("Curves", "Segment map", "Break it", "Read an error", "Will it fit?")


def _segment_page(model: MemoryModel, theme: Theme) -> QWidget:
    from gpu_studio.ui.memory.memory_segments import SegmentPage

    return SegmentPage(model, theme)


def _error_page(theme: Theme) -> QWidget:
    from gpu_studio.ui.memory.error_page import ErrorPage

    return ErrorPage(theme)


def _fit_page(model: MemoryModel, theme: Theme) -> QWidget:
    from gpu_studio.ui.memory.fit_page import FitPage

    return FitPage(model, theme)


class MemoryTab(QWidget):
    """The tank on top; below it one page at a time."""

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
        column.setSpacing(6)
        self._tank_card = Card(self, name="memory.tank_card")
        column.addWidget(self._tank_card)
        self._fill_tank_card(self._tank_card, theme)
        self._pages = QTabBar()
        self._pages.setObjectName("memory.pages")
        self._pages.setAccessibleName("Pages of the memory lab")
        self._pages.setDrawBase(False)
        self._pages.setExpanding(False)
        for title in _PAGES:
            self._pages.addTab(title)
        column.addWidget(self._pages)
        self._stack = QStackedWidget()
        column.addWidget(self._stack, 1)
        self._curves = MemoryCurves(self.model, theme, self)
        self._lab = LabPage(studio, self.model, theme, self)
        made = {CURVES: self._curves, LAB_PAGE: self._lab}
        self._unmade: dict[int, Callable[[], QWidget]] = {
            SEGMENTS: partial(_segment_page, self.model, theme),
            ERROR: partial(_error_page, theme),
            FIT: partial(_fit_page, self.model, theme),
        }
        for page in range(len(_PAGES)):
            self._stack.addWidget(made.get(page) or QWidget())
        self._pages.currentChanged.connect(self._show_page)
        self._lab.segments_wanted.connect(self._go_to_segments)
        self.model.choices_changed.connect(self._list_cards)
        self.model.chosen_changed.connect(self._show_chosen)
        self.model.memory_changed.connect(self._show_memory)
        self._session.state_changed.connect(self._show_memory)
        self._list_cards()
        self._show_chosen()

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _fill_tank_card(self, card: Card, theme: Theme) -> None:
        self._title = Text(role="headline", name="memory.title")
        self._badge = Text("MODELLED", role="section", name="memory.modelled")
        self._badge.setToolTip("No card is asked: these are the rules of PyTorch's allocator")
        self._engines = QComboBox()
        self._engines.setObjectName("memory.engine")
        self._engines.setAccessibleName("Which engine's allocator is shown")
        self._engines.setToolTip(
            "Whose allocator the tank, the curves, the map and empty_cache show"
        )
        self._engines.activated.connect(self._choose_engine)
        self._cards = ElidingCombo()
        self._cards.setObjectName("memory.card")
        self._cards.setAccessibleName("Whose memory is shown")
        self._cards.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._cards.setMaximumWidth(300)
        self._cards.activated.connect(self._choose)
        self._numbers = toggle("Numbers", "memory.tank.numbers", "Show the bar as a table")
        self._numbers.toggled.connect(self._toggle_numbers)
        head = QHBoxLayout()
        head.setSpacing(GAP)
        card.column.addLayout(head)
        head.addWidget(self._title)
        head.addWidget(self._badge)
        head.addStretch(1)
        for control in (self._numbers, self._engines, self._cards):
            head.addWidget(control)
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

    # ── pages ────────────────────────────────────────────────────────────────────────────────

    def show_page(self, page: int) -> None:
        """Turn to a page."""
        self._pages.setCurrentIndex(page)

    def _show_page(self, page: int) -> None:
        if page in self._unmade:
            place = self._stack.widget(page)
            self._stack.insertWidget(page, self._unmade.pop(page)())
            if place is not None:
                self._stack.removeWidget(place)
                place.deleteLater()
        self._stack.setCurrentIndex(page)
        self._tank_card.setVisible(page != ERROR)  # whose card it was, nobody knows
        self._polls.setInterval(_FAST_POLL_MS if page == SEGMENTS else _POLL_MS)
        self._poll()

    def _go_to_segments(self) -> None:
        self._pages.setCurrentIndex(SEGMENTS)

    # ── watching ─────────────────────────────────────────────────────────────────────────────

    def showEvent(self, event: QShowEvent) -> None:
        """Read the memory twice a second while somebody can look; the segments more often."""
        super().showEvent(event)
        self._polls.start()
        self._poll()

    def hideEvent(self, event: QHideEvent) -> None:
        """Poll nothing while hidden."""
        super().hideEvent(event)
        self._polls.stop()

    def _poll(self) -> None:
        page = self._stack.currentIndex()
        if not self.isVisible() or self.window().isMinimized() or page == ERROR:
            return
        self.model.poll(with_segments=page == SEGMENTS)
        if page == CURVES:
            self._curves.follow()
        elif page == LAB_PAGE:
            self._lab.follow()

    # ── the device ───────────────────────────────────────────────────────────────────────────

    def _list_cards(self) -> None:
        self._cards.clear()
        was_modelled = False
        for choice in self.model.choices:
            if choice.is_modelled and not was_modelled:
                self._cards.insertSeparator(self._cards.count())
                was_modelled = True
            self._cards.addItem(choice.title, choice.identity)
        self._cards.addItem("Modelled: a size of your own …", _OWN)
        self._cards.setCurrentIndex(self._cards.findData(self.model.chosen.identity))

    def _choose(self, index: int) -> None:
        identity = self._cards.itemData(index)
        if identity == _OWN:
            self._ask_own()
        elif identity is not None:
            self.model.choose(identity)
        self._cards.setCurrentIndex(self._cards.findData(self.model.chosen.identity))

    def _ask_own(self) -> None:
        mib, has_chosen = QInputDialog.getInt(
            self, "Model a card", "How many MiB does CUDA see of it?", 16_000, LEAST_MIB, MOST_MIB
        )
        if not has_chosen:
            return
        try:
            self.model.choose_own(mib)
        except StudioError as error:
            self._sentence.setText(str(error))

    def _choose_engine(self, index: int) -> None:
        self.model.show_engine(self._engines.itemData(index))

    def _show_chosen(self) -> None:
        chosen = self.model.chosen
        self._cards.setCurrentIndex(self._cards.findData(chosen.identity))
        self._badge.setVisible(chosen.is_modelled)
        engines = self.model.engines
        self._engines.clear()
        for engine in engines:
            self._engines.addItem(ENGINE_NAMES[engine], engine)
        self._engines.setCurrentIndex(engines.index(self.model.engine))
        self._engines.setVisible(len(engines) > 1)
        self._show_memory()

    # ── the numbers ──────────────────────────────────────────────────────────────────────────

    def _show_memory(self) -> None:
        tank, device, chosen = self.model.tank, self.model.device, self.model.chosen
        size = f"  ·  {format_bytes(tank.total_bytes)}" if tank else ""
        if chosen.is_modelled and chosen.address is not None:
            title = short_name(card_at(chosen.address).name)  # its size is part of it
        elif chosen.is_card:
            title = f"{device.short_name if device else chosen.title}{size}"
        else:
            title = f"This PC's RAM{size}"
        self._title.setText(title)
        self._tank.show_tank(tank)
        if self._numbers.isChecked() and tank is not None:
            rows = tank.rows()
            self._tank_rows.set_rows(rows)
            if self._tank_table is not None:
                self._tank_table.setMaximumHeight(_ROW_HEIGHT * len(rows) + _HEAD_HEIGHT)
        self._show_sentence("")

    def _show_sentence(self, told: str) -> None:
        self._sentence.setText(told or self._what_is_shown())

    def _what_is_shown(self) -> str:
        """Return whose numbers the bar shows, and what is missing."""
        chosen, state = self.model.chosen, self._session.state
        if chosen.is_modelled:
            return self._of_modelled()
        if state is EngineState.FAILED:
            return "There is no engine. Start a fresh one from the Engine menu."
        if self._session.description is None:
            return "The engine is starting: PyTorch is being loaded, and its numbers come then."
        if not chosen.is_card:
            return self._without_card()
        if chosen.address is None:
            return f"These are the driver's numbers: PyTorch cannot use this card. {chosen.reason}"
        if self.model.engine == LAB:
            return self._of_lab()
        if not self.model.has_allocator_numbers:
            return (
                "PyTorch has not touched this card yet, so these are the driver's numbers. Its own "
                "begin with the first CUDA work: run an experiment, a benchmark, or move a model."
            )
        return "The driver's and PyTorch's numbers, read together by the engine."

    def _of_modelled(self) -> str:
        if self.model.is_held:
            return (
                "What the experiment had reached. All it took is freed again, and kept by the "
                "allocator for the next tensors."
            )
        return (
            "PyTorch's allocator on a card of this size, to the byte, by its rules alone. What "
            "CUDA itself takes is an assumption."
        )

    def _of_lab(self) -> str:
        if self.model.is_held:
            return (
                "What the experiment had reached. The lab's engine has ended since, and all it "
                "took is free again."
            )
        if self.model.experiment.state is OomState.IDLE:
            return f"The lab's engine has ended. Choose “{ENGINE_NAMES[MAIN]}” for the present."
        if self.model.experiment.state is OomState.WAITING:
            return "The lab's own engine starts: PyTorch is being loaded into it."
        return "The lab's engine at work. The program's own engine, if it uses the card, is named."

    def _without_card(self) -> str:
        if self.model.has_usable_card:
            return "The PC's own memory. Choose a card to see PyTorch's allocator at work."
        return (
            "This PC's RAM. PyTorch's allocator has numbers of its own for CUDA cards only: "
            "choose a modelled one."
        )

    def _toggle_numbers(self, shown: bool) -> None:
        if self._tank_table is None:
            self._tank_table = table(
                self._tank_rows, name="memory.tank.table", accessible_name="Where the memory is"
            )
            self._tank_table.setMinimumHeight(_LEAST_TABLE)
            self._tank_column.insertWidget(self._tank_column.count() - 1, self._tank_table)
        self._tank_table.setVisible(shown)
        self._show_memory()
