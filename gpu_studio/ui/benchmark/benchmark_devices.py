"""A check box a device: where to run."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from gpu_studio.ui.benchmark.swatch import SIDE, swatch
from gpu_studio.ui.parts import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.model.benchmark.benchmark_devices import DeviceChoice
    from gpu_studio.ui.theme import Theme

_INDENT = 23  # under the check box's own text


class DeviceBoxes(QWidget):
    """The CPU and every card; one that PyTorch cannot use is there, disabled, with the reason.

    Signals:
        changed(): other devices are checked now.
    """

    changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("benchmark.devices")
        self.setAccessibleName("Devices")
        self._theme = theme
        self._choices: list[DeviceChoice] = []
        self._boxes: list[QCheckBox] = []
        # Devices the user took away; a device that comes anew is checked.
        self._unchecked: set[str] = set()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)

    @property
    def addresses(self) -> list[str]:
        """The checked devices that can be used, the CPU first."""
        return [
            choice.address
            for choice, box in zip(self._choices, self._boxes, strict=True)
            if choice.address is not None and box.isChecked()
        ]

    def show_choices(self, choices: Sequence[DeviceChoice]) -> None:
        """Offer other devices; what was unchecked stays so."""
        if list(choices) == self._choices:
            return
        while (item := self._column.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.setObjectName("")  # it lives on for a moment, beside its successor
                widget.deleteLater()
        self._choices = list(choices)
        self._boxes = [self._add(choice) for choice in choices]
        # They come later than what stands below them: Tab is to reach them where they are seen.
        before: QWidget | None = self
        while before is not None and before.focusPolicy() is Qt.FocusPolicy.NoFocus:
            before = before.previousInFocusChain()
        for earlier, box in itertools.pairwise([before, *self._boxes]):
            if earlier is not None and box is not None:
                QWidget.setTabOrder(earlier, box)
        self.changed.emit()

    def _add(self, choice: DeviceChoice) -> QCheckBox:
        box = QCheckBox(choice.label.replace("&", "&&"))  # a single one would be a mnemonic
        box.setObjectName(f"benchmark.devices.{choice.address or choice.identity}")
        box.setIcon(swatch(self._theme, choice.address, self.devicePixelRatioF()))
        box.setIconSize(QSize(SIDE, SIDE))
        usable = choice.address is not None
        box.setEnabled(usable)
        box.setChecked(usable and choice.identity not in self._unchecked)
        box.setAccessibleName(choice.label)
        note = choice.reason or choice.name
        box.setAccessibleDescription(note)
        box.toggled.connect(self._note)
        self._column.addWidget(box)
        if note != choice.label:
            text = Text(note, "muted", wraps=True)
            text.setContentsMargins(_INDENT, 0, 0, 2)
            self._column.addWidget(text)
        return box

    def _note(self) -> None:
        for choice, box in zip(self._choices, self._boxes, strict=True):
            if box.isEnabled():
                self._unchecked.discard(choice.identity)
                if not box.isChecked():
                    self._unchecked.add(choice.identity)
        self.changed.emit()
