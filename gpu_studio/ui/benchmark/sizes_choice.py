"""The sizes: a list, or a sweep between two that refines around the crossover."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from gpu_studio.core.benchmark.sizes import parse_sizes, parse_sweep
from gpu_studio.core.failure import StudioError
from gpu_studio.ui.eliding import RoomText
from gpu_studio.ui.parts import Text, letters, section, set_property

if TYPE_CHECKING:
    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.model.settings import Choices

_LIST_TIP = "For example 512, 1024, 2048; or 64..4096 for every doubling. Enter runs."
_END_LETTERS = 8
_LINES = 2  # of the meaning, and of a mistake
_SWEEP_TIP = "Both ends and every power of two between them, then finer sizes around the crossover."


class SizesChoice(QWidget):
    """A field for a list, or two for a range, with the error below.

    Signals:
        changed(): the sizes changed, or the typed text is not valid.
        run_wanted(): Enter was pressed.
    """

    changed = Signal()
    run_wanted = Signal()

    def __init__(self, choices: Choices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._workload = ""
        self._typed: dict[str, tuple[str, str, str]] = {}
        self.sizes: list[int] = []
        self._list = self._field("benchmark.sizes", "Sizes", _LIST_TIP)
        self._low = self._field("benchmark.sweep.low", "Smallest size", _SWEEP_TIP)
        self._high = self._field("benchmark.sweep.high", "Largest size", _SWEEP_TIP)
        for end in (self._low, self._high):  # both together as wide as the list: nothing moves
            end.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
            end.setMinimumWidth(letters(end, _END_LETTERS))
        self._range = QWidget()
        line = QHBoxLayout(self._range)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self._low, 1)
        line.addWidget(Text("to", "muted"))
        line.addWidget(self._high, 1)
        self._sweep = QCheckBox("Sweep: find the crossover")
        self._sweep.setObjectName("benchmark.sweep")
        self._sweep.setToolTip(_SWEEP_TIP)
        self._sweep.setChecked(choices.sweep)
        # One takes the place of the other: a mistake moves none of the options below.
        self._meaning = RoomText("", "muted", name="benchmark.sizes.meaning", lines=_LINES)
        self._error = RoomText("", "failure", name="benchmark.sizes.error", lines=_LINES)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(5)
        for part in (
            section("Sizes"), self._list, self._range, self._error, self._meaning, self._sweep,
        ):  # fmt: skip
            column.addWidget(part)
        self._fill(choices.sizes, *choices.sweep_range.split(":"))
        self._sweep.toggled.connect(self._toggle)
        self._toggle()

    @property
    def is_sweep(self) -> bool:
        """Whether to look for the crossover."""
        return self._sweep.isChecked()

    @property
    def texts(self) -> tuple[str, str]:
        """The typed list, and the typed range as ``LOW:HIGH``."""
        return self._list.text(), f"{self._low.text()}:{self._high.text()}"

    def show_workload(self, workload: WorkloadDescription) -> None:
        """Explain the sizes of another workload; offer its usual or last typed sizes."""
        if self._workload:
            self._typed[self._workload] = (self._list.text(), self._low.text(), self._high.text())
        if self._workload != workload.name:
            usual = (", ".join(map(str, workload.sizes)), *_ends(workload.sizes))
            if workload.name in self._typed or self._workload:
                self._fill(*self._typed.get(workload.name, usual))
            self._workload = workload.name
        self._meaning.setText(workload.size_title)
        self._read()

    def _field(self, name: str, accessible_name: str, tip: str) -> QLineEdit:
        field = QLineEdit()
        field.setObjectName(name)
        field.setAccessibleName(accessible_name)
        field.setToolTip(tip)
        field.textChanged.connect(self._read)
        field.returnPressed.connect(self.run_wanted)
        return field

    def _fill(self, sizes: str, low: str, high: str) -> None:
        for field, text in ((self._list, sizes), (self._low, low), (self._high, high)):
            with QSignalBlocker(field):
                field.setText(text)

    def _toggle(self) -> None:
        self._list.setVisible(not self.is_sweep)
        self._range.setVisible(self.is_sweep)
        self._read()

    def _read(self) -> None:
        sizes, sweep = self.texts
        try:
            self.sizes = parse_sweep(sweep) if self.is_sweep else parse_sizes(sizes)
            mistake = ""
        except StudioError as error:
            self.sizes, mistake = [], str(error)
        for field in (self._low, self._high) if self.is_sweep else (self._list,):
            set_property(field, "invalid", bool(mistake))
            field.setAccessibleDescription(mistake)
        self._error.setText(mistake)
        self._error.setVisible(bool(mistake))
        self._meaning.setVisible(not mistake)
        self.changed.emit()


def _ends(sizes: tuple[int, ...]) -> tuple[str, str]:
    return (str(min(sizes)), str(max(sizes))) if sizes else ("64", "4096")
