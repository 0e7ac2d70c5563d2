"""NVIDIA as a maker of cards: NVML behind the names of `card_reader`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.core.devices.devices import CardState
from gpu_studio.hardware.card_reader import Maker
from gpu_studio.hardware.nvidia import cards, checked_card
from gpu_studio.hardware.nvidia.nvml import (
    CLOCK_MEMORY,
    CLOCK_SM,
    Nvml,
    is_library_replaced,
    library_version,
)

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import CardLoad, Device, Driver, GpuProcess, Telemetry
    from gpu_studio.core.messages.check_messages import CheckedDevice, Vitals
    from gpu_studio.hardware.card_reader import ProcessLookup
    from gpu_studio.hardware.nvidia.nvml import NvmlCard

_KERNEL_MODULE_VERSION = Path("/sys/module/nvidia/version")


class NvidiaCard:
    """See `card_reader.OpenCard`."""

    def __init__(self, card: NvmlCard) -> None:
        self._card = card

    def describe(self, index: int | None, lookup: ProcessLookup) -> Device:
        return cards.describe_card(self._card, index, lookup)

    def telemetry(self) -> Telemetry:
        return cards.read_telemetry(self._card)

    def processes(self, lookup: ProcessLookup) -> tuple[GpuProcess, ...]:
        return cards.read_processes(self._card, lookup)

    def state(self, own_pid: int) -> CardState:
        card = self._card
        return CardState(
            clock_event_reasons=cards.read_clock_event_reasons(card),
            sm_clock_mhz=card.number("nvmlDeviceGetClockInfo", CLOCK_SM),
            sm_clock_max_mhz=card.number("nvmlDeviceGetMaxClockInfo", CLOCK_SM),
            sm_clock_base_mhz=cards.base_clock_mhz(card),
            other_processes=cards.has_other_processes(card, own_pid),
            memory_clock_max_mhz=card.number("nvmlDeviceGetMaxClockInfo", CLOCK_MEMORY),
            memory_bus_width_bits=card.number("nvmlDeviceGetMemoryBusWidth"),
            pcie_generation=card.number("nvmlDeviceGetCurrPcieLinkGeneration"),
            pcie_width=card.number("nvmlDeviceGetCurrPcieLinkWidth"),
        )

    def load(self, own_pid: int, lookup: ProcessLookup) -> CardLoad:
        return cards.read_load(self._card, own_pid, lookup)

    def power_w(self) -> float | None:
        milliwatts = self._card.number("nvmlDeviceGetPowerUsage")
        return None if milliwatts is None else milliwatts / 1000

    def vitals(self) -> Vitals:
        return checked_card.read_vitals(self._card)

    def checked_device(self, address: str, driver: Driver) -> CheckedDevice:
        return checked_card.read_checked_device(self._card, address, driver)


class NvidiaReader:
    """See `card_reader.CardReader`.

    Args:
        nvml: an open session; None opens one.

    Raises:
        DriverUnavailableError: no driver, or the driver does not answer.
    """

    def __init__(self, nvml: Nvml | None = None) -> None:
        self._nvml = nvml or Nvml()

    def driver(self) -> Driver:
        return self._nvml.driver()

    def count(self) -> int:
        return self._nvml.count()

    def card(self, index: int) -> NvidiaCard:
        return NvidiaCard(self._nvml.card(index))

    def card_at(self, pci_bus_id: str) -> NvidiaCard:
        return NvidiaCard(self._nvml.card_at(pci_bus_id))

    def card_with(self, uuid: str) -> NvidiaCard:
        return NvidiaCard(self._nvml.card_with(uuid))

    def process_name(self, pid: int) -> str | None:
        return self._nvml.process_name(pid)

    def close(self) -> None:
        self._nvml.close()


def kernel_module_version(path: Path = _KERNEL_MODULE_VERSION) -> str | None:
    """Return the version of the driver's loaded kernel module on Linux; wakes no card."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


NVIDIA = Maker(
    name=cards.MAKER,
    vendor_id=0x10DE,
    kind=cards.KIND,
    open=NvidiaReader,
    running_version=kernel_module_version,
    library_version=library_version,
    is_replaced=is_library_replaced,
)
