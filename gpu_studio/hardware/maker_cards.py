"""The cards of one maker in this PC: found through its driver, read, and left asleep."""

from __future__ import annotations

import collections
import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices.devices import ASLEEP, CardReading, Device, Driver, number_cards
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.hardware.card_reader import (
    CardUnreadableError,
    DriverUnavailableError,
    kind_of,
    unreadable_card,
)
from gpu_studio.hardware.display_adapters import display_adapters, is_asleep, is_off_bus
from gpu_studio.hardware.processes import ProcessBook
from gpu_studio.hardware.watchdog import SilentError, Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.core.devices.devices import GpuProcess, Unreadable
    from gpu_studio.hardware.card_reader import CardReader, Maker, OpenCard
    from gpu_studio.hardware.pci import DisplayAdapter

_Found = tuple[Device, "OpenCard | None"]
_SILENT_DRIVER = "The {maker} driver does not answer. Restart the PC."
_SILENT_CARD = "The driver no longer answers for this card. Restart the PC."
# Without persistence mode, a driver takes seconds to start its cards; a running driver does not.
_START_PATIENCE_S = 12.0
_CALL_PATIENCE_S = 4.0
# A file of the system's takes under a millisecond; the other cards wait for a slow one.
_FILE_PATIENCE_S = 1.0
_DRIVER = "driver"
_NOT_SERVED = "The {maker} driver does not list this card."
# The interval of checks for added or removed cards on the bus and in the driver; a check takes 1
# ms.
_LOOK_EVERY_S = 2.0


class MakerCards:
    """The cards of one maker. The first `find` opens the driver.

    An open session with the driver keeps a laptop's card awake: `rest` ends it, and the next
    `find` opens another session if a card is awake.

    Args:
        maker: whose cards.
        claims: whether a card on the bus is one of them; None leaves that to the maker.
        find_adapters: returns the graphics cards on the bus, of all makers.
        is_card_asleep: returns whether the card in a slot is asleep.
        visible_devices: CUDA_VISIBLE_DEVICES of the engines; None means "not set".
        start_patience_s: the most seconds for the driver to start its cards.
        call_patience_s: the most seconds to read one card.
        now_s: a monotonic clock.

    Attributes:
        reads_programs: whether readings have the programs on each card.
    """

    def __init__(
        self,
        maker: Maker,
        *,
        claims: Callable[[DisplayAdapter], bool] | None = None,
        find_adapters: Callable[[], Sequence[DisplayAdapter]] = display_adapters,
        is_card_asleep: Callable[[str], bool] = is_asleep,
        visible_devices: str | None = None,
        start_patience_s: float = _START_PATIENCE_S,
        call_patience_s: float = _CALL_PATIENCE_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.maker = maker
        self._claims = claims or maker.claims
        self._find_adapters = find_adapters
        self._is_card_asleep = is_card_asleep
        self._visible_devices = visible_devices
        self._reader: CardReader | None = None
        self._book = ProcessBook()
        self.reads_programs = True
        self._watchdog = Watchdog()
        self._start_patience_s = start_patience_s
        self._call_patience_s = (
            min(call_patience_s, _FILE_PATIENCE_S) if maker.is_system else call_patience_s
        )
        # Opens the system's cards one by one, so that a slow one holds up no other.
        self._opening = Watchdog()
        self._slow_slots: set[str] = set()
        self._is_driver_silent = False
        # Each card with the source of its readings; None if it cannot be read.
        self._sources: list[_Found] = []
        self._was_asleep: dict[str, bool] = {}
        # What was read of each slot's card while it was awake: it stays the same card asleep.
        self._awake: dict[str, Device] = {}
        self._now_s = now_s
        # The facts that the inventory depends on, to detect changes, and the time of the last
        # check.
        self._bus: object = None
        self._card_count: int | None = None
        self._was_replaced = self._has_changed = False
        self._looked_at_s = 0.0

    def find(self, adapters: Sequence[DisplayAdapter]) -> tuple[Driver, list[Device]]:
        """Return the driver and the maker's cards, with a first reading.

        Args:
            adapters: the graphics cards that this maker's reader serves; see `claimed`.
        """
        if self._has_changed:
            self.rest()  # a session only knows the cards that existed at its start
        own = adapters
        self._was_asleep = {a.slot: a.is_asleep for a in own if a.slot}
        driver, found = self._find_cards_in_time(own)
        self._note_what_is_there(own)
        driver = msgspec.structs.replace(driver, was_updated=self._was_replaced)
        found = _without_shared_uuids(found)
        self._sources = found
        self._awake |= {
            device.pci_bus_id: device
            for device, _ in found
            if device.pci_bus_id and device.unreadable is None
        }
        return driver, self._numbered([device for device, _ in found])

    def readings(self) -> tuple[CardReading, ...]:
        """Return one reading of every card of the last `find`."""
        return tuple(self._read_card(device, card) for device, card in self._sources)

    @property
    def is_outdated(self) -> bool:
        """Whether the last `find` is out of date.

        That is so if a card was added or removed, fell asleep or woke up, or if the driver was
        loaded, started to answer, or was replaced on disk.
        """
        if self._is_driver_silent and not self._watchdog.is_stuck(_DRIVER):
            return True
        if any(not self._opening.is_stuck(slot) for slot in self._slow_slots):
            return True
        if any(self._is_card_asleep(slot) != asleep for slot, asleep in self._was_asleep.items()):
            return True
        return self._has_changed or self._sees_a_change()

    def _sees_a_change(self) -> bool:
        """Check the bus and the driver at intervals; return whether they changed."""
        now_s = self._now_s()
        if now_s - self._looked_at_s < _LOOK_EVERY_S:
            return False
        self._looked_at_s = now_s
        own = self._claim(self._find_adapters())
        self._has_changed = self._bus_of(own) != self._bus or self._count() != self._card_count
        return self._has_changed or self.maker.is_replaced() != self._was_replaced

    def _note_what_is_there(self, own: Sequence[DisplayAdapter]) -> None:
        self._bus, self._card_count = self._bus_of(own), self._count()
        self._was_replaced, self._has_changed = self.maker.is_replaced(), False
        self._looked_at_s = self._now_s()

    def _count(self) -> int | None:
        """Return the driver's number of cards; None if it was not asked or does not answer."""
        if self._reader is None:
            return None
        try:
            return self._watchdog.call(_DRIVER, self._reader.count, self._call_patience_s)
        except SilentError:
            return self._card_count

    def rest(self) -> None:
        """End the session with the driver, so that a card can fall asleep."""
        reader, self._reader = self._reader, None
        if reader is not None:
            self._sources = []
            with contextlib.suppress(SilentError):
                self._watchdog.call(_DRIVER, reader.close, self._call_patience_s)

    @property
    def has_left_behind(self) -> bool:
        """Whether a call into the driver has not returned: its thread cannot be ended."""
        return self._watchdog.has_left_behind or self._opening.has_left_behind

    def _find_cards_in_time(
        self, adapters: Sequence[DisplayAdapter]
    ) -> tuple[Driver, list[_Found]]:
        """Return the result of `_find_cards`; the cards on the bus if the driver is silent."""
        self._is_driver_silent = False
        try:
            return self._watchdog.call(
                _DRIVER, partial(self._find_cards, adapters), self._start_patience_s
            )
        except SilentError:
            self._is_driver_silent, self._reader = True, None
            silent = _SILENT_DRIVER.format(maker=self.maker.name)
            driver = Driver(version=self.maker.running_version(), error=silent, is_silent=True)
            return driver, [self._unread(adapter, silent, "silent") for adapter in adapters]

    def _find_cards(self, adapters: Sequence[DisplayAdapter]) -> tuple[Driver, list[_Found]]:
        asleep = [adapter for adapter in adapters if adapter.is_asleep]
        if asleep and len(asleep) == len(adapters):
            # Opening the driver wakes the cards, and an open session keeps them awake.
            if self._reader is not None:
                self._reader.close()
                self._reader = None
            return Driver(version=self.maker.running_version()), [
                self._unread(adapter, ASLEEP, "asleep") for adapter in adapters
            ]
        try:
            self._reader = self._reader or self.maker.open()
        except DriverUnavailableError as error:
            driver = msgspec.structs.replace(
                error.driver,
                version=self.maker.running_version(),
                library_version=self.maker.library_version(),
            )
            return driver, [
                self._unread(adapter, str(driver.error), "no_driver") for adapter in adapters
            ]
        self._book = ProcessBook(self._reader.process_name)
        is_by_slot = bool(asleep) or self.maker.is_system
        found = self._open_cards(self._reader, adapters if is_by_slot else None)
        listed = {device.pci_bus_id for device, _ in found}
        found += [self._unread(adapter, ASLEEP, "asleep") for adapter in asleep]
        not_served = _NOT_SERVED.format(maker=self.maker.name)
        if not self.maker.is_system and all(device.pci_bus_id for device, _ in found):
            found += [
                self._unread(adapter, not_served, "not_served")
                for adapter in adapters
                if adapter.pci_bus_id and not adapter.is_asleep and adapter.pci_bus_id not in listed
            ]
        driver = msgspec.structs.replace(
            self._reader.driver(), library_version=self.maker.library_version()
        )
        return driver, found

    def _open_cards(
        self, reader: CardReader, by_slot: Sequence[DisplayAdapter] | None
    ) -> list[_Found]:
        """Open all cards by number, or by slot if another card must not be touched."""
        self._slow_slots = set()
        if by_slot is None:
            numbers = range(reader.count())
            return [self._open(partial(reader.card, number), number) for number in numbers]
        awake = [adapter for adapter in by_slot if not adapter.is_asleep and adapter.slot]
        return [self._open(partial(reader.card, one.slot), adapter=one) for one in awake]

    def _open(
        self,
        open_card: Callable[[], OpenCard],
        index: int | None = None,
        adapter: DisplayAdapter | None = None,
    ) -> _Found:
        describe = partial(self._describe, index, open_card)
        by_system = adapter if self.maker.is_system else None
        try:
            if by_system is None:
                return describe()
            return self._opening.call(by_system.slot, describe, self._call_patience_s)
        except SilentError:
            assert by_system is not None
            self._slow_slots.add(by_system.slot)
            return self._unread(by_system, _SILENT_CARD, "silent")
        except CardUnreadableError as error:
            if by_system is not None:
                return self._unread(by_system, str(error), error.code)
            return unreadable_card(self.maker.name, self.maker.kind, index, error), None

    def _describe(self, index: int | None, open_card: Callable[[], OpenCard]) -> _Found:
        card = open_card()
        device = card.describe()
        number = device.driver_index if index is None else index
        return msgspec.structs.replace(
            device, driver_index=number, telemetry=card.telemetry(),
            processes=self._processes(device.identity, card),
        ), card  # fmt: skip

    def _processes(self, identity: str, card: OpenCard) -> tuple[GpuProcess, ...]:
        return self._book.of_card(identity, card.processes(with_load=True))

    def _claim(self, adapters: Sequence[DisplayAdapter]) -> list[DisplayAdapter]:
        return [one for one in adapters if self._claims(one)]

    def _bus_of(self, adapters: Sequence[DisplayAdapter]) -> object:
        """Return a value that changes if a card or its driver appears or disappears."""
        slots = frozenset((a.device_id, a.pci_bus_id, a.kernel_driver) for a in adapters)
        return slots, self.maker.running_version()

    def _unread(self, adapter: DisplayAdapter, sentence: str, code: Unreadable) -> _Found:
        known = self._awake.get(adapter.slot)
        is_same = known is not None and known.pci_device_id in (None, adapter.device_id)
        if code == "asleep" and known is not None and is_same:
            device = msgspec.structs.replace(
                known, telemetry=Telemetry(), processes=(), unreadable=sentence,
                unreadable_code=code,
            )  # fmt: skip
            return device, None
        is_system = self.maker.is_system
        device = Device(
            kind=kind_of(adapter.maker) if is_system else self.maker.kind,
            maker=adapter.maker if is_system else self.maker.name,
            name=adapter.name,
            pci_bus_id=adapter.pci_bus_id,
            pci_device_id=adapter.device_id,
            kernel_driver=adapter.kernel_driver,
            is_off_bus=is_off_bus(adapter),
            unreadable=sentence,
            unreadable_code=code,
        )
        return device, None

    def _numbered(self, cards: list[Device]) -> list[Device]:
        """Assign CUDA's numbers to the cards that CUDA can see, including sleeping cards."""
        if self.maker.is_system:
            return cards
        usable = [card for card in cards if card.answers_or_sleeps]
        numbered = {card.identity: card for card in number_cards(usable, self._visible_devices)}
        return [numbered.get(card.identity, card) for card in cards]

    def _read_card(self, device: Device, card: OpenCard | None) -> CardReading:
        identity = device.identity
        if card is None:
            return _no_reading(identity, device.unreadable or "", device.unreadable_code)
        ask = partial(self._ask_card, identity, card)
        try:
            return self._watchdog.call(identity, ask, self._call_patience_s)
        except CardUnreadableError as error:
            return _no_reading(identity, str(error), error.code)
        except SilentError:
            return _no_reading(identity, _SILENT_CARD, "silent")

    def _ask_card(self, identity: str, card: OpenCard) -> CardReading:
        wanted = self.reads_programs
        processes = self._processes(identity, card) if wanted else None
        return CardReading(uuid=identity, telemetry=card.telemetry(), processes=processes)


def _without_shared_uuids(found: list[_Found]) -> list[_Found]:
    """Remove the UUID of cards that share it: their slots then identify them."""
    uses = collections.Counter(device.uuid for device, _ in found)
    return [
        (msgspec.structs.replace(device, uuid=None) if uses[device.uuid] > 1 else device, card)
        for device, card in found
    ]


def _no_reading(identity: str, sentence: str, code: Unreadable | None) -> CardReading:
    return CardReading(uuid=identity, telemetry=Telemetry(), error=sentence, error_code=code)
