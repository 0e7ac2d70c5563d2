"""A card as the lines of the configuration: what CUDA says of it, and NVML's sensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.softcards.capability import ARCHITECTURES, limits_of

if TYPE_CHECKING:
    from tests.softcards.cards import Card

MIB = 1 << 20
_GEFORCE_BRAND = 5


def _sensors(card: Card) -> dict[str, int | str]:
    """NVML's fields of a card: those of every card, then the card's own."""
    limits = limits_of(card.capability)
    fields: dict[str, int | str | None] = {
        "temperature_c": 41,
        "shutdown_c": 102,
        "slowdown_c": 97,
        "gpu_max_c": 83,
        "fan_percent": 35,
        "fans": 1,
        "power_mw": 12500,
        "power_limit_mw": 30000,
        "energy_mj": 1000000 if card.capability >= 70 else None,
        "gpu_percent": "auto",
        "memory_percent": "auto",
        "pstate": "auto",
        "event_reasons": "auto",
        "sm_mhz": "auto",
        "memory_mhz": "auto",
        "max_sm_mhz": card.clock_mhz,
        "max_memory_mhz": card.memory_clock_mhz,
        "idle_sm_mhz": 139,
        "idle_memory_mhz": 405,
        "pcie_gen": "auto",
        "pcie_width": 4,
        "max_pcie_gen": 3,
        "max_pcie_width": 4,
        "pcie_tx_kb_s": 0,
        "pcie_rx_kb_s": 0,
        "pcie_replays": 0,
        "cores": card.sms * limits.cores_per_sm,
        "display_active": 0,
        "compute_mode": 0,
        "persistence_mode": 0,
        "brand": _GEFORCE_BRAND,
        "architecture": ARCHITECTURES[card.capability // 10],
        "vbios": "86.08.24.00.22",
        "pci_subsystem_id": 0x00001043,
        "encoder_percent": 0,
        "decoder_percent": 0,
    }
    if card.capability == 89:
        fields["architecture"] = ARCHITECTURES["ada"]
    fields.update(card.sensors)
    return {key: value for key, value in fields.items() if value is not None}


def fields_of(card: Card) -> dict[str, Any]:
    """All lines of a card but its identity, which depends on its place in the PC."""
    limits = limits_of(card.capability)
    whole_gib = -(-card.mib // 1024) * 1024
    return {
        "name": card.name,
        "capability": card.capability,
        "total_bytes": card.mib * MIB,
        "nvml_total_bytes": (card.nvml_mib or whole_gib) * MIB,
        "context_bytes": round(card.context_mib * MIB),
        "other_bytes": round(card.other_mib * MIB),
        "sms": card.sms,
        "speed": card.sms * limits.cores_per_sm * card.clock_mhz,
        "clock_khz": card.clock_mhz * 1000,
        "memory_clock_khz": card.memory_clock_mhz * 1000,
        "bus_width_bits": card.bus_width_bits,
        "l2_bytes": card.l2_kib * 1024,
        "threads_per_sm": limits.threads_per_sm,
        "shared_per_sm_bytes": limits.shared_per_sm_kib * 1024,
        "shared_optin_bytes": limits.shared_optin_kib * 1024,
        "kernel_ns": round(card.kernel_ms * 1e6),
        "host_copy_mb_s": card.host_copy_mb_s,
        "device_copy_mb_s": card.device_copy_mb_s,
        "peer_access": int(card.peer_access),
        **_sensors(card),
    }
