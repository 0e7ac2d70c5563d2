"""The Devices tab: the devices of this PC, whether PyTorch can use them, and live sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gpu_studio.model.devices.devices import DevicesModel
from gpu_studio.model.tool_tip import plain_tip
from gpu_studio.ui.devices.copy_button import CopyButton
from gpu_studio.ui.devices.device_list_view import DeviceListView
from gpu_studio.ui.devices.fact_grid import FactGrid
from gpu_studio.ui.devices.process_card import ProcessCard
from gpu_studio.ui.devices.sensor_grid import SensorGrid
from gpu_studio.ui.devices.sensor_log_button import SensorLogButton
from gpu_studio.ui.eliding import ElidedText
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

    from gpu_studio.model.headline import Headline
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_LIST_LETTERS = (32, 43)
_CHECK = "Test each card"
_CHECK_TIP = "Runs a real kernel on each card, in a separate process"
_WITHOUT_CARD = (
    "Benchmark: time your CPU with the same workloads, curves and checks.",
    "Switcher: place models and see the usual pitfalls. The CPU stands in for a card.",
    "Memory: see this PC's RAM, and fill a modeled card of any size until it breaks.",
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
        self._also_found: list[VerdictCard] = []
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
        self._without_card: Card | None = None
        self._lay_out()
        self._list.device_selected.connect(self._select)
        # One inventory changes many parts. Each part updates once, in its own turn of the event
        # loop, so that the window stays responsive while the engine starts.
        self._soon = self._at_leisure(self._update)
        self._sensors_soon = self._at_leisure(self._update_sensors)
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
        self._check_line = QWidget()
        line = QHBoxLayout(self._check_line)
        line.setContentsMargins(0, 0, 0, 0)
        line.addWidget(self._check)
        line.addWidget(self._checked, 1)
        self._page = QVBoxLayout()
        self._page.setSpacing(GAP)
        page.column.addLayout(self._page)
        page.column.addStretch(1)
        for widget in (
            self._verdict, self._trouble, self._check_line, self._sensors, self._effect,
            self._log.said, self._details, self._processes,
        ):  # fmt: skip
            self._page.addWidget(widget)
        self._sensors.head.add(self._log.press)
        for widget in (
            self._trouble,
            self._check_line,
            self._effect,
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
        self._show(self._verdict, self._model.verdict)
        self._show_also_found(self._model.also_found)
        self._check_line.setVisible(bool(self._model.has_cards))
        is_checking = self._doctor.is_checking
        self._check.setText("Stop the test" if is_checking else _CHECK)
        self._check.setAccessibleName(self._check.text())
        self._check.setEnabled(is_checking or self._doctor.can_check)
        self._checked.setText(self._doctor.sentence)
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
        verdict = self._model.verdict
        is_said = verdict.code == "card_asleep" or trouble in verdict.sentence
        self._trouble.setText(trouble)
        self._trouble.setVisible(not is_said)
        self._sensors.setVisible(self._model.is_readable)
        self._details.show()
        self._facts.show_groups(self._model.groups)
        self._processes.setVisible(device.kind == "cuda" and self._model.is_readable)
        self._show_what_is_left()

    def _show(self, card: VerdictCard, headline: Headline) -> None:
        card.show_headline(headline, in_brief=self._model.is_said_above(headline))

    def _show_also_found(self, headlines: Sequence[Headline]) -> None:
        """Show the other findings under the verdict, each in a card."""
        for number in range(len(self._also_found), len(headlines)):
            card = VerdictCard(self._theme, name=f"devices.finding.{number}")
            card.action_requested.connect(self._act)
            self._page.insertWidget(self._page.indexOf(self._verdict) + 1 + number, card)
            self._also_found.append(card)
        for card, headline in zip(self._also_found, headlines, strict=False):
            self._show(card, headline)
        for number, card in enumerate(self._also_found):
            card.setVisible(number < len(headlines))

    def _show_what_is_left(self) -> None:
        """On a PC without a card, say what works without one."""
        if self._model.has_cards is False and self._without_card is None:
            self._without_card = Card(name="devices.without_card")
            self._without_card.column.addWidget(Text("What you can still do", "value"))
            for sentence in _WITHOUT_CARD:
                self._without_card.column.addWidget(Text(sentence, "muted", wraps=True))
            self._page.insertWidget(self._page.indexOf(self._verdict) + 1, self._without_card)
        if self._without_card is not None:
            self._without_card.setVisible(not self._model.has_cards)

    def _update_sensors(self) -> None:
        device = self._model.device
        if device is not None and self.isVisible():
            role = device_role(device.address) if device.address else "other"
            spans = self._model.spans(self._sensors.span_s)
            newest_s = max((float(s.times_s[-1]) for s in spans if s.has_values), default=0.0)
            marks = self._model.marks_since(newest_s - self._sensors.span_s)
            self._sensors.show_spans(spans, role, marks)
