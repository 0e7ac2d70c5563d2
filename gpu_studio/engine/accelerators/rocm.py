"""AMD's cards: a ROCm build of PyTorch answers for them under the name `torch.cuda`.

Its allocator is CUDA's, compiled for HIP, with the same counters, limit and snapshots. What AMD has
no counterpart for is said by `lacks`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from gpu_studio.core import operating_system
from gpu_studio.core.devices.gpu_chips import gfx_name
from gpu_studio.core.failure import first_line
from gpu_studio.engine.accelerators.cuda import Cuda, slot_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.engine.accelerators.accelerator import Feature

_LACKS: dict[Feature, str] = {
    "custom kernels": (
        "This kernel is written for NVIDIA's compiler (NVRTC), which a ROCm build of PyTorch does "
        "not have."
    ),
}
# What `torch.cuda._sleep` counts: on RDNA 3 a clock of 100 MHz, elsewhere the card's own
# (aten/src/ATen/cuda/Sleep.cu; measured in pytorch/pytorch pull request 197541).
_FIXED_CLOCK_HZ, _FASTEST_CLOCK_HZ = 100e6, 3.5e9
_FIXED_CLOCK = re.compile(r"gfx11")
# Windows resets a card that works on one task for two seconds.
_LONGEST_IDLE_S = 0.5
# The HIP documentation, "GPU isolation techniques"; HIP also reads CUDA's own variable.
_HIDING = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
_KFD = Path("/dev/kfd")


class Rocm(Cuda):
    """See `accelerator.Accelerator`."""

    maker = "AMD"
    platform = "ROCm"
    convolution_library = "MIOpen"

    @property
    def build(self) -> str | None:
        return torch.version.hip

    def explain(self, text: str) -> str:
        return explain_unavailable(text, os.environ, _KFD)

    def start_code(self, text: str) -> int | None:
        return None

    def driver_library(self) -> str:
        return ""

    def lacks(self, feature: Feature) -> str:
        return _LACKS.get(feature, "")

    def uuid(self, device: torch.device) -> str | None:
        """Return the slot: few of AMD's cards have a number of their own."""
        return slot_of(torch.cuda.get_device_properties(device))

    def card(self, index: int) -> TorchCard:
        """Return the card without NVIDIA's numbers, which PyTorch fills in for AMD's as well."""
        properties: Any = torch.cuda.get_device_properties(index)
        return msgspec.structs.replace(
            super().card(index),
            maker=self.maker,
            uuid=None,
            compute_capability=None,
            architecture=gfx_name(getattr(properties, "gcnArchName", "")),
        )

    def is_integrated(self, index: int) -> bool:
        return bool(torch.cuda.get_device_properties(index).is_integrated)

    def capability(self, device: torch.device) -> tuple[int, int] | None:
        return None

    def architecture(self, device: torch.device) -> str:
        return gfx_name(torch.cuda.get_device_properties(device).gcnArchName)

    def advice(self, device: torch.device) -> str:
        return "You need a build of PyTorch for ROCm that has this chip."

    def refuses_bfloat16_products(self, device: torch.device) -> str:
        return ""

    def has_tf32(self, device: torch.device) -> bool:
        """RDNA has no TF32."""
        return False

    def idle(self, device: torch.device, seconds: float) -> None:
        """Let a card's stream idle for at least this long, and at most half a second."""
        is_fixed = _FIXED_CLOCK.match(self.architecture(device)) is not None
        clock_hz = _FIXED_CLOCK_HZ if is_fixed else _FASTEST_CLOCK_HZ
        self._sleep(device, min(seconds, _LONGEST_IDLE_S), clock_hz)


def explain_unavailable(text: str, variables: Mapping[str, str], kfd: Path) -> str:
    """Return why PyTorch for ROCm cannot use a card, from the error text of its start.

    Args:
        text: the error text of ``torch.cuda.init()``.
        variables: the environment.
        kfd: the file of Linux through which ROCm uses cards.
    """
    if operating_system.system() == "Linux":
        through = f"{kfd}, through which PyTorch for ROCm uses AMD cards."
        if not kfd.exists():
            return f"There is no {through}"
        if not os.access(kfd, os.R_OK | os.W_OK):
            return f"You may not open {through}"
    hiding = next((name for name in _HIDING if name in variables), None)
    if hiding is not None:
        return f"{hiding} is “{variables[hiding]}”, and PyTorch for ROCm sees no card."
    if "No HIP GPUs are available" in text or "No CUDA GPUs are available" in text:
        return "PyTorch for ROCm sees no AMD card that it can use."
    reason = first_line(text, 200).rstrip(".") or "no reason given"
    return f"ROCm could not start: {reason}."
