"""The Memory tab: use now and over time, segments, experiments, errors, and what fits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QComboBox, QInputDialog, QVBoxLayout, QWidget

from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.modelled_cards import LEAST_MIB, MOST_MIB, card_at
from gpu_studio.core.units import format_bytes
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory.memory_devices import choice_title
from gpu_studio.model.memory.memory_model import ENGINE_NAMES, LAB, MAIN, MemoryModel
from gpu_studio.model.memory.oom_experiment import OomState
from gpu_studio.model.pages import BREAK_IT, CURVES, FIT, MEMORY, SEGMENTS
from gpu_studio.ui.eliding import ComboBox, ElidingCombo
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.memory.memory_curves import MemoryCurves
from gpu_studio.ui.memory.oom_page import OomPage
from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, keep_room, letters
from gpu_studio.ui.scroll_page import LazyPage
from gpu_studio.ui.tabs import PageBar, TabContents, tab_of

if TYPE_CHECKING:
    from PySide6.QtGui import QHideEvent, QShowEvent

    from gpu_studio.model.engine_session import EngineSession
    from gpu_studio.model.pages import Destination, PageId
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.memory.fit_page import FitPage
    from gpu_studio.ui.theme import Theme

_POLL_MS = 500
_FAST_POLL_MS = 100  # for the segment map, while it is visible
_SPACING = 6
_SEGMENTS = "gpu_studio.ui.memory.segment_page:SegmentPage"
_FIT = "gpu_studio.ui.memory.fit_page:FitPage"
_OWN = "own"


class MemoryTab(TabContents):
    """One page at a time, and the memory bar above it."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memory")
        self.model = MemoryModel(studio, self)
        self._polls = QTimer(self)
        self._polls.setInterval(_POLL_MS)
        self._polls.timeout.connect(self._poll)
        self._tank_card = TankCard(self.model, theme, self)
        self.pages = PageBar(tab_of(MEMORY))
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        column.setSpacing(_SPACING)
        column.addWidget(self.pages)
        column.addWidget(self._tank_card)
        column.addWidget(self.pages.stack, 1)
        self._curves = MemoryCurves(self.model, theme, self)
        self._lab = OomPage(studio, self.model, theme, self)
        segments = LazyPage(_SEGMENTS, self.model, theme, parent=self)
        # It imports numpy, which alone takes 80 ms.
        self._fit = LazyPage(_FIT, self.model, theme, parent=self)
        self._fit.created.connect(self._follow_histories)
        self._segments, self._dropped = segments, Path()
        self.pages_later = (segments, self._fit)
        self.pages.add(self._curves, segments, self._lab, self._fit)
        self.pages.page_changed.connect(self._show_page)
        self._lab.segments_wanted.connect(self._go_to_segments)
        self._lab.history_wanted.connect(self._open_file)

    # ── pages ────────────────────────────────────────────────────────────────────────────────

    def go_to(self, destination: Destination) -> None:
        if destination.path is not None:
            self._dropped = destination.path
            self._open_file(destination.path)
        elif destination.page.part:
            self.pages.go_to(destination.page)

    def _show_page(self, page: PageId) -> None:
        self._tank_card.setVisible(page != FIT)  # it has a choice of its own
        self._polls.setInterval(_FAST_POLL_MS if page == SEGMENTS else _POLL_MS)
        self._poll()

    def _open_file(self, path: Path) -> None:
        self.pages.go_to(FIT)
        self._fit.make().model.open_file(path)

    def _follow_histories(self, page: FitPage) -> None:
        page.model.what_if.no_history_found.connect(self._show_snapshot)
        page.experiment_wanted.connect(self._record_experiment)

    def _record_experiment(self) -> None:
        self.pages.go_to(BREAK_IT)
        self._lab.panel.record_next()

    def _show_snapshot(self, path: Path) -> None:
        """Show what was dropped on the map, if it is of one moment."""
        if path == self._dropped:
            self.pages.go_to(SEGMENTS)
            self._segments.make().open_snapshot(path)

    def _go_to_segments(self) -> None:
        self.pages.go_to(SEGMENTS)

    # ── polling ──────────────────────────────────────────────────────────────────────────────

    def showEvent(self, event: QShowEvent) -> None:
        """Read the memory twice a second while visible; the segments more often."""
        super().showEvent(event)
        self._polls.start()
        self._poll()

    def hideEvent(self, event: QHideEvent) -> None:
        """Poll nothing while hidden."""
        super().hideEvent(event)
        self._polls.stop()

    def _poll(self) -> None:
        page = self.pages.front
        if not self.isVisible() or self.window().isMinimized():
            return
        self.model.poll(with_segments=page == SEGMENTS)
        if page == CURVES:
            self._curves.follow()


class TankCard(Card):
    """Shows the memory of the chosen device and engine.

    Args:
        model: the state of the Memory tab.
        theme: gives the colors.
    """

    def __init__(self, model: MemoryModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="memory.tank_card")
        self._model = model
        self._title = Text(role="headline", name="memory.title")
        self._badge = Text("SIMULATED", role="section", name="memory.modelled")
        self._badge.setToolTip("Computed by the rules of PyTorch's allocator, without a card")
        self._make_choices()
        self._lay_out_head()
        self._tank = TankBar(theme, name="memory.tank")
        self._tank.part_described.connect(self._show_sentence)
        self._sentence = Text(role="muted", name="memory.sentence", wraps=True)
        self._programs = Text(role="muted", name="memory.programs", wraps=True)
        keep_room(self._programs)
        self.column.addWidget(self._tank)
        self.column.addWidget(self._programs)
        self.column.addWidget(self._sentence)
        model.devices.choices_changed.connect(self._list_cards)
        model.chosen_changed.connect(self._show_chosen)
        model.memory_changed.connect(self._show_memory)
        model.session_changed.connect(self._show_memory)
        self._list_cards()
        self._show_chosen()

    def _make_choices(self) -> None:
        self._engines = ComboBox()
        self._engines.setObjectName("memory.engine")
        self._engines.setAccessibleName("Engine whose allocator is shown")
        self._engines.setToolTip("The engine for the bar, the curves, the map and empty_cache")
        self._engines.activated.connect(self._choose_engine)
        self._cards = ElidingCombo()
        self._cards.setObjectName("memory.card")
        self._cards.setAccessibleName("Device whose memory is shown")
        self._cards.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self._cards.setMaximumWidth(letters(self._cards, 41))
        self._cards.activated.connect(self._choose)

    def _lay_out_head(self) -> None:
        between = QWidget()
        self._head = FlowRow(
            self._title,
            self._badge,
            between,
            self._engines,
            self._cards,
            fills=between,
            spacing=GAP,
        )
        self.column.addWidget(self._head)

    # ── the device ───────────────────────────────────────────────────────────────────────────

    def _list_cards(self) -> None:
        self._cards.clear()
        was_modelled = False
        for choice in self._model.devices.choices:
            if choice.is_modelled and not was_modelled:
                self._cards.insertSeparator(self._cards.count())
                was_modelled = True
            self._cards.addItem(choice_title(choice), choice.identity)
        self._cards.addItem("Simulated: custom size…", _OWN)
        self._cards.setCurrentIndex(self._cards.findData(self._model.chosen.identity))

    def _choose(self, index: int) -> None:
        identity = self._cards.itemData(index)
        if identity == _OWN:
            self._ask_own()
        elif identity is not None:
            self._model.devices.choose(identity)
        self._cards.setCurrentIndex(self._cards.findData(self._model.chosen.identity))

    def _ask_own(self) -> None:
        mib, has_chosen = QInputDialog.getInt(
            self, "Simulate a card", "MiB visible to CUDA", 16_000, LEAST_MIB, MOST_MIB
        )
        if not has_chosen:
            return
        try:
            self._model.devices.choose_own(mib)
        except StudioError as error:
            self._sentence.setText(str(error))

    def _choose_engine(self, index: int) -> None:
        self._model.show_engine(self._engines.itemData(index))

    def _show_chosen(self) -> None:
        chosen = self._model.chosen
        self._cards.setCurrentIndex(self._cards.findData(chosen.identity))
        self._badge.setVisible(chosen.is_modelled)
        engines = self._model.engines
        self._engines.clear()
        for engine in engines:
            self._engines.addItem(ENGINE_NAMES[engine], engine)
        self._engines.setCurrentIndex(engines.index(self._model.engine))
        self._engines.setVisible(len(engines) > 1)
        self._show_memory()

    # ── the numbers ──────────────────────────────────────────────────────────────────────────

    def _show_memory(self) -> None:
        tank, chosen = self._model.tank, self._model.chosen
        size = f"  ·  {format_bytes(tank.total_bytes)}" if tank else ""
        if chosen.is_modelled and chosen.address is not None:
            title = short_name(card_at(chosen.address).name)  # the name includes the size
        elif not chosen.is_cpu:
            title = f"{short_name(chosen.name)}{size}"
        else:
            title = f"This PC's RAM{size}"
        self._title.setText(title)
        self._tank.show_tank(tank)
        self._show_programs()
        self._show_sentence("")

    def _show_programs(self) -> None:
        """Name the programs in the bar; the driver of Windows does not report them."""
        programs = self._model.programs
        words = " · ".join(f"{name}\u00a0{format_bytes(size)}" for name, size in programs)
        self._programs.setText(f"By program: {words}")
        self._programs.setVisible(bool(programs))

    def _show_sentence(self, words: str) -> None:
        self._sentence.setText(words or what_is_shown(self._model, self._model.pc.session))


def what_is_shown(model: MemoryModel, session: EngineSession) -> str:
    """Return a sentence about the source of the shown numbers.

    Args:
        model: the state of the Memory tab.
        session: the engine of the chosen device's PC.
    """
    chosen, state = model.chosen, session.state
    if chosen.is_modelled:
        return _of_modelled(model)
    if state is EngineState.FAILED:
        return "PyTorch has stopped. Start it anew from the PyTorch menu."
    if session.absence:
        return session.absence
    if session.what_is_missing:
        return f"{session.what_is_missing} Its numbers come next."
    if chosen.is_cpu:
        return _without_card(model)
    if chosen.address is None:
        return f"PyTorch cannot use this card, so these are the driver's numbers. {chosen.reason}"
    if model.engine == LAB:
        return _of_lab(model)
    if not model.has_allocator_numbers:
        return (
            "PyTorch has not used this card yet, so these are the driver's numbers. For PyTorch's "
            "own numbers, run an experiment or a benchmark, or move a model."
        )
    return "Numbers of the driver and of PyTorch, read together by the engine."


def _of_modelled(model: MemoryModel) -> str:
    if model.is_held:
        return (
            "Memory when the experiment failed or ended. It is free again, and the allocator "
            "keeps it for the next tensors."
        )
    return (
        "PyTorch's allocator on a card of this size, computed to the byte by its rules. CUDA's own "
        "memory is an assumption."
    )


def _of_lab(model: MemoryModel) -> str:
    if model.is_held:
        return (
            "Memory when the experiment failed or ended. Its engine has ended since, and all its "
            "memory is free again."
        )
    if model.experiment.state is OomState.IDLE:
        return f"The experiment's engine has ended. Choose “{ENGINE_NAMES[MAIN]}” for now."
    if model.experiment.state is OomState.WAITING:
        return "The experiment's engine is starting and loading PyTorch."
    return "The experiment's engine is running. The bar names the program's engine as well."


def _without_card(model: MemoryModel) -> str:
    if model.devices.has_usable_card:
        return "The PC's own memory. Choose a card to see PyTorch's allocator."
    return "This PC's RAM. PyTorch's allocator has numbers for CUDA cards only: simulate one."
