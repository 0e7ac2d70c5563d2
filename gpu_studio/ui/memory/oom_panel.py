"""The choices of an out-of-memory experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTemporaryDir, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QMessageBox,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.memory.modelled_cards import needs_budget
from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.core.messages.memory_messages import AllocationPlan, RunMemoryExperiment
from gpu_studio.core.tensors import DTYPES, ITEM_BYTES
from gpu_studio.core.units import format_bytes, format_size
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory.oom_experiment import (
    BUDGET_STEP_BYTES,
    COUNTS,
    SIZES,
    WATCH_S,
    OomState,
    default_budget,
    largest_budget,
)
from gpu_studio.ui.combo_box import narrow_combo
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.page_keys import runs, stops
from gpu_studio.ui.parts import GAP, Card, Text, button

if TYPE_CHECKING:
    from PySide6.QtGui import QWheelEvent

    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.model.studio import Studio

CUSTOM = "custom"
# The presets that only allocate tensors, as settings of the sliders.
_PLANS = {
    "gt1030": AllocationPlan(size=8192),
    "many_small": AllocationPlan(size=256),
    CUSTOM: AllocationPlan(size=4096, count=8),
}
WHOLE_CARD_WARNING = (
    "This leaves no memory for the desktop. While the card is full, windows may freeze or turn "
    "black, and videos may stop. The system may restart the display driver. Other programs that "
    "need memory on the card may end. On Windows, the driver continues in the PC's memory, slowly. "
    "It lasts a few seconds, until the experiment ends. Save your work first."
)


class OomPanel(Card):
    """Presets, sliders with their values in words, Run and Stop."""

    def __init__(self, studio: Studio, model: MemoryModel, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="memory.oom")
        self._model, self._experiment = model, model.experiment
        self._budget_of = ""
        self._budget_by_hand = False
        self._folder: QTemporaryDir | None = None
        self._make_choices()
        self._run = button("Run", self._start, name="memory.oom.run", primary=True)
        self._run.setAccessibleName("Run the experiment")
        self._stop = button("Stop", self._experiment.stop, name="memory.oom.stop")
        self._stop.setAccessibleName("Stop the experiment")
        runs(self._run)
        stops(self._stop)
        self._reason = Text(name="memory.oom.reason", wraps=True)
        self._lay_out()
        self._connect(studio)
        self._use_preset(0)
        self._update_limits()
        self._update_state()

    @property
    def preset(self) -> str:
        """The name of the chosen experiment."""
        return str(self._preset.currentData())

    @property
    def plan(self) -> AllocationPlan:
        """The plan of the sliders."""
        return self._sliders.plan

    @property
    def budget_bytes(self) -> int | None:
        """The limit for PyTorch's allocator if the user has set one; otherwise None.

        None means three quarters of the memory that is free at the start, or the whole card.
        """
        if self._whole.isChecked() or not self._budget_by_hand:
            return None
        return self._budget.value() * BUDGET_STEP_BYTES

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _make_choices(self) -> None:
        self._preset = narrow_combo("memory.oom.preset", "Experiment")
        for preset in PRESETS:
            self._preset.addItem(preset.title, preset.name)
        self._source = Text(role="muted", name="memory.oom.source", wraps=True)
        self._sliders = PlanSliders()
        self._budget, self._budget_words = slider("memory.oom.budget", 1)
        self._budget.setMinimum(1)
        self._whole = check("memory.oom.whole_card", "Use the whole card, no budget")
        self._record = check("memory.oom.record", "Record a snapshot")
        self._record.setToolTip(
            "Record the history of every allocation for this map and for pytorch.org/memory_viz"
        )

    def _lay_out(self) -> None:
        column = self.column
        column.setSpacing(8)
        column.addWidget(self._preset)
        column.addWidget(self._source)
        column.addWidget(self._sliders)
        add_slider_row(column, "Budget", self._budget, self._budget_words)
        column.addWidget(self._whole)
        column.addWidget(self._record)
        foot = QHBoxLayout()
        foot.setSpacing(GAP)
        column.addLayout(foot)
        foot.addWidget(self._run, 1)
        foot.addWidget(self._stop)
        column.addWidget(self._reason)  # it comes and goes, so it is at the end
        column.addStretch(1)

    def _connect(self, studio: Studio) -> None:
        self._preset.activated.connect(self._use_preset)
        self._sliders.changed.connect(self._own_plan)
        self._budget.valueChanged.connect(self._update_words)
        self._budget.sliderMoved.connect(self._keep_budget)
        self._budget.actionTriggered.connect(self._keep_budget)
        self._whole.toggled.connect(self._update_state)
        self._experiment.state_changed.connect(self._update_state)
        self._model.memory_changed.connect(self._update_limits)
        self._model.chosen_changed.connect(self._update_state)
        self._model.devices.choices_changed.connect(self._update_state)
        studio.session.state_changed.connect(self._update_state)
        studio.pcs.session_changed.connect(self._update_state)

    # ── the plan ─────────────────────────────────────────────────────────────────────────────

    def _use_preset(self, index: int) -> None:
        preset = PRESETS[index]
        plan = _PLANS.get(preset.name)
        if plan is not None:
            self._sliders.show_plan(plan)
        self._sliders.setVisible(plan is not None)
        source = f" From {preset.source}." if preset.source else ""
        self._source.setText(f"{preset.sentence}{source}")
        self._preset.setToolTip(preset.title)
        self._update_words()

    def _own_plan(self) -> None:
        """Switch to the custom experiment after a slider moved."""
        preset = next(preset for preset in PRESETS if preset.name == CUSTOM)
        self._preset.setCurrentIndex(self._preset.findData(CUSTOM))
        self._source.setText(preset.sentence)
        self._preset.setToolTip(preset.title)
        self._update_words()

    def _keep_budget(self) -> None:
        self._budget_by_hand = True
        self._update_words()

    def _update_limits(self) -> None:
        """Fit the budget slider's range to the card, and its value until the user has moved it."""
        sizes, chosen = self._model.sizes_bytes, self._model.chosen
        if not chosen.is_cpu and chosen.identity != self._budget_of:
            self._budget_of, self._budget_by_hand = chosen.identity, False
            self._whole.setChecked(not needs_budget(chosen.address or ""))
        if chosen.is_cpu or sizes is None:
            self._update_words()
            return
        total_bytes, free_bytes = sizes
        highest = largest_budget(total_bytes) // BUDGET_STEP_BYTES
        self._budget.setRange(1, highest)
        self._budget.setPageStep(max(1, highest // 16))
        if not self._budget_by_hand and self._experiment.state is OomState.IDLE:
            self._budget.setValue(default_budget(total_bytes, free_bytes) // BUDGET_STEP_BYTES)
        self._update_words()

    def _update_words(self) -> None:
        sizes = self._model.sizes_bytes
        if self._model.chosen.is_cpu or sizes is None:
            budget = "needs a card"
        elif self._whole.isChecked():
            budget = f"all of {format_bytes(sizes[0])}"
        elif self.budget_bytes is None:
            about = format_bytes(self._budget.value() * BUDGET_STEP_BYTES)
            budget = f"¾ of free memory, about {about}"
        else:
            budget = f"{format_bytes(self.budget_bytes)} of {format_bytes(sizes[0])}"
        show_value(self._budget, self._budget_words, "Budget", budget)

    # ── running ──────────────────────────────────────────────────────────────────────────────

    def _start(self) -> None:
        address = self._model.chosen.address
        if address is None or not self._may_fill():
            return
        self._experiment.run(
            RunMemoryExperiment(
                preset=self.preset,
                device=address,
                plan=self.plan if self.preset == CUSTOM else None,
                budget_bytes=self.budget_bytes,
                whole_card=self._whole.isChecked(),
                snapshot_path=self._snapshot_path() if self._record.isChecked() else "",
                watch_s=WATCH_S,
            )
        )

    def record_next(self) -> None:
        """Let the next experiment record its history."""
        self._record.setChecked(True)
        self._record.setFocus()

    def _may_fill(self) -> bool:
        """Ask before filling a real card completely."""
        if not self._whole.isChecked() or self._model.chosen.is_modelled:
            return True
        box = QMessageBox(
            QMessageBox.Icon.Warning, "Fill the whole card?", "Fill the whole card?",
            QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.Cancel, self,
        )  # fmt: skip
        box.setObjectName("memory.oom.confirm")
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setInformativeText(WHOLE_CARD_WARNING)
        box.setDefaultButton(QMessageBox.StandardButton.Cancel)
        box.button(QMessageBox.StandardButton.Yes).setText("Fill card")
        return box.exec() == QMessageBox.StandardButton.Yes

    def _snapshot_path(self) -> str:
        """Return the path for an unsaved snapshot; it is deleted when the program ends."""
        if self._folder is None:
            self._folder = QTemporaryDir()
        return self._folder.filePath("snapshot.pickle")

    def _update_state(self) -> None:
        reason = self._why_not()
        state = self._experiment.state
        idle = state is OomState.IDLE
        self._reason.setText(reason)
        self._reason.setVisible(bool(reason))
        usable = not reason and idle
        for control in (self._preset, self._sliders, self._whole):
            control.setEnabled(usable)
        # A snapshot is a file of the PC that takes it.
        self._record.setEnabled(usable and not self._model.chosen.pc)
        self._budget.setEnabled(usable and not self._whole.isChecked())
        had_focus = self._run.hasFocus() or self._stop.hasFocus()
        self._run.setEnabled(usable)
        self._stop.setEnabled(state in (OomState.WAITING, OomState.RUNNING))
        if had_focus:  # a disabled button loses the focus
            (self._run if usable else self._stop).setFocus()
        self._update_words()

    def _why_not(self) -> str:
        """Return why no experiment can run now; empty if one can."""
        session, chosen = self._model.pc.session, self._model.chosen
        if chosen.is_modelled:
            return ""
        if session.state is EngineState.FAILED:
            return "The engine has stopped. Start a new one from the Engine menu."
        if session.what_is_missing:
            return session.what_is_missing
        if not chosen.is_cpu:
            return "" if chosen.address else f"PyTorch cannot use this card. {chosen.reason}"
        if self._model.devices.has_usable_card:
            return "Choose a card above. An experiment fills a card's memory, not the PC's."
        return "Choose a simulated card above. An experiment fills a card, not the PC's memory."


class PlanSliders(QWidget):
    """Shows an `AllocationPlan` and lets the user change it.

    Signals:
        changed(): the user has changed it.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memory.oom.sliders")
        self._size, self._size_words = slider("memory.oom.size", len(SIZES) - 1)
        self._count, self._count_words = slider("memory.oom.count", len(COUNTS) - 1)
        self._dtype = narrow_combo("memory.oom.dtype", "Data type")
        self._dtype.addItems(DTYPES)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        add_slider_row(column, "Tensor size", self._size, self._size_words)
        add_slider_row(column, "Count", self._count, self._count_words)
        column.addWidget(self._dtype)
        for moved in (self._size, self._count):
            moved.valueChanged.connect(self._on_change)
        self._dtype.currentIndexChanged.connect(self._on_change)

    @property
    def plan(self) -> AllocationPlan:
        return AllocationPlan(
            size=SIZES[self._size.value()],
            count=COUNTS[self._count.value()],
            dtype=self._dtype.currentText(),
        )

    def show_plan(self, plan: AllocationPlan) -> None:
        """Show another plan without reporting a change."""
        controls = (self._size, self._count, self._dtype)
        for control in controls:
            control.blockSignals(True)
        self._size.setValue(SIZES.index(plan.size))
        self._count.setValue(COUNTS.index(plan.count))
        self._dtype.setCurrentText(plan.dtype)
        for control in controls:
            control.blockSignals(False)
        self._show_choices()

    def _on_change(self) -> None:
        self._show_choices()
        self.changed.emit()

    def _show_choices(self) -> None:
        plan = self.plan
        tensor_bytes = plan.size**2 * ITEM_BYTES[plan.dtype]
        one = format_bytes(tensor_bytes)
        show_value(self._size, self._size_words, "Tensor size", f"{format_size(plan.size)} = {one}")
        count = "until it fails"
        if plan.count is not None:
            count = f"{plan.count} = {format_bytes(plan.count * tensor_bytes)}"
        show_value(self._count, self._count_words, "Number of tensors", count)


class _Slider(QSlider):
    """A slider of a page."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Leave the wheel to the page: a choice changes on purpose only."""
        event.ignore()


def slider(name: str, highest: int) -> tuple[QSlider, Text]:
    """Return a slider that starts at 0, and the label for its value in words."""
    control = _Slider(Qt.Orientation.Horizontal)
    control.setObjectName(name)
    control.setRange(0, highest)
    control.setPageStep(max(1, highest // 8))
    return control, Text(role="muted", name=f"{name}.words")


def show_value(slider: QSlider, words: Text, title: str, value: str) -> None:
    """Show a slider's value, also to screen readers."""
    words.setText(value)
    slider.setAccessibleName(f"{title}: {value}")
    slider.setToolTip(value)


def add_slider_row(column: QVBoxLayout, title: str, added: QSlider, words: Text) -> None:
    """Add a slider under its title and its value."""
    label = Text(title)
    label.setBuddy(added)
    place = QVBoxLayout()
    place.setSpacing(2)
    column.addLayout(place)
    place.addWidget(FlowRow(label, words, fills=label))
    place.addWidget(added)


def check(name: str, text: str) -> QCheckBox:
    """Return a check box."""
    control = QCheckBox(text)
    control.setObjectName(name)
    control.setAccessibleName(text)
    return control
