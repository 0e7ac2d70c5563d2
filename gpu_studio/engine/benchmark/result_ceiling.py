"""The ceiling of a device as the engine knows it, for the share that a result reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gpu_studio.core.benchmark.ceilings import (
    Ceilings,
    MeasuredCeilings,
    card_ceilings,
    cpu_ceilings,
)
from gpu_studio.core.pc.peaks import card_peaks
from gpu_studio.engine.benchmark.cpu_ceilings import measured_ceilings
from gpu_studio.engine.device import card_name

if TYPE_CHECKING:
    from gpu_studio.engine.sensor import CardState
    from gpu_studio.engine.workloads.case import Case, Work


def measure_cpu(case: Case, work: Work) -> MeasuredCeilings | None:
    """Measure the CPU's ceilings as far as work in this dtype can meet them; None for a card.

    It takes up to a second the first time in an engine's life, so it belongs before a run's timing.
    """
    if case.is_on_card:
        return None
    if not work.operations and not work.bytes_moved:
        return MeasuredCeilings()
    intensity = work.operations / work.bytes_moved if work.bytes_moved else float("inf")
    return measured_ceilings(case.dtype, intensity)


def ceilings_of(
    case: Case,
    measured: MeasuredCeilings | None,
    state: CardState | None,
    *,
    tf32: bool = False,
) -> Ceilings | None:
    """Return what the device of a case can do at most; None where too little is known.

    Args:
        case: whose device and dtype.
        measured: what was measured of the CPU; None for a card.
        state: what the driver said of the card under load.
        tf32: whether float32 matrices may be multiplied in TF32.
    """
    if measured is not None:
        return cpu_ceilings(measured, case.dtype_name)
    return _card_ceilings(case, state, tf32=tf32)


def _card_ceilings(case: Case, state: CardState | None, *, tf32: bool) -> Ceilings | None:
    """Return a card's ceilings from what NVML tells, or else PyTorch (from 2.8 on)."""
    card = torch.cuda.get_device_properties(case.device)
    clock_mhz = (state and state.sm_clock_max_mhz) or getattr(card, "clock_rate", 0) / 1e3
    if not clock_mhz:
        return None
    memory_mhz = (state and state.memory_clock_max_mhz) or (
        getattr(card, "memory_clock_rate", 0) / 1e3
    )
    bus_bits = (state and state.memory_bus_width_bits) or getattr(card, "memory_bus_width", None)
    peaks = card_peaks(
        f"{card.major}.{card.minor}",
        card.multi_processor_count,
        clock_mhz * 1e6,
        bus_bits,
        memory_mhz * 1e6 or None,
        card_name(case.device),
    )
    if peaks is None:
        return None
    link = (state.pcie_generation, state.pcie_width) if state else (None, None)
    return card_ceilings(peaks, case.dtype_name, tf32=tf32, link=link)
