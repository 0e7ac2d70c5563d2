"""The sliders of a plan of tensors: how large, how many, of which type, and how they go on."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QSlider, QVBoxLayout, QWidget

from gpu_studio.core.protocol import AllocationPlan
from gpu_studio.core.tensors import DTYPES, ITEM_BYTES
from gpu_studio.core.units import format_bytes, format_size
from gpu_studio.model.memory.oom_experiment import COUNTS, GROWTHS, SIZES
from gpu_studio.ui.eliding_combo import narrow_combo
from gpu_studio.ui.parts import Text


class PlanSliders(QWidget):
    """Shows an `AllocationPlan` and lets a person change it.

    Signals:
        changed(): a person has changed it.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("memory.oom.sliders")
        self._size, self._size_words = slider("memory.oom.size", len(SIZES) - 1)
        self._count, self._count_words = slider("memory.oom.count", len(COUNTS) - 1)
        self._dtype = narrow_combo("memory.oom.dtype", "Type of the numbers")
        self._dtype.addItems(DTYPES)
        self._steps = QWidget()
        self._steps.setObjectName("memory.oom.steps")
        self._growth, self._growth_words = slider("memory.oom.growth", len(GROWTHS) - 1)
        self._frees = check("memory.oom.frees", "Free every second tensor")
        column = QVBoxLayout(self)
        add_slider_row(column, "Tensor size", self._size, self._size_words)
        add_slider_row(column, "How many", self._count, self._count_words)
        column.addWidget(self._dtype)
        column.addWidget(self._steps)
        steps = QVBoxLayout(self._steps)
        add_slider_row(steps, "Growth per step", self._growth, self._growth_words)
        steps.addWidget(self._frees)
        for layout in (column, steps):
            layout.setContentsMargins(0, 0, 0, 0)
            layout.setSpacing(8)
        for moved in (self._size, self._count, self._growth):
            moved.valueChanged.connect(self._tell_change)
        self._dtype.currentIndexChanged.connect(self._tell_change)
        self._frees.toggled.connect(self._tell_change)

    @property
    def plan(self) -> AllocationPlan:
        """What the sliders say."""
        return AllocationPlan(
            size=SIZES[self._size.value()],
            count=COUNTS[self._count.value()],
            dtype=self._dtype.currentText(),
            frees_every_second=self._frees.isChecked(),
            growth=GROWTHS[self._growth.value()],
        )

    def show_plan(self, plan: AllocationPlan) -> None:
        """Say something else, which no person did."""
        controls = (self._size, self._count, self._growth, self._dtype, self._frees)
        for control in controls:
            control.blockSignals(True)
        self._size.setValue(SIZES.index(plan.size))
        self._count.setValue(COUNTS.index(plan.count))
        self._growth.setValue(GROWTHS.index(plan.growth))
        self._dtype.setCurrentText(plan.dtype)
        self._frees.setChecked(plan.frees_every_second)
        for control in controls:
            control.blockSignals(False)
        self._say()

    def show_steps(self, shown: bool) -> None:
        """Show how the tensors go on, for a plan of one's own."""
        self._steps.setVisible(shown)

    def _tell_change(self) -> None:
        self._say()
        self.changed.emit()

    def _say(self) -> None:
        plan = self.plan
        tensor_bytes = plan.size**2 * ITEM_BYTES[plan.dtype]
        one = format_bytes(tensor_bytes)
        tell(self._size, self._size_words, "Tensor size", f"{format_size(plan.size)} = {one}")
        if plan.count is None:
            count = "until it breaks"
        elif plan.growth:
            count = str(plan.count)
        else:
            count = f"{plan.count} = {format_bytes(plan.count * tensor_bytes)}"
        tell(self._count, self._count_words, "How many tensors", count)
        growth = f"+ {plan.growth} a side" if plan.growth else "all of one size"
        tell(self._growth, self._growth_words, "Growth per step", growth)


def slider(name: str, highest: int) -> tuple[QSlider, Text]:
    """Return a slider from 0 on, and the place of its value in words."""
    made = QSlider(Qt.Orientation.Horizontal)
    made.setObjectName(name)
    made.setRange(0, highest)
    made.setPageStep(max(1, highest // 8))
    return made, Text(role="muted", name=f"{name}.words")


def tell(told: QSlider, words: Text, title: str, value: str) -> None:
    """Say a slider's value, to those who see it and to those who do not."""
    words.setText(value)
    told.setAccessibleName(f"{title}: {value}")
    told.setToolTip(value)


def add_slider_row(column: QVBoxLayout, title: str, added: QSlider, words: Text) -> None:
    """Put a slider under its title and its value."""
    grid = QGridLayout()
    grid.setVerticalSpacing(2)
    column.addLayout(grid)
    label = Text(title)
    label.setBuddy(added)
    grid.addWidget(label, 0, 0)
    grid.addWidget(words, 0, 1, Qt.AlignmentFlag.AlignRight)
    grid.addWidget(added, 1, 0, 1, 2)


def check(name: str, text: str) -> QCheckBox:
    """Return a check box."""
    made = QCheckBox(text)
    made.setObjectName(name)
    made.setAccessibleName(text)
    return made
