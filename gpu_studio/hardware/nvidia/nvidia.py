"""NVIDIA as a maker of cards: what NVML says of one, in the types and names of `card_reader`."""

from __future__ import annotations

import functools
import operator
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from gpu_studio.core.devices.devices import (
    EXCLUSIVE_PROCESS,
    OPEN_NVIDIA_DRIVERS,
    PROHIBITED,
    Device,
)
from gpu_studio.core.devices.peaks import cores_per_multiprocessor
from gpu_studio.core.telemetry import SENSORS, ClockReason
from gpu_studio.hardware.card_reader import CardReader, Maker, processes_of, read_from
from gpu_studio.hardware.cpu import text_of
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
    from collections.abc import Callable, Collection

    from gpu_studio.core.devices.devices import Driver, GpuProcess
    from gpu_studio.core.telemetry import Telemetry
    from gpu_studio.hardware.card_reader import AdapterUse, Sources
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
_BLACKWELL = 10  # from here on, NVAPI's channel of the hot spot is the core's
# The compute capabilities of processors with graphics: Jetson's TX1 to Thor, and GB10. They have no
# memory of their own, and NVML answers "not supported" (XuehaiPan/nvitop, issue 208).
_SHARING = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (11, 0), (12, 1)})
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
_MEMORY_FIELDS = ("memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes")
_MEMORY_TEMPERATURE = 82  # NVML_FI_DEV_MEMORY_TEMP of nvml.h: cards of data centers have it


class NvidiaCard:
    """See `card_reader.OpenCard`.

    Args:
        card: NVML's.
        nvapi: has the temperatures that NVML lacks; None if nothing has them.
        windows: returns what programs do with the card in a slot, which NVML hides on Windows.
    """

    def __init__(
        self,
        card: NvmlCard,
        nvapi: GuardedNvapi | None = None,
        windows: Callable[[str], AdapterUse | None] | None = None,
    ) -> None:
        self._card = card
        self._nvapi, self._windows = nvapi, windows
        self._heat: CardHeat | None = None
        self._sources = _sources_of(card)
        self._seen_us, self._tells_load = 0, False

    def describe(self) -> Device:
        return _describe(self._card)

    def telemetry(self, fields: Collection[str] = SENSORS) -> Telemetry:
        is_hot_spot_wanted = self._nvapi is not None and "hotspot_c" in fields
        if is_hot_spot_wanted:  # without these, its sensor is not believed
            fields = {*fields, "temperature_c", "utilization_percent"}
        with self._card.one_reading():
            telemetry = read_from(self._sources, fields)
        return self._with_heat(telemetry) if is_hot_spot_wanted else telemetry

    def processes(self, *, with_load: bool = False) -> tuple[GpuProcess, ...]:
        card = self._card
        kinds: dict[int, list[str]] = {}
        memory_bytes: dict[int, int | None] = {}
        for kind in ("compute", "graphics"):
            function = f"nvmlDeviceGet{kind.capitalize()}RunningProcesses"
            for entry in card.ask_first(function, f"{function}_v2") or ():
                kinds.setdefault(entry.pid, []).append(kind)
                # Windows hides it (WDDM): all bits set, or None in newer versions of pynvml.
                used = card.part_of_memory(entry.usedGpuMemory)
                memory_bytes[entry.pid] = memory_bytes.get(entry.pid) or used
        named = {pid: " and ".join(dict.fromkeys(kinds[pid])) for pid in kinds}
        use = None
        if self._windows is not None:
            bus_id = _bus_id_of(card.ask("nvmlDeviceGetPciInfo"))
            use = self._windows(bus_id) if bus_id else None
        if use is not None:
            return self._joined(named, memory_bytes, use)
        busy_percent = self._busy_percent() if with_load else None
        for pid in busy_percent or ():
            memory_bytes.setdefault(pid, None)
        return processes_of(memory_bytes, named, busy_percent)

    def _joined(
        self, kinds: dict[int, str], held: dict[int, int | None], use: AdapterUse
    ) -> tuple[GpuProcess, ...]:
        """Return NVML's processes with what Windows says of them, and those that it adds.

        NVML lists most programs with a window as both. One that only computes is right.
        """
        total, used, *_ = self._card.memory()
        sizes, busy = use.processes or {}, use.busy_percent or {}
        seen = {pid for pid, both in sizes.items() if any(both)} | busy.keys()
        held |= {pid: size for pid, size in use.held_bytes(total, used).items() if pid in seen}
        for pid in held:
            if pid not in kinds or (kinds[pid] != "compute" and pid in use.computing):
                kinds[pid] = use.kind(pid)
        shared = {pid: both[1] for pid, both in sizes.items()}
        return processes_of(held, kinds, use.busy_percent, shared)

    def _busy_percent(self) -> dict[int, float] | None:
        """Return the part of the last second in which each process worked; None if unknown.

        The driver keeps samples for seconds, and refuses if there is none since the last one.
        """
        samples = self._card.ask("nvmlDeviceGetProcessUtilization", self._seen_us) or ()
        self._tells_load = self._tells_load or bool(samples)
        self._seen_us = max((one.timeStamp for one in samples), default=self._seen_us)
        busy = {
            one.pid: float(percent)
            for one in samples
            if self._seen_us - one.timeStamp <= _LATEST_US
            and (percent := number_from(one.smUtil, 100))
        }
        return busy if self._tells_load else None

    def _with_heat(self, telemetry: Telemetry) -> Telemetry:
        bus = _bus_number(self._card)
        if self._nvapi is None or bus is None:  # never the number in a list
            return telemetry
        if self._heat is None:
            architecture = self._card.number("nvmlDeviceGetArchitecture")
            self._heat = CardHeat(has_hot_spot=architecture is None or architecture < _BLACKWELL)
        return self._heat.added_to(telemetry, self._nvapi.read(bus), time.monotonic())


class NvidiaReader(CardReader):
    """See `card_reader.CardReader`.

    Args:
        nvml: an open session.
        nvapi: has the temperatures that NVML lacks; None if nothing has them.
        windows: what programs do there; None elsewhere.
    """

    def __init__(
        self,
        nvml: Nvml,
        nvapi: GuardedNvapi | None = None,
        windows: Callable[[str], AdapterUse | None] | None = None,
    ) -> None:
        self._nvml = nvml
        self._nvapi, self._windows = nvapi, windows
        self._cards: dict[NvmlCard, NvidiaCard] = {}

    def driver(self) -> Driver:
        return self._nvml.driver()

    def count(self) -> int:
        return self._nvml.count()

    def card(self, which: int | str) -> NvidiaCard:
        card = self._nvml.card(which)  # the same for the same: it remembers what it has read
        return self._cards.setdefault(card, NvidiaCard(card, self._nvapi, self._windows))

    def process_name(self, pid: int) -> str | None:
        return self._nvml.process_name(pid)

    def close(self) -> None:
        if self._nvapi is not None:
            self._nvapi.close()
        self._cards.clear()
        self._nvml.close()


_NVAPI = GuardedNvapi()  # one in a process: a call that hung is not made again in the next session


def open_reader(windows: Callable[[str], AdapterUse | None] | None = None) -> NvidiaReader:
    """Open a session; raises `DriverUnavailableError`.

    Args:
        windows: as for `NvidiaReader`.
    """
    return NvidiaReader(Nvml(), _NVAPI, windows)


def kernel_module_version() -> str | None:
    """Return the version of the driver's loaded kernel module on Linux; wakes no card."""
    return text_of(_KERNEL_MODULE_VERSION).strip() or None


def _claims(adapter: DisplayAdapter) -> bool:
    """Return whether NVML could serve a card: another driver has other files for it."""
    return adapter.vendor_id == VENDOR_ID and adapter.kernel_driver not in OPEN_NVIDIA_DRIVERS


NVIDIA = Maker(
    name=_MAKER,
    claims=_claims,
    kind=_KIND,
    open=open_reader,
    running_version=kernel_module_version,
    library_version=library_version,
    is_replaced=is_library_replaced,
)


def _limit_c(card: NvmlCard, threshold: int) -> float | None:
    limit = card.number("nvmlDeviceGetTemperatureThreshold", threshold, most=_MOST_LIMIT_C)
    return None if limit is None or limit < _LEAST_LIMIT_C else float(limit)


def _sources_of(card: NvmlCard) -> Sources:
    """Return how each field is read; values that a card refuses are None."""
    number, ecc = partial(_number, card), "nvmlDeviceGetTotalEccErrors"
    return {
        "power_w": partial(number, "nvmlDeviceGetPowerUsage", most=_MOST_MILLIWATTS, factor=1e-3),
        "power_limit_w": lambda: _power_limit_w(card),
        "temperature_c": partial(
            number, "nvmlDeviceGetTemperature", TEMPERATURE_GPU, most=_MOST_CELSIUS
        ),
        "memory_temperature_c": lambda: _memory_celsius(card),
        "fan_percent": partial(number, "nvmlDeviceGetFanSpeed", most=_MOST_PERCENT_OF_A_FAN),
        ("utilization_percent", "memory_utilization_percent"): lambda: _utilization(card),
        _MEMORY_FIELDS: lambda: _memory(card)[1:],
        "pstate": partial(card.number, "nvmlDeviceGetPerformanceState", most=_MOST_PSTATE),
        "sm_clock_mhz": partial(number, "nvmlDeviceGetClockInfo", CLOCK_SM),
        "memory_clock_mhz": partial(number, "nvmlDeviceGetClockInfo", CLOCK_MEMORY),
        "pcie_generation": partial(
            card.number, "nvmlDeviceGetCurrPcieLinkGeneration", most=_MOST_PCIE
        ),
        "pcie_width": partial(card.number, "nvmlDeviceGetCurrPcieLinkWidth", most=_MOST_PCIE),
        # The call takes 20 ms to measure the traffic, and NVML counts in KiB.
        "pcie_rx_bytes_per_s": lambda: _pcie_bytes_per_s(card, PCIE_RECEIVED),
        "pcie_tx_bytes_per_s": lambda: _pcie_bytes_per_s(card, PCIE_SENT),
        "clock_event_reasons": lambda: _clock_event_reasons(card),
        "pcie_replays": partial(card.number, "nvmlDeviceGetPcieReplayCounter"),
        "ecc_corrected": partial(card.number, ecc, _CORRECTED, _SINCE_START),
        "ecc_uncorrected": partial(card.number, ecc, _UNCORRECTED, _SINCE_START),
        ("remapped_rows", "has_pending_remap"): lambda: _rows(card),
    }


def _number(
    card: NvmlCard, function: str, *arguments: int, most: int = _MOST_MEGAHERTZ, factor: float = 1.0
) -> float | None:
    number = card.number(function, *arguments, most=most)
    return None if number is None else number * factor


def _power_limit_w(card: NvmlCard) -> float | None:
    limit = card.ask_first("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit")
    milliwatts = number_from(limit, _MOST_MILLIWATTS)
    return None if milliwatts is None else milliwatts * 1e-3


def _pcie_bytes_per_s(card: NvmlCard, direction: int) -> float | None:
    kibibytes = card.number("nvmlDeviceGetPcieThroughput", direction)
    return None if kibibytes is None else kibibytes * 1024.0


def _utilization(card: NvmlCard) -> tuple[float | None, float | None]:
    answer = card.ask("nvmlDeviceGetUtilizationRates")
    gpu, memory = (number_from(getattr(answer, name, None), 100) for name in ("gpu", "memory"))
    return None if gpu is None else float(gpu), None if memory is None else float(memory)


def _rows(card: NvmlCard) -> tuple[int | None, bool | None]:
    """Return the remapped rows, and whether a remap waits for a restart."""
    answer = card.ask("nvmlDeviceGetRemappedRows")
    if not isinstance(answer, (tuple, list)) or len(answer) < 3:
        return None, None
    corrected, uncorrected, pending = map(number_from, answer[:3])
    rows = None if corrected is None else corrected + (uncorrected or 0)
    return rows, None if pending is None else pending > 0


def _memory_celsius(card: NvmlCard) -> float | None:
    fields = card.ask("nvmlDeviceGetFieldValues", (_MEMORY_TEMPERATURE,))
    try:
        field = fields[0]
        degrees = None if field.nvmlReturn else number_from(field.value.uiVal, _MOST_CELSIUS)
        return float(degrees) if degrees else None
    except (TypeError, IndexError, AttributeError):  # no answer, or one of another form
        return None


def _clock_event_reasons(card: NvmlCard) -> ClockReason | None:
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


def _bus_number(card: NvmlCard) -> int | None:
    """Return the number of the card's PCI bus, without its domain; None if unknown."""
    bus_id = _bus_id_of(card.ask("nvmlDeviceGetPciInfo"))
    return int(bus_id.split(":")[1], 16) if bus_id else None


def _base_clock_mhz(card: NvmlCard) -> float | None:
    """Return the clock that a card is sold with; None if unknown."""
    most_mhz = card.number("nvmlDeviceGetMaxClockInfo", CLOCK_SM, most=_MOST_MEGAHERTZ)
    base_mhz = card.number("nvmlDeviceGetDefaultApplicationsClock", CLOCK_SM, most=_MOST_MEGAHERTZ)
    if base_mhz is None or most_mhz is None or base_mhz >= most_mhz:
        return None  # data center cards report their highest boost here
    return base_mhz


def _capability(card: NvmlCard) -> tuple[int, int] | None:
    return _pair(card.ask("nvmlDeviceGetCudaComputeCapability"))


def _memory(card: NvmlCard) -> tuple[int | None, int | None, int | None, int | None]:
    """Return a card's memory as `NvmlCard.memory`; that of the PC if it has none of its own."""
    own = card.memory()
    if own[0] is not None or _capability(card) not in _SHARING:
        return own
    ram = psutil.virtual_memory()
    return ram.total, ram.total - ram.available, ram.available, None


def _describe(card: NvmlCard) -> Device:
    total_bytes, *_ = _memory(card)
    capability = _capability(card)
    is_sharing = capability in _SHARING
    cores = card.number("nvmlDeviceGetNumGpuCores", most=_MOST_CORES)
    architecture = _ARCHITECTURES.get(card.number("nvmlDeviceGetArchitecture") or 0)
    mode = card.number("nvmlDeviceGetComputeMode")
    slot = card.ask("nvmlDeviceGetPciInfo")
    bar1 = card.ask("nvmlDeviceGetBAR1MemoryInfo")
    compute_capability = f"{capability[0]}.{capability[1]}" if capability else None
    pcie = partial(card.number, most=_MOST_PCIE)
    return Device(
        kind=_KIND,
        maker=_MAKER,
        name=card.text("nvmlDeviceGetName") or "NVIDIA card",
        uuid=card.text("nvmlDeviceGetUUID"),
        memory_total_bytes=total_bytes,
        is_integrated=True if is_sharing else None,
        dedicated_memory_bytes=0 if is_sharing else None,
        shared_memory_bytes=total_bytes if is_sharing else None,
        compute_capability=compute_capability,
        architecture=architecture,
        driver_index=card.number("nvmlDeviceGetIndex"),
        pci_bus_id=_bus_id_of(slot),
        pci_device_id=_device_id_of(slot),
        multiprocessors=_multiprocessors(cores, compute_capability),
        cuda_cores=cores,
        memory_bus_width_bits=card.number("nvmlDeviceGetMemoryBusWidth", most=_MOST_BITS),
        bar1_bytes=number_from(getattr(bar1, "bar1Total", None)) or None,
        sm_clock_max_mhz=_number(card, "nvmlDeviceGetMaxClockInfo", CLOCK_SM),
        sm_clock_base_mhz=_base_clock_mhz(card),
        memory_clock_max_mhz=_number(card, "nvmlDeviceGetMaxClockInfo", CLOCK_MEMORY),
        pcie_generation_max=pcie("nvmlDeviceGetMaxPcieLinkGeneration"),
        pcie_width_max=pcie("nvmlDeviceGetMaxPcieLinkWidth"),
        shutdown_c=_limit_c(card, _THRESHOLD_SHUTDOWN),
        slowdown_c=_limit_c(card, _THRESHOLD_SLOWDOWN),
        operating_max_c=_limit_c(card, _THRESHOLD_OPERATING),
        vbios=card.text("nvmlDeviceGetVbiosVersion"),
        display_active=_flag(card.ask("nvmlDeviceGetDisplayActive")),
        compute_mode=None if mode is None else _COMPUTE_MODES.get(mode),
        ecc_enabled=_flag(card.ask("nvmlDeviceGetEccMode")),
        mig_enabled=_flag(card.ask("nvmlDeviceGetMigMode")),
    )


def _multiprocessors(cores: int | None, compute_capability: str | None) -> int | None:
    if not cores or not compute_capability:
        return None
    each = cores_per_multiprocessor(compute_capability)
    return cores // each if each else None


def _bus_id_of(slot: Any) -> str | None:
    return normal_bus_id(text_from(getattr(slot, "busId", None)))


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
