"""The rows of a card that are computed or told twice: its peaks, and PyTorch's account of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.pc.facts import SPACE, Fact, FactGroup, bytes_text, fact
from gpu_studio.core.pc.known_cards import chip_of
from gpu_studio.core.pc.peaks import CardPeaks, card_peaks
from gpu_studio.core.pc.silicon import disagreements, misnamings
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.units import format_rate

if TYPE_CHECKING:
    from gpu_studio.core.pc.devices import Device
    from gpu_studio.core.pc.torch_facts import TorchCard

_COMPUTED = "Computed from the processors and their highest clock: what no program exceeds."
_TOO_LITTLE = "The card does not tell enough to compute it."
_NO_ARITHMETIC = "A card of this compute capability has no arithmetic for it."
_NO_TENSOR_CORES = "This card has no tensor cores."
_NOT_TOLD = "PyTorch has not described this card: it does not see it, or it is starting."
_MHZ = 1e6


def peaks_of(card: Device, told: TorchCard | None) -> CardPeaks | None:
    """Return what a card can do at most, at its highest clocks; None where too little is told."""
    capability = card.compute_capability
    count = card.multiprocessors or (told.multiprocessors if told else None)
    clock_mhz = card.sm_clock_max_mhz or (told.sm_clock_max_mhz if told else None)
    bus = card.memory_bus_width_bits or (told.memory_bus_width_bits if told else None)
    memory_mhz = card.memory_clock_max_mhz or (told.memory_clock_max_mhz if told else None)
    if capability is None or not count or not clock_mhz:
        return None
    try:
        return card_peaks(
            capability,
            count,
            clock_mhz * _MHZ,
            bus,
            memory_mhz * _MHZ if memory_mhz else None,
            card.name,
        )
    except MissingResourceError:
        return None


def peak_group(card: Device, told: TorchCard | None) -> FactGroup:
    """Return what a card can do at most."""
    peaks = peaks_of(card, told)
    arithmetic = peaks.arithmetic_flops if peaks else {}
    tensor_cores = peaks.tensor_core_flops if peaks else {}
    no_arithmetic = _NO_ARITHMETIC if peaks else _TOO_LITTLE
    bandwidth = peaks.memory_bytes_per_s if peaks else None
    facts = [
        fact(
            "peak_bandwidth",
            "Memory bandwidth",
            format_rate(bandwidth, "B/s") if bandwidth else None,
            _TOO_LITTLE,
            "Computed from the memory's highest clock and the width of its bus.",
        )
    ]
    facts += [
        fact(f"peak_{dtype}", dtype, _flops(arithmetic.get(dtype)), no_arithmetic, _COMPUTED)
        for dtype in ("float32", "float16", "float64")
    ]
    fastest = max(tensor_cores, key=lambda dtype: tensor_cores[dtype], default="")
    with_dtype = f"{_flops(tensor_cores[fastest])} in {fastest}" if fastest else None
    no_cores = _NO_TENSOR_CORES if peaks else _TOO_LITTLE
    facts.append(fact("peak_tensor", "Tensor cores", with_dtype, no_cores, _COMPUTED))
    return FactGroup(title="At most", facts=tuple(facts))


def account_group(card: Device, told: TorchCard | None) -> FactGroup:
    """Return PyTorch's account of a card beside the driver's, and what contradicts the two."""
    rows = (
        ("name", "Name", card.name, told.name if told else None),
        (
            "compute_capability",
            "Compute capability",
            card.compute_capability,
            told.compute_capability if told else None,
        ),
        (
            "multiprocessors",
            "Multiprocessors",
            card.multiprocessors,
            told.multiprocessors if told else None,
        ),
        (
            "memory",
            "Memory",
            bytes_text(card.memory_total_bytes),
            bytes_text(told.memory_total_bytes) if told else None,
        ),
        (
            "bus",
            "Memory bus",
            _bits(card.memory_bus_width_bits),
            _bits(told.memory_bus_width_bits) if told else None,
        ),
        ("slot", "PCI address", card.pci_bus_id, told.pci_bus_id if told else None),
    )
    facts = [
        fact(f"torch_{key}", label, _both(ours, theirs), _NOT_TOLD)
        for key, label, ours, theirs in rows
    ]
    facts.append(_contradictions(card, told))
    return FactGroup(title="PyTorch's account", facts=tuple(facts))


def chip_text(card: Device) -> str | None:
    """Return a card's chip by its PCI device id: ``GP108 (1d01)``."""
    if card.pci_device_id is None:
        return None
    chip = chip_of(card.pci_device_id)
    return f"{chip.name} ({card.pci_device_id:04x})" if chip else f"{card.pci_device_id:04x}"


def _contradictions(card: Device, told: TorchCard | None) -> Fact:
    if told is None and card.unreadable is not None:
        return fact("contradictions", "Contradictions", None, "Neither says anything of this card.")
    found = (*misnamings(card, told), *disagreements(card, told))
    text = "; ".join(one.sentence for one in found)
    note = (
        "One of them is wrong: the card may be another with a changed BIOS."
        if found
        else "Name, chip, driver and PyTorch say the same of this card."
    )
    return fact("contradictions", "Contradictions", text or "none", note=note)


def _both(ours: object, theirs: object) -> str | None:
    if theirs is None:
        return None
    if ours is None:
        return f"{theirs} by PyTorch"
    return f"{ours}" if ours == theirs else f"{theirs} by PyTorch, {ours} by the driver"


def _flops(value: float | None) -> str | None:
    return None if value is None else format_rate(value, "FLOP/s")


def _bits(width: int | None) -> str | None:
    return f"{width}{SPACE}bit" if width else None
