"""PyTorch's description of each card, without a CUDA context, and its table of builds."""

from __future__ import annotations

import logging
from typing import Any

import torch

from gpu_studio.core import operating_system
from gpu_studio.core.messages.engine_messages import TorchCard
from gpu_studio.engine.device import cuda_state, start_cuda

_log = logging.getLogger(__name__)


def torch_cards() -> tuple[TorchCard, ...]:
    """Return the cards that PyTorch sees, in its order; facts missing in an old one are None."""
    available, _ = cuda_state()
    if not available:
        return ()
    start_cuda()
    return tuple(torch_card(index) for index in range(torch.cuda.device_count()))


def torch_card(index: int) -> TorchCard:
    """Return one card; only its number if PyTorch fails to describe it."""
    try:
        told: Any = torch.cuda.get_device_properties(index)
        name = str(told.name)
    except (RuntimeError, UnicodeDecodeError) as error:
        _log.warning("PyTorch cannot describe cuda:%s: %s", index, error)
        return TorchCard(cuda_index=index, name="NVIDIA card")
    uuid = getattr(told, "uuid", None)
    return TorchCard(
        cuda_index=index,
        name=name,
        uuid=None if uuid is None else f"GPU-{uuid}",
        pci_bus_id=_pci_bus_id(told),
        compute_capability=f"{told.major}.{told.minor}",
        multiprocessors=told.multi_processor_count,
        memory_total_bytes=told.total_memory,
        l2_cache_bytes=getattr(told, "L2_cache_size", None) or None,
        memory_bus_width_bits=getattr(told, "memory_bus_width", None) or None,
        sm_clock_max_mhz=_megahertz(getattr(told, "clock_rate", None)),
        memory_clock_max_mhz=_megahertz(getattr(told, "memory_clock_rate", None)),
    )


def own_table() -> dict[str, tuple[str, ...]]:
    """Return PyTorch's own table of the architectures in its builds for this kind of PC.

    By CUDA version, ``{"12.6": ("5.0", …)}``; empty before PyTorch 2.11, which has no table.
    """
    table = getattr(torch.cuda, "PYTORCH_RELEASES_CODE_CC", None)
    if not isinstance(table, dict):
        return {}
    machine = "aarch64" if operating_system.machine().lower() == "aarch64" else "x86_64"
    return {
        str(cuda): tuple(f"{code // 10}.{code % 10}" for code in sorted(by_machine[machine]))
        for cuda, by_machine in table.items()
        if machine in by_machine
    }


def _pci_bus_id(told: Any) -> str | None:
    """Return the slot in NVML's format; PyTorch 2.8 and newer report it."""
    if not hasattr(told, "pci_bus_id"):
        return None
    return f"{told.pci_domain_id:08X}:{told.pci_bus_id:02X}:{told.pci_device_id:02X}.0"


def _megahertz(kilohertz: int | None) -> float | None:
    return kilohertz / 1000 if kilohertz else None
