"""The CPU as a device: it works at once, and PyTorch does not count its memory."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import psutil

from gpu_studio.core.device_name import CPU
from gpu_studio.core.error_table import Family
from gpu_studio.core.errors.reader import family_of
from gpu_studio.engine.stopwatch import CpuStopwatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch

    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.engine.accelerators.accelerator import Feature
    from gpu_studio.engine.stopwatch import Stopwatch

_LACKS: dict[Feature, str] = {
    "CUDA_VISIBLE_DEVICES": "This variable hides cards, and the CPU is none.",
    "custom kernels": "PyTorch loads no kernels onto the CPU.",
    "segments": "The CPU has no segments: PyTorch allocates its memory directly.",
    "memory limit": "The system alone limits a program's memory on the CPU.",
    "head start": "On the CPU, no work queues up.",
    "convolution switches": (
        "These switches belong to cuDNN: they do not affect the CPU's convolutions."
    ),
}


class Cpu:
    """See `accelerator.Accelerator`."""

    kind = CPU
    maker = ""
    platform = ""
    convolution_library = "oneDNN"
    build: str | None = None

    def is_available(self) -> bool:
        return True

    def start(self) -> None:
        """Do nothing."""

    def is_started(self) -> bool:
        return True

    def explain(self, text: str) -> str:
        return text

    def start_code(self, text: str) -> int | None:
        return None

    def driver_library(self) -> str:
        return ""

    def lacks(self, feature: Feature) -> str:
        return _LACKS[feature]

    def count(self) -> int:
        return 1

    def arch_list(self) -> tuple[str, ...]:
        return ()

    def name(self, device: torch.device) -> str:
        return "CPU"

    def uuid(self, device: torch.device) -> str | None:
        return None

    def card(self, index: int) -> TorchCard:
        message = "the CPU is not a card"
        raise RuntimeError(message)

    def is_integrated(self, index: int) -> bool:
        return False

    def capability(self, device: torch.device) -> tuple[int, int] | None:
        return None

    def architecture(self, device: torch.device) -> str:
        return ""

    def advice(self, device: torch.device) -> str:
        return ""

    def refuses_bfloat16_products(self, device: torch.device) -> str:
        return ""

    def refuses_dtype(self, device: torch.device, dtype: str) -> str:
        return ""

    def has_tf32(self, device: torch.device) -> bool:
        return False

    def use(self, device: torch.device) -> None:
        """Do nothing: PyTorch has only one CPU."""

    def current(self, device: torch.device) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    @property
    def synchronize(self) -> Callable[[torch.device], object]:
        return _return_at_once

    def stopwatch(self, device: torch.device) -> Stopwatch:
        return CpuStopwatch()

    def side_stream(
        self, device: torch.device
    ) -> contextlib.AbstractContextManager[Callable[[], object]]:
        return contextlib.nullcontext(lambda: None)

    def idle(self, device: torch.device, seconds: float) -> None:
        """Do nothing: no work queues up."""

    def has_context(self, device: torch.device) -> bool:
        return False

    def free_and_total(self, device: torch.device) -> tuple[int | None, int]:
        memory = psutil.virtual_memory()
        return int(memory.available), int(memory.total)

    def allocated_bytes(self, device: torch.device) -> int | None:
        return None

    def reserved_bytes(self, device: torch.device) -> int | None:
        return None

    def peak_bytes(self, device: torch.device) -> int | None:
        return None

    def reset_peak(self, device: torch.device) -> None:
        """Do nothing."""

    def statistics(self, device: torch.device) -> Mapping[str, int]:
        return {}

    def segments(self) -> list[dict[str, Any]]:
        return []

    def empty_cache(self) -> None:
        """Do nothing: PyTorch keeps no free memory."""

    def limit_share(self, device: torch.device) -> float:
        return 1.0

    def set_limit_share(self, device: torch.device, share: float) -> None:
        """Do nothing: the system alone limits a program's memory."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        return isinstance(error, MemoryError) or family_of(str(error)) is Family.MEMORY


def _return_at_once(device: torch.device) -> None:
    """Return: the CPU is done when a call returns."""
