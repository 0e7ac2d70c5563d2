"""What is in this PC, and what its sensors say now: everything of `core.devices` in one place."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices import (
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
from gpu_studio.hardware.nvml import CardUnreadableError, Nvml, NvmlCard, NvmlUnavailableError
from gpu_studio.hardware.pci import DisplayAdapter, display_adapters, is_asleep
from gpu_studio.hardware.processes import ProcessNames

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NOT_SERVED = (
    "The NVIDIA driver does not serve this card: it no longer supports it, or the card is lent to "
    "a virtual machine."
)
_KERNEL_MODULE_VERSION = Path("/sys/module/nvidia/version")


class Sensors:
    """The sensors of this PC. Opening the driver is left to the first `inventory`.

    An open session with the driver keeps a laptop's card awake: `rest` ends it, and the next
    `inventory` opens another if there is a card awake.

    Args:
        open_nvml: gives a session or raises `NvmlUnavailableError`.
        find_adapters: gives the graphics cards on the bus.
        is_card_asleep: whether the card with a bus address is switched off.
        visible_devices: CUDA_VISIBLE_DEVICES of the engines; None is "not set".
    """

    def __init__(
        self,
        open_nvml: Callable[[], Nvml] = Nvml,
        find_adapters: Callable[[], Sequence[DisplayAdapter]] = display_adapters,
        is_card_asleep: Callable[[str], bool] = is_asleep,
        visible_devices: str | None = os.environ.get("CUDA_VISIBLE_DEVICES"),
    ) -> None:
        self._open_nvml = open_nvml
        self._find_adapters = find_adapters
        self._is_card_asleep = is_card_asleep
        self._visible_devices = visible_devices
        self._cpu = CpuSensor()
        self._nvml: Nvml | None = None
        self._names = ProcessNames()
        # What each card of the inventory is read by; a sentence where it cannot be.
        self._sources: list[tuple[str, NvmlCard | str]] = []
        self._was_asleep: dict[str, bool] = {}

    def inventory(self) -> Inventory:
        """Return everything that is in this PC, with a first reading."""
        adapters = self._find_adapters()
        own = [adapter for adapter in adapters if adapter.is_nvidia]
        self._was_asleep = {a.pci_bus_id: a.is_asleep for a in own if a.pci_bus_id}
        driver, found = self._find_cards(own)
        self._sources = [(device.identity, source) for device, source in found]
        return Inventory(
            devices=(describe_cpu(self._cpu.read()), *self._numbered([d for d, _ in found])),
            driver=driver,
            other_gpus=tuple(adapter.name for adapter in adapters if not adapter.is_nvidia),
        )

    def reading(self) -> Reading:
        """Return one reading of the CPU and of every card of the last inventory."""
        return Reading(
            taken_at_s=time.monotonic(),
            cpu=self._cpu.read(),
            cards=tuple(self._read_card(uuid, source) for uuid, source in self._sources),
        )

    @property
    def is_outdated(self) -> bool:
        """Whether a card fell asleep or woke up since the last inventory."""
        return any(
            self._is_card_asleep(bus_id) != asleep for bus_id, asleep in self._was_asleep.items()
        )

    def rest(self) -> None:
        """End the session with the driver, so that a card may fall asleep."""
        if self._nvml is not None:
            self._nvml.close()
            self._nvml = None
            self._sources = []

    def _find_cards(
        self, adapters: Sequence[DisplayAdapter]
    ) -> tuple[Driver, list[tuple[Device, NvmlCard | str]]]:
        asleep = [adapter for adapter in adapters if adapter.is_asleep]
        if asleep and len(asleep) == len(adapters):
            # Opening the driver already wakes them.
            self.rest()
            return Driver(version=_kernel_module_version()), [_unread(a, ASLEEP) for a in adapters]
        try:
            self._nvml = self._nvml or self._open_nvml()
        except NvmlUnavailableError as error:
            driver = msgspec.structs.replace(error.driver, version=_kernel_module_version())
            return driver, [_unread(adapter, str(driver.error)) for adapter in adapters]
        self._names = ProcessNames(self._nvml.process_name)
        found = self._open_cards(self._nvml, adapters if asleep else ())
        listed = {device.pci_bus_id for device, _ in found}
        found += [_unread(adapter, ASLEEP) for adapter in asleep]
        if all(device.pci_bus_id for device, _ in found):
            found += [
                _unread(adapter, _NOT_SERVED)
                for adapter in adapters
                if adapter.pci_bus_id and not adapter.is_asleep and adapter.pci_bus_id not in listed
            ]
        return self._nvml.driver(), found

    def _open_cards(
        self, nvml: Nvml, beside_sleepers: Sequence[DisplayAdapter]
    ) -> list[tuple[Device, NvmlCard | str]]:
        """Open all cards by number, or slot by slot where another card must not be touched."""
        openers: list[tuple[int | None, Callable[[], NvmlCard]]]
        if beside_sleepers:
            awake = [a.pci_bus_id for a in beside_sleepers if not a.is_asleep and a.pci_bus_id]
            openers = [(None, partial(nvml.card_at, bus_id)) for bus_id in awake]
        else:
            openers = [(index, partial(nvml.card, index)) for index in range(nvml.count())]
        found: list[tuple[Device, NvmlCard | str]] = []
        for index, open_card in openers:
            try:
                card = open_card()
            except CardUnreadableError as error:
                device = unreadable_card(index, str(error))
                found.append((device, str(error)))
                continue
            device = describe_card(card, index, self._names)
            found.append((device, device.unreadable or card))
        return found

    def _numbered(self, cards: list[Device]) -> list[Device]:
        """Give the numbers of CUDA to the cards that CUDA can see: a sleeping one is one."""
        usable = [card for card in cards if card.unreadable in (None, ASLEEP)]
        numbered = {card.identity: card for card in number_cards(usable, self._visible_devices)}
        return [numbered.get(card.identity, card) for card in cards]

    def _read_card(self, identity: str, source: NvmlCard | str) -> CardReading:
        if isinstance(source, str):
            return CardReading(uuid=identity, telemetry=Telemetry(), error=source)
        try:
            return CardReading(
                uuid=identity,
                telemetry=read_telemetry(source),
                processes=read_processes(source, self._names),
            )
        except CardUnreadableError as error:
            return CardReading(uuid=identity, telemetry=Telemetry(), error=str(error))


def _unread(adapter: DisplayAdapter, sentence: str) -> tuple[Device, str]:
    device = Device(
        kind="cuda",
        name=adapter.name,
        pci_bus_id=normal_bus_id(adapter.pci_bus_id),
        unreadable=sentence,
    )
    return device, sentence


def _kernel_module_version() -> str | None:
    """Return the version of the driver's loaded kernel half on Linux; asking wakes no card."""
    try:
        return _KERNEL_MODULE_VERSION.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
