"""A round of a check by PyTorch: its stages, and the facts of the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.core.device_name import CPU, is_cpu
from gpu_studio.core.devices.card_identity import identity_of
from gpu_studio.core.devices.cards import known_card, silicon_text
from gpu_studio.core.devices.devices import uuid_tail
from gpu_studio.core.devices.finding import untested_sentence
from gpu_studio.core.messages.check_messages import CheckedDevice
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.core.units import format_count
from gpu_studio.engine.check.compute import compute
from gpu_studio.engine.check.layouts import layouts
from gpu_studio.engine.check.link import link
from gpu_studio.engine.check.load import load
from gpu_studio.engine.check.memory import memory
from gpu_studio.engine.check.staged_round import StagedRound
from gpu_studio.engine.device import (
    accelerator_of,
    card_name,
    prove_kernels,
    resolve,
    torch_card,
    total_bytes,
    uuid_of,
)
from gpu_studio.engine.faults import failure_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.failure import Failure
    from gpu_studio.core.messages.check_messages import StageName
    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.engine.check.stage_run import StageRun

STAGES: dict[StageName, Callable[[StageRun], Generator[str, None, bool]]] = {
    "load": load, "compute": compute, "layouts": layouts, "memory": memory, "link": link,
}  # fmt: skip


class CheckRound(StagedRound):
    """See `staged_round.StagedRound`."""

    stages = STAGES

    def _opened(self) -> CheckedDevice:
        self._device = resolve(self._request.device)
        accelerator_of(self._device).use(self._device)
        self._uuid = uuid_of(self._device)
        return self._checked_device(self._device)

    def _prove(self) -> None:
        prove_kernels(self._device)

    def _failure_of(self, error: Exception) -> Failure:
        return failure_of(error)

    def _recover(self) -> None:
        accelerator_of(self._device).empty_cache()

    @property
    def _identity(self) -> str | None:
        return CPU if is_cpu(self._request.device) else self._uuid

    @property
    def _target(self) -> torch.device:
        return self._device

    def _checked_device(self, device: torch.device) -> CheckedDevice:
        identity = self._identity
        known = self._sensor.device(identity) if self._sensor and identity else None
        if known is not None:
            known = msgspec.structs.replace(known, telemetry=self._read() or Telemetry())
        checked = checked_device(device, self._request.device, known, self._cpu_name)
        return msgspec.structs.replace(checked, uuid_tail=uuid_tail(self._uuid))


def checked_device(
    device: torch.device, address: str, known: Device | None, cpu_name: str
) -> CheckedDevice:
    """Return the device of a check: its driver's facts, and PyTorch's where there are none."""
    if is_cpu(device.type):
        return CheckedDevice(
            address=address, name=cpu_name, torch_version=str(torch.__version__),
            slowdown_c=known.slowdown_c if known else None,
            is_laptop=known is not None and known.is_laptop,
            memory_total_bytes=total_bytes(device),
            ecc="The program cannot read whether this PC's RAM has ECC.",
        )  # fmt: skip
    capability = accelerator_of(device).capability(device)
    if known is None:
        facts = CheckedDevice(address=address, name=card_name(device))
    else:
        facts = checked_card(known, address, torch_card(device.index or 0))
    return msgspec.structs.replace(
        facts,
        ecc=ecc_text(known) if known is not None and known.is_cudas else "",
        torch_version=str(torch.__version__),
        compute_capability=f"{capability[0]}.{capability[1]}" if capability else None,
        memory_total_bytes=facts.memory_total_bytes or total_bytes(device),
        untested=untested_sentence(accelerator_of(device).maker),
    )


def checked_card(card: Device, address: str, torch_card: TorchCard | None = None) -> CheckedDevice:
    """Return the facts of a card that the driver and its name have.

    Args:
        card: the card.
        address: PyTorch's name for it.
        torch_card: as for `identity_of`.
    """
    identity, known = identity_of(card, torch_card), known_card(card.name)
    return CheckedDevice(
        address=address,
        name=card.name,
        silicon=silicon_text(card),
        contradiction=identity.contradiction,
        agreement=identity.agreement,
        vbios=card.vbios,
        compute_capability=card.compute_capability,
        memory_total_bytes=card.memory_total_bytes,
        driver_version=card.driver_version,
        power_limit_w=card.telemetry.power_limit_w,
        shutdown_c=card.shutdown_c,
        slowdown_c=card.slowdown_c,
        operating_max_c=card.operating_max_c,
        base_clock_mhz=card.sm_clock_base_mhz or (known.base_clock_mhz if known else None),
    )


def ecc_text(card: Device) -> str:
    """Return what one of NVIDIA's cards says of its memory's error correction, as sentences."""
    if card.ecc_enabled is None:
        text = "The card reports no ECC memory. GeForce cards usually have none."
    else:
        text = f"The memory has ECC, and it is {'on' if card.ecc_enabled else 'off'}."
    rows = card.telemetry.remapped_rows
    return text if rows is None else f"{text} Rows of it replaced so far: {format_count(rows)}."
