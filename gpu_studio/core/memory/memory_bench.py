"""The workbench of a memory experiment: the card, the counts, and how the experiment ended.

The same Python code runs on a real card and on a simulated one: it makes tensors and drops them. So
PyTorch's allocator and its model get the same calls in the same order, and their answers can be
compared.

The sample network's calls of the allocator were recorded from the real one. They depend on the
batch, not on the card, and every size is linear in the batch: a fixed part and a part per sample.
``resources/activation_calls.json`` has both for each call. The recording program,
``tests/soft/record_activations.py``, checks it at batches that it did not use.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.memory_messages import StageBegan, StageResult
from gpu_studio.core.resources import read_resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpu_studio.core.messages.memory_messages import AllocationPlan, MemoryRead, SegmentsRead


START, ALLOCATED, FREED, EMPTIED, FULL, HELD = (
    "start", "allocated", "freed", "empty_cache", "oom", "held",
)  # fmt: skip
"""The moments that an experiment yields. Its memory stays as it is until it is continued.

``held`` is the end of an experiment that had enough memory, before it drops anything.
"""


class MemoryBench:
    """A card with space for an experiment.

    Attributes:
        card: the card.
        room_bytes: the most that the experiment may use: the budget, or the free memory.
        plan: for the experiment ``custom``.
        snapshot_path: the file for a snapshot of the end; None for no snapshot.
        steps: the number of requested allocations.
        tensor_bytes: the size of the last request.
        error_text: the text of the out-of-memory error; empty if there was none.
        failure: the segments at that moment.
        latest_failure: the segments at the latest such moment, for experiments with several ends.
        step_ends: the allocated bytes after each step that should give back all its memory.
        stages: the result of each stage.
    """

    def __init__(
        self,
        card: LabCard,
        room_bytes: int,
        plan: AllocationPlan | None = None,
        snapshot_path: Path | None = None,
    ) -> None:
        self.card = card
        self.room_bytes = room_bytes
        self.plan = plan
        self.snapshot_path = snapshot_path
        self.steps = 0
        self._held = self._held_at_failure = 0
        self.tensor_bytes = 0
        self.error_text = ""
        self.failure: SegmentsRead | None = None
        self.latest_failure: SegmentsRead | None = None
        self.step_ends: list[int] = []
        self.stages: list[StageResult] = []

    def allocate(self, size_bytes: int) -> object | None:
        """Return a tensor, or None if memory ran out, which is noted.

        The error itself is not passed on: it would keep frames and their tensors alive.
        """
        try:
            return self.allocate_or_raise(size_bytes)
        except RuntimeError as error:
            if not self.card.is_out_of_memory(error):
                raise
            self.note_end(error)
            return None

    def allocate_or_raise(self, size_bytes: int) -> object:
        """Return a tensor; raise the allocator's error."""
        self.tensor_bytes = size_bytes
        tensor = self.card.empty(size_bytes)
        self.steps += 1
        self._held += 1
        return tensor

    def drop(self, tensors: int = 1) -> None:
        """Count tensors that are no longer held."""
        self._held -= tensors

    @property
    def tensors(self) -> int:
        """The number of held tensors; once memory has run out, their number at that moment."""
        return self._held if self.failure is None else self._held_at_failure

    def note_end(self, error: BaseException) -> None:
        """Note how memory ran out, and its state then; only the first end counts."""
        self.latest_failure = self.card.segments(self.card.read(FULL, self.steps))
        if self.failure is None:
            self._held_at_failure = self._held
            self.failure = self.latest_failure
            self.error_text = str(error)
            self.write_snapshot()

    def write_snapshot(self) -> None:
        """Write the requested snapshot of the present state, once.

        Raises:
            StudioError: the file cannot be written.
        """
        path, self.snapshot_path = self.snapshot_path, None
        if path is not None:
            write_snapshot(self.card, path)

    def begin(self, stage: str, sentence: str) -> StageBegan:
        """Return the event of a new stage."""
        return StageBegan(stage=stage, sentence=sentence, modelled=self.card.is_modelled)

    def note_stage(
        self, stage: str, sentence: str, *, peak_bytes: int | None = None, batch: int | None = None
    ) -> None:
        """Note the result of a stage, with the present counters."""
        read = self.card.read()
        self.stages.append(
            StageResult(
                stage=stage,
                sentence=sentence,
                allocated_bytes=read.allocated_bytes,
                reserved_bytes=read.reserved_bytes,
                peak_allocated_bytes=peak_bytes,
                batch=batch,
            )
        )

    def note_step_end(self) -> None:
        """Note the allocated bytes at the end of a step that should have given back all memory."""
        self.step_ends.append(self.card.read().allocated_bytes or 0)


class SampleNetwork(Protocol):
    """The network of the preset ``activations``, with its weights on the card."""

    def train(self, batch: int) -> Iterator[str]:
        """Run forward and backward; yield a moment after each part, while its memory is held.

        Raises:
            RuntimeError: memory ran out (`LabCard.is_out_of_memory`).
        """

    def infer(self, batch: int) -> Iterator[str]:
        """Run forward under ``torch.no_grad()``; like `train`."""

    def forget(self) -> None:
        """Drop the gradients of an interrupted step."""


class LabCard(Protocol):
    """A card, and the allocator of one process on it.

    Attributes:
        device: its address, ``cuda:0`` or ``model:1996``.
        is_modelled: whether there is no real card.
        conf: the allocator's options.
    """

    device: str
    is_modelled: bool
    conf: str

    def prepare(self) -> None:
        """Make the CUDA context and empty the cache, as neither is part of an experiment."""

    def empty(self, size_bytes: int) -> object:
        """Return a tensor of that many bytes; it is freed with its last reference.

        Raises:
            RuntimeError: memory ran out (`is_out_of_memory`).
        """

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether an error means that memory ran out."""

    def empty_cache(self) -> None:
        """Give free segments back to the driver."""

    def reset_peak(self) -> None:
        """Start counting the peaks again."""

    def limit(self, budget_bytes: int | None) -> None:
        """Let the allocator reserve no more than that; None for the original limit."""

    def read(self, mark: str | None = None, step: int | None = None) -> MemoryRead:
        """Return the counters."""

    def segments(self, read: MemoryRead) -> SegmentsRead:
        """Return the segments at the moment of a reading."""

    def sample_network(self) -> SampleNetwork:
        """Put the sample network on the card.

        Raises:
            RuntimeError: memory ran out.
        """

    def start_history(self) -> None:
        """Start recording allocations and frees."""

    def write_snapshot(self, path: Path) -> None:
        """Write segments and history to a file and end the recording; raise `OSError`."""


def write_snapshot(card: LabCard, path: Path) -> None:
    """Write a card's segments and history to a file, and end the recording.

    Raises:
        StudioError: the file cannot be written.
    """
    try:
        card.write_snapshot(path)
    except OSError as error:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"Cannot write the snapshot to {path}: {error.strerror or error}",
        ) from error


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
