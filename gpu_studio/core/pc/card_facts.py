"""The rows of one card.

Memory as the driver counts it (the whole card, all programs) and as PyTorch counts it (the tensors
of this program's engine) are rows of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.pc.clock_events import clock_event_words
from gpu_studio.core.pc.facts import (
    SPACE,
    Fact,
    FactGroup,
    PcSnapshot,
    amount_text,
    bytes_text,
    celsius_text,
    fact,
    percent_text,
)
from gpu_studio.core.pc.link import widest_link
from gpu_studio.core.pc.silicon_facts import account_group, chip_text, peak_group
from gpu_studio.core.units import format_percent, format_rate

if TYPE_CHECKING:
    from gpu_studio.core.pc.devices import Device

_REFUSED = "This card does not report it."
_SEEN_AT_WORK = "Read while the card works, since an idle one drops to generation 1: run something."
_PYTORCH_TELLS = "PyTorch tells it, and does not see this card or is starting."
_NO_CONTEXT = "The engine has done nothing on this card yet, so PyTorch holds no memory there."


def identity_line(card: Device) -> str:
    """Return the numbers that one card goes by: ``nvidia-smi 0 = cuda:0 = drives your monitor``."""
    parts = [] if card.nvml_index is None else [f"nvidia-smi {card.nvml_index}"]
    parts.append(card.address or "no number in PyTorch")
    if card.display_active:
        parts.append("drives your monitor")
    return " = ".join(parts)


def card_groups(card: Device, snapshot: PcSnapshot) -> tuple[FactGroup, ...]:
    """Return the rows of a card that are not PyTorch's or the driver's."""
    rows = _Rows(card, snapshot)
    told = snapshot.torch_card(card)
    return (
        rows.now(),
        rows.memory(),
        rows.card(),
        peak_group(card, told),
        account_group(card, told),
    )


class _Rows:
    def __init__(self, card: Device, snapshot: PcSnapshot) -> None:
        self._card, self._snapshot = card, snapshot
        self._telemetry = snapshot.telemetry(card)
        self._why_not = snapshot.trouble(card) or _REFUSED

    def _row(self, key: str, label: str, value: str | None, note: str = "") -> Fact:
        return fact(key, label, value, self._why_not, note)

    def now(self) -> FactGroup:
        card, now, row = self._card, self._telemetry, self._row
        pstate = None if now.pstate is None else f"P{now.pstate}"
        power = amount_text(now.power_w, now.power_limit_w, "W", "limit")
        sm_clock = amount_text(now.sm_clock_mhz, card.sm_clock_max_mhz, "MHz")
        memory_clock = amount_text(now.memory_clock_mhz, card.memory_clock_max_mhz, "MHz")
        facts = (
            row("utilization", "Utilisation", percent_text(now.utilization_percent)),
            row("temperature", "Temperature", celsius_text(now.temperature_c)),
            row("fan", "Fan", percent_text(now.fan_percent)),
            row("pstate", "P-state", pstate, "P0 is the fastest; P8 and above save power."),
            row("power", "Power", power),
            row("sm_clock", "SM clock", sm_clock),
            row("memory_clock", "Memory clock", memory_clock),
            row("clock_reasons", "Clocks are", clock_event_words(now.clock_event_reasons)),
            row("pcie", "PCIe", self._pcie(), "An idle card drops to a slower generation."),
            fact("pcie_at_work", "PCIe at work", self._pcie_at_work(), _SEEN_AT_WORK),
            row("pcie_traffic", "PCIe traffic", self._traffic()),
        )
        return FactGroup(title="Now", facts=facts)

    def memory(self) -> FactGroup:
        now, row = self._telemetry, self._row
        used, total = now.memory_used_bytes, self._card.memory_total_bytes
        used_text = bytes_text(used)
        if used_text and used and total:
            used_text += f" ({format_percent(used / total)})"
        kept = bytes_text(now.memory_reserved_bytes)
        facts = (
            row("memory_total", "Total", bytes_text(total)),
            row("memory_used", "Used", used_text, "By all programs on this card."),
            row("memory_free", "Free", bytes_text(now.memory_free_bytes)),
            row("memory_kept", "Kept by the driver", kept),
            self._torch_memory("allocated", "Allocated by PyTorch"),
            self._torch_memory("reserved", "Reserved by PyTorch"),
        )
        return FactGroup(title="Memory", facts=facts)

    def card(self) -> FactGroup:
        card, row = self._card, self._row
        bits = card.memory_bus_width_bits
        display = None
        if card.display_active is not None:
            display = "drives your monitor" if card.display_active else "no monitor"
        facts = (
            fact("name", "Name", card.name),
            fact("numbers", "Numbers", identity_line(card)),
            row("architecture", "Architecture", card.architecture),
            row("compute_capability", "Compute capability", card.compute_capability),
            row("cores", "Processors", self._processors()),
            row("memory_bus", "Memory bus", f"{bits}{SPACE}bit" if bits else None),
            fact("l2_cache", "L2 cache", self._l2_cache(), _PYTORCH_TELLS),
            row("display", "Display", display),
            row("compute_mode", "Compute mode", card.compute_mode),
            row("ecc", "ECC", _switch(card.ecc_enabled)),
            row("mig", "MIG", _switch(card.mig_enabled)),
            row("vbios", "VBIOS", card.vbios),
            row("driver", "Driver", self._snapshot.inventory.driver.version),
            row("chip", "Chip", chip_text(card), "By its PCI device id."),
            row("pci_bus_id", "PCI address", card.pci_bus_id),
            row("serial", "Serial number", card.serial),
            row("uuid", "UUID", card.uuid),
        )
        return FactGroup(title="Card", facts=facts)

    def _torch_memory(self, key: str, label: str) -> Fact:
        """Return a row of PyTorch's allocator in this program's engine."""
        engine, address = self._snapshot.engine, self._card.address
        if engine is None:
            return fact(key, label, None, "The engine is starting.")
        if not engine.cuda_available or address is None:
            reason = engine.cuda_reason or "PyTorch does not see this card."
            return fact(key, label, None, reason)
        read = self._snapshot.memory.get(address)
        if read is None:
            return fact(key, label, None, "Not read yet.")
        size_bytes = read.allocated_bytes if key == "allocated" else read.reserved_bytes
        if size_bytes is None:
            return fact(key, label, "no CUDA context yet", note=_NO_CONTEXT)
        return fact(key, label, bytes_text(size_bytes), note="In this program's engine alone.")

    def _processors(self) -> str | None:
        parts = []
        if self._card.multiprocessors:
            parts.append(f"{self._card.multiprocessors} SMs")
        if self._card.cuda_cores:
            parts.append(f"{self._card.cuda_cores} cores")
        return ", ".join(parts) or None

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
        text = f"{link.text} of {best.text}" if best else link.text
        alone = self._card.pcie_generation_card_max
        if best is not None and alone is not None and alone > best.generation:
            text += f" (the card alone: gen {alone})"
        return text

    def _l2_cache(self) -> str | None:
        told = self._snapshot.torch_card(self._card)
        return bytes_text(told.l2_cache_bytes) if told else None

    def _traffic(self) -> str | None:
        received, sent = self._telemetry.pcie_rx_bytes_per_s, self._telemetry.pcie_tx_bytes_per_s
        if received is None or sent is None:
            return None
        return f"{format_rate(received, 'B/s')} in, {format_rate(sent, 'B/s')} out"


def _switch(state: bool | None) -> str | None:
    if state is None:
        return None
    return "on" if state else "off"
