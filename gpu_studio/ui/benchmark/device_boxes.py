"""A box for the CPU and for every card, each with its color."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, QSize, Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from gpu_studio.model.text_rows import plain_tip
from gpu_studio.ui.benchmark.swatch import SIDE, swatch
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gpu_studio.model.devices.device_board import DeviceRow
    from gpu_studio.ui.theme import Theme


class DeviceBoxes(FlowRow):
    """A card that PyTorch cannot use is disabled; its tool tip says why.

    Signals:
        changed(frozenset[str]): the identities of the devices that are unchecked now.
    """

    changed = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__(spacing=GAP)
        self.setObjectName("benchmark.devices")
        self.setAccessibleName("Devices")
        self._theme = theme
        self._rows: Sequence[DeviceRow] = ()
        self._without: Collection[str] = frozenset()
        self._boxes: list[QCheckBox] = []

    def show_rows(self, rows: Sequence[DeviceRow], without: Collection[str]) -> None:
        """Offer these devices; all are checked but those in ``without``."""
        if [*map(_shown, rows)] != [*map(_shown, self._rows)]:
            for box in self._boxes:
                box.hide()
                box.setObjectName("")  # it outlives the creation of its successor for a moment
                box.deleteLater()
            self._boxes = [self._made(row) for row in rows]
            self.set_widgets(*self._boxes)
            for earlier, later in itertools.pairwise(self._boxes):
                QWidget.setTabOrder(earlier, later)
        self._rows, self._without = rows, without
        for row, box in zip(rows, self._boxes, strict=True):
            with QSignalBlocker(box):
                box.setChecked(row.address is not None and row.identity not in without)

    def _made(self, row: DeviceRow) -> QCheckBox:
        box = QCheckBox(_without_mnemonic(row.label))
        box.setObjectName(f"benchmark.devices.{row.address or row.identity}")
        role = self._theme.device_role(row.address) if row.address else "other"
        box.setIcon(swatch(self._theme, role, self.devicePixelRatioF()))
        box.setIconSize(QSize(SIDE, SIDE))
        box.setEnabled(row.address is not None)
        box.setAccessibleName(row.label)
        note = row.reason or row.name
        box.setAccessibleDescription(note)
        box.setToolTip(plain_tip(note))
        box.toggled.connect(self._on_toggled)
        return box

    def _on_toggled(self) -> None:
        pairs = [*zip(self._rows, self._boxes, strict=True)]
        usable = {row.identity: box.isChecked() for row, box in pairs if box.isEnabled()}
        kept = {one for one in self._without if one not in usable}
        self.changed.emit(frozenset(kept | {one for one, is_in in usable.items() if not is_in}))


def _shown(row: DeviceRow) -> tuple[str | None, ...]:
    return row.identity, row.label, row.name, row.address, row.reason


def _without_mnemonic(text: str) -> str:
    return text.replace("&", "&&")
