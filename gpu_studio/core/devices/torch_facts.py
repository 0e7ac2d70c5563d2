"""What PyTorch says of the cards, and what came of one real kernel on each."""

from __future__ import annotations

from typing import Literal

import msgspec

# What PyTorch's errors 803 and 804 mean on a PC at home; findings know it by this sentence.
DRIVER_HALVES_DIFFER = (
    "The NVIDIA driver was updated while the PC was running, and its two halves no longer fit "
    "together. Restart the PC."
)
Outcome = Literal["ran", "no_code", "busy", "lost", "out_of_memory", "failed", "died", "silent"]


class TorchCard(msgspec.Struct, frozen=True, kw_only=True):
    """One card as ``torch.cuda.get_device_properties`` tells it; None is "this torch has no such".

    Clocks are in MHz as NVML's; ``pci_bus_id`` is written as NVML does.
    """

    cuda_index: int
    name: str
    uuid: str | None = None
    pci_bus_id: str | None = None
    compute_capability: str | None = None
    multiprocessors: int | None = None
    memory_total_bytes: int | None = None
    l2_cache_bytes: int | None = None
    memory_bus_width_bits: int | None = None
    sm_clock_max_mhz: float | None = None
    memory_clock_max_mhz: float | None = None


class CardProbed(msgspec.Struct, frozen=True, kw_only=True):
    """What one real kernel did on one card.

    Attributes:
        outcome: "ran" is launched and synchronized, whatever it computed; "died" is a process that
            the driver ended, "silent" one that it never let go.
        message: the first line of the error.
        error_code: CUDA's, where PyTorch tells it.
        total: the sum that the kernels computed; None where they did not run.
        expected_total: what it has to be.
    """

    card: TorchCard
    outcome: Outcome
    message: str = ""
    error_code: int | None = None
    total: float | None = None
    expected_total: float | None = None

    @property
    def is_sum_wrong(self) -> bool:
        """Whether the kernels ran and computed something else."""
        return self.total != self.expected_total


class PcProbed(msgspec.Struct, frozen=True, kw_only=True):
    """What a process of its own, with the user's own environment, could do with CUDA.

    ``cards`` are in the order of that process: as a script of the user's numbers them. ``error`` is
    why CUDA could not be started at all.
    """

    cards: tuple[CardProbed, ...] = ()
    error: str | None = None
    visible_devices: str | None = None
    device_order: str | None = None


class ProbeStep(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the probe: what CUDA says, a card that is begun, or what came of one."""

    pc: PcProbed | None = None
    cards: tuple[TorchCard, ...] = ()
    begun: TorchCard | None = None
    probed: CardProbed | None = None
