"""What PyTorch offers on one kind of device, under one set of names.

A new kind of card is a file in this folder and a line in the table of `engine.device`. The CPU is a
device as well; what it has no use for answers None or does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable, Mapping

    import torch

    from gpu_studio.core.messages.engine_messages import TorchCard
    from gpu_studio.engine.stopwatch import Stopwatch

Feature = Literal[
    "custom kernels",
    "segments",
    "memory limit",
    "head start",
    "convolution switches",
    "CUDA_VISIBLE_DEVICES",
]
"""What some kinds of devices lack.

They are kernels of one's own, the list of the allocator's segments, a limit for its memory, a way
to let the device wait while work queues up, the two switches of `cudnn_flags`, and the variable
that hides cards.
"""


class Accelerator(Protocol):
    """One kind of device. Nothing here makes a context on a card unless it says so."""

    kind: str
    """PyTorch's word, the first part of a device's address."""
    maker: str
    """Whose cards they are; empty for the CPU."""
    platform: str
    """What PyTorch uses them through, as in a sentence: ``CUDA``."""
    convolution_library: str
    """What computes convolutions on them."""

    @property
    def build(self) -> str | None:
        """The version of the maker's software that this PyTorch is built for; None without it."""

    def is_available(self) -> bool:
        """Return whether PyTorch can use such a device; may warn."""

    def start(self) -> None:
        """Start PyTorch's part for these devices; may warn, and raises if it cannot."""

    def is_started(self) -> bool:
        """Return whether this process has started it."""

    def explain(self, text: str) -> str:
        """Return why the devices cannot be used, from the text of the error of `start`."""

    def start_code(self, text: str) -> int | None:
        """Return the number of that error among CUDA's; None for an unknown one."""

    def driver_library(self) -> str:
        """Return the path of CUDA's driver library in this process; empty if unknown."""

    def lacks(self, feature: Feature) -> str:
        """Return why these devices do not have a feature; empty if they have it."""

    def count(self) -> int:
        """Return the number of devices that PyTorch sees."""

    def arch_list(self) -> tuple[str, ...]:
        """Return the architectures that this build has code for."""

    def name(self, device: torch.device) -> str:
        """Return the name of a device."""

    def uuid(self, device: torch.device) -> str | None:
        """Return the UUID in the driver's format; None if there is none."""

    def card(self, index: int) -> TorchCard:
        """Return the facts of a card; raises RuntimeError or UnicodeDecodeError."""

    def is_integrated(self, index: int) -> bool:
        """Return whether a card is part of a processor; creates no context."""

    def capability(self, device: torch.device) -> tuple[int, int] | None:
        """Return a card's compute capability; None for a device of another maker."""

    def architecture(self, device: torch.device) -> str:
        """Return the words for what code for a card must fit: ``compute capability 6.1``."""

    def advice(self, device: torch.device) -> str:
        """Return which build of PyTorch has code for a card, in a sentence."""

    def refuses_bfloat16_products(self, device: torch.device) -> str:
        """Return why a device cannot multiply matrices in bfloat16; empty if it can."""

    def refuses_dtype(self, device: torch.device, dtype: str) -> str:
        """Return why a device cannot compute in a dtype; empty if it can, or if it tries."""

    def has_tf32(self, device: torch.device) -> bool:
        """Return whether a device can multiply float32 matrices in TF32."""

    def use(self, device: torch.device) -> None:
        """Make a device the current one."""

    def current(self, device: torch.device) -> contextlib.AbstractContextManager[Any]:
        """Return a block in which a device is the current one."""

    @property
    def synchronize(self) -> Callable[[torch.device], object]:
        """PyTorch's own function that waits until a device has finished its work."""

    def stopwatch(self, device: torch.device) -> Stopwatch:
        """Return a stopwatch for calls on a device; creates a context."""

    def side_stream(
        self, device: torch.device
    ) -> contextlib.AbstractContextManager[Callable[[], object]]:
        """Return a context whose work runs beside the usual work; it gives what waits for it."""

    def idle(self, device: torch.device, seconds: float) -> None:
        """Let a device do nothing for at least this long; returns at once."""

    def has_context(self, device: torch.device) -> bool:
        """Return whether this process already uses a device."""

    def free_and_total(self, device: torch.device) -> tuple[int | None, int]:
        """Return a device's free and whole memory in bytes; creates a context.

        The free memory is None if the driver does not report it.
        """

    def allocated_bytes(self, device: torch.device) -> int | None:
        """Return the bytes of PyTorch's tensors; None if PyTorch does not count them."""

    def reserved_bytes(self, device: torch.device) -> int | None:
        """Return the bytes that PyTorch's allocator holds; None if it does not count them."""

    def peak_bytes(self, device: torch.device) -> int | None:
        """Return the highest number of allocated bytes since `reset_peak`; None if unknown."""

    def reset_peak(self, device: torch.device) -> None:
        """Count the peak from now on."""

    def statistics(self, device: torch.device) -> Mapping[str, int]:
        """Return the counters of PyTorch's allocator, under PyTorch's names."""

    def segments(self) -> list[dict[str, Any]]:
        """Return the segments of PyTorch's allocator on all cards, without history."""

    def empty_cache(self) -> None:
        """Give the allocator's free segments back to the driver."""

    def limit_share(self, device: torch.device) -> float:
        """Return the share of the device's memory that PyTorch may use; 1 without a limit."""

    def set_limit_share(self, device: torch.device, share: float) -> None:
        """Limit the share of the device's memory that PyTorch may use."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether an error says that the device's memory is full."""
