"""The sample network's calls of PyTorch's allocator, recorded from the real allocator.

The calls of a network depend on the batch, not on the card, and every size is linear in the batch:
a fixed part and a part per sample. ``resources/activation_calls.json`` has both for each call. The
recording program, ``tests/soft/record_activations.py``, checks it at batches that it did not use.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.json_resource import read_resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LAYERS, WIDTH = 16, 512
"""The sample network: this many ``Linear(512, 512, bias=False)`` and ``ReLU``, in float32."""


class AllocatorCall(msgspec.Struct, frozen=True, array_like=True):
    """One call of the allocator.

    Attributes:
        fixed_bytes, sample_bytes: the call allocates fixed_bytes + sample_bytes × batch; both are
            0 for a free.
        frees: the number of the freed allocation in the same pass, counted from 0; −1 for an
            allocation.
        stays: whether a library keeps it for the life of the process, as cuBLAS keeps its
            workspace; a second network then needs none.
    """

    fixed_bytes: int
    sample_bytes: int
    frees: int = -1
    stays: bool = False


class PassPart(msgspec.Struct, frozen=True):
    """A part of a pass after which memory can be read: a layer, the loss, the backward pass."""

    name: str
    calls: tuple[AllocatorCall, ...]


class ActivationCalls(msgspec.Struct, frozen=True):
    """The recording."""

    source: str
    torch_version: str
    layers: int
    width: int
    set_up: tuple[PassPart, ...]
    train: tuple[PassPart, ...]
    infer: tuple[PassPart, ...]


@lru_cache(maxsize=1)
def activation_calls() -> ActivationCalls:
    """Return the recording.

    Raises:
        MissingResourceError: the file is missing or cannot be read.
    """
    return read_resource("activation_calls.json", ActivationCalls)


class ReplayedNetwork:
    """The sample network of a simulated card, which repeats the recorded calls.

    Args:
        empty: makes a tensor of that many bytes, which exists as long as a reference to it.
        library_tensors: the tensors that libraries keep for the life of the process, by their
            number in the set-up; new ones are added.
    """

    def __init__(self, empty: Callable[[int], object], library_tensors: dict[int, object]) -> None:
        self._calls = activation_calls()
        self._empty = empty
        self._library_tensors = library_tensors
        self._weights: list[object] = []
        for _ in self._replayed(self._calls.set_up, 1, self._weights):
            pass

    def train(self, batch: int) -> Iterator[str]:
        """See `core.memory.memory_bench.SampleNetwork.train`."""
        yield from self._replayed(self._calls.train, batch, [])

    def infer(self, batch: int) -> Iterator[str]:
        """See `core.memory.memory_bench.SampleNetwork.infer`."""
        yield from self._replayed(self._calls.infer, batch, [])

    def forget(self) -> None:
        """Do nothing: an interrupted pass has already dropped all its tensors."""

    def _replayed(
        self, parts: tuple[PassPart, ...], batch: int, tensors: list[object]
    ) -> Iterator[str]:
        for part in parts:
            for call in part.calls:
                if call.frees >= 0:
                    tensors[call.frees] = None
                elif call.stays and len(tensors) in self._library_tensors:
                    tensors.append(None)
                else:
                    tensor = self._empty(call.fixed_bytes + call.sample_bytes * batch)
                    if call.stays:
                        self._library_tensors[len(tensors)] = tensor
                    tensors.append(tensor)
                    del tensor
            yield part.name
