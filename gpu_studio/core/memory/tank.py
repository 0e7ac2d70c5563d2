"""Where a device's memory is: parts that sum to the whole, to the byte.

The driver's account (the whole card, all programs) and PyTorch's (allocated and reserved, in this
engine) meet only here: what the driver says is taken and PyTorch did not reserve belongs to
others. See `torch.cuda.mem_get_info` and `torch.cuda.memory_reserved`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.units import format_bytes, format_percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpu_studio.core.devices.devices import GpuProcess, Telemetry
    from gpu_studio.core.memory.oom_text import OomNumbers
    from gpu_studio.core.protocol import MemoryRead

# NVML's total may be larger than CUDA's by what the driver keeps; beyond that they do not speak of
# the same memory (a slice of a card).
_LARGEST_KEPT_SHARE = 0.1
# From left to right.
_ORDER = (
    "driver", "others", "not_told", "other_engine", "context", "engine", "tensors", "holes", "free",
)  # fmt: skip
_ALWAYS_SHOWN = ("others", "context", "engine", "tensors", "holes", "free")


class TankPart(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of the bar.

    ``key`` names its look: driver, others, not_told, other_engine, context, engine, tensors, holes,
    free.
    """

    key: str
    label: str
    size_bytes: int
    explanation: str


class Tank(msgspec.Struct, frozen=True, kw_only=True):
    """The parts from left to right; their sizes sum to ``total_bytes``.

    ``card_bytes`` is where the card ends, for a tank of more than it has; else None.
    """

    total_bytes: int
    parts: tuple[TankPart, ...]
    card_bytes: int | None = None

    def share(self, part: TankPart) -> float:
        """Return a part's share of the whole, 0 to 1."""
        return part.size_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def sentence(self) -> str:
        """The bar in words."""
        told = ", ".join(f"{part.label} {format_bytes(part.size_bytes)}" for part in self.parts)
        return f"{format_bytes(self.total_bytes)} in all: {told}."

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return the bar as a table: part, memory, share, what it is."""
        return [
            (
                part.label,
                format_bytes(part.size_bytes),
                format_percent(self.share(part)),
                part.explanation,
            )
            for part in self.parts
        ]


class CardUsers(msgspec.Struct, frozen=True, kw_only=True):
    """What NVML says of the processes on a card; None where the system does not tell (Windows).

    ``engine_bytes`` is all of the engine's process, its context and what it reserved;
    ``other_engines`` are this program's own others, by the name they are shown with.
    """

    engine_bytes: int | None = None
    others_bytes: int | None = None
    other_engines: tuple[tuple[str, int], ...] = ()


def card_users(
    processes: Iterable[GpuProcess], engine_pid: int | None, other_engines: Mapping[int, str]
) -> CardUsers:
    """Return who uses a card.

    Args:
        processes: those that NVML lists for it.
        engine_pid: the process whose allocator is shown.
        other_engines: this program's other engines, by process id.
    """
    engine: int | None = None
    is_listed = False
    others: int | None = 0
    named: dict[str, int] = {}
    for process in processes:
        if process.pid == engine_pid:
            engine, is_listed = process.memory_bytes, True
        elif process.pid in other_engines:
            named[other_engines[process.pid]] = process.memory_bytes or 0
        elif process.memory_bytes is None:
            others = None
        elif others is not None:
            others += process.memory_bytes
    if not is_listed:  # as in a container: the engine is there under another number, or not at all
        others = None
    return CardUsers(engine_bytes=engine, others_bytes=others, other_engines=tuple(named.items()))


def tank_of_card(
    read: MemoryRead, memory_total_bytes: int | None = None, users: CardUsers | None = None
) -> Tank | None:
    """Return a card's tank from what the engine read in one go; None without a CUDA context.

    Args:
        read: the allocator's and the driver's numbers.
        memory_total_bytes: the card's size as NVML gives it, which has what the driver keeps.
        users: what NVML says of the processes; without it nobody tells theirs.
    """
    if None in (read.allocated_bytes, read.reserved_bytes, read.total_bytes, read.free_bytes):
        return None
    assert read.allocated_bytes is not None
    assert read.reserved_bytes is not None
    assert read.total_bytes is not None
    assert read.free_bytes is not None
    filling = _Filling(read.total_bytes)
    filling.put("free", "Free", read.free_bytes, "any program can have it")
    allocated = min(read.allocated_bytes, read.reserved_bytes)
    filling.put("tensors", "Tensors", allocated, "allocated: what living tensors hold")
    filling.put(
        "holes", "Reserved, empty", read.reserved_bytes - allocated,
        "PyTorch keeps it for its next tensors; other programs see it as taken",
    )  # fmt: skip
    if read.modelled:
        filling.put(
            "context", "CUDA context", filling.left,
            "modelled: about what CUDA itself takes on such a card",
        )  # fmt: skip
    else:
        filling.put_users(users or CardUsers(), read.reserved_bytes)
    filling.put_kept((memory_total_bytes or 0) - read.total_bytes)
    return filling.tank


def tank_of_error(numbers: OomNumbers) -> Tank | None:
    """Return the tank that an error's text describes; None where it says too little.

    What the text leaves out is "not told"; its sizes are rounded to two decimals of their unit, so
    a part is exact to 0.005 of it.
    """
    if numbers.total_bytes is None or numbers.free_bytes is None:
        return None
    filling = _Filling(numbers.total_bytes)
    filling.put("free", "Free", numbers.free_bytes, "as the error says")
    if numbers.allocated_bytes is not None:
        filling.put(
            "tensors", "Tensors", numbers.allocated_bytes, "allocated: what living tensors held"
        )
    unallocated_bytes = numbers.unallocated_bytes
    if unallocated_bytes is None and numbers.reserved_bytes is not None:
        unallocated_bytes = numbers.reserved_bytes - (numbers.allocated_bytes or 0)
    if unallocated_bytes is not None:
        filling.put(
            "holes", "Reserved, empty", unallocated_bytes,
            "reserved by PyTorch but unallocated: in pieces that were too small",
        )  # fmt: skip
    if numbers.in_use_bytes is not None and numbers.allocated_bytes is not None:
        own = numbers.allocated_bytes + (unallocated_bytes or 0)
        filling.put(
            "context", "CUDA context", numbers.in_use_bytes - own,
            "what the process held besides PyTorch's own",
        )  # fmt: skip
    others = sum(process.bytes for process in numbers.processes)
    if others:
        filling.put("others", "Other programs", others, "the processes that the error names")
    if filling.left:
        told = "the rest of the card: other programs, the driver, what the text does not say"
        filling.put("not_told", "Not told", filling.left, told)
    return filling.tank


def tank_of_sensors(telemetry: Telemetry, memory_total_bytes: int | None) -> Tank | None:
    """Return a card's or the PC's tank without PyTorch: what is taken and what is free."""
    free_bytes, used_bytes = telemetry.memory_free_bytes, telemetry.memory_used_bytes
    if memory_total_bytes and free_bytes is None and used_bytes is not None:
        free_bytes = memory_total_bytes - used_bytes
    if not memory_total_bytes or free_bytes is None:
        return None
    return _filled(
        memory_total_bytes, [], free_bytes, "In use", "all programs and what the driver keeps"
    )


def tank_of_ram(read: MemoryRead) -> Tank | None:
    """Return the PC's memory with this program's engine in it."""
    if read.process_bytes is None or read.total_bytes is None or read.free_bytes is None:
        return None
    engine = ("engine", "This program's engine", read.process_bytes, "the process with PyTorch")
    return _filled(
        read.total_bytes, [engine], read.free_bytes, "Other programs",
        "all other programs and the system",
    )  # fmt: skip


def _filled(
    total_bytes: int, own: list[tuple[str, str, int, str]], free_bytes: int,
    others_label: str, others_explanation: str,
) -> Tank:  # fmt: skip
    """Return a tank in which the others have what is left over."""
    filling = _Filling(total_bytes)
    filling.put("free", "Free", free_bytes, "any program can have it")
    for part in own:
        filling.put(*part)
    filling.put("others", others_label, filling.left, others_explanation)
    return filling.tank


class _Filling:
    """Puts one part after another into a tank.

    The numbers of two accounts may be a moment apart, so no part is given more than what is left:
    the sum is always the whole.
    """

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = self.left = total_bytes
        self._parts: dict[str, TankPart] = {}

    def put(self, key: str, label: str, size_bytes: int, explanation: str) -> None:
        """Put a part in, as far as there is room."""
        size = min(max(size_bytes, 0), self.left)
        self.left -= size
        self._parts[f"{key} {label}"] = TankPart(
            key=key, label=label, size_bytes=size, explanation=explanation
        )

    def put_users(self, users: CardUsers, reserved_bytes: int) -> None:
        """Share what is left among the processes; what nobody tells stays "not told"."""
        if users.engine_bytes is not None:
            self.put(
                "context", "CUDA context", users.engine_bytes - reserved_bytes,
                "what the engine's process holds besides PyTorch's own: code, queues, libraries",
            )  # fmt: skip
        for label, size_bytes in users.other_engines:
            self.put("other_engine", label, size_bytes, "this program's own, not a stranger's")
        if users.others_bytes is not None:
            self.put("others", "Other programs", users.others_bytes, "as the driver lists them")
        if not self.left:
            return
        if users.engine_bytes is not None and users.others_bytes is not None:
            told = "what the driver counts for no program: the screen's picture, for example"
        elif users.others_bytes is not None:
            told = "no number for the engine's process: its CUDA context, and what no program has"
        else:
            told = "other programs and CUDA contexts: nobody says how much each of them has"
        self.put("not_told", "Not told", self.left, told)

    def put_kept(self, kept_bytes: int) -> None:
        """Make the tank larger by what the driver keeps, if it can be that."""
        if 0 < kept_bytes <= _LARGEST_KEPT_SHARE * (self.total_bytes + kept_bytes):
            self.total_bytes += kept_bytes
            self.left += kept_bytes
            self.put(
                "driver", "Kept by driver", kept_bytes,
                "NVML counts it as the card's, CUDA does not: the driver's own",
            )  # fmt: skip

    @property
    def tank(self) -> Tank:
        """Return the parts in their order; those that are empty and say nothing are left out."""
        shown = [
            part for part in self._parts.values() if part.size_bytes or part.key in _ALWAYS_SHOWN
        ]
        shown.sort(key=lambda part: _ORDER.index(part.key))
        return Tank(total_bytes=self.total_bytes, parts=tuple(shown))
