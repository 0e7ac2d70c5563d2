"""What most users leave as it is: how to measure, and the options of the workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.benchmark.options import explain_option, value_words
from gpu_studio.ui.eliding import ElidingCombo
from gpu_studio.ui.parts import Text, section

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.model.settings import Choices

STOP_AT_RELATIVE_INTERVAL = 0.02

# mode of `WorkloadDescription.refuses`: (title, what it does)
_SWITCHES = {
    "transfers": (
        "Include copies to/from the GPU",
        "Each card runs a second time, with the copies to and from it timed in each call.",
    ),
    "naive": (
        "Also time it naively",
        "Adds the time that a script without warm-up and synchronize would print.",
    ),
    "sustained": (
        "Sustained speed",
        "Loads the device for 15\u202fs, then times it for 15\u202fs or more without rests. "
        "Without this, a run warms up for 0.3\u202fs and until the clock is steady: an old card "
        "may hold a higher clock for its first 7\u202fs.",
    ),
    "cold": (
        "Cold cache",
        "Overwrites the device's cache before each call, as if the data were new to it.",
    ),
    "stop_early": (
        "Stop early at ± 2 %",
        "Ends a run early when its median is known to within 2 %.",
    ),
}
_VALUE_LENGTH = 7
_EXPERT = ("cold", "stop_early")
_GAP = 5
_MOST_CHANGES = 9


class WorkloadOptions(QWidget):
    """A drop-down list for each option of the workload; hidden if it has none.

    Signals:
        changed(): a choice changed.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._combos: dict[str, QComboBox] = {}
        self._chosen: dict[str, dict[str, str]] = {}
        self._workload = ""
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 6, 0, 0)
        self._column.setSpacing(5)
        self._form: QWidget | None = None

    @property
    def options(self) -> dict[str, str]:
        """The chosen values that differ from the default, by option name."""
        return {
            name: combo.currentData()
            for name, combo in self._combos.items()
            if combo.currentIndex() > 0
        }

    def show_workload(self, workload: WorkloadDescription) -> None:
        """Offer the options of another workload, with its last chosen values."""
        if workload.name == self._workload:
            return
        self._chosen[self._workload] = self.options
        self._workload = workload.name
        if self._form is not None:
            self._form.hide()
            self._column.removeWidget(self._form)
            for combo in self._combos.values():
                combo.setObjectName("")  # it outlives the creation of its successor for a moment
            self._form.deleteLater()
        self._combos, self._form = {}, None
        self.setVisible(bool(workload.options))
        if workload.options:
            self._form = self._make_form(workload)
            self._column.addWidget(self._form)

    def _make_form(self, workload: WorkloadDescription) -> QWidget:
        form = QWidget()
        grid = QGridLayout(form)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(5)
        grid.setColumnStretch(0, 1)
        grid.setColumnStretch(1, 1)
        grid.addWidget(section("Options"), 0, 0, 1, 2)
        for row, option in enumerate(workload.options, 1):
            combo = ElidingCombo()
            combo.setSizeAdjustPolicy(
                QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
            )
            combo.setMinimumContentsLength(_VALUE_LENGTH)
            combo.setObjectName(f"benchmark.option.{option.name}")
            combo.setAccessibleName(option.title)
            explanation = explain_option(option)
            combo.setAccessibleDescription(explanation)
            combo.setToolTip(explanation)
            for value in option.values:
                combo.addItem(value_words(value), value)
            before = self._chosen.get(workload.name, {}).get(option.name)
            combo.setCurrentIndex(max(combo.findData(before), 0))
            combo.currentIndexChanged.connect(self.changed)
            label = Text(option.title, wraps=True)
            label.setToolTip(explanation)
            label.setBuddy(combo)
            grid.addWidget(label, row, 0)
            grid.addWidget(combo, row, 1)
            self._combos[option.name] = combo
        return form


class ModeSwitches(QWidget):
    """Copies and naive timing; and, behind a button, the switches for experts.

    Signals:
        changed(): a choice changed.
    """

    changed = Signal()

    def __init__(self, choices: Choices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._boxes: dict[str, QCheckBox] = {}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(5)
        column.addWidget(section("How to measure"))
        for mode in _SWITCHES:
            if mode == _EXPERT[0]:
                column.addWidget(self._make_expert())
            column.addWidget(self._make_box(mode, checked=mode in choices.modes))
        self._expert.setChecked(any(mode in choices.modes for mode in _EXPERT))
        self._show_expert()

    @property
    def modes(self) -> tuple[str, ...]:
        """The names of the modes that are switched on."""
        return tuple(
            mode for mode, box in self._boxes.items() if box.isChecked() and box.isEnabled()
        )

    @property
    def last(self) -> QWidget:
        """The last control in Tab order."""
        return list(self._boxes.values())[-1]

    def show_workload(self, workload: WorkloadDescription) -> None:
        """Disable the switches that a workload refuses, with the reason."""
        for mode, box in self._boxes.items():
            refusal = workload.refuses.get(mode, "")
            box.setEnabled(not refusal)
            box.setToolTip(refusal or _SWITCHES[mode][1])
            box.setAccessibleDescription(box.toolTip())

    def _make_box(self, mode: str, *, checked: bool) -> QCheckBox:
        title, sentence = _SWITCHES[mode]
        box = QCheckBox(title)
        box.setObjectName(f"benchmark.mode.{mode}")
        box.setToolTip(sentence)
        box.setAccessibleDescription(sentence)
        box.setChecked(checked)
        box.toggled.connect(self.changed)
        self._boxes[mode] = box
        return box

    def _make_expert(self) -> QToolButton:
        self._expert = QToolButton()
        self._expert.setObjectName("benchmark.expert")
        self._expert.setCheckable(True)
        self._expert.setProperty("fold", True)
        self._expert.toggled.connect(self._show_expert)
        return self._expert

    def _show_expert(self) -> None:
        shown = self._expert.isChecked()
        self._expert.setText("▾ For experts" if shown else "▸ For experts")
        self._expert.setAccessibleName("For experts")
        for mode in _EXPERT:
            if mode in self._boxes:
                self._boxes[mode].setVisible(shown)


class MoreOptions(QWidget):
    """A button, a line that says what is chosen, and the widgets in `column` behind them.

    The button has the number of choices that differ from the default.

    Attributes:
        button: the button that shows and hides the options.
        handle: the button at the left of the room that it may need, to be placed in a bar.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_bar = self._is_offered = False
        self.button = QToolButton()
        self.button.setObjectName("benchmark.more")
        self.button.setCheckable(True)
        self.button.setProperty("fold", True)
        self.button.setToolTip("Sizes, precision, time per run, and how to measure")
        self.button.toggled.connect(self._show)
        self._summary = Text("", "muted", name="benchmark.more.summary", wraps=True)
        self._body = QWidget()
        outer = self._outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(_GAP)
        self.handle = QWidget()
        line = QHBoxLayout(self.handle)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self.button)
        line.addStretch(1)
        outer.addWidget(self.handle)
        outer.addWidget(self._summary)
        outer.addWidget(self._body)
        self.column = QVBoxLayout(self._body)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(_GAP)
        self._changes = 0
        self._show()

    def set_bar(self, is_bar: bool) -> None:
        """Leave the button to a bar above, or take it back."""
        self._is_bar = is_bar
        self.button.setText(_text(is_open=True, changes=_MOST_CHANGES))
        # In a bar another count moves nothing.
        self.handle.setMinimumWidth(self.button.sizeHint().width() if is_bar else 0)
        if not is_bar:
            self._outer.insertWidget(0, self.handle)
        self._show()

    def offer(self) -> None:
        """Show the button and the line: it is known what can be chosen."""
        self._is_offered = True
        self._show()

    def open(self) -> None:
        """Show the options, for example because one of them has a mistake."""
        self.button.setChecked(True)

    def show_summary(self, summary: str, changes: int) -> None:
        """Say what is chosen, and how many choices differ from the default."""
        self._summary.setText(summary)
        self._changes = changes
        self._show()

    def _show(self) -> None:
        is_open = self.button.isChecked()
        self.button.setText(_text(is_open=is_open, changes=self._changes))
        self.button.setAccessibleName(self.button.text()[2:])
        self.handle.setVisible(self._is_offered)
        self._body.setVisible(is_open)
        self._summary.setVisible(self._is_offered and not is_open and not self._is_bar)
        self.setVisible(is_open or not self._is_bar)


def _text(*, is_open: bool, changes: int) -> str:
    count = f" ({changes} changed)" if changes else ""
    return f"{'▾' if is_open else '▸'} More options{count}"
