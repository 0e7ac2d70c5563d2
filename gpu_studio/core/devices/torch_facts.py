"""PyTorch's properties of the cards, and the result of one real kernel on each."""

from __future__ import annotations

from typing import Literal

import msgspec

# PyTorch's errors 803 and 804, as they occur on a PC at home; findings compare this sentence.
DRIVER_HALVES_DIFFER = (
    "The NVIDIA driver was updated while the PC was running, and its two halves no longer match. "
    "Restart the PC."
)
Outcome = Literal["ran", "no_code", "busy", "lost", "out_of_memory", "failed", "died", "silent"]


class TorchCard(msgspec.Struct, frozen=True, kw_only=True):
    """One card according to ``torch.cuda.get_device_properties``.

    None means that this PyTorch does not have the property. Clocks are in MHz and ``pci_bus_id``
    has NVML's form.
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
    """The result of one real kernel on one card.

    Attributes:
        outcome: "ran": launched and synchronized, whatever the result. "died": the driver ended
            the process. "silent": the driver never returned from a call.
        message: the first line of the error.
        error_code: CUDA's error code, if PyTorch reports it.
        total: the sum that the kernels computed; None if they did not run.
        expected_total: the correct sum.
    """

    card: TorchCard
    outcome: Outcome
    message: str = ""
    error_code: int | None = None
    total: float | None = None
    expected_total: float | None = None

    @property
    def is_sum_wrong(self) -> bool:
        """Whether the kernels ran, but computed a wrong sum."""
        return self.total != self.expected_total


class PcProbed(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a separate process with your own environment that used CUDA.

    ``cards`` are in the order of that process, which is the order of your own scripts. ``error``
    says why CUDA did not start at all.
    """

    cards: tuple[CardProbed, ...] = ()
    error: str | None = None
    visible_devices: str | None = None
    device_order: str | None = None


class ProbeStep(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the probe: CUDA's state, the card that comes next, or a card's result."""

    pc: PcProbed | None = None
    cards: tuple[TorchCard, ...] = ()
    begun: TorchCard | None = None
    probed: CardProbed | None = None
