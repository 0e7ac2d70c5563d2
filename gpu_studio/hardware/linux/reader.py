"""The cards that Linux itself reads, whoever made them and whatever drives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core import operating_system
from gpu_studio.core.devices.devices import Driver
from gpu_studio.hardware.card_reader import CardUnreadableError
from gpu_studio.hardware.linux.adapters import find_adapters
from gpu_studio.hardware.linux.card import LinuxCard
from gpu_studio.hardware.linux.fdinfo import CardClients, Descriptors
from gpu_studio.hardware.linux.sys_tree import sys_tree

if TYPE_CHECKING:
    from gpu_studio.hardware.linux.sys_tree import SysTree
    from gpu_studio.hardware.pci import DisplayAdapter

_LENT = (
    "This card is lent to a virtual machine: the driver {driver} holds it, and it has no sensors "
    "here."
)
_NO_DRIVER = "Linux has no driver loaded for this card, so nothing reads its sensors."
_NOT_THERE = "There is no card in this slot."
# What holds a card for others and reads nothing of it.
_LENDERS = frozenset({"vfio-pci", "pci-stub", "xen-pciback", "uio_pci_generic"})


class LinuxReader:
    """See `card_reader.CardReader`. It opens no driver, and so keeps no card awake."""

    def __init__(self, tree: SysTree | None = None) -> None:
        self._tree = tree or sys_tree()
        self._cards: dict[str, LinuxCard] = {}
        self._descriptors = Descriptors()

    def driver(self) -> Driver:
        return Driver(version=None if self._tree.is_copy else operating_system.release())

    def count(self) -> int:
        return len(find_adapters(self._tree, ()))

    def card(self, index: int) -> LinuxCard:
        return self._open(find_adapters(self._tree)[index])

    def card_at(self, slot: str) -> LinuxCard:
        for adapter in find_adapters(self._tree):
            if adapter.slot == slot:
                return self._open(adapter)
        raise CardUnreadableError(_NOT_THERE, "lost")

    def card_with(self, uuid: str) -> LinuxCard:
        for adapter in find_adapters(self._tree):
            if adapter.is_asleep or adapter.kernel_driver is None:
                continue
            card = self._open(adapter)
            if card.describe().uuid == uuid:
                return card
        raise CardUnreadableError(_NOT_THERE, "unknown")

    def process_name(self, pid: int) -> str | None:
        return None

    def close(self) -> None:
        self._cards.clear()

    def _open(self, adapter: DisplayAdapter) -> LinuxCard:
        """Return the same card for the same slot: its power and its load need two readings."""
        driver = adapter.kernel_driver
        if driver in _LENDERS:
            raise CardUnreadableError(_LENT.format(driver=driver), "not_served")
        if driver is None and not adapter.card:
            raise CardUnreadableError(_NO_DRIVER, "no_driver")
        if adapter.slot not in self._cards:
            self._cards[adapter.slot] = self._card(adapter)
        return self._cards[adapter.slot]

    def _card(self, adapter: DisplayAdapter) -> LinuxCard:
        if self._tree.is_copy:
            return LinuxCard(self._tree, adapter)
        card = LinuxCard(self._tree, adapter)
        slot = adapter.folder.rpartition("/")[2]
        clients = CardClients(slot, bool(card.is_integrated), self._descriptors)
        return LinuxCard(self._tree, adapter, clients, operating_system.release())
