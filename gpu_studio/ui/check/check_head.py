"""The top of the Check tab: what is checked, for how long, and the actions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QSizePolicy, QWidget

from gpu_studio.core.check.plants import PLANTED_FAULTS
from gpu_studio.core.check.stages import GLANCE_MINUTES, NORMAL_MINUTES, OVERNIGHT_MINUTES
from gpu_studio.model.check.check_words import device_title, record_title
from gpu_studio.model.work_state import WorkState
from gpu_studio.ui.combo_box import ComboBox, show_items
from gpu_studio.ui.eliding import narrow_combo
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page_keys import runs, stops
from gpu_studio.ui.parts import button, set_property
from gpu_studio.ui.saving import ask_open_path

if TYPE_CHECKING:
    from gpu_studio.model.check.card_check import CardCheck
    from gpu_studio.ui.theme import Theme

_LENGTHS = (
    ("1 minute: a glance", GLANCE_MINUTES),
    ("6 minutes: normal", NORMAL_MINUTES),
    ("Overnight: 8 hours", OVERNIGHT_MINUTES),
)
_RECORDS = "Records of a check (*.png *.html *.htm *.json);;All files (*)"
_KEPT = "Earlier checks"
_TIP = Qt.ItemDataRole.ToolTipRole


class CheckHead(FlowRow):
    """One line in a wide window, more in a narrow one."""

    def __init__(self, check: CardCheck, theme: Theme, parent: QWidget | None = None) -> None:
        gap = QWidget()
        gap.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        super().__init__(fills=gap, parent=parent)
        self._check = check
        self._device = _combo("check.device", "Device to check")
        self._device.activated.connect(self._choose_device)
        self._minutes = _combo("check.minutes", "Length of the check")
        for title, minutes in _LENGTHS:
            self._minutes.addItem(title, minutes)
        self._minutes.activated.connect(self._choose_minutes)
        self._expert = QCheckBox("Show me what a broken card looks like")
        self._expert.setObjectName("check.expert")
        self._expert.setAccessibleName(self._expert.text())
        self._expert.setToolTip("Make a fault on purpose, and see the check find it")
        self._expert.toggled.connect(self._choose_plant)
        self._plant = _combo("check.plant", "Fault to make on purpose")
        for fault in PLANTED_FAULTS:
            self._plant.addItem(fault.title, fault.kind)
            self._plant.setItemData(self._plant.count() - 1, fault.does, _TIP)
        self._plant.activated.connect(self._choose_plant)
        self._records = narrow_combo("check.records", _KEPT, len(_KEPT))
        self._records.activated.connect(self._show_record)
        self._open = button(
            "Open record…", self._choose_file, name="check.open",
            tip="Open the record of a check from a picture or a page",
        )  # fmt: skip
        self.run = button("Run check", check.start, name="check.run", primary=True)
        self._signs = {
            is_first: icon("shield", theme, role)
            for is_first, role in ((True, "on_accent"), (False, "text"))
        }
        runs(self.run)
        self.stop = button(
            "Stop check", check.stop, name="check.stop", tip="Keep the results so far"
        )
        self.stop.setIcon(icon("stop", theme))
        stops(self.stop)
        for widget in (
            self._device, self._minutes, self.run, self.stop, self._expert, self._plant, gap,
            self._records, self._open,
        ):  # fmt: skip
            self.add(widget)
        self.show_check()

    def show_check(self, *, is_primary: bool = True) -> None:
        """Show the choices, and what can be pressed now.

        Args:
            is_primary: whether to run a check is the most important button of the page.
        """
        check = self._check
        is_busy = check.phase.is_busy
        self._show_devices()
        with QSignalBlocker(self._minutes):
            self._minutes.setCurrentIndex(self._minutes.findData(check.minutes))
        with QSignalBlocker(self._expert):
            self._expert.setChecked(check.plant is not None)
        self._plant.setVisible(check.plant is not None and not is_busy)
        if check.plant is not None:
            self._plant.setCurrentIndex(self._plant.findData(check.plant))
        self._show_records()
        for choice in (self._device, self._minutes, self._expert, self._plant, self._open):
            choice.setEnabled(not is_busy)
        for rest in (self._expert, self._open):  # the curves need the room
            rest.setVisible(not is_busy)
        had_focus = self.run.hasFocus() or self.stop.hasFocus()
        set_property(self.run, "primary", is_primary)
        self.run.setIcon(self._signs[is_primary])
        self.run.setVisible(not is_busy)
        self.run.setEnabled(check.can_run)
        self.stop.setVisible(is_busy)
        self.stop.setEnabled(check.phase is WorkState.RUNNING)
        if had_focus:  # a hidden button loses the focus
            (self.stop if is_busy else self.run).setFocus()

    def _show_devices(self) -> None:
        devices = self._check.devices
        show_items(self._device, [(device_title(one), one.identity) for one in devices])
        with QSignalBlocker(self._device):
            for place, device in enumerate(devices):
                self._device.setItemData(place, device.reason, _TIP)
            self._device.setCurrentIndex(self._device.findData(self._check.device.identity))

    def _show_records(self) -> None:
        titles = [record_title(record) for record in self._check.kept]
        with QSignalBlocker(self._records):
            show_items(self._records, [(_KEPT, ""), *((title, title) for title in titles)])
            self._records.setCurrentIndex(0)
        self._records.setVisible(bool(titles) and not self._check.phase.is_busy)

    def _choose_device(self) -> None:
        self._check.choose_device(self._device.currentData())

    def _choose_minutes(self) -> None:
        self._check.choose_minutes(self._minutes.currentData())

    def _choose_plant(self) -> None:
        is_wanted = self._expert.isChecked()
        self._check.choose_plant(self._plant.currentData() if is_wanted else None)

    def _show_record(self, place: int) -> None:
        self._check.show_record(place - 1)

    def _choose_file(self) -> None:
        path = ask_open_path(self.window(), "Open record", _RECORDS)
        if path:
            self._check.open_file(Path(path))


def _combo(name: str, accessible_name: str) -> QComboBox:
    box = ComboBox()
    box.setObjectName(name)
    box.setAccessibleName(accessible_name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    return box
