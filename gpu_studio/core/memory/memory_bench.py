"""Where an experiment of the memory lab does its work: the card, what is counted, how it ended.

An experiment is the same Python on a real card and on a modelled one: it makes tensors and drops
them. So the same calls reach PyTorch's allocator and its model, in the same order, and their
answers can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.memory_messages import StageBegan, StageResult

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpu_studio.core.messages.memory_messages import AllocationPlan, MemoryRead, SegmentsRead


START, ALLOCATED, FREED, EMPTIED, FULL, HELD = (
    "start", "allocated", "freed", "empty_cache", "oom", "held",
)  # fmt: skip
"""The moments that an experiment yields. Memory is held as it is until it is asked to go on.

``held`` is the end of one that memory was enough for, before anything is dropped.
"""


class MemoryBench:
    """A card with room for an experiment.

    Attributes:
        card: the card.
        room_bytes: what the experiment may have in all: the budget, or what was free.
        plan: for the experiment ``custom``.
        snapshot_path: where a snapshot of the end is to be written; None for nowhere.
        steps: how many allocations were asked for.
        tensor_bytes: the size of the last one asked for.
        error_text: the text of the error that memory ended with; empty while it has not.
        failure: the segments at that moment.
        latest_failure: the segments at the last such moment, of an experiment with several ends.
        step_ends: what was allocated at the end of each step that should give back all it took.
        stages: what each part came to.
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

    def take(self, size_bytes: int) -> object | None:
        """Return a tensor; None where memory has ended, which is noted.

        The error itself stays in here: it would keep frames and their tensors alive.
        """
        try:
            return self.take_or_raise(size_bytes)
        except RuntimeError as error:
            if not self.card.is_out_of_memory(error):
                raise
            self.note_end(error)
            return None

    def take_or_raise(self, size_bytes: int) -> object:
        """Return a tensor; raises what the allocator raises."""
        self.tensor_bytes = size_bytes
        tensor = self.card.empty(size_bytes)
        self.steps += 1
        self._held += 1
        return tensor

    def drop(self, tensors: int = 1) -> None:
        """Count tensors that are not held any more."""
        self._held -= tensors

    @property
    def tensors(self) -> int:
        """How many tensors are held; once memory has ended, how many were then."""
        return self._held if self.failure is None else self._held_at_failure

    def note_end(self, error: BaseException) -> None:
        """Note how memory ended, and how it looked then; the first end is the one that counts."""
        self.latest_failure = self.card.segments(self.card.read(FULL, self.steps))
        if self.failure is None:
            self._held_at_failure = self._held
            self.failure = self.latest_failure
            self.error_text = str(error)
            self.write_snapshot()

    def write_snapshot(self) -> None:
        """Write the snapshot that was asked for, of now; once.

        Raises:
            StudioError: the file cannot be written.
        """
        path, self.snapshot_path = self.snapshot_path, None
        if path is None:
            return
        try:
            self.card.write_snapshot(path)
        except OSError as error:
            raise StudioError(
                FailureKind.BAD_REQUEST,
                f"The snapshot cannot be written to {path}: {error.strerror or error}",
            ) from error

    def begin(self, stage: str, sentence: str) -> StageBegan:
        """Return the event of a new part."""
        return StageBegan(stage=stage, sentence=sentence, modelled=self.card.is_modelled)

    def note_stage(
        self, stage: str, sentence: str, *, peak_bytes: int | None = None, batch: int | None = None
    ) -> None:
        """Note what a part came to, with the counters of now."""
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
        """Note what is allocated at the end of a step that should have given back all it took."""
        self.step_ends.append(self.card.read().allocated_bytes or 0)


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
