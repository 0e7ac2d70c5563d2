"""Read this PC's devices and their sensors, in the types of `core.devices.devices`."""

from __future__ import annotations

import collections
import contextlib
import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices.devices import (
    ASLEEP,
    CardReading,
    Device,
    Driver,
    Inventory,
    Reading,
    Telemetry,
    number_cards,
)
from gpu_studio.hardware.cards import (
    describe_card,
    normal_bus_id,
    read_processes,
    read_telemetry,
    unreadable_card,
)
from gpu_studio.hardware.cpu import CpuSensor, describe_cpu
from gpu_studio.hardware.nvml import (
    CardUnreadableError,
    Nvml,
    NvmlCard,
    NvmlUnavailableError,
    is_library_replaced,
    library_version,
)
from gpu_studio.hardware.pci import DisplayAdapter, display_adapters, is_asleep
from gpu_studio.hardware.process_names import ProcessNames
from gpu_studio.hardware.surroundings import cuda_variables, is_wsl, linux_distribution
from gpu_studio.hardware.watchdog import SilentError, Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.core.devices.devices import Unreadable

_SILENT_DRIVER = "The NVIDIA driver does not answer. Restart the PC."
_SILENT_CARD = "The driver no longer answers for this card. Restart the PC."
# Without persistence mode, a driver takes seconds to start its cards; a running driver does not.
_START_PATIENCE_S = 12.0
_CALL_PATIENCE_S = 4.0
_DRIVER = "driver"
_NOT_SERVED = (
    "The NVIDIA driver does not serve this card: it no longer supports it, or the card is lent to "
    "a virtual machine."
)
_KERNEL_MODULE_VERSION = Path("/sys/module/nvidia/version")
# The interval of checks for added or removed cards on the bus and in the driver; a check takes 1
# ms.
_LOOK_EVERY_S = 2.0


class PcSensors:
    """The sensors of this PC. The first `inventory` opens the driver.

    An open session with the driver keeps a laptop's card awake: `rest` ends it, and the next
    `inventory` opens another session if a card is awake.

    Args:
        open_nvml: returns a session or raises `NvmlUnavailableError`.
        find_adapters: returns the graphics cards on the bus.
        is_card_asleep: returns whether the card at a bus address is asleep.
        visible_devices: CUDA_VISIBLE_DEVICES of the engines; None means "not set".
        start_patience_s: the most seconds for the driver to start its cards.
        call_patience_s: the most seconds to read one card.
        is_driver_replaced: returns whether an update has replaced the driver's library on disk.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        open_nvml: Callable[[], Nvml] = Nvml,
        find_adapters: Callable[[], Sequence[DisplayAdapter]] = display_adapters,
        is_card_asleep: Callable[[str], bool] = is_asleep,
        visible_devices: str | None = os.environ.get("CUDA_VISIBLE_DEVICES"),
        start_patience_s: float = _START_PATIENCE_S,
        call_patience_s: float = _CALL_PATIENCE_S,
        is_driver_replaced: Callable[[], bool] = is_library_replaced,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_nvml = open_nvml
        self._find_adapters = find_adapters
        self._is_card_asleep = is_card_asleep
        self._visible_devices = visible_devices
        self._cpu = CpuSensor()
        self._nvml: Nvml | None = None
        self._names = ProcessNames()
        self._watchdog = Watchdog()
        self._start_patience_s = start_patience_s
        self._call_patience_s = call_patience_s
        self._is_driver_silent = False
        # The source of each card's readings; a sentence if it cannot be read.
        self._sources: list[tuple[str, NvmlCard | Device]] = []
        self._was_asleep: dict[str, bool] = {}
        self._is_driver_replaced = is_driver_replaced
        self._now_s = now_s
        # The facts that the inventory depends on, to detect changes, and the time of the last
        # check.
        self._bus: object = None
        self._card_count: int | None = None
        self._was_replaced = self._has_changed = False
        self._looked_at_s = 0.0

    def inventory(self) -> Inventory:
        """Return all devices of this PC, with a first reading."""
        if self._has_changed:
            self.rest()  # a session only knows the cards that existed at its start
        adapters = self._find_adapters()
        own = [adapter for adapter in adapters if adapter.is_nvidia]
        self._was_asleep = {a.pci_bus_id: a.is_asleep for a in own if a.pci_bus_id}
        driver, found = self._find_cards_in_time(own)
        self._note_what_is_there(own)
        driver = msgspec.structs.replace(driver, was_updated=self._was_replaced)
        found = _told_apart(found)
        self._sources = [(device.identity, source) for device, source in found]
        return Inventory(
            devices=(describe_cpu(self._cpu.read()), *self._numbered([d for d, _ in found])),
            driver=driver,
            other_gpus=tuple(adapter.name for adapter in adapters if not adapter.is_nvidia),
            is_wsl=is_wsl(),
            distribution=linux_distribution(),
            variables=cuda_variables(),
        )

    def reading(self) -> Reading:
        """Return one reading of the CPU and of every card of the last inventory."""
        return Reading(
            taken_at_s=time.monotonic(),
            cpu=self._cpu.read(),
            cards=self.card_readings(),
        )

    def card_readings(self) -> tuple[CardReading, ...]:
        """Return one reading of every card of the last inventory."""
        return tuple(self._read_card(uuid, source) for uuid, source in self._sources)

    @property
    def is_outdated(self) -> bool:
        """Whether the last inventory is out of date.

        That is so if a card was added or removed, fell asleep or woke up, or if the driver was
        loaded, started to answer, or was replaced on disk.
        """
        if self._is_driver_silent and not self._watchdog.is_stuck(_DRIVER):
            return True
        if any(
            self._is_card_asleep(bus_id) != asleep for bus_id, asleep in self._was_asleep.items()
        ):
            return True
        return self._has_changed or self._sees_a_change()

    def _sees_a_change(self) -> bool:
        """Check the bus and the driver at intervals; return whether they changed."""
        now_s = self._now_s()
        if now_s - self._looked_at_s < _LOOK_EVERY_S:
            return False
        self._looked_at_s = now_s
        own = [adapter for adapter in self._find_adapters() if adapter.is_nvidia]
        self._has_changed = _bus(own) != self._bus or self._count() != self._card_count
        return self._has_changed or self._is_driver_replaced() != self._was_replaced

    def _note_what_is_there(self, own: Sequence[DisplayAdapter]) -> None:
        self._bus, self._card_count = _bus(own), self._count()
        self._was_replaced, self._has_changed = self._is_driver_replaced(), False
        self._looked_at_s = self._now_s()

    def _count(self) -> int | None:
        """Return the driver's number of cards; None if it was not asked or does not answer."""
        if self._nvml is None:
            return None
        try:
            return self._watchdog.call(_DRIVER, self._nvml.count, self._call_patience_s)
        except SilentError:
            return self._card_count

    def rest(self) -> None:
        """End the session with the driver, so that a card can fall asleep."""
        nvml, self._nvml = self._nvml, None
        if nvml is not None:
            self._sources = []
            with contextlib.suppress(SilentError):
                self._watchdog.call(_DRIVER, nvml.close, self._call_patience_s)

    @property
    def has_left_behind(self) -> bool:
        """Whether a call into the driver has not returned: its thread cannot be ended."""
        return self._watchdog.has_left_behind

    def _find_cards_in_time(
        self, adapters: Sequence[DisplayAdapter]
    ) -> tuple[Driver, list[tuple[Device, NvmlCard | Device]]]:
        """Return the result of `_find_cards`; the cards on the bus if the driver is silent."""
        self._is_driver_silent = False
        try:
            return self._watchdog.call(
                _DRIVER, partial(self._find_cards, adapters), self._start_patience_s
            )
        except SilentError:
            self._is_driver_silent, self._nvml = True, None
            driver = Driver(version=_kernel_module_version(), error=_SILENT_DRIVER, is_silent=True)
            return driver, [_unread(adapter, _SILENT_DRIVER, "silent") for adapter in adapters]

    def _find_cards(
        self, adapters: Sequence[DisplayAdapter]
    ) -> tuple[Driver, list[tuple[Device, NvmlCard | Device]]]:
        asleep = [adapter for adapter in adapters if adapter.is_asleep]
        if asleep and len(asleep) == len(adapters):
            # Opening the driver wakes the cards, and an open session keeps them awake.
            if self._nvml is not None:
                self._nvml.close()
                self._nvml = None
            return Driver(version=_kernel_module_version()), [
                _unread(adapter, ASLEEP, "asleep") for adapter in adapters
            ]
        try:
            self._nvml = self._nvml or self._open_nvml()
        except NvmlUnavailableError as error:
            driver = msgspec.structs.replace(
                error.driver, version=_kernel_module_version(), library_version=library_version()
            )
            return driver, [
                _unread(adapter, str(driver.error), "no_driver") for adapter in adapters
            ]
        self._names = ProcessNames(self._nvml.process_name)
        found = self._open_cards(self._nvml, adapters if asleep else ())
        listed = {device.pci_bus_id for device, _ in found}
        found += [_unread(adapter, ASLEEP, "asleep") for adapter in asleep]
        if all(device.pci_bus_id for device, _ in found):
            found += [
                _unread(adapter, _NOT_SERVED, "not_served")
                for adapter in adapters
                if adapter.pci_bus_id and not adapter.is_asleep and adapter.pci_bus_id not in listed
            ]
        driver = msgspec.structs.replace(self._nvml.driver(), library_version=library_version())
        return driver, found

    def _open_cards(
        self, nvml: Nvml, beside_sleepers: Sequence[DisplayAdapter]
    ) -> list[tuple[Device, NvmlCard | Device]]:
        """Open all cards by number, or by slot if another card must not be touched."""
        openers: list[tuple[int | None, Callable[[], NvmlCard]]]
        if beside_sleepers:
            awake = [a.pci_bus_id for a in beside_sleepers if not a.is_asleep and a.pci_bus_id]
            openers = [(None, partial(nvml.card_at, bus_id)) for bus_id in awake]
        else:
            openers = [(index, partial(nvml.card, index)) for index in range(nvml.count())]
        found: list[tuple[Device, NvmlCard | Device]] = []
        for index, open_card in openers:
            try:
                card = open_card()
            except CardUnreadableError as error:
                device = unreadable_card(index, error)
                found.append((device, device))
                continue
            device = describe_card(card, index, self._names)
            found.append((device, device if device.unreadable else card))
        return found

    def _numbered(self, cards: list[Device]) -> list[Device]:
        """Assign CUDA's numbers to the cards that CUDA can see, including sleeping cards."""
        usable = [card for card in cards if card.unreadable in (None, ASLEEP)]
        numbered = {card.identity: card for card in number_cards(usable, self._visible_devices)}
        return [numbered.get(card.identity, card) for card in cards]

    def _read_card(self, identity: str, source: NvmlCard | Device) -> CardReading:
        if isinstance(source, Device):
            return _no_reading(identity, source.unreadable or "", source.unreadable_code)
        try:
            return self._watchdog.call(
                identity, partial(self._ask_card, identity, source), self._call_patience_s
            )
        except CardUnreadableError as error:
            return _no_reading(identity, str(error), error.code)
        except SilentError:
            return _no_reading(identity, _SILENT_CARD, "silent")

    def _ask_card(self, identity: str, card: NvmlCard) -> CardReading:
        return CardReading(
            uuid=identity,
            telemetry=read_telemetry(card),
            processes=read_processes(card, self._names),
        )


def _bus(adapters: Sequence[DisplayAdapter]) -> object:
    """Return a value that changes if a card or its driver appears or disappears."""
    slots = frozenset((a.device_id, a.pci_bus_id, a.kernel_driver) for a in adapters)
    return slots, _kernel_module_version()


def _told_apart(
    found: list[tuple[Device, NvmlCard | Device]],
) -> list[tuple[Device, NvmlCard | Device]]:
    """Remove the UUID of cards that share it: their slots then identify them."""
    uses = collections.Counter(device.uuid for device, _ in found)
    return [
        (msgspec.structs.replace(device, uuid=None), source)
        if device.uuid and uses[device.uuid] > 1
        else (device, source)
        for device, source in found
    ]


def _no_reading(identity: str, sentence: str, code: Unreadable | None) -> CardReading:
    return CardReading(uuid=identity, telemetry=Telemetry(), error=sentence, error_code=code)


def _unread(
    adapter: DisplayAdapter, sentence: str, code: Unreadable
) -> tuple[Device, NvmlCard | Device]:
    device = Device(
        kind="cuda",
        name=adapter.name,
        pci_bus_id=normal_bus_id(adapter.pci_bus_id),
        pci_device_id=adapter.device_id,
        kernel_driver=adapter.kernel_driver,
        unreadable=sentence,
        unreadable_code=code,
    )
    return device, device


def _kernel_module_version() -> str | None:
    """Return the version of the driver's loaded kernel module on Linux; wakes no card."""
    try:
        return _KERNEL_MODULE_VERSION.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
