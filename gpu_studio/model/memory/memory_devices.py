"""The devices whose memory can be shown, and the chosen one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from gpu_studio.core.device_name import name_at
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.memory.modelled_cards import modelled_cards
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.model.devices.device_board import DeviceRow

if TYPE_CHECKING:
    from gpu_studio.model.studio import Studio


def modelled_rows() -> list[DeviceRow]:
    """Return the cards that can be simulated, smallest first."""
    return [
        DeviceRow(
            identity=card.address,
            name=card.name,
            label=short_name(card.name),
            address=card.address,
            is_modelled=True,
        )
        for card in modelled_cards()
    ]


def choice_title(device: DeviceRow) -> str:
    """Return a device's name in the list of those whose memory can be shown."""
    if device.is_cpu:
        return f"RAM of {device.pc}" if device.pc else "This PC's RAM"
    if device.is_modelled:
        return f"Simulated: {device.label}"
    name = short_name(device.name)
    return f"{device.address} {name}" if device.address is not None else name_at(device.pc, name)


class MemoryDevices(QObject):
    """The devices of the PC and the cards that can be simulated; one of them is chosen.

    Follows the card in use until the user chooses. `choices` are the PC, then each of its cards,
    then the cards that can be simulated.

    Signals:
        choices_changed(): devices may have been added, removed or renumbered.
        chosen_changed(): another device is chosen.
    """

    choices_changed = Signal()
    chosen_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._board = studio.board
        self.choices: list[DeviceRow] = []
        self._identity = "cpu"
        self._is_chosen_by_hand = False
        self._board.changed.connect(self._list)
        studio.session.engine_described.connect(self._list)
        self._list()

    @property
    def chosen(self) -> DeviceRow:
        return next((c for c in self.choices if c.identity == self._identity), self.choices[0])

    def choose(self, identity: str) -> None:
        """Choose another device."""
        self._is_chosen_by_hand = True
        self._look_at(identity)

    def _list(self) -> None:
        choices = list(self._board.of_pytorch)
        with contextlib.suppress(
            MissingResourceError
        ):  # without the table no card can be simulated
            choices += modelled_rows()
        self.choices = choices
        self.choices_changed.emit()
        if not self._is_chosen_by_hand or self._identity not in [c.identity for c in choices]:
            self._look_at(self._preferred.identity)

    @property
    def _preferred(self) -> DeviceRow:
        """The card in use, or else the first one that PyTorch can use, real or simulated."""
        current = self._board.current
        usable = [row for row in self._board.usable_here if not row.is_cpu]
        if usable:
            return current if current in usable else usable[0]
        modelled = (choice for choice in self.choices if choice.is_modelled)
        return next(modelled, self._board.cpu) if self._board.is_complete else self._board.cpu

    def _look_at(self, identity: str) -> None:
        if identity != self._identity and any(c.identity == identity for c in self.choices):
            self._identity = identity
            self.chosen_changed.emit()
