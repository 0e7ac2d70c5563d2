"""The top of the Check tab: what is checked, the actions, and the result in large words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from gpu_studio.core.check.check_record import RECORD_ENDINGS
from gpu_studio.core.check.record_words import breakable
from gpu_studio.core.check.stages import (
    GLANCE_MINUTES,
    NORMAL_MINUTES,
    OVERNIGHT_MINUTES,
    PLANTED_FAULTS,
)
from gpu_studio.model.check import check_words
from gpu_studio.model.check.check_words import device_title, record_title
from gpu_studio.model.run_queue import WorkState
from gpu_studio.ui.check.record_document import save_record
from gpu_studio.ui.eliding import narrow_combo, show_items
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page_keys import runs, saves, stops
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, button
from gpu_studio.ui.saving import ask_open_path
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from gpu_studio.model.check.card_check import CardCheck
    from gpu_studio.ui.parts import Role
    from gpu_studio.ui.theme import Theme

_LENGTHS = (
    ("1 minute: a glance", GLANCE_MINUTES),
    ("6 minutes: normal", NORMAL_MINUTES),
    ("Overnight: 8 hours", OVERNIGHT_MINUTES),
)
_NO_FAULT = "No fault on purpose"
_FAULT_TIP = "Make a fault on purpose, to see what a broken card looks like"
_ENDINGS = " ".join(f"*{ending}" for ending in RECORD_ENDINGS)
_RECORDS = f"Records of a check ({_ENDINGS});;All files (*)"
_KEPT = "Earlier checks"
_LETTERS = 16  # of a choice: what is beside it stays, whatever is chosen
_FEW_LETTERS = 10
_TIP = Qt.ItemDataRole.ToolTipRole
# The labels of `HeroWords`, each with its role.
_TEXTS: dict[str, Role] = {
    "subject": "title", "when": "muted", "origin": "amber", "errors": "hero_words",
    "planted": "failure", "doing": "lead", "next": "",
}  # fmt: skip


class CheckHead(FlowRow):
    """One line in a wide window, more in a narrow one."""

    def __init__(self, check: CardCheck, theme: Theme) -> None:
        gap = QWidget()
        gap.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        super().__init__(fills=gap)
        self._check = check
        self._device = narrow_combo("check.device", "Device to check", _LETTERS)
        self._device.activated.connect(self._choose_device)
        self._minutes = narrow_combo("check.minutes", "Length of the check", _LETTERS)
        for title, minutes in _LENGTHS:
            self._minutes.addItem(title, minutes)
        self._minutes.activated.connect(self._choose_minutes)
        self._plant = narrow_combo("check.plant", "Fault to make on purpose", _LETTERS)
        self._plant.setToolTip(_FAULT_TIP)
        self._plant.addItem(_NO_FAULT, None)
        for fault in PLANTED_FAULTS:
            self._plant.addItem(fault.title, fault.kind)
            self._plant.setItemData(self._plant.count() - 1, fault.does, _TIP)
        self._plant.activated.connect(self._choose_plant)
        self._records = narrow_combo("check.records", _KEPT, _FEW_LETTERS)
        self._records.activated.connect(self._show_record)
        self._open = button(
            "Open record…", self._choose_file, name="check.open",
            tip="Open the record of a check from a picture or a JSON file",
        )  # fmt: skip
        self._save = button(
            "Save record…", self._save_record, name="check.save",
            tip="As a PDF or a picture, to show to a buyer of the card",
        )  # fmt: skip
        self._save.setIcon(icon("export", theme))
        saves(self._save)
        self.run = button("Run check", check.start, name="check.run", primary=True)
        self.run.setIcon(icon("shield", theme, "on_accent"))
        runs(self.run)
        self.stop = button(
            "Stop check", check.stop, name="check.stop", tip="Keep the results so far"
        )
        self.stop.setIcon(icon("stop", theme))
        stops(self.stop)
        for widget in (
            self._device, self._minutes, self._plant, self.run, self.stop, gap, self._records,
            self._open, self._save,
        ):  # fmt: skip
            self.add(widget)
        widest = max(self.run.sizeHint().width(), self.stop.sizeHint().width())
        for pressed in (self.run, self.stop):  # one takes the place of the other
            pressed.setMinimumWidth(widest)
        self.outcome = Text("", "muted", name="check.outcome", wraps=True)
        self.outcome.hide()

    def show_check(self) -> None:
        """Show the choices, and what can be pressed now."""
        check = self._check
        is_busy = check.phase.is_busy
        devices = check.devices
        show_items(self._device, [(device_title(one), one.identity) for one in devices])
        for place, device in enumerate(devices):
            self._device.setItemData(place, device.reason, _TIP)
        titles = [record_title(record) for record in check.kept]
        show_items(self._records, [(_KEPT, ""), *((title, title) for title in titles)])
        for box, chosen in (
            (self._device, check.device.identity), (self._minutes, check.minutes),
            (self._plant, check.plant), (self._records, ""),
        ):  # fmt: skip
            with QSignalBlocker(box):
                box.setCurrentIndex(box.findData(chosen))
            box.setEnabled(not is_busy)
        self._records.setVisible(bool(titles))
        self._open.setEnabled(not is_busy)
        self._save.setEnabled(check.record is not None)
        had_focus = self.run.hasFocus() or self.stop.hasFocus()
        self.run.setVisible(not is_busy)
        self.run.setEnabled(check.can_run)
        self.stop.setVisible(is_busy)
        self.stop.setEnabled(check.phase is WorkState.RUNNING)
        if had_focus:  # a hidden button loses the focus
            (self.stop if is_busy else self.run).setFocus()

    def _choose_device(self) -> None:
        self._check.choose_device(self._device.currentData())

    def _choose_minutes(self) -> None:
        self._check.choose_minutes(self._minutes.currentData())

    def _choose_plant(self) -> None:
        self._check.choose_plant(self._plant.currentData())

    def _show_record(self, place: int) -> None:
        self._check.show_record(place - 1)

    def _choose_file(self) -> None:
        path = ask_open_path(self.window(), "Open record", _RECORDS)
        if path:
            self._check.open_file(Path(path))

    def _save_record(self) -> None:
        if self._check.record is not None:
            self.outcome.show_notice(save_record(self.window(), self._check.record))


class CheckHero(Card):
    """The result in large words; before a check, the question of the page."""

    def __init__(self, check: CardCheck, theme: Theme) -> None:
        super().__init__(name="check.hero")
        self._check = check
        self._chip = TrustChip(theme, name="check.chip")
        self._texts = {
            name: Text("", role, name=f"check.{name}", wraps=True) for name, role in _TEXTS.items()
        }
        self.column.setContentsMargins(2 * MARGIN, MARGIN, 2 * MARGIN, MARGIN)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        for name, label in self._texts.items():
            if name == "errors":
                self.column.addLayout(line)
                line.addWidget(label, 1)
                line.addWidget(self._chip, 0, Qt.AlignmentFlag.AlignVCenter)
            else:
                self.column.addWidget(label)

    def show_check(self) -> None:
        """Show the present state of the check, or the shown record."""
        words = check_words.hero(self._check)
        for name, label in self._texts.items():
            text = getattr(words, name)
            label.setText(breakable(text))
            label.setVisible(bool(text))
        self._texts["errors"].set_tone(words.tone)
        self.set_tone(words.tone)
        self._chip.show_notice(words.chip)
