"""The options of the chosen workload, each as a list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QComboBox, QGridLayout, QVBoxLayout, QWidget

from gpu_studio.core.benchmark.options import explain_option, value_words
from gpu_studio.ui.eliding import ElidingCombo
from gpu_studio.ui.parts import Text, section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpu_studio.core.messages.run_messages import WorkloadDescription

_VALUE_LENGTH = 7


class WorkloadOptions(QWidget):
    """A drop-down list for each option of the workload; hidden if it has none.

    Signals:
        changed(dict[str, str]): the chosen values that differ from the default, by option name.
    """

    changed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._combos: dict[str, QComboBox] = {}
        self._workload = ""
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 6, 0, 0)
        self._column.setSpacing(5)
        self._form: QWidget | None = None

    def show_workload(
        self, workload: WorkloadDescription | None, chosen: Mapping[str, str]
    ) -> None:
        """Offer the options of a workload, with these values chosen."""
        name = workload.name if workload is not None else ""
        if name != self._workload:
            self._workload = name
            if self._form is not None:
                self._form.hide()
                self._column.removeWidget(self._form)
                for combo in self._combos.values():
                    combo.setObjectName("")  # it outlives the creation of its successor
                self._form.deleteLater()
            self._combos, self._form = {}, None
            if workload is not None and workload.options:
                self._form = self._make_form(workload)
                self._column.addWidget(self._form)
        self.setVisible(self._form is not None)
        for option, combo in self._combos.items():
            with QSignalBlocker(combo):
                combo.setCurrentIndex(max(combo.findData(chosen.get(option)), 0))

    def _on_chosen(self) -> None:
        self.changed.emit(
            {
                name: combo.currentData()
                for name, combo in self._combos.items()
                if combo.currentIndex() > 0
            }
        )

    def _make_form(self, workload: WorkloadDescription) -> QWidget:
        form = QWidget()
        grid = QGridLayout(form)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(5)
        grid.addWidget(section("Options"), 0, 0)
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
            combo.currentIndexChanged.connect(self._on_chosen)
            label = Text(option.title, wraps=True)
            label.setToolTip(explanation)
            label.setBuddy(combo)
            grid.addWidget(label, 2 * row - 1, 0)
            grid.addWidget(combo, 2 * row, 0)
            self._combos[option.name] = combo
        return form
