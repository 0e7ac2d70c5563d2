"""The Devices tab: the devices of this PC, whether PyTorch can use them, and live sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gpu_studio.model.benchmark.quick_comparison import QuickComparison
from gpu_studio.model.devices.devices import DevicesModel
from gpu_studio.model.tool_tip import plain_tip
from gpu_studio.ui.devices.copy_button import CopyButton
from gpu_studio.ui.devices.device_list_view import DeviceListView
from gpu_studio.ui.devices.fact_grid import FactGrid
from gpu_studio.ui.devices.finding_line import FindingLine
from gpu_studio.ui.devices.process_card import ProcessCard
from gpu_studio.ui.devices.program_memory import ProgramMemory
from gpu_studio.ui.devices.sensor_grid import SensorGrid
from gpu_studio.ui.devices.sensor_log_button import SensorLogButton
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import (
    GAP,
    MARGIN,
    Card,
    Text,
    button,
    letters,
)
from gpu_studio.ui.scroll_page import ScrollPage
from gpu_studio.ui.theme import device_role
from gpu_studio.ui.verdict_card import VerdictCard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent

    from gpu_studio.core.devices.facts import FactGroup
    from gpu_studio.model.headline import Headline
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_LIST_LETTERS = (32, 43)
_CHECK = "Test each card"
_CHECK_TIP = "Runs a real kernel on each card, in a separate process"
_WITHOUT_CARD = (
    "All workloads, curves and checks run on your CPU. A modeled card shows how GPU memory fills, "
    "and the usual pitfalls run with the CPU in place of a card."
)


class DevicesTab(QWidget):
    """Devices on the left; verdict, sensors, facts and processes of one on the right."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model = DevicesModel(studio, self)
        self._list = DeviceListView(self._model.list, theme)
        self._copy = CopyButton(self._model, theme)
        self._name = ElidedText("", "headline", name="devices.name")
        self._identity = ElidedText("", "muted", name="devices.identity")
        self._act = studio.headlines.act
        self._verdict = VerdictCard(theme, name="devices.verdict")
        self._verdict.action_requested.connect(self._act)
        self._findings = QWidget()
        self._findings.setObjectName("devices.findings")
        self._findings.setAccessibleName("Findings about this device")
        self._lines = QVBoxLayout(self._findings)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._also_found: list[FindingLine] = []
        self._doctor = studio.doctor
        self._check = button(_CHECK, self._check_or_stop, name="devices.check", tip=_CHECK_TIP)
        self._checked = Text("", "muted", name="devices.checked", wraps=True)
        self._trouble = Text("", "amber", name="devices.trouble", wraps=True)
        self._sensors = SensorGrid(theme)
        self._log = SensorLogButton(self._model.log, self)
        self._effect = Text("", "muted", name="devices.effect", wraps=True)
        self._facts = FactGrid(name="devices.details")
        self._details = Card()
        self._processes = ProcessCard(self._model.processes, studio.settings)
        self._programs = ProgramMemory(theme)
        self._comparison = QuickComparison(studio, self)
        self._compare = button(
            "", studio.comparison_wanted.emit, name="devices.compare", primary=True
        )
        self._compare.setIcon(icon("chart", theme, "on_accent"))
        self._compare_note = Text("", "muted", name="devices.compare.note")
        self._fold = button("All facts", self._show_facts, name="devices.facts")
        self._fold.setCheckable(True)
        self._studio = studio
        self._without_card: Card | None = None
        self._lay_out()
        self._list.device_selected.connect(self._select)
        # One inventory changes many parts. Each part updates once, in its own turn of the event
        # loop, so that the window stays responsive while the engine starts.
        self._soon = self._at_leisure(self._update)
        self._sensors_soon = self._at_leisure(self._update_sensors)
        self._comparison.changed.connect(self._soon.start)
        self._model.selection_changed.connect(self._soon.start)
        self._model.selection_changed.connect(self._sensors_soon.start)
        self._model.facts_changed.connect(self._soon.start)
        self._model.readings_changed.connect(self._sensors_soon.start)
        self._sensors.span_chosen.connect(self._sensors_soon.start)
        self._model.runs.marks_changed.connect(self._sensors_soon.start)
        self._model.runs.effect_told.connect(self._effect.setText)
        self._model.runs.effect_told.connect(self._effect.show)
        self._update()

    @property
    def is_up_to_date(self) -> bool:
        """Whether every change is shown."""
        return not (self._soon.isActive() or self._sensors_soon.isActive())

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

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the list its share of the width."""
        super().resizeEvent(event)
        least, most = (letters(self, count) for count in _LIST_LETTERS)
        self._list.setFixedWidth(max(least, min(self.width() // 4, most)))

    def _lay_out(self) -> None:
        page = ScrollPage("The selected device")
        halves = QHBoxLayout(self)
        halves.setContentsMargins(MARGIN, GAP, MARGIN - 6, GAP)
        halves.setSpacing(MARGIN)
        left = QVBoxLayout()
        left.setSpacing(GAP)
        halves.addLayout(left)
        left.addWidget(self._list, 1)
        left.addWidget(self._copy)
        halves.addWidget(page, 1)
        head = QHBoxLayout()
        head.setSpacing(GAP)
        page.column.addLayout(head)
        head.addWidget(self._name)
        head.addWidget(self._identity, 1, Qt.AlignmentFlag.AlignBottom)
        self._details.column.addWidget(self._facts)
        self._compare_line = FlowRow(self._compare, self._check, self._compare_note, spacing=GAP)
        self._page = QVBoxLayout()
        self._page.setSpacing(GAP)
        page.column.addLayout(self._page)
        page.column.addStretch(1)
        for widget in (
            self._verdict, self._findings, self._compare_line, self._checked, self._trouble,
            self._programs, self._sensors, self._effect, self._log.said, self._fold,
            self._details, self._processes,
        ):  # fmt: skip
            self._page.addWidget(widget)
        self._sensors.head.add(self._log.press)
        for widget in (
            self._trouble,
            self._compare,
            self._check,
            self._checked,
            self._effect,
            self._fold,
            self._details,
            self._processes,
        ):
            widget.hide()

    def _check_or_stop(self) -> None:
        if self._doctor.is_checking:
            self._doctor.stop()
        else:
            self._doctor.check()

    def _select(self, identity: str) -> None:
        """Show at once what the user asked for."""
        self._model.select(identity)
        self._update()
        self._update_sensors()

    def _at_leisure(self, slot: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.timeout.connect(slot)
        return timer

    def _update(self) -> None:
        device = self._model.device
        verdict = self._model.verdict
        self._verdict.show_headline(verdict, in_brief=self._model.is_said_above(verdict))
        self._show_also_found(self._model.also_found)
        self._show_comparison()
        self._check.setVisible(bool(self._model.has_cards))
        is_checking = self._doctor.is_checking
        self._check.setText("Stop the test" if is_checking else _CHECK)
        self._check.setAccessibleName(self._check.text())
        self._check.setEnabled(is_checking or self._doctor.can_check)
        self._checked.setText(self._doctor.sentence)
        self._checked.setVisible(bool(self._doctor.sentence))
        self._copy.setEnabled(device is not None)
        if device is None or not self.isVisible():
            return
        from gpu_studio.core.devices.facts import identity_line  # not before the first paint

        self._list.follow(device.identity)
        numbers = identity_line(device) if device.kind == "cuda" else ""
        self._name.setText(device.name)
        self._name.setToolTip(plain_tip(device.name))
        self._identity.setText(numbers)
        self._identity.setToolTip(plain_tip(numbers))
        trouble = self._model.trouble
        is_said = verdict.code == "card_asleep" or trouble in verdict.sentence
        self._trouble.setText(trouble)
        self._trouble.setVisible(not is_said)
        self._sensors.setVisible(self._model.is_readable)
        self._fold.show()
        self._show_facts()
        self._programs.show_programs(
            self._model.processes.processes if device.kind == "cuda" else (),
            self._model.memory_used,
            device_role(device.address) if device.address else "other",
        )
        self._processes.setVisible(device.kind == "cuda" and self._model.is_readable)
        self._show_what_is_left()

    def _show_comparison(self) -> None:
        """Offer what one click compares on this PC."""
        devices = self._comparison.devices
        self._compare.setVisible(bool(devices))
        self._compare.setText(self._comparison.title)
        self._compare.setAccessibleName(self._comparison.title)
        self._compare_note.setText(self._comparison.sentence)

    def _show_facts(self) -> None:
        """Show the facts while they are unfolded."""
        groups = self._model.groups
        is_open = self._fold.isChecked()
        self._fold.setText(f"{'Hide' if is_open else 'All'} facts ({_count(groups)})")
        self._fold.setAccessibleName(self._fold.text())
        self._details.setVisible(is_open)
        if is_open:
            self._facts.show_groups(groups)

    def _show_also_found(self, headlines: Sequence[Headline]) -> None:
        """Show the other findings under the verdict, each in a line."""
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

    def _show_what_is_left(self) -> None:
        """On a PC without a card, say what works without one."""
        if self._model.has_cards is False and self._without_card is None:
            self._without_card = Card(name="devices.without_card")
            self._without_card.column.addWidget(Text("What works without a card", "value"))
            self._without_card.column.addWidget(Text(_WITHOUT_CARD, "muted", wraps=True))
            modeled = button(
                "Break a modeled card", self._break_it, name="devices.modeled",
                tip="Fill the memory of a modeled card until an allocation fails",
            )  # fmt: skip
            pitfalls = button(
                "Try the pitfalls", self._try_pitfalls, name="devices.pitfalls",
                tip="Run the usual mistakes, broken and fixed",
            )  # fmt: skip
            self._without_card.column.addWidget(FlowRow(modeled, pitfalls, spacing=GAP))
            self._page.insertWidget(self._page.indexOf(self._compare_line) + 1, self._without_card)
        if self._without_card is not None:
            self._without_card.setVisible(not self._model.has_cards)

    def _break_it(self) -> None:
        self._studio.page_wanted.emit("Memory", "Break it")

    def _try_pitfalls(self) -> None:
        self._studio.page_wanted.emit("Switcher", "Pitfalls")

    def _update_sensors(self) -> None:
        device = self._model.device
        if device is not None and self.isVisible():
            role = device_role(device.address) if device.address else "other"
            spans = self._model.spans(self._sensors.span_s)
            newest_s = max((float(s.times_s[-1]) for s in spans if s.has_values), default=0.0)
            marks = self._model.marks_since(newest_s - self._sensors.span_s)
            self._sensors.show_spans(spans, role, marks)


def _count(groups: Sequence[FactGroup]) -> int:
    return sum(len(group.facts) for group in groups)
