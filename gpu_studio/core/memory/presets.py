"""The experiments of the memory lab: Python code that makes tensors and drops them.

Each experiment is a generator. It yields events, and moments (`START` and the others) at which the
memory can be read, and continues when it is asked for the next. To drop a tensor means to drop the
last reference to it, as in any PyTorch program. Each experiment has a PyTorch snippet that does the
same on a card.

The same code runs on a real card and on a simulated one. So PyTorch's allocator and its model get
the same calls in the same order, and their answers can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from gpu_studio.core.device_name import address_there, torch_module
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.modelled_cards import is_modelled
from gpu_studio.core.messages.memory_messages import AllocationPlan, StageBegan
from gpu_studio.core.tensors import ITEM_BYTES
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from gpu_studio.core.messages.memory_messages import (
        MemoryRead,
        RunMemoryExperiment,
        SegmentsRead,
    )

    Moments = Generator[str | StageBegan, None, None]

    _Script = Callable[["MemoryBench"], Moments]


START, ALLOCATED, FREED, FULL, HELD = "start", "allocated", "freed", "oom", "held"
"""The moments that an experiment yields. Its memory stays as it is until it is continued.

``held`` is the end of an experiment that had enough memory, before it drops anything.
"""


class MemoryBench:
    """A card with space for an experiment.

    Attributes:
        card: the card.
        room_bytes: the most that the experiment may use: the budget, or the free memory.
        plan: of an experiment that only makes tensors.
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
    ) -> None:
        self.card = card
        self.room_bytes = room_bytes
        self.plan = plan
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


_MIB = 1 << 20
_PAGE_BYTES = 2 * _MIB
_PIN_BYTES = 8 * _MIB
_PARTS = 7
_LEAST_ROOM_BYTES = 224 * _MIB


def fragmentation(bench: MemoryBench) -> Moments:
    """End with one seventh of the memory free at the driver, and six large holes that are pinned.

    A tensor of two sevenths is then smaller than the free memory. With expandable segments the
    pages of the holes go back to the driver, and the tensor fits.
    """
    if bench.room_bytes < _LEAST_ROOM_BYTES:
        raise StudioError(
            FailureKind.TOO_LARGE,
            f"This experiment needs {format_bytes(_LEAST_ROOM_BYTES)}, but only "
            f"{format_bytes(bench.room_bytes)} is allowed.",
        )
    part_bytes = bench.room_bytes // _PARTS // _PAGE_BYTES * _PAGE_BYTES
    pins: list[object] = []
    rests: list[object] = []  # they fill the holes, so that every part becomes a separate segment
    yield bench.begin("small tensors", "Small tensors take the front of freed large ones.")
    for _ in range(_PARTS - 1):
        for held, size_bytes in (
            (None, part_bytes), (pins, _PIN_BYTES), (rests, part_bytes - _PIN_BYTES)
        ):  # fmt: skip
            tensor = bench.allocate(size_bytes)
            if tensor is None:
                yield FULL
                return
            yield ALLOCATED
            if held is not None:
                held.append(tensor)
            del tensor
            if held is None:
                bench.drop()
                yield FREED
    bench.drop(len(rests))
    rests.clear()
    yield FREED
    yield bench.begin("large tensor", f"Now the program asks for {format_bytes(2 * part_bytes)}.")
    last = bench.allocate(2 * part_bytes)
    yield FULL if last is None else HELD


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment that you can choose.

    Attributes:
        ends_in: the intended outcomes: with a budget, and on the whole card.
        plan: the tensors of an experiment that makes nothing else; None for one of its own.
        source: where the experiment comes from; empty if it is our own.
    """

    name: str
    title: str
    sentence: str
    ends_in: tuple[str, str]
    plan: AllocationPlan | None = None
    source: str = ""


PRESETS = (
    Preset(
        name="gt1030",
        title="8192 × 8192 until memory runs out",
        sentence="Matrices of 8192 × 8192 float32, 256 MiB each, until memory runs out.",
        ends_in=("over_budget", "card_full"),
        plan=AllocationPlan(size=8192),
        source="“How can I run any code on my GPU, instead on CPU?” by Radosław Śmigielski",
    ),
    Preset(
        name="many_small",
        title="Many small tensors",
        sentence=(
            "Tensors of 256 KiB until memory runs out. Eight of them share one segment of 2 MiB, "
            "so the reserved memory grows in steps."
        ),
        ends_in=("over_budget", "card_full"),
        plan=AllocationPlan(size=256),
    ),
    Preset(
        name="fragmentation",
        title="Many small holes",
        sentence=(
            "Small tensors take the front of large ones that were freed. The next tensor is "
            "smaller than the free memory, but larger than every piece of it."
        ),
        ends_in=("fragmented", "fragmented"),
    ),
    Preset(
        name="leak",
        title="A leak",
        sentence=(
            "A training loop keeps the loss of every step together with its graph, as in "
            "“history.append(loss)”, instead of only the number."
        ),
        ends_in=("leak", "leak"),
    ),
    Preset(
        name="custom",
        title="Your own",
        sentence="Square tensors of a size that you choose, until all exist or memory runs out.",
        ends_in=("over_budget", "card_full"),
    ),
)


def find_preset(name: str) -> Preset:
    """Return a preset; raise `StudioError` with the names of all presets."""
    for preset in PRESETS:
        if preset.name == name:
            return preset
    names = ", ".join(preset.name for preset in PRESETS)
    raise StudioError(
        FailureKind.BAD_REQUEST,
        f"“{name[:20]}” is not a preset of the memory lab. Choose one of {names}.",
    )


def moments_of(name: str, bench: MemoryBench) -> Moments:
    """Return a preset's experiment before its first step."""
    return _SCRIPTS.get(name, _planned)(bench)


def _planned(bench: MemoryBench) -> Moments:
    """Make the tensors of a plan and keep them, until all exist or memory runs out."""
    plan, held = bench.plan, list[object]()
    assert plan is not None
    while plan.count is None or len(held) < plan.count:
        tensor = bench.allocate(plan.size**2 * ITEM_BYTES[plan.dtype])
        if tensor is None:
            yield FULL
            return
        held.append(tensor)
        del tensor
        yield ALLOCATED
    yield HELD


def _kept_bytes(bench: MemoryBench) -> int:
    return max(bench.room_bytes // 24 // _MIB * _MIB, _MIB)


def _leak(bench: MemoryBench) -> Moments:
    """Keep a third of the memory of every step."""
    kept_bytes, history = _kept_bytes(bench), []
    while True:
        activation = bench.allocate(2 * kept_bytes)
        loss = None if activation is None else bench.allocate(kept_bytes)
        if loss is None:
            yield FULL
            return
        yield ALLOCATED
        history.append(loss)
        bench.drop()
        del activation, loss
        bench.note_step_end()
        yield FREED


_SCRIPTS: dict[str, _Script] = {"fragmentation": fragmentation, "leak": _leak}


def snippet_of(
    request: RunMemoryExperiment, budget_bytes: int | None, bench: MemoryBench, conf: str = ""
) -> str:
    """Return a complete program that runs on a card.

    Args:
        request: the experiment; for a simulated card, the program uses ``cuda:0``.
        budget_bytes: the most that may be reserved; None for the whole card.
        bench: what the experiment based its tensors on.
        conf: the allocator's options.
    """
    device = "cuda:0" if is_modelled(request.device) else address_there(request.device)
    module = torch_module(device)
    lines = []
    if conf:
        lines += ["import os", "", f'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "{conf}"', ""]
    lines += ["import torch", "", f'device = "{device}"']
    if budget_bytes is not None:
        lines += [
            f"total_bytes = {module}.get_device_properties(device).total_memory",
            f"fraction = min(1.0, ({budget_bytes} + 0.25) / total_bytes)",
            f"{module}.set_per_process_memory_fraction(fraction, device)",
        ]
    lines += ["", "", *_body(request.preset, bench).strip("\n").split("\n")]
    lines += [
        f'print({module}.memory_allocated(device), "bytes allocated")',
        f'print({module}.memory_reserved(device), "bytes reserved")',
    ]
    return "\n".join(lines) + "\n"


def _body(preset: str, bench: MemoryBench) -> str:
    if preset == "fragmentation":
        part_bytes = bench.room_bytes // _PARTS // _PAGE_BYTES * _PAGE_BYTES
        return _FRAGMENTATION.format(part_bytes=part_bytes, pin_bytes=_PIN_BYTES)
    if preset == "leak":
        return _LEAK.format(kept_bytes=_kept_bytes(bench))
    plan = bench.plan
    assert plan is not None
    count = "True" if plan.count is None else f"len(tensors) < {plan.count}"
    return _PLANNED.format(size=plan.size, dtype=plan.dtype, count=count)


_FRAGMENTATION = """
def allocate(size_bytes):
    return torch.empty(size_bytes, dtype=torch.uint8, device=device)


part_bytes, pin_bytes = {part_bytes}, {pin_bytes}
pins, rests = [], []
for _ in range(6):
    part = allocate(part_bytes)
    del part
    pins.append(allocate(pin_bytes))  # takes the front of the freed part
    rests.append(allocate(part_bytes - pin_bytes))
rests.clear()
try:
    allocate(2 * part_bytes)
    print("it fits")
except torch.OutOfMemoryError as error:
    print(error)
"""
_LEAK = """
def allocate(size_bytes):
    return torch.empty(size_bytes, dtype=torch.uint8, device=device)


history = []
try:
    while True:
        activation = allocate(2 * {kept_bytes})
        loss = allocate({kept_bytes})
        history.append(loss)  # a number, loss.item(), would keep nothing
        del activation, loss
except torch.OutOfMemoryError as error:
    print(error)
print(len(history), "steps")
"""
_PLANNED = """
tensors = []
try:
    while {count}:
        tensors.append(torch.empty({size}, {size}, dtype=torch.{dtype}, device=device))
except torch.OutOfMemoryError as error:
    print(error)
print(len(tensors), "tensors exist")
"""
