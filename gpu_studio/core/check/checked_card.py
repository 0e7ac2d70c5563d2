"""What a reading of a card says for the record of a check."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from gpu_studio.core.device_name import CPU
from gpu_studio.core.devices.card_identity import identity_of
from gpu_studio.core.devices.cards import silicon_text
from gpu_studio.core.messages.check_messages import CheckedDevice

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.engine_messages import TorchCard


_FINGERPRINT_DIGITS = 16


def fingerprint_of(uuid: str | None) -> str:
    """Return a name for this copy of a card that cannot be turned back into its UUID.

    Args:
        uuid: PyTorch's name of the card; None for the CPU.
    """
    if uuid is None:
        return CPU
    return hashlib.sha256(uuid.encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def checked_card(card: Device, address: str, torch_card: TorchCard | None = None) -> CheckedDevice:
    """Return the facts of a card that the driver and its name have.

    Args:
        card: the card.
        address: PyTorch's name for it.
        torch_card: as for `identity_of`.
    """
    identity = identity_of(card, torch_card)
    return CheckedDevice(
        address=address,
        name=card.name,
        silicon=silicon_text(card),
        contradiction=identity.contradiction,
        agreement=identity.agreement,
        vbios=card.vbios,
        compute_capability=card.compute_capability,
        memory_total_bytes=card.memory_total_bytes,
        clock_max_mhz=card.sm_clock_max_mhz,
        pcie_generation_max=card.pcie_generation_max,
        pcie_width_max=card.pcie_width_max,
        driver_version=card.driver_version,
        power_limit_w=card.telemetry.power_limit_w,
    )
