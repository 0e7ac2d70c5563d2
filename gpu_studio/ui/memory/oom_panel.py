"""The choices of an out-of-memory experiment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTemporaryDir
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QMessageBox,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.memory.modelled_cards import needs_budget
from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.core.messages.memory_messages import AllocationPlan, RunMemoryExperiment
from gpu_studio.core.tensors import DTYPES, ITEM_BYTES
from gpu_studio.core.units import counted, format_bytes, format_size
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.memory.oom_experiment import (
    COUNTS,
    SIZES,
    WATCH_S,
    OomState,
)
from gpu_studio.ui.eliding import narrow_combo
from gpu_studio.ui.page_keys import runs, stops
from gpu_studio.ui.parts import GAP, Card, Text, button

if TYPE_CHECKING:
    from gpu_studio.model.memory.memory_model import MemoryModel
    from gpu_studio.model.studio import Studio

CUSTOM = "custom"
_FIRST_SIZE, _FIRST_COUNT = 4096, 8
WHOLE_CARD_WARNING = (
    "This leaves no memory for the desktop. While the card is full, windows may freeze or turn "
    "black, and videos may stop. The system may restart the display driver. Other programs that "
    "need memory on the card may end. On Windows, the driver continues in the PC's memory, slowly. "
    "It lasts a few seconds, until the experiment ends. Save your work first."
)


class OomPanel(Card):
    """The experiment, its tensors, Run and Stop."""

    def __init__(self, studio: Studio, model: MemoryModel, parent: QWidget | None = None) -> None:
        super().__init__(parent, name="memory.oom")
        self._model, self._experiment = model, model.experiment
        self._budget_of = ""
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
        self._update_state()

    @property
    def preset(self) -> str:
        """The name of the chosen experiment."""
        return str(self._preset.currentData())

    @property
    def plan(self) -> AllocationPlan:
        """The tensors of your own experiment."""
        return self._choices.plan

    # ── making ───────────────────────────────────────────────────────────────────────────────

    def _make_choices(self) -> None:
        self._preset = narrow_combo("memory.oom.preset", "Experiment")
        for preset in PRESETS:
            self._preset.addItem(preset.title, preset.name)
        self._source = Text(role="muted", name="memory.oom.source", wraps=True)
        self._choices = PlanChoices()
        self._budget = Text(role="muted", name="memory.oom.budget", wraps=True)
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
        column.addWidget(self._choices)
        column.addWidget(self._budget)
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
        self._whole.toggled.connect(self._update_state)
        self._experiment.state_changed.connect(self._update_state)
        self._model.memory_changed.connect(self._show_budget)
        self._model.chosen_changed.connect(self._update_state)
        self._model.devices.choices_changed.connect(self._update_state)
        studio.session.state_changed.connect(self._update_state)
        studio.pcs.session_changed.connect(self._update_state)

    # ── the plan ─────────────────────────────────────────────────────────────────────────────

    def _use_preset(self, index: int) -> None:
        preset = PRESETS[index]
        self._choices.setVisible(preset.name == CUSTOM)
        source = f" From {preset.source}." if preset.source else ""
        self._source.setText(f"{preset.sentence}{source}")
        self._preset.setToolTip(preset.title)

    def _show_budget(self) -> None:
        """Fit the choice of the whole card to another device, and say what may be used."""
        sizes, chosen = self._model.sizes_bytes, self._model.chosen
        if not chosen.is_cpu and chosen.identity != self._budget_of:
            self._budget_of = chosen.identity
            self._whole.setChecked(not needs_budget(chosen.address or ""))
        if chosen.is_cpu or sizes is None:
            budget = "Budget: needs a card"
        elif self._whole.isChecked():
            budget = f"Budget: all of {format_bytes(sizes[0])}"
        else:
            budget = f"Budget: ¾ of free memory, about {format_bytes(sizes[1] * 3 // 4)}"
        self._budget.setText(budget)

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
        for control in (self._preset, self._choices, self._whole):
            control.setEnabled(usable)
        # A snapshot is a file of the PC that takes it.
        self._record.setEnabled(usable and not self._model.chosen.pc)
        had_focus = self._run.hasFocus() or self._stop.hasFocus()
        self._run.setEnabled(usable)
        self._stop.setEnabled(state in (OomState.WAITING, OomState.RUNNING))
        if had_focus:  # a disabled button loses the focus
            (self._run if usable else self._stop).setFocus()
        self._show_budget()

    def _why_not(self) -> str:
        """Return why no experiment can run now; empty if one can."""
        session, chosen = self._model.pc.session, self._model.chosen
        if chosen.is_modelled:
            return ""
        if session.state is EngineState.FAILED:
            return "PyTorch has stopped. Start it anew from the PyTorch menu."
        if session.what_is_missing:
            return session.what_is_missing
        if not chosen.is_cpu:
            return "" if chosen.address else f"PyTorch cannot use this card. {chosen.reason}"
        if self._model.devices.has_usable_card:
            return "Choose a card above. An experiment fills a card's memory, not the PC's."
        return "Choose a simulated card above. An experiment fills a card, not the PC's memory."


class PlanChoices(QWidget):
    """The tensors of an experiment of your own: their size, their number and their type."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memory.oom.plan")
        self._size = narrow_combo("memory.oom.size", "Tensor size")
        for size in SIZES:
            self._size.addItem(f"{format_size(size)} = {format_bytes(4 * size**2)}", size)
        self._size.setCurrentIndex(SIZES.index(_FIRST_SIZE))
        self._count = narrow_combo("memory.oom.count", "Number of tensors")
        for count in COUNTS:
            words = "Until it fails" if count is None else counted(count, "tensor")
            self._count.addItem(words, count)
        self._count.setCurrentIndex(COUNTS.index(_FIRST_COUNT))
        self._dtype = narrow_combo("memory.oom.dtype", "Data type")
        self._dtype.addItems(DTYPES)
        self._dtype.setCurrentText("float32")
        self._dtype.currentTextChanged.connect(self._show_sizes)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for box in (self._size, self._count, self._dtype):
            column.addWidget(box)

    @property
    def plan(self) -> AllocationPlan:
        return AllocationPlan(
            size=self._size.currentData(),
            count=self._count.currentData(),
            dtype=self._dtype.currentText(),
        )

    def _show_sizes(self, dtype: str) -> None:
        for index, size in enumerate(SIZES):
            size_bytes = ITEM_BYTES[dtype] * size**2
            self._size.setItemText(index, f"{format_size(size)} = {format_bytes(size_bytes)}")


def check(name: str, text: str) -> QCheckBox:
    """Return a check box."""
    control = QCheckBox(text)
    control.setObjectName(name)
    control.setAccessibleName(text)
    return control
