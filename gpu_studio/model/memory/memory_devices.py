"""The devices whose memory can be shown, and the chosen one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, Signal

from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.devices import short_name
from gpu_studio.core.memory.modelled_cards import card_at, modelled_cards
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.model.devices.card_access import access_of, counted_cards

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Device, Inventory
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.placement_messages import DeviceUsed
    from gpu_studio.model.studio import Studio


class MemoryChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A device whose memory can be shown. ``address`` is None if PyTorch cannot use it."""

    identity: str
    title: str
    address: str | None
    reason: str = ""
    is_modelled: bool = False

    @property
    def is_card(self) -> bool:
        """Whether it is a card, real or modeled, and not the PC."""
        return not is_cpu(self.identity)

    @property
    def is_real_card(self) -> bool:
        """Whether it is a card of this PC."""
        return self.is_card and not self.is_modelled


def memory_choices(
    inventory: Inventory | None, description: EngineDescribed | None
) -> list[MemoryChoice]:
    """Return the PC and then every card; without an inventory, the cards of the engine."""
    choices = [MemoryChoice(identity="cpu", title="This PC's RAM", address="cpu")]
    for address in counted_cards(description) if inventory is None else ():
        choices.append(MemoryChoice(identity=address, title=address, address=address))
    for card in inventory.cards if inventory else ():
        access = access_of(card, description)
        title = f"{access.address} {card.short_name}" if access.address else card.short_name
        choices.append(
            MemoryChoice(
                identity=card.identity, title=title, address=access.address, reason=access.reason
            )
        )
    return choices


def modelled_choices(own_mib: int | None) -> list[MemoryChoice]:
    """Return the cards that can be modeled, smallest first, then the one of custom size."""
    cards = list(modelled_cards())
    if own_mib is not None:
        cards.append(card_at(f"model:{own_mib}"))
    choices = {
        card.address: MemoryChoice(
            identity=card.address,
            title=f"Modeled: {short_name(card.name)}",
            address=card.address,
            is_modelled=True,
        )
        for card in cards
    }
    return list(choices.values())


class MemoryDevices(QObject):
    """The devices of the PC and the cards that can be modeled; one of them is chosen.

    Follows the card in use until the user chooses.

    Signals:
        choices_changed(): devices were added, removed or renumbered.
        chosen_changed(): another device is chosen.
    """

    choices_changed = Signal()
    chosen_changed = Signal()

    def __init__(self, studio: Studio, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session, self._sensors = studio.session, studio.sensors
        self._choices: list[MemoryChoice] = []
        self._identity = "cpu"
        self._is_chosen_by_hand = False
        self._own_mib: int | None = None
        self._session.device_used.connect(self._follow_card)
        self._session.engine_described.connect(self._list)
        self._sensors.inventory_changed.connect(self._list)
        self._list()

    @property
    def choices(self) -> list[MemoryChoice]:
        """The PC, then each of its cards, then the cards that can be modeled."""
        return self._choices

    @property
    def chosen(self) -> MemoryChoice:
        """The chosen device."""
        return next((c for c in self._choices if c.identity == self._identity), self._choices[0])

    @property
    def described(self) -> Device | None:
        """The device as the PC reports it; None before it is found, and for a modeled card."""
        inventory = self._sensors.inventory
        if inventory is None:
            return None
        return next((d for d in inventory.devices if d.identity == self._identity), None)

    @property
    def has_usable_card(self) -> bool:
        """Whether the program's engine can use a card of this PC."""
        return any(choice.is_real_card and choice.address for choice in self._choices)

    def identity_of(self, address: str) -> str:
        """Return the lasting identity of the device at an address."""
        inventory = self._sensors.inventory
        device = inventory.find(address) if inventory else None
        return device.identity if device else address

    def choose(self, identity: str) -> None:
        """Choose another device."""
        self._is_chosen_by_hand = True
        self._look_at(identity)

    def choose_own(self, mib: int) -> None:
        """Model a card of a custom size and choose it; raises `StudioError` for a bad size."""
        self._own_mib = card_at(f"model:{mib}").total_bytes >> 20
        self._list()
        self.choose(f"model:{mib}")

    def _follow_card(self, event: DeviceUsed) -> None:
        if not self._is_chosen_by_hand:
            self._look_at(self.identity_of(event.address))

    def _list(self) -> None:
        inventory, description = self._sensors.inventory, self._session.description
        choices = memory_choices(inventory, description)
        with contextlib.suppress(MissingResourceError):  # without the table no card can be modeled
            choices += modelled_choices(self._own_mib)
        if choices != self._choices:
            self._choices = choices
            self.choices_changed.emit()
        if self._is_chosen_by_hand and self._identity in [c.identity for c in choices]:
            return
        usable = [c.identity for c in choices if c.is_real_card and c.address]
        if not usable and description is not None and inventory is not None:
            usable = [c.identity for c in choices if c.is_modelled]
        self._look_at(usable[0] if usable else "cpu")

    def _look_at(self, identity: str) -> None:
        if identity != self._identity and any(c.identity == identity for c in self._choices):
            self._identity = identity
            self.chosen_changed.emit()
