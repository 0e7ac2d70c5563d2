"""What an experiment of the memory lab needs of a card, be it real or modelled.

An experiment is the same Python on both: it makes tensors and drops them. So the same calls reach
PyTorch's allocator and its model, in the same order, and what they answer can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpu_studio.core.messages.memory_messages import MemoryRead, SegmentsRead


class SampleNetwork(Protocol):
    """The network of the preset ``activations``, with its weights on the card."""

    def train(self, batch: int) -> Iterator[str]:
        """Go forward and backward; yields what was done after each part, the memory being held.

        Raises:
            RuntimeError: memory ended (`LabCard.is_out_of_memory`).
        """

    def infer(self, batch: int) -> Iterator[str]:
        """Go forward under ``torch.no_grad()``; like `train`."""

    def forget(self) -> None:
        """Drop the gradients that a step left that was broken off."""


class LabCard(Protocol):
    """A card, and the allocator of one process on it.

    Attributes:
        device: its address, ``cuda:0`` or ``model:1996``.
        is_modelled: no card is asked.
        conf: the allocator's options.
    """

    device: str
    is_modelled: bool
    conf: str

    def prepare(self) -> None:
        """Make the CUDA context and empty the cache: neither is part of an experiment."""

    def empty(self, size_bytes: int) -> object:
        """Return a tensor of that many bytes; it is freed with the last reference to it.

        Raises:
            RuntimeError: memory ended (`is_out_of_memory`).
        """

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether an error means that memory ended."""

    def empty_cache(self) -> None:
        """Give free segments back to the driver."""

    def reset_peak(self) -> None:
        """Let the peaks be counted from now on."""

    def limit(self, budget_bytes: int | None) -> None:
        """Let the allocator reserve no more than that; None for what there was before."""

    def read(self, mark: str | None = None, step: int | None = None) -> MemoryRead:
        """Return the counters."""

    def segments(self, read: MemoryRead) -> SegmentsRead:
        """Return the segments of the moment that was just read."""

    def sample_network(self) -> SampleNetwork:
        """Put the sample network on the card.

        Raises:
            RuntimeError: memory ended.
        """

    def start_history(self) -> None:
        """Record what is allocated and freed from now on."""

    def write_snapshot(self, path: Path) -> None:
        """Write segments and history to a file and end the recording; raises `OSError`."""
