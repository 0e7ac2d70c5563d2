"""NVIDIA as a maker of cards: NVML behind the names of `card_reader`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.check.checked_card import checked_card
from gpu_studio.core.devices.cards import known_card
from gpu_studio.core.devices.devices import OPEN_NVIDIA_DRIVERS, CardState
from gpu_studio.core.devices.facts import resizable_bar_text
from gpu_studio.core.units import format_count
from gpu_studio.hardware.card_reader import Maker, no_lookup, vitals_of
from gpu_studio.hardware.nvidia import cards
from gpu_studio.hardware.nvidia.cards import base_clock_mhz, describe_card
from gpu_studio.hardware.nvidia.heat import VENDOR_ID, CardHeat, GuardedNvapi
from gpu_studio.hardware.nvidia.nvml import (
    CLOCK_MEMORY,
    CLOCK_SM,
    Nvml,
    is_library_replaced,
    library_version,
    number_from,
)

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import CardLoad, Device, Driver, GpuProcess, Telemetry
    from gpu_studio.core.messages.check_messages import CheckedDevice, Vitals
    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.hardware.card_reader import ProcessLookup
    from gpu_studio.hardware.nvidia.nvml import NvmlCard
    from gpu_studio.hardware.pci import DisplayAdapter

_KERNEL_MODULE_VERSION = Path("/sys/module/nvidia/version")
# Enumerators of nvml.h.
_THRESHOLD_SHUTDOWN, _THRESHOLD_SLOWDOWN, _THRESHOLD_OPERATING = 0, 1, 3
_CORRECTED, _UNCORRECTED, _SINCE_START = 0, 1, 0
_LEAST_LIMIT_C, _MOST_LIMIT_C = 60, 150  # what lies outside is no limit of a chip


class NvidiaCard:
    """See `card_reader.OpenCard`."""

    def __init__(self, card: NvmlCard, nvapi: GuardedNvapi | None = None) -> None:
        self._card = card
        self._nvapi = nvapi
        self._heat: CardHeat | None = None

    def describe(self, index: int | None, lookup: ProcessLookup) -> Device:
        device = cards.describe_card(self._card, index, lookup)
        if device.unreadable is not None:
            return device
        return msgspec.structs.replace(device, telemetry=self._with_heat(device.telemetry))

    def telemetry(self) -> Telemetry:
        return self._with_heat(cards.read_telemetry(self._card))

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
        return read_vitals(self._card, self.telemetry())

    def checked_device(
        self, address: str, driver: Driver, torch_card: TorchCard | None
    ) -> CheckedDevice:
        return read_checked_device(self._card, address, driver, torch_card)

    def _with_heat(self, telemetry: Telemetry) -> Telemetry:
        if self._nvapi is None:
            return telemetry
        if self._heat is None:
            architecture = self._card.number("nvmlDeviceGetArchitecture")
            self._heat = CardHeat(self._nvapi, cards.read_bus_number(self._card), architecture)
        return self._heat.added_to(telemetry)


class NvidiaReader:
    """See `card_reader.CardReader`.

    Args:
        nvml: an open session.
        nvapi: has the temperatures that NVML lacks; None if nothing has them.
    """

    def __init__(self, nvml: Nvml, nvapi: GuardedNvapi | None = None) -> None:
        self._nvml = nvml
        self._nvapi = nvapi
        self._cards: dict[NvmlCard, NvidiaCard] = {}

    def driver(self) -> Driver:
        return self._nvml.driver()

    def count(self) -> int:
        return self._nvml.count()

    def card(self, index: int) -> NvidiaCard:
        return self._open(self._nvml.card(index))

    def card_at(self, slot: str) -> NvidiaCard:
        return self._open(self._nvml.card_at(slot))

    def card_with(self, uuid: str) -> NvidiaCard:
        return self._open(self._nvml.card_with(uuid))

    def process_name(self, pid: int) -> str | None:
        return self._nvml.process_name(pid)

    def close(self) -> None:
        if self._nvapi is not None:
            self._nvapi.close()
        self._cards.clear()
        self._nvml.close()

    def _open(self, card: NvmlCard) -> NvidiaCard:
        """Return the same card for the same handle: it remembers what it has read."""
        return self._cards.setdefault(card, NvidiaCard(card, self._nvapi))


_NVAPI = GuardedNvapi()  # one in a process: a call that hung is not made again in the next session


def _open_reader() -> NvidiaReader:
    """Open a session; raises `DriverUnavailableError`."""
    return NvidiaReader(Nvml(), _NVAPI)


def kernel_module_version(path: Path = _KERNEL_MODULE_VERSION) -> str | None:
    """Return the version of the driver's loaded kernel module on Linux; wakes no card."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _claims(adapter: DisplayAdapter) -> bool:
    """Return whether NVML could serve a card: another driver has other files for it."""
    return adapter.vendor_id == VENDOR_ID and adapter.kernel_driver not in OPEN_NVIDIA_DRIVERS


NVIDIA = Maker(
    name=cards.MAKER,
    claims=_claims,
    kind=cards.KIND,
    open=_open_reader,
    running_version=kernel_module_version,
    library_version=library_version,
    is_replaced=is_library_replaced,
)


def read_vitals(card: NvmlCard, now: Telemetry) -> Vitals:
    """Return one reading of a card, its present telemetry and its counters.

    Raises:
        nvml.CardUnreadableError: the card is lost.
    """
    ecc = "nvmlDeviceGetTotalEccErrors"
    rows = card.ask("nvmlDeviceGetRemappedRows")
    corrected, uncorrected, is_pending = _rows(rows)
    return msgspec.structs.replace(
        vitals_of(now),
        pcie_replays=card.number("nvmlDeviceGetPcieReplayCounter"),
        ecc_corrected=card.number(ecc, _CORRECTED, _SINCE_START),
        ecc_uncorrected=card.number(ecc, _UNCORRECTED, _SINCE_START),
        remapped_rows=None if corrected is None else corrected + (uncorrected or 0),
        has_pending_remap=is_pending,
    )


def read_checked_device(
    card: NvmlCard, address: str, driver: Driver | None, torch_card: TorchCard | None = None
) -> CheckedDevice:
    """Return a card's facts for the record of a check; raises like `read_vitals`.

    Args:
        card: the card.
        address: PyTorch's name for it.
        driver: the driver; None if unknown.
        torch_card: PyTorch's account of the card, for what an old driver does not say.
    """
    device = describe_card(card, None, no_lookup)
    known = known_card(device.name)
    return msgspec.structs.replace(
        checked_card(device, address, torch_card),
        driver_version=driver.version if driver else None,
        shutdown_c=_limit_c(card, _THRESHOLD_SHUTDOWN),
        slowdown_c=_limit_c(card, _THRESHOLD_SLOWDOWN),
        operating_max_c=_limit_c(card, _THRESHOLD_OPERATING),
        base_clock_mhz=base_clock_mhz(card) or (known.base_clock_mhz if known else None),
        resizable_bar=resizable_bar_text(device) or "",
        ecc=f"{_ecc(device)} {_replaced(card)}",
    )


def _limit_c(card: NvmlCard, threshold: int) -> float | None:
    limit = card.number("nvmlDeviceGetTemperatureThreshold", threshold, most=_MOST_LIMIT_C)
    return None if limit is None or limit < _LEAST_LIMIT_C else float(limit)


def _ecc(device: Device) -> str:
    if device.ecc_enabled is None:
        return "The card reports no ECC memory. GeForce cards usually have none."
    if device.ecc_enabled:
        return "The memory has ECC, and it is on: the card counts and corrects errors itself."
    return "The memory has ECC, but it is off."


def _replaced(card: NvmlCard) -> str:
    corrected, uncorrected, is_pending = _rows(card.ask("nvmlDeviceGetRemappedRows"))
    if corrected is None:
        return "It reports no replaced rows of its memory."
    count = corrected + (uncorrected or 0)
    noun = "row" if count == 1 else "rows"
    text = f"It has replaced {format_count(count)} {noun} of its memory so far"
    return f"{text}, and waits for a restart to replace more." if is_pending else f"{text}."


def _rows(answer: object) -> tuple[int | None, int | None, bool | None]:
    """Return remapped rows, corrected and uncorrected, and whether a remap waits for a restart."""
    if not isinstance(answer, (tuple, list)) or len(answer) < 3:
        return None, None, None
    pending = number_from(answer[2])
    return number_from(answer[0]), number_from(answer[1]), None if pending is None else pending > 0
