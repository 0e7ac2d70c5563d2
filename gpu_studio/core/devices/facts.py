"""The rows of facts that the window, the report and the terminal show alike.

A value that a device does not report is "n/a" with its reason, never 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.devices.card_identity import identity_of
from gpu_studio.core.devices.cards import completed, disagreements, silicon_text, torch_card_of
from gpu_studio.core.devices.devices import CUDA_BUILD, CardReading, Device, Inventory, Reading
from gpu_studio.core.devices.link import widest_link
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.telemetry import Telemetry, clock_reason_words
from gpu_studio.core.units import format_bytes, format_percent, format_rate, three_digits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpu_studio.core.devices.link import Link
    from gpu_studio.core.devices.peaks import CardPeaks
    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.core.messages.memory_messages import MemoryRead


NOT_AVAILABLE = "n/a"
SPACE = "\u202f"  # narrow no-break space: a number and its unit stay on one line


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One row; ``reason`` explains an "n/a", or adds to a known value."""

    key: str
    label: str
    value: str
    reason: str = ""
    is_known: bool = True


class FactGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Rows under one heading."""

    title: str
    facts: tuple[Fact, ...]


class PcSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known about the PC at one time.

    ``memory`` is keyed by PyTorch's address. ``links``, each as seen under load, by identity.
    ``why_no_engine`` is the reason why ``engine`` is None, if it is.
    """

    inventory: Inventory
    reading: Reading | None = None
    engine: EngineDescribed | None = None
    current_device: str | None = None
    memory: Mapping[str, MemoryRead] = {}
    links: Mapping[str, Link] = {}
    why_no_engine: str = "PyTorch is starting."

    @property
    def current_card(self) -> str | None:
        """The card that "cuda" means in this engine, ``cuda:0``; None if CUDA cannot be used."""
        if self.engine is None or not self.engine.cuda_available:
            return None
        return self.current_device or self.engine.first_address

    def telemetry(self, device: Device) -> Telemetry:
        """Return the newest telemetry of a device: the last reading's, or the inventory's."""
        if self.reading is None:
            return device.telemetry
        return self.reading.telemetry(device) or Telemetry()

    def torch_card(self, device: Device) -> TorchCard | None:
        """Return PyTorch's properties of a card; None if there are none."""
        return torch_card_of(device, self.engine.cards) if self.engine else None

    def card_reading(self, device: Device) -> CardReading | None:
        """Return the last reading of a card."""
        return self.reading.card(device) if self.reading else None

    def trouble(self, device: Device) -> str:
        """Return the reason why a card cannot be read, as a sentence; empty if it can."""
        card = self.card_reading(device)
        return (card.error if card else device.unreadable) or ""


def fact(
    key: str,
    label: str,
    value: str | None,
    why_not: str = "",
    note: str = "",
    *,
    is_known: bool = True,
) -> Fact:
    """Return a row; ``why_not`` explains a missing value, ``note`` adds to a known one."""
    if not value or not is_known:
        text = value or NOT_AVAILABLE
        return Fact(key=key, label=label, value=text, reason=why_not, is_known=False)
    return Fact(key=key, label=label, value=value, reason=note)


def bytes_text(size_bytes: int | None) -> str | None:
    """Return a size in words."""
    return None if size_bytes is None else format_bytes(size_bytes)


def percent_text(percent: float | None) -> str | None:
    """Return a percentage in words: ``4 %``."""
    return None if percent is None else f"{percent:.0f}{SPACE}%"


def celsius_text(temperature_c: float | None) -> str | None:
    """Return a temperature in words: ``41 °C``."""
    return None if temperature_c is None else f"{temperature_c:.0f}{SPACE}°C"


def fan_text(now: Telemetry) -> str | None:
    """Return how far the fan is turned up, and how fast it turns, as far as that is reported."""
    speed = None if now.fan_rpm is None else f"{now.fan_rpm:.0f}{SPACE}rpm"
    return ", ".join(part for part in (percent_text(now.fan_percent), speed) if part) or None


def amount_text(
    value: float | None, most: float | None, unit: str, most_word: str = "highest"
) -> str | None:
    """Return a value with its maximum, ``9.5 of 30 W``; either may be missing."""
    if value is None and most is None:
        return None
    most_text = None if most is None else f"{_number(most, unit)}{SPACE}{unit}"
    if value is None:
        return f"{NOT_AVAILABLE} ({most_word} {most_text})"
    text = _number(value, unit)
    return f"{text} of {most_text}" if most_text else f"{text}{SPACE}{unit}"


def _number(value: float, unit: str) -> str:
    if unit != "W":
        return f"{value:.0f}"
    return f"{value:.0f}" if value == int(value) else three_digits(value)


_COMPUTED_BANDWIDTH = "Computed from the highest memory clock and the bus width."
_COMPUTED = "Computed from the processors and their highest clock. No program can exceed it."
_PUBLISHED = "From the units, the clock and the bandwidth that the card's maker publishes."
_TOO_LITTLE = "The card does not report enough to compute it."
_NO_ARITHMETIC = "This compute capability has no native arithmetic for it."
_NO_TENSOR_CORES = "This card has no tensor cores."
_NOT_DESCRIBED = "Neither the driver nor PyTorch describes this card."
_ONE_IS_WRONG = "One of the two is wrong. The card may be another one with a changed BIOS."
_NAME_IS_UNKNOWN = "This program does not know what a card of this name has."
_MHZ = 1e6


def peaks_of(card: Device | TorchCard, torch_card: TorchCard | None) -> CardPeaks | None:
    """Return a card's peaks at its highest clocks; None if the card reports too little."""
    from gpu_studio.core.devices.peaks import card_peaks, published_peaks  # 1 ms

    known = completed(card, torch_card)
    count, clock_mhz = known.multiprocessors, known.sm_clock_max_mhz
    memory_mhz = known.memory_clock_max_mhz
    if known.compute_capability is None and card.maker in ("AMD", "Intel"):
        return published_peaks(torch_card.name if torch_card else card.name)
    if known.compute_capability is None or not count or not clock_mhz:
        return None
    return card_peaks(
        known.compute_capability,
        count,
        clock_mhz * _MHZ,
        known.memory_bus_width_bits,
        memory_mhz * _MHZ if memory_mhz else None,
        card.name,
    )


def _peak_group(card: Device, torch_card: TorchCard | None) -> FactGroup:
    """Return the rows with a card's theoretical peaks."""
    peaks, is_computed = peaks_of(card, torch_card), card.compute_capability is not None
    arithmetic = peaks.arithmetic_flops if peaks else {}
    cores = peaks.tensor_core_flops if peaks else {}
    bandwidth = peaks.memory_bytes_per_s if peaks else None
    fastest = max(cores, key=lambda dtype: cores[dtype], default="")
    how = _COMPUTED if is_computed else _PUBLISHED
    rate = format_rate(bandwidth, "B/s") if bandwidth else None
    rate_note = _COMPUTED_BANDWIDTH if is_computed else _PUBLISHED
    best = f"{_flops(cores[fastest])} in {fastest}" if fastest else None
    units = "Tensor cores" if is_computed else "Matrix units"
    no_arithmetic, no_units = (_NO_ARITHMETIC, _NO_TENSOR_CORES) if peaks else [_TOO_LITTLE] * 2
    facts = (
        fact("peak_bandwidth", "Memory bandwidth", rate, _TOO_LITTLE, rate_note),
        *(
            fact(f"peak_{dtype}", dtype, _flops(arithmetic.get(dtype)), no_arithmetic, how)
            for dtype in ("float32", "float16", "float64")
        ),
        fact("peak_tensor", units, best, no_units, how),
    )
    return FactGroup(title="Theoretical peak", facts=facts)


def driver_text(card: Device) -> str | None:
    """Return the driver of a card that has one of its own: ``amdgpu, Linux 6.8.0``."""
    if card.kernel_driver is None:
        return None
    return f"{card.kernel_driver} {card.driver_version or ''}".rstrip()


_ALL_OF_THE_MEMORY = 0.9  # NVML's total has what the driver keeps for itself


def resizable_bar_text(card: Device) -> str | None:
    """Return whether the CPU reaches all of a card's memory at once; None if not reported."""
    bar1, total = card.bar1_bytes, card.memory_total_bytes
    if not bar1 or not total:
        return None
    size = format_bytes(bar1)
    state = "on" if bar1 >= _ALL_OF_THE_MEMORY * total else "off"
    return f"{state}: the CPU reaches {size} of the card at once"


def _contradictions(card: Device, torch_card: TorchCard | None) -> Fact:
    if torch_card is None and card.unreadable is not None:
        return fact("contradictions", "Contradictions", None, _NOT_DESCRIBED)
    identity = identity_of(card, torch_card)
    found = (*identity.differing, *disagreements(card, torch_card))
    text = "; ".join(one.sentence for one in found)
    note = _ONE_IS_WRONG if found else identity.agreement or _NAME_IS_UNKNOWN
    return fact("contradictions", "Contradictions", text or "none", note=note)


def _flops(value: float | None) -> str | None:
    return None if value is None else format_rate(value, "FLOP/s")


def _bits(width: int | None) -> str | None:
    return f"{width}{SPACE}bit" if width else None


_REFUSED = "This card does not report it."
_NO_SUCH_SENSOR = "This card and its driver report none, or none that can be true."
_SEEN_AT_WORK = "An idle card drops to generation 1. Run a benchmark to see the full speed."
_ONLY_PYTORCH = "Only PyTorch reports it, and it does not see this card or is still starting."
_NO_CONTEXT = "PyTorch has not used this card yet, so it holds no memory on it."


def identity_line(card: Device) -> str:
    """Return the numbers of a card: ``nvidia-smi 0 = cuda:0 = drives your monitor``."""
    parts = [] if card.driver_index is None else [f"nvidia-smi {card.driver_index}"]
    parts.append(card.address or "no number in PyTorch")
    if card.display_active:
        parts.append("drives your monitor")
    return " = ".join(parts)


class _CardRows:
    def __init__(self, card: Device, snapshot: PcSnapshot) -> None:
        self._card, self._snapshot = card, snapshot
        self._telemetry = snapshot.telemetry(card)
        self._trouble = snapshot.trouble(card)

    def _row(
        self, key: str, label: str, value: str | None, note: str = "", why_not: str = _REFUSED
    ) -> Fact:
        return fact(key, label, value, self._trouble or why_not, note)

    def _amount(self, key: str, label: str, value: float | None, text: str | None) -> Fact:
        """Return a row with a maximum, which is shown without a value as well."""
        return fact(key, label, text, self._trouble or _REFUSED, is_known=value is not None)

    def now(self) -> FactGroup:
        card, now, row = self._card, self._telemetry, self._row
        hot, hot_memory = celsius_text(now.hotspot_c), celsius_text(now.memory_temperature_c)
        pstate = None if now.pstate is None else f"P{now.pstate}"
        no_heat = _NO_SUCH_SENSOR  # many cards and drivers lack these temperatures
        power = amount_text(now.power_w, now.power_limit_w, "W", "limit")
        clock = amount_text(now.sm_clock_mhz, card.sm_clock_max_mhz, "MHz")
        memory_clock = amount_text(now.memory_clock_mhz, card.memory_clock_max_mhz, "MHz")
        clock_title = "SM clock" if card.build_kind == CUDA_BUILD else "GPU clock"
        facts = (
            row("utilization", "Utilization", percent_text(now.utilization_percent)),
            row("temperature", "Temperature", celsius_text(now.temperature_c)),
            row("hotspot", "Hot spot", hot, "The hottest place of the chip.", no_heat),
            row("memory_temperature", "VRAM temperature", hot_memory, "", no_heat),
            row("fan", "Fan", fan_text(now)),
            row("pstate", "P-state", pstate, "P0 is the fastest; P8 and above save power."),
            self._amount("power", "Power", now.power_w, power),
            self._amount("sm_clock", clock_title, now.sm_clock_mhz, clock),
            self._amount("memory_clock", "Memory clock", now.memory_clock_mhz, memory_clock),
            row("clock_reasons", "Clock status", clock_reason_words(now.clock_event_reasons)),
            row("pcie", "PCIe", self._pcie(), "An idle card drops to a slower generation."),
            fact("pcie_at_work", "PCIe at work", self._pcie_at_work(), _SEEN_AT_WORK),
            row("pcie_traffic", "PCIe traffic", self._traffic()),
        )
        return FactGroup(title="Now", facts=facts)

    def memory(self) -> FactGroup:
        now, row = self._telemetry, self._row
        used, total = now.memory_used_bytes, self._card.memory_total_bytes
        share = f" ({format_percent(used / total)})" if used and total else ""
        used_text = None if used is None else f"{format_bytes(used)}{share}"
        facts = (
            row("memory_total", "Total", bytes_text(total), _shared_text(self._card)),
            row("memory_used", "Used", used_text, "By all programs on this card."),
            row("memory_free", "Free", bytes_text(now.memory_free_bytes)),
            row("memory_kept", "Reserved by the driver", bytes_text(now.memory_reserved_bytes)),
            self._torch_memory("allocated", "Allocated by PyTorch"),
            self._torch_memory("reserved", "Reserved by PyTorch"),
        )
        return FactGroup(title="Memory", facts=facts)

    def card(self) -> FactGroup:
        card, row = self._card, self._row
        torch_card = self._snapshot.torch_card(card)
        l2_cache = bytes_text(torch_card.l2_cache_bytes) if torch_card else None
        cores = ((card.multiprocessors, "SMs"), (card.cuda_cores, "cores"))
        processors = ", ".join(f"{count} {unit}" for count, unit in cores if count)
        cuda_driver = self._snapshot.inventory.driver.version
        facts = (
            fact("name", "Name", card.name),
            fact("numbers", "Numbers", identity_line(card)),
            row("architecture", "Architecture", card.architecture),
            row("compute_capability", "Compute capability", card.compute_capability),
            row("cores", "Processors", processors),
            row("memory_bus", "Memory bus", _bits(card.memory_bus_width_bits)),
            row("resizable_bar", "Resizable BAR", resizable_bar_text(card)),
            fact("l2_cache", "L2 cache", l2_cache, _ONLY_PYTORCH),
            row("display", "Display", _switch(card.display_active, _MONITOR)),
            row("compute_mode", "Compute mode", card.compute_mode),
            row("ecc", "ECC", _switch(card.ecc_enabled)),
            row("mig", "MIG", _switch(card.mig_enabled)),
            row("vbios", "VBIOS", card.vbios),
            row("driver", "Driver", cuda_driver if card.is_cudas else driver_text(card)),
            row("chip", "Chip", silicon_text(card), "From its PCI device id."),
            row("pci_bus_id", "PCI address", card.pci_bus_id),
            row("uuid", "UUID", card.uuid),
            _contradictions(card, torch_card),
        )
        return FactGroup(title="Card", facts=facts)

    def _torch_memory(self, key: str, label: str) -> Fact:
        """Return a row about PyTorch's allocator in this program's engine."""
        engine, address = self._snapshot.engine, self._card.address
        if engine is None:
            return fact(key, label, None, self._snapshot.why_no_engine)
        if not engine.cuda_available or address is None:
            reason = engine.cuda_reason or "PyTorch does not see this card."
            return fact(key, label, None, reason)
        read = self._snapshot.memory.get(address)
        if read is None:
            return fact(key, label, None, "Not read yet.")
        size_bytes = read.allocated_bytes if key == "allocated" else read.reserved_bytes
        if size_bytes is None:
            return fact(key, label, "no CUDA context yet", note=_NO_CONTEXT)
        return fact(key, label, bytes_text(size_bytes), note="Only GPU Studio's PyTorch.")

    def _pcie(self) -> str | None:
        card, now = self._card, self._telemetry
        if now.pcie_generation is None or now.pcie_width is None:
            return None
        text = f"gen {now.pcie_generation} × {now.pcie_width}"
        if card.pcie_generation_max and card.pcie_width_max:
            text += f" of gen {card.pcie_generation_max} × {card.pcie_width_max}"
        return text

    def _pcie_at_work(self) -> str | None:
        link, best = self._snapshot.links.get(self._card.identity), widest_link(self._card)
        if link is None:
            return None
        return f"{link.text} of {best.text}" if best else link.text

    def _traffic(self) -> str | None:
        received, sent = self._telemetry.pcie_rx_bytes_per_s, self._telemetry.pcie_tx_bytes_per_s
        if received is None or sent is None:
            return None
        return f"{format_rate(received, 'B/s')} in, {format_rate(sent, 'B/s')} out"


_MONITOR = ("drives your monitor", "no monitor")


def _switch(state: bool | None, words: tuple[str, str] = ("on", "off")) -> str | None:
    return None if state is None else words[not state]


_NO_CPU_SENSOR = "The system has no such sensor for this CPU."
_NOT_READ_YET = "Not read yet."
_STARTING = EngineDescribed(pid=0, torch_version="")
_SIMD = "Used by PyTorch's own kernels on this CPU."


def memory_word(device: Device) -> str:
    """Return what a card's memory is called: an integrated one has a part of the PC's."""
    return "shared memory" if device.is_integrated else "VRAM"


def _shared_text(card: Device) -> str:
    """Return where an integrated card's memory comes from; empty for a card with its own."""
    own, shared = card.dedicated_memory_bytes, card.shared_memory_bytes
    if not card.is_integrated or own is None or shared is None:
        return ""
    most = format_bytes(shared)
    if not own:
        return f"It has no memory of its own: it shares the PC's {most}."
    return f"{format_bytes(own)} are set aside for it, and it may take up to {most} of your RAM."


def summary_line(device: Device, engine: EngineDescribed | None) -> str:
    """Return the line under a device's name: ``cuda:0 · 2 GiB VRAM · compute capability 6.1``."""
    total = device.memory_total_bytes
    kind = "RAM" if device.is_cpu else memory_word(device)
    memory = f"{format_bytes(total)} {kind}" if total else None
    parts: tuple[str | None, ...]
    if device.is_cpu:
        parts = ("CPU", _cores(device), memory, engine.cpu_capability if engine else None)
    else:
        place = "cannot be read" if device.unreadable else "not seen by PyTorch"
        asleep = "asleep" if device.unreadable_code == "asleep" else None
        monitor = "drives your monitor" if device.display_active else None
        number = device.compute_capability
        capability = f"compute capability {number}" if number else device.chip
        parts = (device.address or asleep or place, memory, capability, monitor, asleep)
        parts = tuple(dict.fromkeys(parts))  # a sleeping card without a number says so once
    return "\u00a0· ".join(part for part in parts if part)  # no line begins with a dot


def facts_of(device: Device, snapshot: PcSnapshot) -> tuple[FactGroup, ...]:
    """Return all rows that matter for a device: the device's, PyTorch's and the driver's."""
    return (*own_facts(device, snapshot), *shared_facts(snapshot))


def own_facts(device: Device, snapshot: PcSnapshot) -> tuple[FactGroup, ...]:
    """Return the rows of one device."""
    if device.is_cpu:
        return (_cpu_group(device, snapshot),)
    rows, torch_card = _CardRows(device, snapshot), snapshot.torch_card(device)
    return rows.now(), rows.memory(), rows.card(), _peak_group(device, torch_card)


def shared_facts(snapshot: PcSnapshot) -> tuple[FactGroup, ...]:
    """Return the rows that are the same for all devices: PyTorch's and the driver's."""
    return (_torch_group(snapshot), _driver_group(snapshot))


def _cpu_group(device: Device, snapshot: PcSnapshot) -> FactGroup:
    now, engine = snapshot.telemetry(device), snapshot.engine
    simd = engine.cpu_capability if engine else None
    clock = amount_text(device.clock_max_mhz, None, "MHz")
    temperature = celsius_text(now.temperature_c)
    facts = (
        fact("name", "Name", device.name),
        fact("cores", "Cores", _cores(device), "The system does not report it."),
        fact("clock", "Highest clock", clock, _NO_CPU_SENSOR),
        fact("simd", "Vector instructions", simd, snapshot.why_no_engine, _SIMD),
        fact("utilization", "Utilization", percent_text(now.utilization_percent), _NOT_READ_YET),
        fact("temperature", "Temperature", temperature, _NO_CPU_SENSOR),
        fact("memory_total", "RAM", bytes_text(device.memory_total_bytes), _NOT_READ_YET),
        fact("memory_used", "RAM used", bytes_text(now.memory_used_bytes), _NOT_READ_YET),
        fact("memory_free", "RAM available", bytes_text(now.memory_free_bytes), _NOT_READ_YET),
    )
    return FactGroup(title="CPU and RAM", facts=facts)


def _cores(device: Device) -> str | None:
    counts = [
        f"{count} {word}{'s' if count > 1 else ''}"
        for count, word in ((device.cores, "core"), (device.threads, "thread"))
        if count
    ]
    return ", ".join(counts) or None


def _torch_group(snapshot: PcSnapshot) -> FactGroup:
    engine = snapshot.engine or _STARTING
    why_not = "PyTorch does not report it." if snapshot.engine else snapshot.why_no_engine
    no_cuda = engine.cuda_reason or ("PyTorch sees no card." if snapshot.engine else why_not)
    other_build = f"This PyTorch is {engine.build_words}." if snapshot.engine else why_not
    no_code = "PyTorch reports it only if it can use CUDA." if engine.cuda_build else other_build
    is_asked = snapshot.engine is not None and not engine.cards_asleep
    count = str(engine.device_count) if is_asked else None
    available, why = ("yes", "") if engine.cuda_available else ("no", no_cuda)
    facts: tuple[Fact, ...] = (
        fact("cuda_available", "CUDA available", available if is_asked else None, no_cuda, why),
        fact("torch_version", "PyTorch", engine.torch_version, why_not),
        fact("cuda_build", "Built for CUDA", engine.cuda_build, other_build),
        fact("arch_list", "Has code for", " ".join(engine.arch_list), no_code),
        fact("device_count", "Cards it sees", count, no_cuda),
        fact("current_device", "Current card", _current_card(snapshot), no_cuda),
        fact("cpu_threads", "CPU threads", str(engine.cpu_threads or ""), why_not),
        fact("python_version", "Python", engine.python_version, why_not),
    )
    if engine.visible_devices is not None:
        visible = engine.visible_devices or "none"
        facts += (fact("visible_devices", "CUDA_VISIBLE_DEVICES", visible),)
    if engine.recording:
        facts += (fact("recording", "Recording", engine.recording),)
    return FactGroup(title="PyTorch", facts=facts)


def _current_card(snapshot: PcSnapshot) -> str | None:
    address = snapshot.current_card
    if address is None:
        return None
    card = snapshot.inventory.find(address)
    return f"{address} {card.short_name}" if card else address


def _driver_group(snapshot: PcSnapshot) -> FactGroup:
    driver = snapshot.inventory.driver
    why_not = driver.error or "The driver does not report it."
    others = [card for card in snapshot.inventory.cards if card.build_kind != CUDA_BUILD]
    facts: tuple[Fact, ...] = ()
    if len(others) < len(snapshot.inventory.cards) or not others:
        facts = (
            fact("driver_version", "NVIDIA driver", driver.version, why_not, driver.error or ""),
            fact("driver_cuda", "Runs CUDA up to", driver.cuda_version, why_not),
            fact("nvml_version", "NVML", driver.nvml_version, why_not),
        )
    facts += tuple(
        fact(f"driver_of_{card.identity}", card.short_name, driver_text(card), "It has none.")
        for card in others
    )
    unread = ", ".join(snapshot.inventory.other_gpus)
    if unread:
        note = "Not made by NVIDIA, so CUDA does not run on it."
        facts += (fact("other_gpus", "Other graphics", unread, note=note),)
    return FactGroup(title="Driver", facts=facts)
