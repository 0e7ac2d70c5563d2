"""What stands below the answers about a device: its sensors, programs, facts and processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gpu_studio.core.devices.facts import identity_line
from gpu_studio.ui.devices.copy_button import CopyButton
from gpu_studio.ui.devices.fact_grid import FactGrid
from gpu_studio.ui.devices.process_card import ProcessCard
from gpu_studio.ui.devices.program_memory import ProgramMemory
from gpu_studio.ui.devices.sensor_grid import SensorGrid
from gpu_studio.ui.devices.sensor_log_button import SensorLogButton
from gpu_studio.ui.parts import GAP, Card, Text, button
from gpu_studio.ui.theme import device_role

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.facts import FactGroup
    from gpu_studio.model.devices.devices import DevicesModel
    from gpu_studio.model.settings import Settings
    from gpu_studio.ui.theme import Theme


class DeviceDetails(QWidget):
    """Shows the selected device of a model; the facts and processes are folded at first.

    Signals:
        readings_wanted(): another time span or other sensors are shown now.
    """

    readings_wanted = Signal()

    def __init__(
        self, model: DevicesModel, settings: Settings, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._model = model
        self._log = SensorLogButton(model.log, self)
        self._sensors = SensorGrid(theme, self._log.press)
        self._effect = Text("", "muted", name="devices.effect", wraps=True)
        self._programs = ProgramMemory(theme)
        self._fold = button("All facts", self._show_facts, name="devices.facts")
        self._fold.setCheckable(True)
        self._copy = CopyButton(model, theme)
        self._facts = FactGrid(name="devices.details")
        self._facts_card = Card()
        self._facts_card.column.addWidget(self._facts)
        self._processes = ProcessCard(model.processes, settings)
        self._lay_out()
        self._sensors.readings_wanted.connect(self.readings_wanted)
        model.runs.effect_changed.connect(self._effect.setText)
        model.runs.effect_changed.connect(self._effect.show)
        self._copy.setEnabled(model.device is not None)

    def show_device(self) -> None:
        """Show what is known about the selected device."""
        device = self._model.device
        self._copy.setEnabled(device is not None)
        if device is None:
            return
        is_card = not device.is_cpu
        self._sensors.show_device(device.name, identity_line(device) if is_card else "")
        self._sensors.setVisible(self._model.is_readable)
        self._programs.show_programs(
            self._model.processes.processes if is_card else (),
            self._model.memory_used,
            _role(device),
        )
        self._fold.show()
        self._show_facts()

    def show_readings(self) -> None:
        """Show the newest readings of the selected device."""
        device = self._model.device
        if device is None:
            return
        span_s = self._sensors.span_s
        spans = self._model.spans(span_s)
        newest_s = max((float(s.times_s[-1]) for s in spans if s.has_values), default=0.0)
        marks = self._model.marks_since(newest_s - span_s)
        self._sensors.show_spans(spans, _role(device), marks, self._model.spans_beside(span_s))

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        facts = QHBoxLayout()
        facts.setSpacing(GAP)
        column.addWidget(self._sensors)
        column.addWidget(self._effect)
        column.addWidget(self._log.outcome)
        column.addWidget(self._programs)
        column.addLayout(facts)
        facts.addWidget(self._fold)
        facts.addWidget(self._copy, 1)
        column.addWidget(self._facts_card)
        column.addWidget(self._processes)
        self._effect.hide()
        self._fold.hide()
        self._facts_card.hide()
        self._processes.hide()

    def _show_facts(self) -> None:
        """Show the facts and the processes while they are unfolded."""
        groups, device = self._model.groups, self._model.device
        is_open = self._fold.isChecked()
        self._fold.setText(f"{'Hide' if is_open else 'All'} facts ({_count(groups)})")
        self._fold.setAccessibleName(self._fold.text())
        self._facts_card.setVisible(is_open)
        is_card = device is not None and not device.is_cpu and self._model.is_readable
        # Without their memory, the programs have no bars above.
        self._processes.setVisible(is_card and (is_open or self._programs.isHidden()))
        if is_open:
            self._facts.show_groups(groups)


def _role(device: Device) -> str:
    return device_role(device.address) if device.address else "other"


def _count(groups: Sequence[FactGroup]) -> int:
    return sum(len(group.facts) for group in groups)
