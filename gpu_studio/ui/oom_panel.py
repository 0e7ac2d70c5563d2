"""Break it on purpose: the controls of the out-of-memory experiment and its outcome in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QSlider,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.sizes import DTYPES
from gpu_studio.core.units import format_bytes, format_size
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.oom_experiment import (
    BUDGET_STEP_BYTES,
    COUNTS,
    PRESETS,
    SIZES,
    OomPlan,
    OomState,
    default_budget,
    largest_budget,
)
from gpu_studio.ui.eliding_combo import ElidingCombo
from gpu_studio.ui.parts import GAP, Card, Text, button, section
from gpu_studio.ui.scroll_page import ScrollPage

if TYPE_CHECKING:
    from gpu_studio.core.oom_words import Outcome
    from gpu_studio.model.memory import MemoryModel
    from gpu_studio.model.studio import Studio

_OWN = "Your own"


class OomPanel(Card):
    """Sliders with their value in words, Run and Stop, and what came of it."""

    def __init__(self, studio: Studio, model: MemoryModel, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="memory.oom")
        self._session = studio.session
        self._model, self._experiment = model, model.experiment
        self._budget_of = ""
        self._budget_by_hand = False
        self._preset = self._combo("memory.oom.preset", "Experiment")
        for preset in PRESETS:
            self._preset.addItem(preset.name)
        self._preset.addItem(_OWN)
        self._dtype = self._combo("memory.oom.dtype", "Type of the numbers")
        self._dtype.addItems(DTYPES)
        self._source = Text(role="muted", name="memory.oom.source", wraps=True)
        self._size, self._size_words = self._slider("memory.oom.size", len(SIZES) - 1)
        self._count, self._count_words = self._slider("memory.oom.count", len(COUNTS) - 1)
        self._budget, self._budget_words = self._slider("memory.oom.budget", 1)
        self._budget.setMinimum(1)
        self._run = button("Run", self._start, name="memory.oom.run", primary=True)
        self._run.setAccessibleName("Run the out-of-memory experiment")
        self._stop = button("Stop", self._experiment.stop, name="memory.oom.stop")
        self._stop.setAccessibleName("Stop the out-of-memory experiment")
        self._reason = Text(name="memory.oom.reason", wraps=True)
        self._result = Card(name="memory.oom.result")
        self._result.hide()
        self._headline = Text(role="value", name="memory.oom.headline", wraps=True)
        self._outcome = Text(name="memory.oom.outcome", wraps=True)
        self._next_step = Text(role="muted", name="memory.oom.next", wraps=True)
        self._lay_out()
        self._connect(studio)
        self._take_preset(0)
        self._update_limits()
        self._update_state()

    @property
    def plan(self) -> OomPlan:
        """What the controls say."""
        return OomPlan(
            size=SIZES[self._size.value()],
            dtype=self._dtype.currentText(),
            count=COUNTS[self._count.value()],
        )

    @property
    def budget_bytes(self) -> int:
        """What PyTorch's allocator may take at most."""
        return self._budget.value() * BUDGET_STEP_BYTES

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _combo(self, name: str, accessible_name: str) -> QComboBox:
        combo = ElidingCombo()
        combo.setObjectName(name)
        combo.setAccessibleName(accessible_name)
        combo.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        combo.setMinimumContentsLength(8)
        return combo

    def _slider(self, name: str, highest: int) -> tuple[QSlider, Text]:
        slider = QSlider(Qt.Orientation.Horizontal)
        slider.setObjectName(name)
        slider.setRange(0, highest)
        slider.setPageStep(max(1, highest // 8))
        return slider, Text(role="muted", name=f"{name}.words")

    def _lay_out(self) -> None:
        self.column.setContentsMargins(0, 0, 0, 0)
        page = ScrollPage("Out-of-memory experiment")
        page.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        # Into the window first, then filled: a filled one is styled anew at each step up.
        self.column.addWidget(page)
        column = page.column
        column.setContentsMargins(14, 12, 14, 12)
        column.setSpacing(8)
        column.addWidget(section("Break it on purpose"))
        column.addWidget(self._reason)
        column.addWidget(self._preset)
        column.addWidget(self._source)
        for title, slider, words in (
            ("Tensor size", self._size, self._size_words),
            ("How many", self._count, self._count_words),
            ("Budget", self._budget, self._budget_words),
        ):
            _add_slider_row(column, title, slider, words)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        column.addLayout(line)
        line.addWidget(self._dtype, 1)
        line.addWidget(self._run)
        line.addWidget(self._stop)
        column.addWidget(self._result)
        for text in (self._headline, self._outcome, self._next_step):
            self._result.column.addWidget(text)
        column.addStretch(1)

    def _connect(self, studio: Studio) -> None:
        self._preset.activated.connect(self._take_preset)
        for slider in (self._size, self._count):
            slider.valueChanged.connect(self._own_plan)
        self._dtype.currentIndexChanged.connect(self._own_plan)
        self._budget.valueChanged.connect(self._update_words)
        self._budget.sliderMoved.connect(self._keep_budget)
        self._budget.actionTriggered.connect(self._keep_budget)
        self._experiment.state_changed.connect(self._update_state)
        self._experiment.outcome_changed.connect(self._show_outcome)
        self._model.memory_changed.connect(self._update_limits)
        self._model.chosen_changed.connect(self._update_state)
        self._model.choices_changed.connect(self._update_state)
        studio.session.state_changed.connect(self._update_state)

    # ── the plan ─────────────────────────────────────────────────────────────────────────────

    def _take_preset(self, index: int) -> None:
        if index >= len(PRESETS):
            self._source.setText("The sliders say what is tried.")
            self._preset.setToolTip(_OWN)
            return
        preset = PRESETS[index]
        for control in (self._size, self._count, self._dtype):
            control.blockSignals(True)
        self._size.setValue(SIZES.index(preset.plan.size))
        self._count.setValue(COUNTS.index(preset.plan.count))
        self._dtype.setCurrentText(preset.plan.dtype)
        for control in (self._size, self._count, self._dtype):
            control.blockSignals(False)
        self._source.setText(preset.sentence)
        self._preset.setToolTip(preset.name)
        self._update_words()

    def _own_plan(self) -> None:
        self._preset.setCurrentIndex(len(PRESETS))
        self._take_preset(len(PRESETS))
        self._update_words()

    def _keep_budget(self) -> None:
        self._budget_by_hand = True

    def _update_limits(self) -> None:
        """Fit the budget's slider to the card, and its value until a person has moved it."""
        sizes = self._model.sizes_bytes
        identity = self._model.chosen.identity
        if not self._model.chosen.is_card or sizes is None:
            self._update_words()
            return
        if identity != self._budget_of:
            self._budget_of, self._budget_by_hand = identity, False
        total_bytes, free_bytes = sizes
        highest = largest_budget(total_bytes) // BUDGET_STEP_BYTES
        self._budget.setRange(1, highest)
        self._budget.setPageStep(max(1, highest // 16))
        if not self._budget_by_hand and self._experiment.state is OomState.IDLE:
            self._budget.setValue(default_budget(total_bytes, free_bytes) // BUDGET_STEP_BYTES)
        self._update_words()

    def _update_words(self) -> None:
        plan, sizes = self.plan, self._model.sizes_bytes
        one = format_bytes(plan.tensor_bytes)
        self._tell(self._size, self._size_words, "Tensor size", f"{format_size(plan.size)} = {one}")
        if plan.count is None:
            count = "until it breaks"
        else:
            count = f"{plan.count} = {format_bytes(plan.count * plan.tensor_bytes)}"
        self._tell(self._count, self._count_words, "How many tensors", count)
        if self._model.chosen.is_card and sizes is not None:
            budget = f"{format_bytes(self.budget_bytes)} of {format_bytes(sizes[0])}"
        else:
            budget = "needs a card"
        self._tell(self._budget, self._budget_words, "Budget", budget)

    @staticmethod
    def _tell(slider: QSlider, words: Text, title: str, value: str) -> None:
        words.setText(value)
        slider.setAccessibleName(f"{title}: {value}")
        slider.setToolTip(value)

    # ── running ──────────────────────────────────────────────────────────────────────────────

    def _start(self) -> None:
        address = self._model.chosen.address
        if address is not None:
            self._experiment.run(address, self.plan, self.budget_bytes)

    def _update_state(self) -> None:
        reason = self._why_not()
        state = self._experiment.state
        idle = state is OomState.IDLE
        self._reason.setText(reason)
        self._reason.setVisible(bool(reason))
        usable = not reason and idle
        for control in (self._preset, self._dtype, self._size, self._count, self._budget):
            control.setEnabled(usable)
        had_focus = self._run.hasFocus() or self._stop.hasFocus()
        self._run.setEnabled(usable)
        self._stop.setEnabled(state in (OomState.WAITING, OomState.RUNNING))
        if had_focus:  # a disabled button would throw the focus away
            (self._run if usable else self._stop).setFocus()

    def _why_not(self) -> str:
        """Return why the experiment cannot run now; empty where it can."""
        state, chosen = self._session.state, self._model.chosen
        if state is EngineState.FAILED:
            return "There is no engine. Start a fresh one from the Engine menu."
        description = self._session.description
        if description is None:
            return "The engine is starting: PyTorch is being loaded."
        if chosen.is_card:
            return "" if chosen.address else f"PyTorch cannot use this card. {chosen.reason}"
        if any(choice.address and choice.is_card for choice in self._model.choices):
            return "Choose a card above: the experiment fills a card's memory, not the PC's."
        why = description.cuda_reason or "PyTorch found no card."
        return f"The experiment needs a CUDA card and the allocator's own numbers. {why}"

    def _show_outcome(self, outcome: Outcome) -> None:
        self._headline.setText(outcome.headline)
        self._result.set_tone(outcome.tone)
        self._outcome.setText(outcome.sentence)
        self._next_step.setText(outcome.next_step)
        self._next_step.setVisible(bool(outcome.next_step))
        self.setAccessibleDescription(f"{outcome.headline} {outcome.sentence} {outcome.next_step}")
        self._result.show()


def _add_slider_row(column: QVBoxLayout, title: str, slider: QSlider, words: Text) -> None:
    grid = QGridLayout()
    grid.setVerticalSpacing(2)
    column.addLayout(grid)
    label = Text(title)
    label.setBuddy(slider)
    grid.addWidget(label, 0, 0)
    grid.addWidget(words, 0, 1, Qt.AlignmentFlag.AlignRight)
    grid.addWidget(slider, 1, 0, 1, 2)
