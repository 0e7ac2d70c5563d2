"""NVIDIA as a maker of cards: what NVML says of one, in the types and names of `card_reader`."""

from __future__ import annotations

import functools
import operator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gpu_studio.core.check.check_record import checked_card
from gpu_studio.core.clock_reasons import ClockReason
from gpu_studio.core.devices.cards import known_card
from gpu_studio.core.devices.devices import (
    EXCLUSIVE_PROCESS,
    OPEN_NVIDIA_DRIVERS,
    PROHIBITED,
    CardLoad,
    CardState,
    Device,
)
from gpu_studio.core.devices.facts import resizable_bar_text
from gpu_studio.core.devices.peaks import cores_per_multiprocessor
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.core.units import format_count
from gpu_studio.hardware.card_reader import (
    CardUnreadableError,
    Maker,
    no_lookup,
    processes_of,
    unreadable_card,
    vitals_of,
)
from gpu_studio.hardware.nvidia.nvapi import VENDOR_ID, CardHeat, GuardedNvapi
from gpu_studio.hardware.nvidia.nvml import (
    CLOCK_MEMORY,
    CLOCK_SM,
    PCIE_RECEIVED,
    PCIE_SENT,
    TEMPERATURE_GPU,
    Nvml,
    is_library_replaced,
    library_version,
    number_from,
    text_from,
)
from gpu_studio.hardware.pci import normal_bus_id

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Driver, GpuProcess
    from gpu_studio.core.messages.check_messages import CheckedDevice
    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.hardware.card_reader import ProcessLookup
    from gpu_studio.hardware.nvidia.nvml import NvmlCard
    from gpu_studio.hardware.pci import DisplayAdapter

_KERNEL_MODULE_VERSION = Path("/sys/module/nvidia/version")
# Enumerators of nvml.h.
_THRESHOLD_SHUTDOWN, _THRESHOLD_SLOWDOWN, _THRESHOLD_OPERATING = 0, 1, 3
_CORRECTED, _UNCORRECTED, _SINCE_START = 0, 1, 0
_LEAST_LIMIT_C, _MOST_LIMIT_C = 60, 150  # what lies outside is no limit of a chip
_MAKER, _KIND = "NVIDIA", "cuda"
# nvmlDeviceArchitecture_t and nvmlComputeMode_t of nvml.h.
_ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada",
    9: "Hopper", 10: "Blackwell", 13: "Rubin",
}  # fmt: skip
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: PROHIBITED, 3: EXCLUSIVE_PROCESS}
# nvmlClocksEventReasons of nvml.h.
_CLOCK_REASONS = {
    0x001: ClockReason.IDLE, 0x002: ClockReason.APPLICATION, 0x004: ClockReason.POWER_LIMIT,
    0x008: ClockReason.HARDWARE_SLOWDOWN, 0x010: ClockReason.OTHER_CARDS,
    0x020: ClockReason.DRIVER_HEAT, 0x040: ClockReason.HARDWARE_HEAT,
    0x080: ClockReason.POWER_BRAKE, 0x100: ClockReason.DISPLAY,
}  # fmt: skip
# The highest plausible values; 32 is NVML's P-state for "unknown".
_MOST_MILLIWATTS = 10_000_000
_MOST_CELSIUS = 200
_MOST_PERCENT_OF_A_FAN = 250  # of its rated speed, which it may exceed
_MOST_MEGAHERTZ = 100_000
_MOST_PSTATE = 15
_MOST_CORES, _MOST_BITS = 1_000_000, 100_000
_MOST_PCIE = 64  # generations, and lanes
# Of the driver's buffer of samples, only the last second says what works now.
_LATEST_US = 1_000_000
_MEMORY_TEMPERATURE = 82  # NVML_FI_DEV_MEMORY_TEMP of nvml.h: cards of data centers have it


class NvidiaCard:
    """See `card_reader.OpenCard`."""

    def __init__(self, card: NvmlCard, nvapi: GuardedNvapi | None = None) -> None:
        self._card = card
        self._nvapi = nvapi
        self._heat: CardHeat | None = None

    def describe(self, index: int | None, lookup: ProcessLookup) -> Device:
        device = describe_card(self._card, index, lookup)
        if device.unreadable is not None:
            return device
        return msgspec.structs.replace(device, telemetry=self._with_heat(device.telemetry))

    def telemetry(self) -> Telemetry:
        return self._with_heat(read_telemetry(self._card))

    def processes(self, lookup: ProcessLookup) -> tuple[GpuProcess, ...]:
        return read_processes(self._card, lookup)

    def state(self, own_pid: int) -> CardState:
        card = self._card
        return CardState(
            clock_event_reasons=read_clock_event_reasons(card),
            sm_clock_mhz=card.number("nvmlDeviceGetClockInfo", CLOCK_SM),
            sm_clock_max_mhz=card.number("nvmlDeviceGetMaxClockInfo", CLOCK_SM),
            sm_clock_base_mhz=base_clock_mhz(card),
            other_processes=has_other_processes(card, own_pid),
            memory_clock_max_mhz=card.number("nvmlDeviceGetMaxClockInfo", CLOCK_MEMORY),
            memory_bus_width_bits=card.number("nvmlDeviceGetMemoryBusWidth"),
            pcie_generation=card.number("nvmlDeviceGetCurrPcieLinkGeneration"),
            pcie_width=card.number("nvmlDeviceGetCurrPcieLinkWidth"),
        )

    def load(self, own_pid: int, lookup: ProcessLookup) -> CardLoad:
        return read_load(self._card, own_pid, lookup)

    def power_w(self) -> float | None:
        milliwatts = self._card.number("nvmlDeviceGetPowerUsage")
        return None if milliwatts is None else milliwatts / 1000

    def vitals(self) -> Telemetry:
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
            self._heat = CardHeat(self._nvapi, read_bus_number(self._card), architecture)
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
    name=_MAKER,
    claims=_claims,
    kind=_KIND,
    open=_open_reader,
    running_version=kernel_module_version,
    library_version=library_version,
    is_replaced=is_library_replaced,
)


def read_vitals(card: NvmlCard, now: Telemetry) -> Telemetry:
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


def describe_card(card: NvmlCard, index: int | None, lookup: ProcessLookup) -> Device:
    """Return all facts and sensors of a card; values that it refuses are None.

    If the card is lost while it is read, the device's ``unreadable`` says so.
    """
    try:
        return _describe(card, index, lookup)
    except CardUnreadableError as error:
        return unreadable_card(_MAKER, _KIND, index, error)


def read_telemetry(card: NvmlCard) -> Telemetry:
    """Return one reading of a card's sensors; raises `CardUnreadableError` for a lost card."""
    with card.one_reading():
        return _telemetry(card)


def _telemetry(card: NvmlCard) -> Telemetry:
    _, used, free, reserved = card.memory()
    utilization = card.ask("nvmlDeviceGetUtilizationRates")
    limit = card.ask_first("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit")
    power = card.number("nvmlDeviceGetPowerUsage", most=_MOST_MILLIWATTS)
    temperature = card.number("nvmlDeviceGetTemperature", TEMPERATURE_GPU, most=_MOST_CELSIUS)
    fan = card.number("nvmlDeviceGetFanSpeed", most=_MOST_PERCENT_OF_A_FAN)
    return Telemetry(
        power_w=_scaled(power, 1e-3),
        power_limit_w=_scaled(number_from(limit, _MOST_MILLIWATTS), 1e-3),
        temperature_c=_scaled(temperature),
        memory_temperature_c=_scaled(_memory_celsius(card)),
        fan_percent=_scaled(fan),
        utilization_percent=_percent(utilization, "gpu"),
        memory_utilization_percent=_percent(utilization, "memory"),
        memory_used_bytes=used,
        memory_free_bytes=free,
        memory_reserved_bytes=reserved,
        pstate=card.number("nvmlDeviceGetPerformanceState", most=_MOST_PSTATE),
        sm_clock_mhz=_megahertz(card, "nvmlDeviceGetClockInfo", CLOCK_SM),
        memory_clock_mhz=_megahertz(card, "nvmlDeviceGetClockInfo", CLOCK_MEMORY),
        pcie_generation=card.number("nvmlDeviceGetCurrPcieLinkGeneration", most=_MOST_PCIE),
        pcie_width=card.number("nvmlDeviceGetCurrPcieLinkWidth", most=_MOST_PCIE),
        pcie_rx_bytes_per_s=_pcie_bytes_per_s(card, PCIE_RECEIVED),
        pcie_tx_bytes_per_s=_pcie_bytes_per_s(card, PCIE_SENT),
        clock_event_reasons=read_clock_event_reasons(card),
    )


def _memory_celsius(card: NvmlCard) -> int | None:
    fields = card.ask("nvmlDeviceGetFieldValues", (_MEMORY_TEMPERATURE,))
    try:
        field = fields[0]
        return (
            number_from(field.value.uiVal, _MOST_CELSIUS) or None if not field.nvmlReturn else None
        )
    except (TypeError, IndexError, AttributeError):  # no answer, or one of another form
        return None


def read_clock_event_reasons(card: NvmlCard) -> ClockReason | None:
    """Return what sets the card's clocks; drivers before 535 only know the old name."""
    bits = number_from(
        card.ask_first(
            "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
        )
    )
    if bits is None:
        return None
    found = (reason for bit, reason in _CLOCK_REASONS.items() if bits & bit)
    return functools.reduce(operator.or_, found, ClockReason(0))


def read_bus_number(card: NvmlCard) -> int | None:
    """Return the number of the card's PCI bus, without its domain; None if unknown."""
    slot = card.ask("nvmlDeviceGetPciInfo")
    bus_id = normal_bus_id(text_from(getattr(slot, "busId", None)))
    return int(bus_id.split(":")[1], 16) if bus_id else None


def base_clock_mhz(card: NvmlCard) -> float | None:
    """Return the clock that a card is sold with; None if unknown."""
    most_mhz = card.number("nvmlDeviceGetMaxClockInfo", CLOCK_SM, most=_MOST_MEGAHERTZ)
    base_mhz = card.number("nvmlDeviceGetDefaultApplicationsClock", CLOCK_SM, most=_MOST_MEGAHERTZ)
    if base_mhz is None or most_mhz is None or base_mhz >= most_mhz:
        return None  # data center cards report their highest boost here
    return base_mhz


def has_other_processes(card: NvmlCard, own_pid: int) -> bool | None:
    """Return whether another process computes on a card that this one uses; None if unknown.

    Programs that also draw do not count: Windows lists its whole desktop as both. In a container,
    the driver reports the host's process ids, and this process is among them.
    """
    computing, drawing = _process_ids(card, "compute"), _process_ids(card, "graphics")
    if not computing:
        return None
    others = computing - (drawing or set()) - {own_pid}
    return len(others) > (0 if own_pid in computing else 1)


def read_load(card: NvmlCard, own_pid: int, lookup: ProcessLookup) -> CardLoad:
    """Return how busy a card is; raises like `read_telemetry`.

    Programs that draw count here, a game as well as the desktop.

    Args:
        card: the card.
        own_pid: this process, which is never the other program.
        lookup: returns the name and the user of a process id.
    """
    with card.one_reading():
        percent = _percent(card.ask("nvmlDeviceGetUtilizationRates"), "gpu")
        clock_mhz = card.number("nvmlDeviceGetClockInfo", CLOCK_SM, most=_MOST_MEGAHERTZ)
        most_mhz = card.number("nvmlDeviceGetMaxClockInfo", CLOCK_SM, most=_MOST_MEGAHERTZ)
    pid = _busiest_other(card, own_pid) if percent else None
    return CardLoad(
        percent=percent,
        clock_share=clock_mhz / most_mhz if clock_mhz is not None and most_mhz else None,
        program="" if pid is None else lookup(pid)[0],
    )


def _busiest_other(card: NvmlCard, own_pid: int) -> int | None:
    """Return the process that worked most in the last second, or else the only other one listed.

    The driver does not tell the shares of processes for every card and system. In a container, its
    numbers are the host's, which name other processes here.
    """
    computing = _process_ids(card, "compute") or set()
    drawing = _process_ids(card, "graphics") or set()
    if computing and own_pid not in computing:
        return None
    samples = card.ask("nvmlDeviceGetProcessUtilization", 0) or ()
    newest_us = max((one.timeStamp for one in samples), default=0)
    shares: dict[int, int] = {
        one.pid: number_from(one.smUtil, 100) or 0
        for one in samples
        if newest_us - one.timeStamp <= _LATEST_US and one.pid != own_pid
    }
    busiest = max(shares, key=lambda pid: shares[pid], default=None)
    if busiest is not None and shares[busiest]:
        return busiest
    others = (computing | drawing) - {own_pid}
    return others.pop() if len(others) == 1 else None


def read_processes(card: NvmlCard, lookup: ProcessLookup) -> tuple[GpuProcess, ...]:
    """Return the processes with a context on a card, by process id; raises like `read_telemetry`.

    Args:
        card: the card.
        lookup: returns the name and the user of a process id.
    """
    kinds: dict[int, list[str]] = {}
    memory_bytes: dict[int, int | None] = {}
    for kind in ("compute", "graphics"):
        for entry in _running(card, kind) or ():
            kinds.setdefault(entry.pid, []).append(kind)
            # Windows hides it (WDDM): all bits set, or None in newer versions of pynvml.
            used = card.part_of_memory(entry.usedGpuMemory)
            memory_bytes[entry.pid] = memory_bytes.get(entry.pid) or used
    named = {pid: " and ".join(dict.fromkeys(kinds[pid])) for pid in kinds}
    return processes_of(memory_bytes, named, lookup)


def _describe(card: NvmlCard, index: int | None, lookup: ProcessLookup) -> Device:
    if index is None:
        index = card.number("nvmlDeviceGetIndex")
    total_bytes, *_ = card.memory()
    capability = _pair(card.ask("nvmlDeviceGetCudaComputeCapability"))
    cores = card.number("nvmlDeviceGetNumGpuCores", most=_MOST_CORES)
    architecture = _ARCHITECTURES.get(card.number("nvmlDeviceGetArchitecture") or 0)
    mode = card.number("nvmlDeviceGetComputeMode")
    mig_enabled = _flag(card.ask("nvmlDeviceGetMigMode"))
    slot = card.ask("nvmlDeviceGetPciInfo")
    compute_capability = f"{capability[0]}.{capability[1]}" if capability else None
    return Device(
        kind=_KIND,
        maker=_MAKER,
        name=card.text("nvmlDeviceGetName") or "NVIDIA card",
        uuid=card.text("nvmlDeviceGetUUID"),
        memory_total_bytes=total_bytes,
        telemetry=read_telemetry(card),
        compute_capability=compute_capability,
        architecture=architecture,
        driver_index=index,
        pci_bus_id=normal_bus_id(text_from(getattr(slot, "busId", None))),
        pci_device_id=_device_id_of(slot),
        multiprocessors=_multiprocessors(cores, compute_capability),
        cuda_cores=cores,
        memory_bus_width_bits=card.number("nvmlDeviceGetMemoryBusWidth", most=_MOST_BITS),
        bar1_bytes=number_from(getattr(card.ask("nvmlDeviceGetBAR1MemoryInfo"), "bar1Total", None))
        or None,
        sm_clock_max_mhz=_megahertz(card, "nvmlDeviceGetMaxClockInfo", CLOCK_SM),
        memory_clock_max_mhz=_megahertz(card, "nvmlDeviceGetMaxClockInfo", CLOCK_MEMORY),
        pcie_generation_max=card.number("nvmlDeviceGetMaxPcieLinkGeneration", most=_MOST_PCIE),
        pcie_width_max=card.number("nvmlDeviceGetMaxPcieLinkWidth", most=_MOST_PCIE),
        pcie_generation_card_max=card.number(
            "nvmlDeviceGetGpuMaxPcieLinkGeneration", most=_MOST_PCIE
        ),
        serial=card.text("nvmlDeviceGetSerial"),
        vbios=card.text("nvmlDeviceGetVbiosVersion"),
        display_active=_flag(card.ask("nvmlDeviceGetDisplayActive")),
        compute_mode=None if mode is None else _COMPUTE_MODES.get(mode),
        ecc_enabled=_flag(card.ask("nvmlDeviceGetEccMode")),
        mig_enabled=mig_enabled,
        mig_instances=_instance_names(card) if mig_enabled else (),
        processes=read_processes(card, lookup),
    )


def _multiprocessors(cores: int | None, compute_capability: str | None) -> int | None:
    if not cores or not compute_capability:
        return None
    try:
        each = cores_per_multiprocessor(compute_capability)
    except MissingResourceError:
        return None
    return cores // each if each else None


def _instance_names(card: NvmlCard) -> tuple[str, ...]:
    """Return the distinct part of MIG names: ``MIG 1g.5gb`` of ``NVIDIA A100 MIG 1g.5gb``."""
    names = (instance.text("nvmlDeviceGetName") or "MIG instance" for instance in card.instances())
    return tuple(name[name.find("MIG") :] if "MIG" in name else name for name in names)


def _megahertz(card: NvmlCard, function: str, clock: int) -> float | None:
    return _scaled(card.number(function, clock, most=_MOST_MEGAHERTZ))


def _pcie_bytes_per_s(card: NvmlCard, direction: int) -> float | None:
    """Return the PCIe traffic; the call takes 20 ms to measure it, and NVML counts in KiB."""
    return _scaled(card.number("nvmlDeviceGetPcieThroughput", direction), 1024)


def _running(card: NvmlCard, kind: str) -> Any:
    function = f"nvmlDeviceGet{kind.capitalize()}RunningProcesses"
    return card.ask_first(function, f"{function}_v2")


def _process_ids(card: NvmlCard, kind: str) -> set[int] | None:
    entries = _running(card, kind)
    return None if entries is None else {entry.pid for entry in entries}


def _device_id_of(slot: Any) -> int | None:
    """Return the chip's device id; NVML puts the vendor id into the lower half."""
    number = number_from(getattr(slot, "pciDeviceId", None))
    return number >> 16 if number else None


def _pair(answer: Any) -> tuple[int, int] | None:
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        return None
    major, minor = number_from(answer[0]), number_from(answer[1])
    return None if major is None or minor is None else (major, minor)


def _flag(answer: Any) -> bool | None:
    """Return an enable state; ECC and MIG answer with the current and the pending state."""
    if isinstance(answer, (tuple, list)):
        answer = answer[0] if answer else None
    number = number_from(answer)
    return None if number is None else number == 1


def _percent(answer: Any, field: str) -> float | None:
    number = number_from(getattr(answer, field, None))
    return None if number is None or number > 100 else float(number)


def _scaled(number: int | None, factor: float = 1.0) -> float | None:
    return None if number is None else number * factor
