"""What PyTorch offers on one kind of device, under one set of names.

A new kind of card is a file in this folder and a line in the table of `engine.device`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal

import psutil
import torch

from gpu_studio.core.device_name import CPU
from gpu_studio.core.error_table import Family
from gpu_studio.core.errors.reader import family_of
from gpu_studio.core.texts import plain_text
from gpu_studio.engine.stopwatch import CpuStopwatch, EventStopwatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.engine.stopwatch import Stopwatch

Feature = Literal[
    "custom kernels",
    "segments",
    "memory limit",
    "head start",
    "convolution switches",
    "DataParallel",
    "CUDA_VISIBLE_DEVICES",
]
"""What some kinds of devices lack.

They are kernels of one's own, the list of the allocator's segments, a limit for its memory, a way
to let the device wait while work queues up, the two switches of `cudnn_flags`, copies of a network
on several devices in one process, and the variable that hides cards.
"""


_LACKS: dict[Feature, str] = {
    "DataParallel": "PyTorch has only one CPU.",
    "CUDA_VISIBLE_DEVICES": "This variable hides cards, and the CPU is none.",
    "custom kernels": "PyTorch loads no kernels onto the CPU.",
    "segments": "The CPU has no segments: PyTorch allocates its memory directly.",
    "memory limit": "The system alone limits a program's memory on the CPU.",
    "head start": "On the CPU, no work queues up.",
    "convolution switches": (
        "These switches belong to cuDNN: they do not affect the CPU's convolutions."
    ),
}


class Accelerator:
    """One kind of device. Nothing here makes a context on a card unless it says so.

    These answers are the CPU's: it works at once, and PyTorch does not count its memory.
    """

    kind = CPU
    """PyTorch's word, the first part of a device's address."""
    maker = ""
    """Whose cards they are; empty for the CPU."""
    platform = ""
    """What PyTorch uses them through, as in a sentence: ``CUDA``."""
    convolution_library = "oneDNN"
    """What computes convolutions on them."""

    @property
    def build(self) -> str | None:
        """The version of the maker's software that this PyTorch is built for; None without it."""
        return None

    @property
    def process_group_backends(self) -> tuple[str, ...]:
        """What processes on several of these devices can talk through, best first."""
        return ("gloo",)

    def is_available(self) -> bool:
        """Return whether PyTorch can use such a device; may warn."""
        return True

    def start(self) -> None:
        """Start PyTorch's part for these devices; may warn, and raises if it cannot."""

    def is_started(self) -> bool:
        """Return whether this process has started it."""
        return True

    def explain(self, text: str) -> str:
        """Return why the devices cannot be used, from the text of the error of `start`."""
        return text

    def start_code(self, text: str) -> int | None:
        """Return the number of that error among CUDA's; None for an unknown one."""
        return None

    def driver_library(self) -> str:
        """Return the path of CUDA's driver library in this process; empty if unknown."""
        return ""

    def lacks(self, feature: Feature) -> str:
        """Return why these devices do not have a feature; empty if they have it."""
        return _LACKS[feature]

    def count(self) -> int:
        """Return the number of devices that PyTorch sees."""
        return 1

    def arch_list(self) -> tuple[str, ...]:
        """Return the architectures that this build has code for."""
        return ()

    def name(self, device: torch.device) -> str:
        """Return the name of a device."""
        return "CPU"

    def uuid(self, device: torch.device) -> str | None:
        """Return the UUID in the driver's format; None if there is none."""
        return None

    def card(self, index: int) -> TorchCard:
        """Return the facts of a card; raises RuntimeError or UnicodeDecodeError."""
        message = "the CPU is not a card"
        raise RuntimeError(message)

    def is_integrated(self, index: int) -> bool:
        """Return whether a card is part of a processor; creates no context."""
        return False

    def capability(self, device: torch.device) -> tuple[int, int] | None:
        """Return a card's compute capability; None for a device of another maker."""
        return None

    def architecture(self, device: torch.device) -> str:
        """Return the words for what code for a card must fit: ``compute capability 6.1``."""
        return ""

    def advice(self, device: torch.device) -> str:
        """Return which build of PyTorch has code for a card, in a sentence."""
        return ""

    def refuses_bfloat16_products(self, device: torch.device) -> str:
        """Return why a device cannot multiply matrices in bfloat16; empty if it can."""
        return ""

    def refuses_dtype(self, device: torch.device, dtype: str) -> str:
        """Return why a device cannot compute in a dtype; empty if it can, or if it tries."""
        return ""

    def has_tf32(self, device: torch.device) -> bool:
        """Return whether a device can multiply float32 matrices in TF32."""
        return False

    def use(self, device: torch.device) -> None:
        """Make a device the current one."""

    def current(self, device: torch.device) -> contextlib.AbstractContextManager[Any]:
        """Return a block in which a device is the current one."""
        return contextlib.nullcontext()

    @property
    def synchronize(self) -> Callable[[torch.device], object]:
        """PyTorch's own function that waits until a device has finished its work."""
        return _return_at_once

    def stopwatch(self, device: torch.device) -> Stopwatch:
        """Return a stopwatch for calls on a device; creates a context."""
        return CpuStopwatch()

    def side_stream(
        self, device: torch.device
    ) -> contextlib.AbstractContextManager[Callable[[], object]]:
        """Return a context whose work runs beside the usual work; it gives what waits for it."""
        return contextlib.nullcontext(lambda: None)

    def idle(self, device: torch.device, seconds: float) -> None:
        """Let a device do nothing for at least this long; returns at once."""

    def has_context(self, device: torch.device) -> bool:
        """Return whether this process already uses a device."""
        return False

    def free_and_total(self, device: torch.device) -> tuple[int | None, int]:
        """Return a device's free and whole memory in bytes; creates a context.

        The free memory is None if the driver does not report it.
        """
        memory = psutil.virtual_memory()
        return int(memory.available), int(memory.total)

    def allocated_bytes(self, device: torch.device) -> int | None:
        """Return the bytes of PyTorch's tensors; None if PyTorch does not count them."""
        return None

    def reserved_bytes(self, device: torch.device) -> int | None:
        """Return the bytes that PyTorch's allocator holds; None if it does not count them."""
        return None

    def peak_bytes(self, device: torch.device) -> int | None:
        """Return the highest number of allocated bytes since `reset_peak`; None if unknown."""
        return None

    def reset_peak(self, device: torch.device) -> None:
        """Count the peak from now on."""

    def statistics(self, device: torch.device) -> Mapping[str, int]:
        """Return the counters of PyTorch's allocator, under PyTorch's names."""
        return {}

    def segments(self) -> list[dict[str, Any]]:
        """Return the segments of PyTorch's allocator on all cards, without history."""
        return []

    def empty_cache(self) -> None:
        """Give the allocator's free segments back to the driver."""

    def limit_share(self, device: torch.device) -> float:
        """Return the share of the device's memory that PyTorch may use; 1 without a limit."""
        return 1.0

    def set_limit_share(self, device: torch.device, share: float) -> None:
        """Limit the share of the device's memory that PyTorch may use."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether an error says that the device's memory is full."""
        return isinstance(error, MemoryError) or family_of(str(error)) is Family.MEMORY


class CardAccelerator(Accelerator):
    """What `torch.cuda` and `torch.xpu` have under the same names."""

    @property
    def _torch(self) -> Any:
        """The maker's part of PyTorch."""
        raise NotImplementedError

    def is_available(self) -> bool:
        return bool(self._torch.is_available())

    def start(self) -> None:
        self._torch.init()

    def is_started(self) -> bool:
        return bool(self._torch.is_initialized())

    def lacks(self, feature: Feature) -> str:
        return ""

    def count(self) -> int:
        return int(self._torch.device_count())

    def name(self, device: torch.device) -> str:
        """PyTorch cannot return a name that is not UTF-8."""
        try:
            return plain_text(str(self._torch.get_device_name(device)))
        except UnicodeDecodeError:
            return f"{self.maker} card"

    def use(self, device: torch.device) -> None:
        self._torch.set_device(device)

    def current(self, device: torch.device) -> contextlib.AbstractContextManager[Any]:
        block: contextlib.AbstractContextManager[Any] = self._torch.device(device)
        return block

    @property
    def synchronize(self) -> Callable[[torch.device], object]:
        wait: Callable[[torch.device], object] = self._torch.synchronize
        return wait

    def stopwatch(self, device: torch.device) -> Stopwatch:
        stream = self._torch.current_stream(device)
        start, end = (self._torch.Event(enable_timing=True) for _ in range(2))
        return EventStopwatch(stream, start, end)

    @contextlib.contextmanager
    def side_stream(self, device: torch.device) -> Iterator[Callable[[], object]]:
        stream = self._torch.Stream(device)
        with self._torch.stream(stream):
            yield stream.synchronize

    def has_context(self, device: torch.device) -> bool:
        return self.is_started()

    def allocated_bytes(self, device: torch.device) -> int | None:
        return int(self._torch.memory_allocated(device))

    def reserved_bytes(self, device: torch.device) -> int | None:
        return int(self._torch.memory_reserved(device))

    def peak_bytes(self, device: torch.device) -> int | None:
        return int(self._torch.max_memory_allocated(device))

    def reset_peak(self, device: torch.device) -> None:
        self._torch.reset_peak_memory_stats(device)

    def statistics(self, device: torch.device) -> Mapping[str, int]:
        statistics: Mapping[str, int] = self._torch.memory_stats(device)
        return statistics

    def empty_cache(self) -> None:
        self._torch.empty_cache()

    def limit_share(self, device: torch.device) -> float:
        """Older versions of PyTorch do not report it: then 1."""
        ask: Any = getattr(self._torch, "get_per_process_memory_fraction", None)
        return 1.0 if ask is None else float(ask(device))

    def set_limit_share(self, device: torch.device, share: float) -> None:
        self._torch.set_per_process_memory_fraction(share, device)

    def is_out_of_memory(self, error: BaseException) -> bool:
        """What the makers' drivers say in place of PyTorch's own error counts as well."""
        return isinstance(error, torch.OutOfMemoryError) or family_of(str(error)) is Family.MEMORY


def _return_at_once(device: torch.device) -> None:
    """Return: the CPU is done when a call returns."""
