"""The parts of a device's memory, which add up to the whole, to the byte.

The driver counts the whole card and all programs; PyTorch counts what this engine has allocated and
reserved. Only this file combines the two: memory that the driver counts as used and PyTorch has not
reserved belongs to others. See `torch.cuda.mem_get_info` and `torch.cuda.memory_reserved`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.core.notice import Notice
from gpu_studio.core.units import format_bytes, format_percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpu_studio.core.devices.devices import GpuProcess
    from gpu_studio.core.memory.oom_text import OomNumbers
    from gpu_studio.core.messages.memory_messages import MemoryRead
    from gpu_studio.core.telemetry import Telemetry


ENOUGH = {True: "✔ yes", False: "✖ no", None: "? nearly"}
LIKELY = "likely"


class FitVerdict(NamedTuple):
    """Whether something fits, with its bar, and what that does not say; None: it is not known."""

    notice: Notice = Notice()
    tank: Tank | None = None
    told: str = ""


class Step(NamedTuple):
    """What helps, how, and whether it is enough; empty if that is not known."""

    what: str
    how: str
    enough: str = ""


class FitAnswer(NamedTuple):
    """An answer.

    Attributes:
        verdicts: one, or two: to use and to train a network.
        sentence: what decides it.
        steps: what helps, first what helps most people.
        details: the arithmetic, and what is not known.
    """

    verdicts: tuple[FitVerdict, ...]
    sentence: str = ""
    steps: tuple[Step, ...] = ()
    details: str = ""


# NVML's total may exceed CUDA's by the memory that the driver reserves. If it exceeds it by more,
# the two describe different memory (a slice of a card).
_LARGEST_KEPT_SHARE = 0.1
# From left to right.
_ORDER = (
    "driver", "others", "not_told", "other_engine", "context", "engine", "tensors", "holes", "free",
    "spilled",
)  # fmt: skip
_OF_OTHERS = ("others", "not_told")
_MOST_NAMED, _LEAST_NAMED_SHARE = 2, 0.04  # of the programs that have a part of their own
_ALWAYS_SHOWN = ("others", "context", "engine", "tensors", "holes", "free")


class TankPart(msgspec.Struct, frozen=True, kw_only=True):
    """One segment of the bar.

    ``key`` selects its color: driver, others, not_told, other_engine, context, engine, tensors,
    holes, free, spilled.
    """

    key: str
    label: str
    size_bytes: int
    explanation: str


class Tank(msgspec.Struct, frozen=True, kw_only=True):
    """The parts from left to right; their sizes add up to ``total_bytes``.

    ``card_bytes`` marks the end of the card if the tank holds more than the card has; else None.
    """

    total_bytes: int
    parts: tuple[TankPart, ...]
    card_bytes: int | None = None

    def share(self, part: TankPart) -> float:
        """Return a part's share of the whole, from 0 to 1."""
        return part.size_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def sentence(self) -> str:
        """The bar in words."""
        text = ", ".join(f"{part.label} {format_bytes(part.size_bytes)}" for part in self.parts)
        return f"{format_bytes(self.total_bytes)} in total: {text}."

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return the bar as a table: part, memory, share, explanation."""
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
    """The processes on a card; None if the system does not report their memory.

    ``engine_bytes`` is the memory of the engine's process: its context and its
    reserved memory. ``other_engines`` are this program's other engines, by their displayed names.
    """

    engine_bytes: int | None = None
    others_bytes: int | None = None
    other_engines: tuple[tuple[str, int], ...] = ()


def card_users(
    processes: Iterable[GpuProcess], engine_pid: int | None, other_engines: Mapping[int, str]
) -> CardUsers:
    """Return the users of a card's memory.

    Args:
        processes: the processes that NVML lists for the card.
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
    if not is_listed:  # in a container, NVML lists the engine under another pid or not at all
        others = None
    return CardUsers(engine_bytes=engine, others_bytes=others, other_engines=tuple(named.items()))


def tank_of_card(
    read: MemoryRead, memory_total_bytes: int | None = None, users: CardUsers | None = None
) -> Tank | None:
    """Return a card's tank from one reading of the engine; None without a CUDA context.

    Args:
        read: the numbers of the allocator and the driver.
        memory_total_bytes: the card's size according to NVML, which includes the driver's part.
        users: the processes according to NVML; None leaves their memory unknown.
    """
    reserved, total, free = read.reserved_bytes, read.total_bytes, read.free_bytes
    if read.allocated_bytes is None or reserved is None or total is None or free is None:
        return None
    filling = _Filling(total)
    filling.put("free", "Free", free, "available to any program")
    allocated = min(read.allocated_bytes, reserved)
    filling.put("tensors", "Allocated", allocated, "held by existing tensors")
    filling.put(
        "holes", "Reserved, empty", reserved - allocated,
        "PyTorch keeps it for new tensors; other programs see it as used",
    )  # fmt: skip
    if read.modelled:
        filling.put(
            "context", "CUDA itself", filling.left,
            "simulated: about as much as CUDA itself uses on such a card",
        )  # fmt: skip
    else:
        filling.put_users(users or CardUsers(), reserved)
    filling.put_kept((memory_total_bytes or 0) - total)
    return filling.tank


def tank_of_error(numbers: OomNumbers) -> Tank | None:
    """Return the tank that an error's text describes; None if the text has too few numbers.

    The rest of the card is "unknown". The text's sizes are rounded to two decimals of their unit,
    so each part is exact to 0.005 of it. If PyTorch held more than the card has, the tank shows
    all of it: the driver had moved the rest to the PC's RAM.
    """
    if numbers.total_bytes is None or numbers.free_bytes is None:
        return _tank_of_limit(numbers)
    own_bytes = (numbers.allocated_bytes or 0) + numbers.holes_bytes
    card_bytes = None
    if own_bytes > numbers.total_bytes + numbers.total_bytes // 64:  # beyond the rounding
        card_bytes = numbers.total_bytes
    filling = _Filling(own_bytes + numbers.free_bytes if card_bytes else numbers.total_bytes)
    filling.put("free", "Free", numbers.free_bytes, "according to the error")
    if numbers.allocated_bytes is not None:
        filling.put(
            "tensors", "Allocated", numbers.allocated_bytes,
            "held by existing tensors, some of them in the PC's RAM"
            if card_bytes
            else "held by existing tensors",
        )  # fmt: skip
    if numbers.unallocated_bytes is not None or numbers.reserved_bytes is not None:
        filling.put(
            "holes", "Reserved, empty", numbers.holes_bytes,
            "reserved by PyTorch but not allocated: in pieces that were too small",
        )  # fmt: skip
    if numbers.in_use_bytes is not None and numbers.allocated_bytes is not None:
        filling.put(
            "context", "CUDA itself", numbers.in_use_bytes - own_bytes,
            "memory of the process outside of PyTorch",
        )  # fmt: skip
    if numbers.processes:
        words = "processes named in the error"
        filling.put("others", "Other programs", numbers.others_bytes, words)
    if filling.left:
        text = "the rest of the card: other programs, the driver, and anything the text leaves out"
        filling.put("not_told", "Unknown", filling.left, text)
    return msgspec.structs.replace(filling.tank, card_bytes=card_bytes)


def _tank_of_limit(numbers: OomNumbers) -> Tank | None:
    """Return the tank of a program's limit on an Apple GPU, which is what its texts describe."""
    limit, allocated, other = numbers.limit_bytes, numbers.allocated_bytes, numbers.other_bytes
    if limit is None or allocated is None or other is None:
        return None
    filling = _Filling(max(allocated + other, limit))
    words = "allocated by PyTorch, with its empty pieces"
    filling.put("tensors", "PyTorch", allocated, words)
    filling.put("context", "Metal", other, "Metal's own memory for this program")
    filling.put("free", "Left", filling.left, "left of the limit for this program")
    is_over = allocated + other > limit
    return msgspec.structs.replace(filling.tank, card_bytes=limit if is_over else None)


def tank_of_sensors(telemetry: Telemetry, memory_total_bytes: int | None) -> Tank | None:
    """Return a card's or the PC's tank without PyTorch: its used and its free memory."""
    free_bytes, used_bytes = telemetry.memory_free_bytes, telemetry.memory_used_bytes
    if memory_total_bytes and free_bytes is None and used_bytes is not None:
        free_bytes = memory_total_bytes - used_bytes
    if not memory_total_bytes or free_bytes is None:
        return None
    return _filled(memory_total_bytes, [], free_bytes, "In use", "all programs and the driver")


def with_programs(tank: Tank, programs: Sequence[tuple[str, int]], spilled_bytes: int) -> Tank:
    """Return a tank with the large programs by their names, and what spilled beyond its end.

    Args:
        tank: a card's.
        programs: the other programs with their bytes on the card, the largest first.
        spilled_bytes: what found no place on the card, and is in the PC's RAM.
    """
    parts: list[TankPart] = []
    left = list(programs)
    for part in tank.parts:
        if part.key not in _OF_OTHERS or not part.size_bytes:
            parts.append(part)
            continue
        rest, named = part.size_bytes, 0
        while left and named < _MOST_NAMED and left[0][1] >= _LEAST_NAMED_SHARE * tank.total_bytes:
            name, size = left.pop(0)
            size = min(size, rest)
            rest, named = rest - size, named + 1
            parts.append(TankPart(key="others", label=name, size_bytes=size, explanation="now"))
        names = " · ".join(f"{name} {format_bytes(size)}" for name, size in left)
        words = f"{part.explanation}{f': {names}' if names else ''}"
        if rest or not named:
            parts.append(msgspec.structs.replace(part, size_bytes=rest, explanation=words))
        left = []
    if not spilled_bytes:
        return msgspec.structs.replace(tank, parts=tuple(parts))
    spilled = TankPart(
        key="spilled", label="Spilled into RAM", size_bytes=spilled_bytes,
        explanation="found no place on the card: its programs wait for the PC's memory",
    )  # fmt: skip
    return Tank(
        total_bytes=tank.total_bytes + spilled_bytes,
        parts=(*parts, spilled),
        card_bytes=tank.total_bytes,
    )


def tank_of_ram(read: MemoryRead) -> Tank | None:
    """Return the PC's memory with this program's engine."""
    if read.process_bytes is None or read.total_bytes is None or read.free_bytes is None:
        return None
    engine = ("engine", "GPU Studio", read.process_bytes, "its process with PyTorch")
    return _filled(
        read.total_bytes, [engine], read.free_bytes, "Other programs",
        "all other programs and the system",
    )  # fmt: skip


def _filled(
    total_bytes: int, own: list[tuple[str, str, int, str]], free_bytes: int,
    others_label: str, others_explanation: str,
) -> Tank:  # fmt: skip
    """Return a tank that assigns the rest to others."""
    filling = _Filling(total_bytes)
    filling.put("free", "Free", free_bytes, "available to any program")
    for part in own:
        filling.put(*part)
    filling.put("others", others_label, filling.left, others_explanation)
    return filling.tank


class _Filling:
    """Fills a tank, one part after another.

    The numbers from the driver and from PyTorch may be a moment apart, so no part gets more than
    the space left: the sum is always the whole.
    """

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = self.left = total_bytes
        self._parts: dict[str, TankPart] = {}

    def put(self, key: str, label: str, size_bytes: int, explanation: str) -> None:
        """Add a part, limited to the space left."""
        size = min(max(size_bytes, 0), self.left)
        self.left -= size
        self._parts[f"{key} {label}"] = TankPart(
            key=key, label=label, size_bytes=size, explanation=explanation
        )

    def put_users(self, users: CardUsers, reserved_bytes: int) -> None:
        """Divide the space left among the processes; the remainder is "unknown"."""
        if users.engine_bytes is not None:
            self.put(
                "context", "CUDA itself", users.engine_bytes - reserved_bytes,
                "memory outside of PyTorch's allocator: code, queues, libraries",
            )  # fmt: skip
        for label, size_bytes in users.other_engines:
            self.put("other_engine", label, size_bytes, "another process of this program")
        if users.others_bytes is not None:
            self.put("others", "Other programs", users.others_bytes, "according to the driver")
        if not self.left:
            return
        if users.engine_bytes is not None and users.others_bytes is not None:
            text = "memory that the driver assigns to no program, such as the screen's picture"
        elif users.others_bytes is not None:
            text = "CUDA itself, which is not reported, and memory of no program"
        else:
            text = "other programs and CUDA itself; the system does not report each one's memory"
        self.put("not_told", "Unknown", self.left, text)

    def put_kept(self, kept_bytes: int) -> None:
        """Enlarge the tank by the driver's part, if the difference can be that."""
        if 0 < kept_bytes <= _LARGEST_KEPT_SHARE * (self.total_bytes + kept_bytes):
            self.total_bytes += kept_bytes
            self.left += kept_bytes
            self.put(
                "driver", "Reserved by driver", kept_bytes,
                "used by the driver itself; NVML counts it, CUDA does not",
            )  # fmt: skip

    @property
    def tank(self) -> Tank:
        """Return the parts in their order, without empty parts that say nothing."""
        shown = [
            part for part in self._parts.values() if part.size_bytes or part.key in _ALWAYS_SHOWN
        ]
        shown.sort(key=lambda part: _ORDER.index(part.key))
        return Tank(total_bytes=self.total_bytes, parts=tuple(shown))
