"""The Devices tab: what is in this PC, whether PyTorch can use it, and what to press."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gpu_studio.model.benchmark.quick_comparison import QuickComparison
from gpu_studio.model.devices.devices import DevicesModel
from gpu_studio.ui.devices.copy_button import CopyButton
from gpu_studio.ui.devices.device_hero import DeviceHero
from gpu_studio.ui.devices.fact_grid import FactGrid
from gpu_studio.ui.devices.finding_line import FindingLine
from gpu_studio.ui.devices.process_card import ProcessCard
from gpu_studio.ui.devices.program_memory import ProgramMemory
from gpu_studio.ui.devices.sensor_grid import SensorGrid
from gpu_studio.ui.devices.sensor_log_button import SensorLogButton
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, button
from gpu_studio.ui.theme import device_role

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QHideEvent, QShowEvent

    from gpu_studio.core.devices.facts import FactGroup
    from gpu_studio.model.headline import Headline
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme


class DevicesTab(QWidget):
    """The findings, the answers about this PC, and below them its sensors, programs and facts."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model = DevicesModel(studio, self)
        self._comparison = QuickComparison(studio, self)
        self._hero = DeviceHero(studio, self._model.list, self._comparison, theme)
        self._act = studio.headlines.act
        self._findings = QWidget()
        self._findings.setObjectName("devices.findings")
        self._findings.setAccessibleName("Findings about this device")
        self._lines = QVBoxLayout(self._findings)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._lines.setSpacing(2)
        self._also_found: list[FindingLine] = []
        self._doctor = studio.doctor
        self._checked = Text("", "muted", name="devices.checked", wraps=True)
        self._trouble = Text("", "amber", name="devices.trouble", wraps=True)
        self._log = SensorLogButton(self._model.log, self)
        self._sensors = SensorGrid(theme, self._log.press)
        self._effect = Text("", "muted", name="devices.effect", wraps=True)
        self._programs = ProgramMemory(theme)
        self._fold = button("All facts", self._show_facts, name="devices.facts")
        self._fold.setCheckable(True)
        self._copy = CopyButton(self._model, theme)
        self._facts = FactGrid(name="devices.details")
        self._details = Card()
        self._details.column.addWidget(self._facts)
        self._processes = ProcessCard(self._model.processes, studio.settings)
        self._lay_out()
        self._hero.list.device_selected.connect(self._select)
        # One inventory changes many parts. Each part updates once, in its own turn of the event
        # loop, so that the window stays responsive while the engine starts. Two timers that wait
        # would both end in the same turn.
        self._due: list[Callable[[], None]] = []
        self._turns = QTimer(self)
        self._turns.setInterval(0)
        self._turns.timeout.connect(self._take_turn)
        self._comparison.changed.connect(self._update_soon)
        self._model.selection_changed.connect(self._update_soon)
        self._model.selection_changed.connect(self._update_sensors_soon)
        self._model.facts_changed.connect(self._update_soon)
        self._model.readings_changed.connect(self._update_sensors_soon)
        self._sensors.readings_wanted.connect(self._update_sensors_soon)
        self._model.runs.marks_changed.connect(self._update_sensors_soon)
        self._model.runs.effect_told.connect(self._effect.setText)
        self._model.runs.effect_told.connect(self._effect.show)
        self._update()

    @property
    def is_up_to_date(self) -> bool:
        """Whether every change is shown."""
        return not self._due

    def showEvent(self, event: QShowEvent) -> None:
        """Show the current facts, and keep asking while visible."""
        super().showEvent(event)
        self._model.watch(True)
        self._update()
        self._update_sensors()

    def hideEvent(self, event: QHideEvent) -> None:
        """Ask for nothing while hidden."""
        super().hideEvent(event)
        self._model.watch(False)

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        column.setSpacing(GAP)
        facts = QHBoxLayout()
        facts.setSpacing(GAP)
        for widget in (
            self._findings, self._hero, self._checked, self._trouble, self._sensors, self._effect,
            self._log.said, self._programs,
        ):  # fmt: skip
            column.addWidget(widget)
        column.addLayout(facts)
        facts.addWidget(self._fold)
        facts.addWidget(self._copy, 1)
        for widget in (self._details, self._processes):
            column.addWidget(widget)
        column.addStretch(1)
        for widget in (
            self._checked, self._trouble, self._effect, self._fold, self._details, self._processes,
        ):  # fmt: skip
            widget.hide()

    def _select(self, identity: str) -> None:
        """Show at once what the user asked for."""
        self._model.select(identity)
        self._update()
        self._update_sensors()

    def _update_soon(self) -> None:
        self._add_due(self._update)

    def _update_sensors_soon(self) -> None:
        self._add_due(self._update_sensors)

    def _add_due(self, update: Callable[[], None]) -> None:
        if not self.isVisible():
            return  # `showEvent` shows it
        # The facts come first: a list without its selected device would choose its first one.
        parts = (self._update, self._update_sensors)
        self._due = [part for part in parts if part == update or part in self._due]
        self._turns.start()

    def _take_turn(self) -> None:
        update = self._due.pop(0)
        if not self._due:
            self._turns.stop()
        update()

    def _update(self) -> None:
        device = self._model.device
        verdict = self._model.verdict
        self._hero.show_verdict(verdict, in_brief=self._model.is_said_above(verdict))
        self._hero.show_presses(self._model.has_cards, device)
        self._show_also_found(self._model.also_found)
        self._checked.setText(self._doctor.sentence)
        self._checked.setVisible(bool(self._doctor.sentence))
        self._copy.setEnabled(device is not None)
        if device is None or not self.isVisible():
            return
        from gpu_studio.core.devices.facts import identity_line  # not before the first paint

        self._hero.list.follow(device.identity)
        is_card = device.kind == "cuda"
        self._sensors.show_device(device.name, identity_line(device) if is_card else "")
        trouble = self._model.trouble
        is_said = verdict.code == "card_asleep" or trouble in verdict.sentence
        self._trouble.setText(trouble)
        self._trouble.setVisible(not is_said)
        self._sensors.setVisible(self._model.is_readable)
        self._programs.show_programs(
            self._model.processes.processes if is_card else (),
            self._model.memory_used,
            device_role(device.address) if device.address else "other",
        )
        self._fold.show()
        self._show_facts()

    def _show_facts(self) -> None:
        """Show the facts and the processes while they are unfolded."""
        groups, device = self._model.groups, self._model.device
        is_open = self._fold.isChecked()
        self._fold.setText(f"{'Hide' if is_open else 'All'} facts ({_count(groups)})")
        self._fold.setAccessibleName(self._fold.text())
        self._details.setVisible(is_open)
        is_card = device is not None and device.kind == "cuda" and self._model.is_readable
        # Without their memory, the programs have no bars above.
        self._processes.setVisible(is_card and (is_open or self._programs.isHidden()))
        if is_open:
            self._facts.show_groups(groups)

    def _show_also_found(self, headlines: Sequence[Headline]) -> None:
        """Show the other findings above the answers, each in a line."""
        for number in range(len(self._also_found), len(headlines)):
            line = FindingLine(self._theme, name=f"devices.finding.{number}")
            line.action_requested.connect(self._act)
            self._lines.addWidget(line)
            self._also_found.append(line)
        for line, headline in zip(self._also_found, headlines, strict=False):
            line.show_headline(headline)
        for number, line in enumerate(self._also_found):
            line.setVisible(number < len(headlines))
        self._findings.setVisible(bool(headlines))

    def _update_sensors(self) -> None:
        device = self._model.device
        if device is not None and self.isVisible():
            role = device_role(device.address) if device.address else "other"
            span_s = self._sensors.span_s
            spans = self._model.spans(span_s)
            newest_s = max((float(s.times_s[-1]) for s in spans if s.has_values), default=0.0)
            marks = self._model.marks_since(newest_s - span_s)
            self._sensors.show_spans(spans, role, marks, self._model.spans_beside(span_s))


def _count(groups: Sequence[FactGroup]) -> int:
    return sum(len(group.facts) for group in groups)
