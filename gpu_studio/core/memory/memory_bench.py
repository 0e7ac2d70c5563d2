"""The workbench of a memory experiment: the card, the counts, and how the experiment ended.

The same Python code runs on a real card and on a simulated one: it makes tensors and drops them. So
PyTorch's allocator and its model get the same calls in the same order, and their answers can be
compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.memory_messages import StageBegan

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.messages.memory_messages import AllocationPlan, MemoryRead, SegmentsRead


START, ALLOCATED, FREED, FULL, HELD = "start", "allocated", "freed", "oom", "held"
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
        tensors: the number of tensors that are held.
        tensor_bytes: the size of the last request.
        error_text: the text of the out-of-memory error; empty if there was none.
        failure: the segments at that moment.
        step_ends: the allocated bytes after each step that should give back all its memory.
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
        self.tensors = 0
        self.tensor_bytes = 0
        self.error_text = ""
        self.failure: SegmentsRead | None = None
        self.step_ends: list[int] = []

    def allocate(self, size_bytes: int) -> object | None:
        """Return a tensor, or None if memory ran out, which is noted.

        The error itself is not passed on: it would keep frames and their tensors alive.
        """
        self.tensor_bytes = size_bytes
        try:
            tensor = self.card.empty(size_bytes)
        except RuntimeError as error:
            if not self.card.is_out_of_memory(error):
                raise
            self._note_end(error)
            return None
        self.steps += 1
        self.tensors += 1
        return tensor

    def drop(self, tensors: int = 1) -> None:
        """Count tensors that are no longer held."""
        self.tensors -= tensors

    def _note_end(self, error: BaseException) -> None:
        """Note that memory ran out, and its state then."""
        self.failure = self.card.segments(self.card.read(FULL, self.steps))
        self.error_text = str(error)
        self.write_snapshot()

    def write_snapshot(self) -> None:
        """Write the requested snapshot of the present state, once.

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
                f"Cannot write the snapshot to {path}: {error.strerror or error}",
            ) from error

    def begin(self, stage: str, sentence: str) -> StageBegan:
        """Return the event of a new stage."""
        return StageBegan(stage=stage, sentence=sentence, modelled=self.card.is_modelled)

    def note_step_end(self) -> None:
        """Note the allocated bytes at the end of a step that should have given back all memory."""
        self.step_ends.append(self.card.read().allocated_bytes or 0)


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

    def limit(self, budget_bytes: int | None) -> None:
        """Let the allocator reserve no more than that; None for the original limit."""

    def read(self, mark: str | None = None, step: int | None = None) -> MemoryRead:
        """Return the counters."""

    def segments(self, read: MemoryRead) -> SegmentsRead:
        """Return the segments at the moment of a reading."""

    def start_history(self) -> None:
        """Start recording allocations and frees."""

    def write_snapshot(self, path: Path) -> None:
        """Write segments and history to a file and end the recording; raise `OSError`."""
