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
    from gpu_studio.core.devices import Telemetry
    from gpu_studio.core.protocol import MemoryRead

# NVML's total may be larger than CUDA's by what the driver keeps; beyond that they do not speak of
# the same memory (a slice of a card).
_LARGEST_KEPT_SHARE = 0.1


class TankPart(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of the bar. ``key`` names its look: others, engine, tensors, holes, free."""

    key: str
    label: str
    size_bytes: int
    explanation: str


class Tank(msgspec.Struct, frozen=True, kw_only=True):
    """The parts from left to right; their sizes sum to ``total_bytes``."""

    total_bytes: int
    parts: tuple[TankPart, ...]

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


def tank_of_card(read: MemoryRead, memory_total_bytes: int | None = None) -> Tank | None:
    """Return a card's tank from what the engine read in one go; None without a CUDA context.

    Args:
        read: the allocator's and the driver's numbers.
        memory_total_bytes: the card's size as NVML gives it, which has what the driver keeps.
    """
    if None in (read.allocated_bytes, read.reserved_bytes, read.total_bytes, read.free_bytes):
        return None
    assert read.allocated_bytes is not None
    assert read.reserved_bytes is not None
    assert read.total_bytes is not None
    assert read.free_bytes is not None
    total_bytes = read.total_bytes
    if memory_total_bytes and (
        0 <= memory_total_bytes - total_bytes <= _LARGEST_KEPT_SHARE * memory_total_bytes
    ):
        total_bytes = memory_total_bytes
    allocated = min(read.allocated_bytes, read.reserved_bytes)
    return _filled(
        total_bytes,
        [
            ("tensors", "Tensors", allocated, "allocated: what living tensors hold"),
            (
                "holes", "Reserved, empty", read.reserved_bytes - allocated,
                "PyTorch keeps it for its next tensors; other programs see it as taken",
            ),
        ],
        read.free_bytes,
        "Other programs, driver",
        "other programs, what the driver keeps, and the CUDA context of this program's engine",
    )  # fmt: skip


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
    """Return a tank in which the others have what is left over.

    The numbers of two accounts may be a moment apart; so none is let over what is left.
    """
    left = total_bytes
    free = min(max(free_bytes, 0), left)
    left -= free
    parts = []
    for key, label, size_bytes, explanation in own:
        size = min(max(size_bytes, 0), left)
        left -= size
        parts.append(TankPart(key=key, label=label, size_bytes=size, explanation=explanation))
    others = TankPart(
        key="others", label=others_label, size_bytes=left, explanation=others_explanation
    )
    empty = TankPart(
        key="free", label="Free", size_bytes=free, explanation="any program can have it"
    )
    return Tank(total_bytes=total_bytes, parts=(others, *parts, empty))
